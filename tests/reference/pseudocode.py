"""The paper's pseudocode, literally.  Imports nothing from hasd: two readings of the paper are compared, not one.

symbol in the paper         here
x_t, v_t, y_t               x, v, y
A_t, a_{t+1}, tau_t         A, a, tau
rho_t                       rho
psi_t                       cuts: the list of (a_i, x_i, f(x_i), grad f(x_i))
"""

import numpy as np


def dual(p):
    return 1.0 if np.isinf(p) else p / (p - 1.0)


def norm(x, q):
    x = np.abs(x)
    return float(x.max()) if np.isinf(q) else float(np.sum(x**q) ** (1.0 / q))


def steepest_step(y, grad, L, p):
    """argmin <grad, x - y> + L ||x - y||_p^2, by Eq. (update)."""
    if np.isinf(p):
        return y - norm(grad, 1.0) * np.sign(grad) / (2.0 * L)
    with np.errstate(invalid="ignore", divide="ignore"):
        g = np.where(grad == 0.0, 0.0, grad / np.abs(grad) ** ((p - 2.0) / (p - 1.0)))
    return y - norm(grad, dual(p)) ** ((p - 2.0) / (p - 1.0)) * g / (2.0 * L)


def ratio(grad, p):
    return norm(grad, 2.0) ** 2 / norm(grad, dual(p)) ** 2


def psi_minimum(cuts, x0):
    """min over x of 1/2||x - x0||^2 + sum a_i [f_i + <g_i, x - x_i>], from the whole list."""
    slope = sum((a * g for a, _, _, g in cuts), np.zeros_like(x0))
    v = x0 - slope
    value = 0.5 * np.dot(v - x0, v - x0) + sum(a * (f + np.dot(g, v - x)) for a, x, f, g in cuts)
    return v, float(value)


def algorithm_1(f, grad, x0, L, p, T, constant=18.0, rhos=None):
    """HASD.  rhos=None: cold bisection on theta in [0, 1]; otherwise the rho of each iteration is given and checked."""
    x, A, cuts = x0, 0.0, []
    for t in range(T):
        v, psi = psi_minimum(cuts, x0)

        def attempt(rho, A=A, x=x, v=v):
            a = (1.0 + np.sqrt(1.0 + 4.0 * constant * L * rho * A)) / (
                2.0 * constant * L * rho
            )  # a^2 = (A + a)/(18 L rho)
            tau = a / (A + a)
            y = (1.0 - tau) * x + tau * v
            new = steepest_step(y, grad(y), L, p)
            return a, new, ratio(grad(new), p)

        if t == 0:  # y_0 = x_0: rho_0 is read off x_1
            _, _, rho = attempt(1.0)
        elif rhos is not None:
            rho = rhos[t]
        else:
            low, high = 0.0, 1.0
            while True:
                theta = 0.5 * (low + high)
                rho = theta / (constant * L * (1.0 - theta) ** 2 * A)
                zeta = attempt(rho)[2] / rho
                if 0.5 <= zeta <= 2.0 or not low < theta < high:
                    break
                low, high = (theta, high) if zeta > 2.0 else (low, theta)
        a, new, target = attempt(rho)
        assert 0.5 * target * (1 - 1e-12) <= rho <= 2.0 * target * (1 + 1e-12), "line 3's first condition"
        x, A = new, A + a
        cuts.append((a, x, f(x), grad(x)))
        v, psi = psi_minimum(cuts, x0)
        yield {"x": x, "v": v, "A": A, "a": a, "rho": rho, "psi": psi}


def algorithm_2(f, grad, x0, L, mu, p, G_hat, K):
    """HASD + Restarting."""
    T = int(np.ceil(36.0 / G_hat * np.sqrt(L / mu)))
    x = x0
    for _ in range(K):
        for step in algorithm_1(f, grad, x, L, p, T):
            last = step
            yield step
        x = last["x"]


def tight_form(f, grad, x0, L, p, T, rhos, mu=0.0):
    """Section 3 of our notes with the rhos given: the cut at y, strong convexity in the cuts."""
    x, A, cuts, v = x0, 0.0, [], x0
    for t in range(T):
        kappa = 1.0 + mu * A
        c = L * rhos[t]
        # c a^2 = (A + a)(1 + mu (A + a))
        a = max(np.roots([c - mu, -(1.0 + 2.0 * mu * A), -A * (1.0 + mu * A)]).real)
        kappa_next = kappa + mu * a
        y = (A * kappa_next * x + a * kappa * v) / (A * kappa_next + a * kappa)
        g = grad(y)
        x = y - 2.0 * (y - steepest_step(y, g, L, p))  # step 1/L, not 1/(2L)
        A += a
        cuts.append((a, y, f(y), g))
        # argmin and min of 1/2||x - x0||^2 + sum a_i [f_i + <g_i, x - y_i> + mu/2 ||x - y_i||^2]
        v = (x0 + sum(a_i * (mu * y_i - g_i) for a_i, y_i, _, g_i in cuts)) / (1.0 + mu * A)
        psi = 0.5 * np.dot(v - x0, v - x0) + sum(
            a_i * (f_i + np.dot(g_i, v - y_i) + 0.5 * mu * np.dot(v - y_i, v - y_i)) for a_i, y_i, f_i, g_i in cuts
        )
        yield {"x": x, "v": v, "A": A, "a": a, "psi": float(psi)}


def accelerated_gradient(grad, x0, L, T):
    """AGD with the momentum pushing forward."""
    x, y, c = x0, x0, 1.0
    for _ in range(T):
        new = y - grad(y) / L
        c_new = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * c * c))
        y = new + (c - 1.0) / c_new * (new - x)
        x, c = new, c_new
        yield x


def heavy_ball(grad, x0, L, momentum, T):
    x, old = x0, x0
    for _ in range(T):
        x, old = x - grad(x) / L + momentum * (x - old), x
        yield x


def linear_coupling(grad, x0, L, p, T):
    """Allen-Zhu & Orecchia, Algorithm AGM, with w(x) = 1/2||x||_2^2."""
    y, z = x0, x0
    for k in range(T):
        alpha = (k + 2.0) / (2.0 * L)
        tau = 1.0 / (alpha * L)
        x = tau * z + (1.0 - tau) * y
        g = grad(x)
        y = x - 2.0 * (x - steepest_step(x, g, L, p))
        z = z - alpha * g
        yield y
