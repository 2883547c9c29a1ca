"""What a user reads where an optional library is not installed: which one, and how to get it."""

import sys

import numpy as np
import pytest

import hasd
from hasd.cli import main
from hasd.objectives import Quadratic

BOWL = Quadratic(np.eye(2), np.ones(2))


def forget(monkeypatch, library):
    """An import of it fails, as where it is not installed."""
    for name in [name for name in sys.modules if name.partition(".")[0] == library]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, library, None)


def test_the_progress_bar(monkeypatch):
    forget(monkeypatch, "tqdm")
    with pytest.raises(ImportError, match=r"progress=True needs tqdm: pip install 'hasd\[progress\]'"):
        hasd.minimize(BOWL, np.zeros(2), progress=True)
    assert hasd.minimize(BOWL, np.zeros(2)).success


def test_a_comparison_is_made_without_matplotlib_and_not_drawn(monkeypatch):
    forget(monkeypatch, "matplotlib")
    comparison = hasd.compare(BOWL, np.zeros(2), ["hasd", "agd"], budget=10)
    assert len(comparison.rows()) == 2
    with pytest.raises(ImportError, match=r"plotting needs matplotlib: pip install 'hasd\[plot\]'"):
        comparison.plot()


def test_an_experiment_says_so_before_it_computes(monkeypatch, tmp_path, capsys):
    forget(monkeypatch, "matplotlib")
    out = tmp_path / "out"
    assert main(["reproduce", "gradnorm", "--out", str(out)]) != 0
    assert not list(out.iterdir())  # the tables would have been written first
    said = capsys.readouterr().err
    assert said == "hasd: error: the experiments draw figures with matplotlib: pip install 'hasd[demo]'\n"


def test_torch(monkeypatch):
    forget(monkeypatch, "torch")
    for name in [name for name in sys.modules if name.startswith("hasd.torch")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ImportError, match=r'hasd\.torch needs PyTorch: pip install "hasd\[torch\]"'):
        import hasd.torch  # noqa: F401
