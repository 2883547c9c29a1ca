"""The geometry gain of four gradients against p: how much longer ||g||_{p*} is than ||g||_2."""

import matplotlib.pyplot as plt
import numpy as np
from look import BLUE, GREEN, GREY, ORANGE, PURPLE

import hasd
from hasd._math.geometry import gain

DIMENSION = 1000
rng = np.random.default_rng(0)
index = np.arange(1, DIMENSION + 1)
gradients = {
    "all entries of one size": (np.sign(rng.standard_normal(DIMENSION)), BLUE, "-"),
    "Gaussian entries": (rng.standard_normal(DIMENSION), GREEN, "--"),
    "entries that decay like 1/i": (1.0 / index, PURPLE, "-."),
    "one entry": (np.eye(1, DIMENSION)[0], ORANGE, "-"),
}
exponents = 1.0 / np.linspace(0.5, 0.0, 101)[:-1]
exponents = np.append(exponents, np.inf)
gains = {name: np.array([gain(hasd.Lp(p), g) for p in exponents]) for name, (g, _, _) in gradients.items()}
limit = DIMENSION ** (0.5 - 1.0 / exponents)

fig, ax = plt.subplots(figsize=(8.4, 3.5), layout="constrained")
ax.fill_between(1.0 / exponents, limit, 60.0, color="0.93", linewidth=0)
ax.text(0.03, 33.0, r"impossible: above $d^{1/2-1/p}$", ha="right", color=GREY)
for name, (_, colour, line) in gradients.items():
    ax.semilogy(1.0 / exponents, gains[name], line, color=colour, label=name, linewidth=1.8)
shown = np.array([2.0, 3.0, 4.0, 10.0, np.inf])
ax.set_xticks(1.0 / shown, ["2", "3", "4", "10", r"$\infty$"])
ax.set_yticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
ax.set_yticks([], minor=True)
ax.set(xlim=(0.51, -0.01), ylim=(0.9, 45.0), xlabel="p", ylabel=r"gain  $\|g\|_{p^*}/\|g\|_2$")
ax.legend(loc="upper left", frameon=False)
plt.show()
