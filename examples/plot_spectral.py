"""
Matrices: when the spectral norm pays
=====================================

The unknown of this page is a matrix. Steepest descent can measure its steps entry by entry, as :class:`hasd.Lp` does,
or by singular values, as :class:`hasd.Schatten` does. In two problems of the same size we fit a matrix
to measurements so that the largest error is least. In one of them the spectral norm needs the fewest evaluations; in
the other it does not, and two numbers, the smoothness constant and the gain, say why.
"""

# %%
# What decides
# ------------
# The guarantee of ``hasd`` after T iterations is :math:`2R^2/T^2` times :math:`L/((1 + \sigma)\,G^2)`. :math:`L` is the
# smoothness constant of f in the norm, and :math:`G` the mean gain, the dual norm of the gradients divided by their
# Euclidean norm. :math:`\sigma` is 1 for the Frobenius norm, and 0 for the other two norms of this page. So we look for
# the norm with the least :math:`L/((1 + \sigma)\,G^2)`.
#
# Both functions are smoothed maxima :math:`\alpha \log \sum_i (e^{z_i/\alpha} + e^{-z_i/\alpha})` of the errors
# :math:`z_i = \langle A_i, X\rangle - b_i`. Then :math:`L = \max_i \|A_i\|_*^2/\alpha` serves in any norm, where
# :math:`\|\cdot\|_*` is its dual norm: the sum of the singular values for the spectral norm, the Frobenius norm for
# itself, and the sum of all entries in size for the largest entry.

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import csr_array

import hasd

SIZE, ALPHA, TARGET, MOST = 24, 0.02, 1e-2, 1000
SHAPE = (SIZE, SIZE)
NORMS = {
    "spectral": hasd.Schatten(np.inf, SHAPE),
    "Frobenius": hasd.Schatten(2, SHAPE),
    "largest entry": hasd.Lp(np.inf, shape=SHAPE),
}
rng = np.random.default_rng(0)


def smoothed_maximum(measure, adjoint, b):
    """The function with its gradient; ``measure`` maps a matrix to the measurements, ``adjoint`` goes back."""

    def f(X):
        z = (measure(X) - b) / ALPHA
        top = np.abs(z).max()
        up, down = np.exp(z - top), np.exp(-z - top)
        total = np.sum(up + down)
        return ALPHA * (top + np.log(total)), adjoint((up - down) / total)

    return f


# %%
# Two problems
# ------------
# *Bilinear measurements:* each is :math:`u^T X v` with random unit vectors u and v. The matrix :math:`uv^T` has one
# singular value, 1, but all its entries count.

count = 2 * SIZE * SIZE
u, v = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in rng.standard_normal((2, count, SIZE)))
hidden = rng.standard_normal((SIZE, 3)) @ rng.standard_normal((3, SIZE))


def bilinear(X):
    return np.sum((u @ X) * v, axis=1)


b_bilinear = bilinear(hidden) + rng.uniform(-0.5, 0.5, count)
f_bilinear = smoothed_maximum(bilinear, lambda w: u.T @ (w[:, None] * v), b_bilinear)
rows_bilinear = (u[:, :, None] * v[:, None, :]).reshape(count, -1)

# %%
# *Slopes:* X is a height map, and each measurement is the difference of two neighbouring heights. Its matrix has two
# entries, 1 and -1, and also only one singular value.

place = np.arange(SIZE * SIZE).reshape(SHAPE)
pairs = np.concatenate(
    [np.stack((place[1:].ravel(), place[:-1].ravel())), np.stack((place[:, 1:].ravel(), place[:, :-1].ravel()))], axis=1
)
signs = np.repeat([[1.0], [-1.0]], pairs.shape[1], axis=1)
edges = np.tile(np.arange(pairs.shape[1]), (2, 1))
rows_slopes = csr_array((signs.ravel(), (edges.ravel(), pairs.ravel())), shape=(pairs.shape[1], SIZE * SIZE))

t = np.linspace(-1.0, 1.0, SIZE)
hill = 6.0 * np.exp(-3.0 * (t[:, None] ** 2 + (t - 0.3) ** 2))
b_slopes = rows_slopes @ hill.ravel() + rng.uniform(-0.2, 0.2, pairs.shape[1])
f_slopes = smoothed_maximum(lambda X: rows_slopes @ X.ravel(), lambda w: (rows_slopes.T @ w).reshape(SHAPE), b_slopes)

