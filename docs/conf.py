"""Sphinx: ``make docs`` builds this, with warnings as errors and without a network."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE / "figures"), str(HERE.parent / "src")]

from look import STYLE  # noqa: E402

import hasd  # noqa: E402

project = "hasd"
author = "the hasd maintainers"
copyright = author
version = release = hasd.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "matplotlib.sphinxext.plot_directive",
    "docstrings",
    "cli_help",
    "trailing_blank",
    "code_links",
    "plain_markdown",
    "thumbnails",
]
ADAPTERS = {"sklearn": "sklearn", "torch": "torch", "jax": "optimistix", "dask": "dask"}
"""Modules of hasd that need a library, and the library."""


def _there(adapter: str, library: str) -> bool:
    """Whether the adapter can be documented: it and its library are installed."""
    return all(importlib.util.find_spec(name) is not None for name in (f"hasd.{adapter}", library))


exclude_patterns = ["_build", "figures", "gallery/*.ipynb", "gallery/*.py", "gallery/sg_execution_times.rst"]
exclude_patterns += [f"api/{adapter}.rst" for adapter, library in ADAPTERS.items() if not _there(adapter, library)]

# Names of ours must resolve; those of other packages cannot without a network (no intersphinx).
nitpicky = True
nitpick_ignore_regex = [("py:.*", r"(?!hasd\.).*")]
default_role = "py:obj"

myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence"]
myst_heading_anchors = 3
myst_fence_as_directive = ["math"]  # forges render such a fence as a formula, too

autodoc_typehints = "none"
autodoc_member_order = "bysource"
autosummary_generate = False
numpydoc_show_class_members = False

WIDE = ["benchmarks-results", *(f"methods/{name}" for name in hasd.method_names())]
WIDE += [f"gallery/{example.stem}" for example in (HERE.parent / "examples").glob("plot_*.py")]
"""Pages that take the room of the table of contents: short ones, and those with long lines of code or wide tables."""
html_theme = "pydata_sphinx_theme"
html_title = f"hasd {version}"
html_theme_options = {
    "logo": {"text": "hasd"},
    "navbar_persistent": ["search-button"],
    "show_prev_next": False,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 8,
    "secondary_sidebar_items": {"**": ["page-toc"], **{page: [] for page in WIDE}},
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_show_sphinx = False
html_show_sourcelink = False
html_copy_source = False
ALONE = [
    "index",
    "quickstart",
    "guide",
    "problems",
    "coming-from",
    "your-own-method",
    "theory",
    "experiments",
    "benchmarks",
    "benchmarks-results",
    "trace",
    "trust",
]
# Pages without siblings need no navigation beside them.
html_sidebars: dict[str, list[str]] = {page: [] for page in ALONE}


def _mathjax() -> Path:
    """MathJax in one file with its glyphs as paths: nothing is left to load, so pages work from a disk."""
    package = importlib.util.find_spec("sphinx-mathjax-offline")
    if package is None or package.origin is None:
        raise ImportError("the documentation needs sphinx-mathjax-offline: pip install 'hasd[docs]'")
    return Path(package.origin).parent / "static" / "mathjax" / "tex-svg.js"


html_static_path = ["_static", str(_mathjax())]
html_css_files = ["hasd.css"]
mathjax_path = "tex-svg.js"
# The menu's accessibility modules would be fetched beside the single file, where they are not.
mathjax3_config = {"options": {"enableMenu": False}, "svg": {"fontCache": "global", "scale": 0.92}}

sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["gallery"],
    "within_subsection_order": "reading_order.ReadingOrder",
    "image_srcset": ["2x"],
    "image_scrapers": ("thumbnails", "matplotlib"),
    "thumbnail_size": (480, 340),
    "doc_module": ("hasd",),
    "reference_url": {"hasd": None},
    "backreferences_dir": None,
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "abort_on_example_error": False,
    "only_warn_on_example_error": False,
}

plot_formats = [("png", 160)]
plot_html_show_formats = False
plot_html_show_source_link = False
plot_rcparams = STYLE
plot_apply_rcparams = True
