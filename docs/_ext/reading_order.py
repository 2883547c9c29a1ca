"""The order of the gallery: from the first steps to the paper."""

from __future__ import annotations

ORDER = [
    "first_steps",
    "compare",
    "minimax_polynomial",
    "fir_filter",
    "sensor_fit",
    "levelling",
    "colour_transfer",
    "paper_figure",
]


class ReadingOrder:
    """A sort key for sphinx-gallery; pages that are not listed come last, by name."""

    def __init__(self, src_dir: str) -> None:
        """Sphinx-gallery gives the directory."""

    def __call__(self, filename: str) -> tuple[int, str]:
        """The place of a page."""
        name = filename.removeprefix("plot_").removesuffix(".py")
        return ORDER.index(name) if name in ORDER else len(ORDER), name
