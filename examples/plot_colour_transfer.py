"""
The colours of one picture in another
=====================================

This example recolours one picture with the colours of another. Every colour of the first picture becomes a colour of
the second, each colour is used as often as in the second picture, and the sum of the squared distances in colour space
is as small as possible. This is optimal transport; :func:`hasd.transport` solves it with an entropy term that makes the
map smooth.
"""

# %%
# Two pictures
# ------------
# The pictures come with scikit-learn. The pixels of a picture are a cloud of points in the cube of red, green and blue;
# we represent each cloud by 700 pixels drawn at random.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_images

import hasd

temple, flower = (image[::2, ::2] / 255.0 for image in load_sample_images().images)
rng = np.random.default_rng(0)
COUNT = 700
X, Y = (image.reshape(-1, 3)[rng.choice(image[..., 0].size, COUNT, replace=False)] for image in (temple, flower))

# %%
# Transport
# ---------
# The cost is the squared distance of two colours, and every sample has the same mass. The result has a plan whose row
# and column sums are right up to rounding, its cost, and a lower bound that holds for every plan.

REG = 0.03
mass = np.full(COUNT, 1.0 / COUNT)
C = np.sum((X[:, None] - Y) ** 2, axis=2)
res = hasd.transport(C, mass, mass, REG)
plan = res.plan()
marginal_error = np.abs(plan.sum(axis=0) - mass).sum() + np.abs(plan.sum(axis=1) - mass).sum()
print(res.message)
print(f"a colour moves by {np.sqrt(res.cost):.3f} (root mean square); marginals off by {marginal_error:.0e}")
print(f"value {res.fun:.8f}, certified to {res.gap:.1e}, after {res.nit} steps")

# %%
# From samples to all pixels
# --------------------------
# The plan says for each sample which colours it becomes, and in what shares. The potential :math:`v` gives these
# shares for every colour :math:`x`, sampled or not: they are proportional to
# :math:`\exp((v_j - \|x - y_j\|^2)/\mathrm{reg})`, and their mean is the new colour. On the samples the two agree.


def recolour(image, potential, palette):
    pixels = image.reshape(-1, 3)
    out = np.empty_like(pixels)
    offset = (potential - np.sum(palette**2, axis=1)) / REG
    for first in range(0, len(pixels), 4096):
        rows = slice(first, first + 4096)
        score = offset + pixels[rows] @ (2.0 / REG * palette.T)
        share = np.exp(score - score.max(axis=1, keepdims=True))
        out[rows] = share @ palette / share.sum(axis=1, keepdims=True)
    return out.reshape(image.shape)


disagreement = np.abs(recolour(X, res.v, Y) - plan @ Y / mass[:, None]).max()
print(f"the potential's map and the plan's differ by {disagreement:.0e} on the samples")

# %%
# The other potential, :math:`u`, gives the map in the opposite direction, so one plan recolours both pictures.
# Transport sees only the colours of pixels and not where they are. If a sky has two shades and the picture of the
# flower has no colour between their images, an edge appears in the sky.

temple_new, flower_new = recolour(temple, res.v, Y), recolour(flower, res.u, X)
distance_before = np.abs(temple.mean(axis=(0, 1)) - flower.mean(axis=(0, 1))).max()
distance_after = np.abs(temple_new.mean(axis=(0, 1)) - flower.mean(axis=(0, 1))).max()
print(f"mean colours: {distance_before:.3f} apart before, {distance_after:.3f} after")

fig, axes = plt.subplots(2, 2, figsize=(8.0, 5.8), layout="constrained")
pictures = ((temple, "temple"), (temple_new, "temple in the flower's colours"))
pictures += ((flower, "flower"), (flower_new, "flower in the temple's colours"))
for ax, (picture, title) in zip(axes.flat, pictures, strict=True):
    ax.imshow(picture.clip(0.0, 1.0))
    ax.set_title(title)
    ax.set_axis_off()
plt.show()
