"""Every bound of the paper and ours, as plain functions of scalars (L, R, G, T, d, p, eps, mu, ...).

"The paper" is "Faster Acceleration for Steepest Descent" (Bai & Bullins, COLT 2025).  Each docstring begins with the
inequality and says where it comes from ("ours" means that it is not in the paper).  If the form that the paper prints
is wrong or loose, the docstring gives the right one.  Argument names mean the same everywhere; a value outside the
range of its symbol raises ValueError.

L           smoothness of f in l_p; mu is its strong convexity in l_2
R           ||x_0 - x*||_2, the distance from the start to a minimiser
r, G        the gain ||g||_{p*}/||g||_2 >= 1 of one gradient g, where p* is dual to p; its mean over the run
A_t, psi_t  the sum of the weights of t linear lower bounds on f; their weighted sum plus ||x - x_0||_2^2/2
v_t, psi*   the minimiser of psi_t and its minimum; the methods keep A_t f(x_t) <= psi*_t
rho         what the search for the coupling point y uses in place of 1/r^2
Gamma       the mean of min(s, r^2/s) over the run, s the guess of the gain; the mean gain while the gain is steady
s_p(g)      the steepest-descent map of l_p

published   Algorithm 1 as published: progress, growth, the main bound, distances, the search
extensions  restarts and the norm of the gradient
optimised   the optimised form: property P, its invariant, its rate, strong convexity
tight       cuts with rho given or with the largest weight, and the certificate
rivals      gradient and steepest descent, AGD, linear coupling, estimate sequences, the lower bound
nemirovskii the method with an l_p prox term
area_convexity  dual extrapolation for ||Ax - b||_inf over the box
noisy       steepest descent with gradients that are off, such as those of mini-batches
lp_hessian  the Hessian of ||z||_p^2

>>> run = dict(L=1.0, R=1.0, G=1.0, T=10)
>>> main_bound(**run, constant=MAIN_PAPER), main_bound(**run), tight_bound(**run)
(3.24, 0.72, 0.02)
>>> round(optimised_bound(L=1.0, R=1.0, p=2, Gamma=1.0, T=10), 12)
0.01
"""

# ruff: noqa: F403
from . import area_convexity, extensions, lp_hessian, nemirovskii, noisy, optimised, published, rivals, tight
from .area_convexity import *
from .extensions import *
from .lp_hessian import *
from .nemirovskii import *
from .noisy import *
from .optimised import *
from .published import *
from .rivals import *
from .tight import *

_MODULES = (published, extensions, optimised, tight, rivals, nemirovskii, area_convexity, noisy, lp_hessian)
__all__ = [name for module in _MODULES for name in module.__all__]
