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


def strong_psi_minimum(cuts, x0, mu):
    """argmin and min of 1/2||x - x0||^2 + sum a_i [f_i + <g_i, x - y_i> + mu/2 ||x - y_i||^2], from the whole list."""
    A = sum(a for a, _, _, _ in cuts)
    v = (x0 + sum((a * (mu * y - g) for a, y, _, g in cuts), np.zeros_like(x0))) / (1.0 + mu * A)
    value = 0.5 * np.dot(v - x0, v - x0)
    value += sum(a * (f + np.dot(g, v - y) + 0.5 * mu * np.dot(v - y, v - y)) for a, y, f, g in cuts)
    return v, float(value)


def optimised_form(f, grad, x0, L, p, T, mu=0.0, beta=0.0, exact=True):
    """Section 6 of our notes, steps 1 to 5; gamma = min(1, r^2/s^2), or with `exact` as much as the slack allows."""
    x, U, A, cuts, s = x0, 0.0, 0.0, [], None
    for _ in range(T):
        v, psi = strong_psi_minimum(cuts, x0, mu)
        kappa = 1.0 + mu * A
        s = 1.0 / np.sqrt(ratio(grad(x0), p)) if s is None else s
        c = max(L / s**2, 1.1 * (1.0 + beta) * mu)
        # 1.  c a'^2 = (kappa + mu a') (p* A + (1 + beta) a')
        linear = -(kappa * (1.0 + beta) + mu * dual(p) * A)
        a = max(np.roots([c - (1.0 + beta) * mu, linear, -kappa * dual(p) * A]).real)
        # 2.
        b = a * kappa / (kappa + mu * a)
        y = (A * x + b * v) / (A + b)
        g = grad(y)
        N, n = norm(g, dual(p)), norm(g, 2.0)
        # 3.
        gamma = min(1.0, (N / n) ** 2 * c / L)
        if exact and A > 0.0:
            q = A * (U - f(y) - np.dot(g, x - y)) + (A + (1.0 + beta) * b) * N**2 / (2.0 * L)
            q += 0.5 * b * mu * np.dot(v - y, v - y)
            W = (a * n) ** 2 / (kappa + mu * a)
            gamma = max(gamma, min(1.0, (q + np.sqrt(max(0.0, q * q + 2.0 * (psi - A * U) * W))) / W))
        a = gamma * a * kappa / (kappa + mu * a * (1.0 - gamma))
        # 4.
        new = y - 2.0 * (y - steepest_step(y, g, L, p))  # a step of 1/L, not of 1/(2L)
        x = ((1.0 - gamma) * A * x + (gamma * A + a) * new) / (A + a)
        U = ((1.0 - gamma) * A * U + (gamma * A + a) * (f(y) - N**2 / (2.0 * L))) / (A + a)
        # 5.
        cuts.append((a, y, f(y), g))
        A, s = A + a, N / n
        v, psi = strong_psi_minimum(cuts, x0, mu)
        yield {"x": x, "v": v, "A": A, "a": a, "psi": psi, "U": U, "y": y, "gamma": gamma}


def optimised_gradient(grad, x0, L, T):
    """OGM (Drori & Teboulle 2014; Kim & Fessler 2016), without the change of its last step: its gradient points."""
    x, y, theta = x0, x0, 1.0
    for _ in range(T):
        yield x
        new = x - grad(x) / L
        theta_new = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * theta**2))
        x = new + (theta - 1.0) / theta_new * (new - y) + theta / theta_new * (new - x)
        y, theta = new, theta_new


def strongly_convex_optimised_gradient(grad, x0, L, mu, T):
    """SC-OGM (Park, Park & Ryu 2023): its gradient points."""
    condition = L / mu
    share = (np.sqrt(8.0 * condition + 1.0) + 3.0) / (2.0 * condition - 2.0)
    x, y = x0, x0
    for _ in range(T):
        yield x
        new = x - grad(x) / L
        x = new + (new - y) / (2.0 * share + 1.0) + (new - x) / (2.0 * share + 1.0)
        y = new


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


def power_convexity(p):
    """min over t of |1 + t|^p - |t|^p - p |t|^{p-2} t, on a grid that is refined where it is least."""
    low, high = -1.0, 0.0
    for _ in range(12):
        t = np.linspace(low, high, 1001)
        values = np.abs(1.0 + t) ** p - np.abs(t) ** p + p * np.abs(t) ** (p - 1.0)
        least = int(values.argmin())
        low, high = t[max(least - 1, 0)], t[min(least + 1, 1000)]
    return float(values.min())


def nemirovskii_nesterov(f, grad, x0, L, p, planned, R, T):
    """Section 7 of our notes: an estimate sequence with the prox term ||x - x_0||_p^p/p, planned for so many steps."""
    q = max(2.0, np.log(x0.size)) if np.isinf(p) else p  # the exponent of the prox term
    R = R * x0.size ** (1.0 / q - 1.0 / p)
    c = power_convexity(q) ** (2.0 / q) * R ** (q - 2.0) * planned ** (-(q - 2.0) / q) / L
    A, s, x, v, m = 0.0, np.zeros_like(x0), x0, x0, 0.0
    for _ in range(T):
        a = 0.5 * (c + np.sqrt(c * c + 4.0 * c * A))  # a^2 = c (A + a)
        y = (A * x + a * v) / (A + a)
        g = grad(y)
        x = y - 2.0 * (y - steepest_step(y, g, L, p))
        s, A, m = s + a * g, A + a, m + a * (f(y) - np.dot(g, y - x0))
        v = x0 - np.sign(s) * np.abs(s) ** (1.0 / (q - 1.0))
        yield {
            "x": x,
            "v": v,
            "A": A,
            "y": y,
            "psi": m - norm(s, dual(q)) ** dual(q) / dual(q),
            "scale": R ** (q - 2.0),
        }
