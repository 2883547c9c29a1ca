"""The documentation: nothing that is public is missing, what is shown is so, and pages load nothing from a network."""

from __future__ import annotations

import ast
import doctest
import importlib
import importlib.util
import re
import runpy
import subprocess
import sys
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import hasd
from hasd import objectives, theory
from hasd.cli import main

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[-+]\d+)?")


def text(name):
    return (DOCS / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("method", hasd.method_names())
def test_every_method_has_its_page(method):
    page = text(f"methods/{method}.md")
    assert page.startswith(f"# {method}\n")
    for section in ("Problem", "Algorithm", "Guarantee", "Example", "Options", "Reference"):
        assert f"\n## {section}\n" in page
    assert f'method="{method}"' in page or method == "hasd"
    assert f"({method}.md)" in text("methods/index.md")
    assert f"\n{method}\n" in text("methods/index.md")


def test_options_of_methods_are_named_as_they_are():
    pages = [path.stem for path in (DOCS / "methods").glob("*.md") if path.stem != "index"]
    assert sorted(pages) == sorted(hasd.method_names())
    for method in pages:
        takes_none = not importlib.import_module("hasd.methods").options_of(method)
        assert ("No options of its own" in text(f"methods/{method}.md")) == takes_none


@pytest.mark.parametrize("page", ["theory.md", *(f"methods/{method}.md" for method in hasd.method_names())])
def test_tests_that_are_named_exist(page):
    for name in re.findall(r"`([\w/]*test_\w+\.py)`", text(page)):
        places = [ROOT / name, ROOT / "tests" / name, ROOT / "tests" / "theory" / name]
        assert any(place.is_file() for place in places), name


def test_every_theory_test_is_on_the_page_and_every_bound_has_one():
    page = text("theory.md")
    for path in (ROOT / "tests" / "theory").glob("test_*.py"):
        assert path.name in page
    rows = [line.strip("|").split("|") for line in page.splitlines() if line.startswith("| ")]
    tested = {name for row in rows for name in re.findall(r"`(\w+)`", row[-2]) if "test_" in row[-1]}
    untested = {name for name in theory.__all__ if callable(getattr(theory, name))} - tested
    assert untested == {"search_trials_bound"}


@pytest.mark.parametrize(
    ("pages", "names"),
    [
        (["hasd", "problems"], set(hasd.__all__) - {"__version__", "objectives", "theory"}),
        (["objectives"], set(objectives.__all__) - {"losses"}),
        (["theory"], set(theory.__all__)),
    ],
    ids=["hasd", "objectives", "theory"],
)
def test_every_public_name_is_in_the_reference(pages, names):
    source = "".join(text(f"api/{page}.rst") for page in pages)
    assert set(re.findall(r"\.\. auto(?:function|class|data):: ([A-Za-z_]\w*)$", source, re.MULTILINE)) == names


@pytest.mark.parametrize("adapter", ["sklearn", "torch", "jax", "dask"])
def test_every_name_of_an_adapter_is_in_the_reference(adapter):
    """Read, not imported: its library may be missing here."""
    module = importlib.util.find_spec(f"hasd.{adapter}")
    assert module is not None and module.origin is not None
    tree = ast.parse(Path(module.origin).read_text(encoding="utf-8"))
    [names] = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    for name in names:
        assert re.search(rf"\.\. auto(function|class):: {name}$", text(f"api/{adapter}.rst"), re.MULTILINE)


def test_the_quick_start_shows_what_the_command_prints(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    page = text("quickstart.md")
    exec(re.search(r"```python\n(import numpy.*?)```", page, re.DOTALL)[1], {})
    command, shown = re.search(r"```console\n\$ hasd (.*?)\n(.*?)```", page, re.DOTALL).groups()
    assert main(command.split()) == 0
    printed = capsys.readouterr().out
    assert NUMBER.sub("#", printed) == NUMBER.sub("#", shown)
    first, second = (float(re.search(r"^value +(\S+)", block, re.MULTILINE)[1]) for block in (printed, shown))
    assert first == pytest.approx(second, rel=1e-6)


@pytest.fixture
def figure(monkeypatch):
    """Runs a script of docs/figures; gives its variables."""
    plt = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.syspath_prepend(str(DOCS / "figures"))
    before = plt.get_backend()
    plt.switch_backend("Agg")
    monkeypatch.setattr(plt, "show", lambda: [plt.figure(number).canvas.draw() for number in plt.get_fignums()])
    yield lambda name: runpy.run_path(str(DOCS / "figures" / f"{name}.py"))
    plt.close("all")
    plt.switch_backend(before)


def test_every_figure_is_shown_and_tested():
    scripts = {path.stem for path in (DOCS / "figures").glob("[a-z]*.py")} - {"look"}
    assert set(re.findall(r"\]\(images/(\w+)\.png\)", text("guide.md"))) == scripts
    assert scripts == {"unit_balls", "gain", "which_p", "products", "decision"}


def test_figure_unit_balls_reaches_the_dual_norm_in_every_ball(figure):
    names = figure("unit_balls")
    for p, fall in names["reached"].items():
        assert fall == pytest.approx(hasd.Lp(p).dual_norm(names["gradient"]))


def test_figure_gain_falls_from_its_limit_to_one(figure):
    names = figure("gain")
    gains = list(names["gains"].values())
    assert np.allclose(gains[0], names["limit"]) and np.allclose(gains[-1], 1.0)
    for above, below in pairwise(gains):
        assert np.all(above[1:] > below[1:])


@pytest.mark.slow
def test_figure_which_p_shows_what_the_guide_says(figure):
    """What the guide says of the three problems, and that the rule picks the best norm or one as good."""
    runs = figure("which_p")["runs"]
    evaluations = {name: np.array([one[2] for one in by_p.values()]) for name, by_p in runs.items()}
    assert np.all(np.diff(evaluations["Entropic transport"]) < 0)
    duals = np.array([hasd.Lp(p).dual for p in runs["Dense LogSumExp"]])
    alike = evaluations["Dense LogSumExp"] * np.sqrt(duals)  # but for the constant of the guarantee
    assert np.ptp(alike) < 0.1 * alike.min()
    assert np.all(np.diff(evaluations["Sparse logistic"]) > 0)
    for name, by_p in runs.items():
        chosen = np.argmin([one[3] for one in by_p.values()])
        assert evaluations[name][chosen] <= 1.05 * evaluations[name].min()


@pytest.mark.slow
def test_figure_products_shows_the_methods_with_curvature_ahead(figure):
    """What the guide says: the three with curvature ahead, then hasd."""
    names = figure("products")
    for curves, auto in names["problems"].values():
        arrived = {
            method: products[gap <= 1e-6][0] if np.any(gap <= 1e-6) else np.inf
            for method, (products, gap) in curves.items()
        }
        ranks = sorted(arrived, key=arrived.get)
        assert set(ranks[:3]) == {"hasd-subspace", "hasd-newton", "hasd-qn"} and ranks[3] == "hasd"
        assert auto in ranks[:3]


def test_figure_decision_follows_auto(figure):
    registry = importlib.import_module("hasd.methods")
    questions = str(figure("decision")["QUESTIONS"])
    assert f"{registry.NEWTON} variables" in questions
    for name in ("hasd", "hasd-newton", "hasd-cg", "hasd-subspace"):
        assert f"takes {name}'" in questions


def test_docstrings_become_clean_text(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    failed, tried = doctest.testmod(importlib.import_module("docstrings"))
    assert tried > 0 and failed == 0


class Loaded(HTMLParser):
    """What a browser fetches for a page."""

    def __init__(self):
        super().__init__()
        self.addresses = []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag in ("script", "img", "iframe", "source", "video", "audio", "embed"):
            self.addresses += [given[name] for name in ("src", "srcset") if given.get(name)]
        if tag == "link" and given.get("rel") not in (
            "canonical",
            "author",
            "license",
            "search",
            "index",
            "next",
            "prev",
        ):
            self.addresses.append(given["href"])


def fetched(html):
    parser = Loaded()
    parser.feed(html)
    return parser.addresses


def test_what_is_fetched_is_found():
    page = '<link rel="stylesheet" href="https://x/a.css"><script src="//x/b.js"></script><a href="https://x">x</a>'
    assert fetched(page) == ["https://x/a.css", "//x/b.js"]


PAGE = r"""# A page

With $\|x\|_p \le \tfrac12$ and `hasd.chebyshev`.

```{eval-rst}
.. currentmodule:: hasd

.. autofunction:: chebyshev
```

<!-- {toctree}
gallery/index
-->
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A small site with the real configuration, warnings as errors."""
    for name in ("sphinx", "myst_parser", "numpydoc", "sphinx_gallery", "pydata_sphinx_theme", "matplotlib"):
        pytest.importorskip(name)
    if importlib.util.find_spec("sphinx-mathjax-offline") is None:
        pytest.skip("sphinx-mathjax-offline is not installed")
    place = tmp_path_factory.mktemp("site")
    (place / "docs").mkdir()
    (place / "examples").mkdir()
    (place / "docs" / "index.md").write_text(PAGE, encoding="utf-8")
    (place / "examples" / "GALLERY_HEADER.rst").write_text("Examples\n========\n", encoding="utf-8")
    (place / "examples" / "plot_one.py").write_text('"""\nOne\n===\n"""\nprint(1)\n', encoding="utf-8")
    sources = ["-c", str(DOCS), str(place / "docs"), str(place / "html")]
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", *sources]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return place / "html"


def test_pages_load_nothing_from_a_network(built):
    pages = list(built.rglob("*.html"))
    assert len(pages) > 3
    for page in pages:
        for address in fetched(page.read_text(encoding="utf-8")):
            assert not re.match(r"(\w+:)?//", address), address
    for style in built.rglob("*.css"):
        assert not re.search(r"(url\(\s*['\"]?|@import\s+['\"])(https?:)?//", style.read_text(encoding="utf-8"))


def test_formulas_are_set_by_a_local_copy(built):
    index = (built / "index.html").read_text(encoding="utf-8")
    [source] = [address for address in fetched(index) if "tex-svg.js" in address]
    assert (built / source.partition("?")[0]).stat().st_size > 1e6
    assert "enableMenu" in index


def test_docstrings_reach_the_page_in_clean_form(built):
    index = (built / "index.html").read_text(encoding="utf-8")
    assert "time_limit" in index and "|&lt;a<sub>i</sub>, x&gt;" in index
    assert 'href="#hasd.chebyshev"' in index
