"""The gallery in examples/: every page runs without a warning, draws, and what it claims is so."""

from __future__ import annotations

import ast
import runpy
from pathlib import Path

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
EXAMPLES = Path(__file__).parents[2] / "examples"
PAGES = sorted(path.stem for path in EXAMPLES.glob("plot_*.py"))


@pytest.fixture
def run(monkeypatch):
    """Runs a page; gives its variables, the number of figures in ``figures``."""
    import matplotlib.pyplot as plt

    before = matplotlib.get_backend()
    plt.switch_backend("Agg")
    plt.close("all")
    shown = []
    monkeypatch.setattr(plt, "show", lambda: shown.extend(plt.get_fignums()))

    def page(name):
        names = runpy.run_path(str(EXAMPLES / f"{name}.py"))
        for number in shown:
            plt.figure(number).canvas.draw()
        return {**names, "figures": len(shown)}

    yield page
    plt.close("all")
    plt.switch_backend(before)


def first_steps(page):
    for res in (page["box"], page["lse"]):
        assert res.success and 0.0 <= res.gap <= 1e-6
    for certified, error in zip(page["certified"], page["errors"], strict=True):
        assert np.all(certified >= error) and certified[-1] <= 1e-6


def compare(page):
    race, finish = page["race"], page["finish"]
    assert all(res.nfev <= 150 for res in race.results.values())
    for row in [*race.rows(), *finish.rows()]:
        assert row["above_best"] <= row["gap"] + 1e-15 and row["gap"] <= row["own_gap"]
        assert (row["own_gap"] == np.inf) == ("SciPy" in row["label"])
    ours, theirs = finish.rows()
    assert ours["gap"] <= 1e-9 < theirs["gap"] < 1e-5


def minimax_polynomial(page):
    least = page["DEGREE"] + 2  # no fewer points carry a proof; a peak between two points may be held by both
    assert page["res"].success and least <= page["points"].size <= 2 * least
    assert page["polynomials_left"] < 1e-13
    assert page["proven"] == pytest.approx(page["error_minimax"], rel=1e-9)
    assert 0.0 <= 1.0 - page["error_minimax"] / page["error_remez"] < 1e-6
    assert page["error_squares"] > 2.0 * page["error_minimax"]
    assert page["scaled"][0] == pytest.approx(0.25, rel=1e-6)
    assert np.all(np.diff(page["scaled"]) > 0.0) and page["scaled"][-1] < page["BERNSTEIN"]


def fir_filter(page):
    assert page["res"].success
    assert page["error_minimax"] == pytest.approx(page["error_remez"], rel=1e-9)
    assert page["difference"] < 1e-9
    assert page["between"]["minimax"] == pytest.approx(page["on_grid"]["minimax"], rel=0.01)
    assert page["stopband"]["minimax"] < page["stopband"]["least squares"] - 5.0


def sensor_fit(page):
    assert page["false_alarms"] == 0.0 and page["detected"] == 1.0
    assert page["bounded_minimax"][-1] < 0.25 * page["bounded_squares"][-1]
    assert np.all(page["outlier_minimax"] > 10.0 * page["outlier_squares"])
    size = page["SIZES"][-1] / page["SIZES"][0]
    assert page["bounded_minimax"][0] / page["bounded_minimax"][-1] > 0.7 * size
    assert page["bounded_squares"][0] / page["bounded_squares"][-1] < 2.0 * np.sqrt(size)


