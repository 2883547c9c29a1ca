"""The losses in plain NumPy, to judge what the solvers return without the code that is measured.

Each is a function of the product Ax, the target (b, or labels in {-1, 1}) and the smoothing alpha, and returns phi and
its slope with respect to Ax.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import expit, log_softmax, logsumexp, softmax

Loss = Callable[[np.ndarray, np.ndarray, float], tuple[float, np.ndarray]]


def log_sum_exp(product: np.ndarray, target: np.ndarray, alpha: float) -> tuple[float, np.ndarray]:
    """alpha log sum_i exp(z_i/alpha), z = Ax - b.

    >>> value, slope = log_sum_exp(np.zeros(2), np.zeros(2), 1.0)
    >>> bool(np.isclose(value, np.log(2.0))), slope.tolist()
    (True, [0.5, 0.5])
    """
    z = (product - target) / alpha
    return alpha * float(logsumexp(z)), softmax(z)


def minimax(product: np.ndarray, target: np.ndarray, alpha: float) -> tuple[float, np.ndarray]:
    """alpha log sum_i (exp(z_i/alpha) + exp(-z_i/alpha)), z = Ax - b: a smoothed max|z|.

    >>> minimax(np.array([3.0, -1.0]), np.zeros(2), 1e-3)[0]
    3.0
    """
    z = (product - target) / alpha
    signed = np.concatenate((z, -z))
    up, down = np.split(np.exp(log_softmax(signed)), 2)
    return alpha * float(logsumexp(signed)), up - down


def logistic(product: np.ndarray, target: np.ndarray, alpha: float) -> tuple[float, np.ndarray]:
    """The mean of log(1 + exp(-y_i <a_i, x>)); alpha plays no part.

    >>> value, slope = logistic(np.zeros(2), np.array([1.0, -1.0]), 1.0)
    >>> bool(np.isclose(value, np.log(2.0))), slope.tolist()
    (True, [-0.25, 0.25])
    """
    margins = target * product
    return float(np.mean(np.logaddexp(0.0, -margins))), -target * expit(-margins) / len(target)


def least_squares(product: np.ndarray, target: np.ndarray, alpha: float) -> tuple[float, np.ndarray]:
    """1/2 ||Ax - b||^2; alpha plays no part.

    >>> least_squares(np.array([1.0]), np.array([3.0]), 1.0)
    (2.0, array([-2.]))
    """
    z = product - target
    return 0.5 * float(z @ z), z


LOSSES: dict[str, Loss] = {
    "log-sum-exp": log_sum_exp,
    "minimax": minimax,
    "logistic": logistic,
    "least-squares": least_squares,
}
