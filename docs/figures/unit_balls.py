"""Unit balls of l_p and the steepest direction in each: where the ball reaches farthest against the gradient."""

import math

import matplotlib.pyplot as plt
import numpy as np
from look import EXPONENTS, GREY, name_of

import hasd

gradient = np.array([-1.0, -0.35])
angle = np.linspace(0.0, 2.0 * np.pi, 2001)
circle = np.stack((np.cos(angle), np.sin(angle)))

fig, axes = plt.subplots(1, 3, figsize=(8.4, 3.1), layout="constrained", sharey=True)
reached = {}
for ax, p in zip(axes, (2.0, 3.0, math.inf), strict=True):
    geometry, colour = hasd.Lp(p), EXPONENTS[p][0]
    ball = circle / np.array([geometry.norm(point) for point in circle.T])
    direction = -geometry.steepest(gradient) / geometry.dual_norm(gradient)
    reached[p] = -gradient @ direction
    ax.fill(*ball, color=colour, alpha=0.15, linewidth=0)
    ax.plot(*ball, color=colour, linewidth=1.5)
    # the level line of the linear model that touches the ball: <g, x> = -||g||_{p*}
    along = np.array([gradient[1], -gradient[0]]) / np.linalg.norm(gradient)
    line = direction[:, None] + np.outer(along, [-3.0, 3.0])
    ax.plot(*line, ":", color=GREY, linewidth=1.2)
    ax.annotate("", direction, (0.0, 0.0), arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": 2.0})
    ax.annotate(
        "", -gradient / np.linalg.norm(gradient) * 0.62, (0.0, 0.0), arrowprops={"arrowstyle": "->", "color": "black"}
    )
    ax.set(title=f"{name_of(p)}: falls by {reached[p]:.2f}", xlim=(-1.25, 1.35), ylim=(-1.25, 1.25), aspect="equal")
    ax.set_xticks([-1, 0, 1])
    ax.set_yticks([-1, 0, 1])
axes[0].text(0.30, -0.09, r"$-g$", fontsize=10)
plt.show()