def levelling(page):
    fit, clean = page["fit"], page["clean"]
    assert fit.success and fit.lower > 3.0 * page["TOLERANCE"]
    assert page["share"] == pytest.approx(fit.fun, rel=1e-9)
    assert page["name"](page["wrong"]) == page["name"](page["misread"]) and page["wrong"] == page["hinted"]
    assert page["same"] and page["truth"][page["column"][page["BENCHMARK"]]] == page["KNOWN"]
    for k, other in page["without"].items():
        assert other.success and (other.lower > page["TOLERANCE"]) == (k != page["wrong"])
    assert clean.fun <= page["TOLERANCE"] < np.abs(page["squares_residual"]).max()
    assert page["constants"] == 1 and page["figures"] == 3
    best = 1e3 * clean.fun
    assert page["smooth"].success and page["smooth_lower"] <= best <= page["smooth_error"] + 1e-9
    assert page["smooth_error"] - page["smooth_lower"] <= page["ACCURACY"] + 1e-9
    for label, (res, errors) in page["runs"].items():
        assert errors[-1] <= page["target"], label
        assert "gap" not in res or (res.success and res.nfev > page["found"][label])
    assert page["runs"]["hasd-qn"][0].method == "hasd-qn"
    assert page["found"]["hasd, p=inf"] == min(page["found"].values())
    assert page["radius"] > 100.0 * np.linalg.norm(page["smooth"].x - page["smooth"].x.mean())


def colour_transfer(page):
    assert page["res"].success and 0.0 <= page["res"].gap < 1e-6
    assert page["marginal_error"] < 1e-13
    assert page["disagreement"] < 1e-4
    assert page["distance_after"] < 0.1 * page["distance_before"]
    for old, new in (("temple", "temple_new"), ("flower", "flower_new")):
        assert page[new].shape == page[old].shape and page[new].min() >= 0.0 and page[new].max() <= 1.0


def paper_figure(page):
    assert page["figures"] == 2
    assert min(page["chosen"]) > page["sizes"].stepsizes[0]
    assert len(set(page["winners"].values())) > 1


def spectral(page):
    """The norm with the least L/((1 + sigma) G^2) needs the fewest evaluations, where L is declared."""
    for name, winner in (("bilinear measurements", "spectral"), ("slopes of a surface", "largest entry")):
        counts = {label: page["needed"](one) for label, one in page["declared"][name].items()}
        first, second, _ = sorted(counts.values())
        assert counts[winner] == first < 0.7 * second
        scores = {label: page["scores"][name, label] for label in counts}
        assert min(scores, key=scores.get) == winner
        assert sorted(scores, key=scores.get) == sorted(counts, key=counts.get)
        found = [page["needed"](run) for run in page["found"][name].values()]
        assert max(found) < 2.5 * min(found) and max(counts.values()) > 2.5 * first


CLAIMS = {
    "plot_first_steps": first_steps,
    "plot_compare": compare,
    "plot_fir_filter": fir_filter,
    "plot_levelling": pytest.param(levelling, marks=pytest.mark.slow),
    "plot_colour_transfer": pytest.param(colour_transfer, marks=pytest.mark.slow),
    "plot_minimax_polynomial": pytest.param(minimax_polynomial, marks=pytest.mark.slow),
    "plot_paper_figure": pytest.param(paper_figure, marks=pytest.mark.slow),
    "plot_spectral": pytest.param(spectral, marks=pytest.mark.slow),
    "plot_sensor_fit": pytest.param(sensor_fit, marks=pytest.mark.slow),
}


def test_every_page_has_its_claims():
    assert sorted(CLAIMS) == PAGES


@pytest.mark.parametrize("claims", CLAIMS.values(), ids=CLAIMS)
def test_page_keeps_its_claims(run, claims):
    if claims is colour_transfer:
        pytest.importorskip("sklearn")
    page = run(f"plot_{claims.__name__}")
    assert page["figures"] >= 1
    claims(page)


@pytest.mark.parametrize("name", PAGES)
def test_page_is_in_the_form_of_sphinx_gallery(name):
    text = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    title, line, blank, *_ = ast.get_docstring(ast.parse(text)).splitlines()
    assert set(line) == {"="} and len(line) >= len(title) and blank == ""
    assert text.count("\n# %%\n") >= 3
    assert text.endswith("\nplt.show()\n")
    assert not any(word in text for word in ("savefig", "/home", "/work", "/tmp", "urlopen", "fetch_"))
