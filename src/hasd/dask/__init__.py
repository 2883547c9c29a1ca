"""Affine objectives whose rows lie in blocks: on the workers of a Dask cluster, or on the threads of one machine.

Problem.    min f(x) = phi(Ax - b) + (ridge/2)||x||^2, the rows of A in blocks A_1, ..., A_B that one process cannot or
            should not hold.
Algorithm.  Any method of ``hasd.minimize`` (hasd-subspace is the best choice).  A and its images stay where the blocks
            are; only vectors of length d and k x k matrices are sent.  Requests of a method are collected until it
            needs a number; then one task per block does them all and sends one answer back (a *round*).
            With phi_j the loss on the rows of block j, every loss here is a mixture of the blocks,
                sum:      phi = sum_j s_j phi_j,                       s_j = 1, or n_j/n where phi is a mean;
                softmax:  phi = alpha log sum_j exp(phi_j/alpha),      w_j = exp((phi_j - phi)/alpha),
            so that slopes and curvatures of the blocks, weighted by s_j or w_j, add up to those of phi.  So one round
            is enough for log-sum-exp as well, and no block waits for a maximum over the others.
Guarantee.  Sums are taken in the order of the blocks, so the result does not depend on which worker answers first.
            Blocks and images are results of submitted tasks: the scheduler makes those of a lost worker again, by the
            same arithmetic, and the run goes on.  The work for that is bounded, because the image of x is computed
            afresh after 64 moves, and those of the directions after directions were dropped eight times.
Reference.  Rocklin (2015) for Dask; the mixture is the chain rule for log-sum-exp.

With ``client=None`` the blocks are in this process, on a thread pool where that helps, and Dask is not needed.

>>> import numpy as np, hasd, hasd.dask
>>> from hasd.objectives.losses import LogSumExpLoss
>>> def block(seed):
...     return lambda: np.random.default_rng(seed).standard_normal((300, 8))
>>> f = hasd.dask.affine(LogSumExpLoss(), [block(0), block(1)], ridge=0.1)
>>> res = hasd.minimize(f, np.ones(8), method="hasd-subspace", tol=1e-9)
>>> res.success, f.rows, f.dimension
(True, 600, 8)

On a cluster the functions are called on the workers; this needs Dask, ``pip install "hasd[dask]"``::

    from distributed import Client
    f = hasd.dask.affine(LogSumExpLoss(), [block(0), block(1)], ridge=0.1, client=Client())
"""

from __future__ import annotations

from .build import affine
from .objective import BlockAffine

__all__ = ["BlockAffine", "affine"]