# %%
# The constants are exact numbers of the data. The minimum itself, for the picture, comes from the objective of the
# library with the same rows.

problems = {
    "bilinear measurements": (f_bilinear, rows_bilinear, b_bilinear),
    "slopes of a surface": (f_slopes, rows_slopes.toarray(), b_slopes),
}
constants = {
    name: {label: max(norm.dual_norm(row) for row in rows) ** 2 / ALPHA for label, norm in NORMS.items()}
    for name, (_, rows, _) in problems.items()
}

# %%
# The race
# --------
# Every run starts at the zero matrix and ends when the error is a hundredth of what it was, or after 1000 evaluations
# (``inf`` in the table).
# ``x0`` is a matrix, as the norms know its shape; the functions get matrices, and return the gradient as one. Each norm
# is run twice: with the constant declared, which is what the guarantee is about, and with a constant that is found on
# the way.


def race(name, declared):
    """The relative error after each evaluation, and the mean gain, for each norm."""
    f, rows, b = problems[name]
    least = hasd.minimize(hasd.objectives.SymmetricSoftmax(rows, b, alpha=ALPHA), np.zeros(SIZE * SIZE), tol=1e-8).fun
    first = f(np.zeros(SHAPE))[0] - least

    def stop(intermediate_result):
        if intermediate_result.fun - least <= TARGET * first:
            raise StopIteration

    out = {}
    for label, norm in NORMS.items():
        L = constants[name][label] if declared else None
        run = hasd.minimize(f, np.zeros(SHAPE), jac=True, p=norm, L=L, tol=0, maxfun=MOST, callback=stop)
        error = np.minimum.accumulate(run.trace["fun"] - least) / first
        out[label] = run.trace["nfev"], error, float(np.nanmean(run.trace["gain"]))
    return out


declared = {name: race(name, declared=True) for name in problems}
found = {name: race(name, declared=False) for name in problems}


def needed(run):
    """Evaluations until the target; infinity if it was not reached."""
    evaluations, error, _ = run
    return float(evaluations[-1]) if error[-1] <= TARGET else np.inf


scores = {}
for name in problems:
    print(f"{name:22} {'L':>8} {'gain':>6} {'L/((1+sigma)G^2)':>17}   evaluations: L declared, found")
    for label, norm in NORMS.items():
        L, gain = constants[name][label], declared[name][label][2]
        scores[name, label] = L / ((1.0 + norm.dual_convexity) * gain**2)
        counts = " ".join(f"{needed(runs[name][label]):12.0f}" for runs in (declared, found))
        print(f"  {label:20} {L:8.0f} {gain:6.1f} {scores[name, label]:17.1f}   {counts}")

# %%
# The rule picks the winner in both problems. With bilinear measurements the spectral norm has the same constant as the
# Frobenius norm, and a larger gain; the largest entry pays for the many entries of :math:`uv^T` with a constant that
# cancels its gain. With slopes every :math:`A_i` has only two entries, so that the constant for the largest entry is
# small, and its gain may reach the square root of the number of *entries*; that of the spectral norm is at most the
# square root of the number of rows. It is better than the Frobenius norm there, too, but not the best. Each of its
# steps also costs a singular value decomposition, which is worth it only if an evaluation costs more.
#
# If the constant is found on the way, it follows the function where that bends less than :math:`L` allows. The three
# norms are much closer to each other then, and the rule, which is about the worst case, decides less.

fig, axes = plt.subplots(1, 2, figsize=(9.0, 3.6), sharey=True, layout="constrained")
styles = {"spectral": ("#0b3c5d", "-"), "Frobenius": ("#d9822b", "--"), "largest entry": ("#4c9f70", "-.")}
for ax, name in zip(axes, problems, strict=True):
    for label, (colour, line) in styles.items():
        evaluations, error, _ = declared[name][label]
        ax.semilogy(evaluations, error, line, color=colour, linewidth=2.0, label=label)
    ax.axhline(TARGET, color="0.6", linewidth=0.8)
    ax.set(title=name, xlabel="evaluations, L declared", xlim=(0, MOST))
axes[0].set_ylabel("error relative to the first")
axes[0].legend(frameon=False)
plt.show()
