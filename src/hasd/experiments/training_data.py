"""Data for training that every machine can generate: images of digits and a text, in three parts without overlap.

Nothing is downloaded, and nothing but NumPy and SciPy is needed, so that a run means the same everywhere.
"""

from __future__ import annotations

from bisect import bisect
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np
from scipy.ndimage import map_coordinates

SIDE = 16
"""The images have this many rows and columns."""
WINDOW = 64
"""A text is read in pieces of this many characters, each to be predicted from those before it."""
ALPHABET = " .abcdefghijklmnopqrstuvwxyz"
GLYPHS = (
    "01110 10001 10011 10101 11001 10001 01110",
    "00100 01100 00100 00100 00100 00100 01110",
    "01110 10001 00001 00110 01000 10000 11111",
    "11110 00001 00001 01110 00001 00001 11110",
    "00010 00110 01010 10010 11111 00010 00010",
    "11111 10000 11110 00001 00001 10001 01110",
    "00110 01000 10000 11110 10001 10001 01110",
    "11111 00001 00010 00100 01000 01000 01000",
    "01110 10001 10001 01110 10001 10001 01110",
    "01110 10001 10001 01111 00001 00010 01100",
)
"""The digits in seven rows of five points."""
NOISE = 0.2
"""The standard deviation of what is added to every pixel."""
WORDS, CLASSES = 300, 10


class Examples(NamedTuple):
    """What a network is given, and what it is to answer."""

    x: np.ndarray
    y: np.ndarray


class Split(NamedTuple):
    """Examples to learn from, to choose learning rates by, and to judge by."""

    train: Examples
    validation: Examples
    test: Examples


def digits(rows: int, seed: int) -> Split:
    """Digits, turned, slanted, stretched, shifted and with noise: `rows` to learn from, and a sixth as many twice."""
    rng = np.random.default_rng([seed, 0])
    n = rows + 2 * held_out(rows)
    labels = rng.integers(0, 10, n)
    shapes = np.array([[list(map(float, line)) for line in glyph.split()] for glyph in GLYPHS])
    angle, slant, stretch = rng.normal(0.0, 0.2, n), rng.normal(0.0, 0.2, n), rng.uniform(0.45, 0.65, (2, n))
    pixel = np.arange(SIDE) - 0.5 * (SIDE - 1)
    down, right = np.meshgrid(pixel, pixel, indexing="ij")
    down, right = (axis + rng.normal(0.0, 1.0, (n, 1, 1)) for axis in (down, right))
    cos, sin = np.cos(angle)[:, None, None], np.sin(angle)[:, None, None]
    turned = (cos * down - sin * right, sin * down + cos * right + slant[:, None, None] * down)
    rows_of, columns_of = (stretch[k, :, None, None] * turned[k] + middle for k, middle in enumerate((3.0, 2.0)))
    which = np.broadcast_to(labels[:, None, None], rows_of.shape)
    images = map_coordinates(np.pad(shapes, ((0, 0), (1, 1), (1, 1))), (which, rows_of + 1, columns_of + 1), order=1)
    images += rng.normal(0.0, NOISE, images.shape)
    return _cut(images.reshape(n, -1).astype(np.float32), labels, rows)


def text(rows: int, seed: int) -> Split:
    """A text of made-up words, as windows with the characters that come next; the parts follow one another.

    Words have classes, a word of one class is followed by one of another with chances of their own, and within its
    class a word is the rarer the later it was made.
    """
    rng = np.random.default_rng([seed, 1])
    words = _words(rng)
    frequent = _cumulative(1.0 / np.arange(1, len(words[0]) + 1))
    following = [_cumulative(row) for row in rng.dirichlet(np.full(CLASSES, 0.3), CLASSES)]
    needed = (rows + 2 * held_out(rows)) * (WINDOW + 1)
    pieces: list[str] = []
    length, kind = 0, 0
    while length < needed:
        kind = bisect(following[kind], rng.random())
        pieces.append(words[kind][bisect(frequent, rng.random())])
        length += len(pieces[-1])
    code = {letter: k for k, letter in enumerate(ALPHABET)}
    characters = np.array([code[letter] for letter in "".join(pieces)[:needed]], dtype=np.int64)
    windows = characters.reshape(-1, WINDOW + 1)
    return _cut(windows[:, :-1], windows[:, 1:], rows)


def held_out(rows: int) -> int:
    """How many examples are for validation, and again for the test."""
    return max(1, rows // 6)


def _cumulative(weights: np.ndarray) -> list[float]:
    """Where the chances of all but the last outcome end, to look a uniform number up in."""
    return list(accumulate(weights / weights.sum()))[:-1]


def _words(rng: np.random.Generator) -> list[list[str]]:
    """Words of one to three syllables by their class; those of the last class end a sentence."""
    consonants, vowels = "bcdfghjklmnpqrstvwxyz", "aeiou"
    out: list[list[str]] = [[] for _ in range(CLASSES)]
    for k in range(WORDS):
        syllables = [rng.choice(list(consonants)) + rng.choice(list(vowels)) for _ in range(rng.integers(1, 4))]
        ending = rng.choice(["", "n", "s", "r"])
        out[k % CLASSES].append("".join(syllables) + ending + (". " if k % CLASSES == CLASSES - 1 else " "))
    return out


def _cut(x: np.ndarray, y: np.ndarray, rows: int) -> Split:
    """The first rows, and the two halves of what is left."""
    ends = (0, rows, rows + held_out(rows), rows + 2 * held_out(rows))
    train, validation, test = (Examples(x[a:b], y[a:b]) for a, b in pairwise(ends))
    return Split(train, validation, test)
