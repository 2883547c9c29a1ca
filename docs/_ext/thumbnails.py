"""Thumbnails of the gallery show one panel of an example's first picture: a whole picture is too small to read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from sphinx_gallery.utils import scale_image

PANELS = {"plot_paper_figure": 5}
"""Which panel is shown, where it is not the first."""
WHOLE = {"plot_colour_transfer"}
"""Examples whose whole picture is the thumbnail."""


def save_panel(block: Any, block_vars: dict[str, Any], gallery_conf: Any) -> str:
    """Keep a panel of the first picture; sphinx-gallery calls this after each block, before its own scraper."""
    example = Path(block_vars["src_file"]).stem
    place = folder(gallery_conf["src_dir"]) / f"{example}.png"
    first = len(block_vars["image_path_iterator"]) == 0
    if first and plt.get_fignums() and example not in WHOLE:
        figure = plt.figure(plt.get_fignums()[0])
        figure.draw_without_rendering()
        box = figure.axes[PANELS.get(example, 0)].get_tightbbox()
        place.parent.mkdir(parents=True, exist_ok=True)
        box = box.transformed(figure.dpi_scale_trans.inverted()).padded(0.05)
        layout = figure.get_layout_engine()
        figure.set_layout_engine("none")  # it would arrange all panels within the box of one
        set_legends(figure, visible=False)  # they would move into the box
        figure.savefig(place, dpi=200, bbox_inches=box)
        set_legends(figure, visible=True)
        figure.set_layout_engine(layout)
    return ""


def set_legends(figure: Any, visible: bool) -> None:
    """Show or hide the legends that stand beside the panels."""
    for legend in figure.legends:
        legend.set_visible(visible)


def folder(source: str | Path) -> Path:
    """Where panels are kept, so that a rebuild that runs no example finds them."""
    return Path(source) / "gallery" / "images" / "panels"


def use_panels(app: Any) -> None:
    """Sphinx's event, after sphinx-gallery has made its own thumbnails."""
    for panel in folder(app.srcdir).glob("*.png"):
        thumbnail = panel.parents[1] / "thumb" / f"sphx_glr_{panel.stem}_thumb.png"
        scale_image(panel, thumbnail, *app.config.sphinx_gallery_conf["thumbnail_size"])


def _get_sg_image_scraper() -> Any:
    """What sphinx-gallery asks a module for that is named among its scrapers."""
    return save_panel


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("builder-inited", use_panels, priority=900)
    return {"parallel_read_safe": True}
