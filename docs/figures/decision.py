"""Which function to call, and which method it takes, as a tree."""

import matplotlib.pyplot as plt
from look import BLUE, GREEN
from matplotlib.patches import FancyBboxPatch

QUESTIONS = [
    (
        "Is it a fit, a transport problem\nor a matrix to be balanced?",
        "chebyshev(A, b), lp_fit(A, b)\ntransport(…), balance(…)",
    ),
    ("Do you know L in some norm, and\nis the rate to be guaranteed?", "minimize(…, p=p, L=L)\ntakes hasd"),
    (
        "Is f(x) = φ(Ax − b) + ridge, in up to\n1000 variables, and does a Hessian pay?",
        "minimize(f, x0)\ntakes hasd-newton",
    ),
    ("Is f quadratic?", "minimize(f, x0)\ntakes hasd-cg"),
    (
        "Is f(x) = φ(Ax − b) + ridge, and does\na subspace save more than it costs?",
        "minimize(f, x0)\ntakes hasd-subspace",
    ),
]
OTHERWISE = "minimize(f, x0, jac=…)\ntakes hasd-qn"
STEP, LEFT, RIGHT, WIDTH, HEIGHT = 1.25, 0.0, 5.2, 3.7, 0.8

fig, ax = plt.subplots(figsize=(8.4, 6.5), layout="constrained")


def box(x, y, text, colour, family):
    """A box of the common size around its text."""
    corner = (x - WIDTH / 2.0, y - HEIGHT / 2.0)
    look = {"boxstyle": "round,pad=0,rounding_size=0.12", "facecolor": "white", "edgecolor": colour, "linewidth": 1.6}
    ax.add_patch(FancyBboxPatch(corner, WIDTH, HEIGHT, **look))
    ax.text(x, y, text, ha="center", va="center", fontsize=9.5, family=family, linespacing=1.35)


def arrow(start, end, text, offset):
    """An arrow with the answer beside it."""
    ax.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": "0.35", "shrinkA": 0, "shrinkB": 0})
    middle = [(one + other) / 2.0 for one, other in zip(start, end, strict=True)]
    ax.text(middle[0] + offset[0], middle[1] + offset[1], text, ha="center", va="center", color="0.25")


for row, (question, answer) in enumerate(QUESTIONS):
    y = -STEP * row
    box(LEFT, y, question, BLUE, "sans-serif")
    box(RIGHT, y, answer, GREEN, "monospace")
    arrow((LEFT + WIDTH / 2.0, y), (RIGHT - WIDTH / 2.0, y), "yes", (0.0, 0.15))
    arrow((LEFT, y - HEIGHT / 2.0), (LEFT, y - STEP + HEIGHT / 2.0), "no", (0.22, 0.0))
box(LEFT, -STEP * len(QUESTIONS), OTHERWISE, GREEN, "monospace")
ax.set(xlim=(-1.95, 7.15), ylim=(-STEP * len(QUESTIONS) - 0.5, 0.5))
ax.set_axis_off()
plt.show()
