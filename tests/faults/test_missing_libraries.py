"""What a user reads where an optional library is not installed: which one, and how to get it."""

import pydoc
import re
import subprocess
import sys
from importlib import import_module

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


def test_a_progress_bar_without_tqdm_names_what_to_install(monkeypatch):
    forget(monkeypatch, "tqdm")
    with pytest.raises(ImportError, match=r"progress=True needs tqdm: pip install 'hasd\[progress\]'"):
        hasd.minimize(BOWL, np.zeros(2), progress=True)
    assert hasd.minimize(BOWL, np.zeros(2)).success


def test_a_comparison_is_made_without_matplotlib_and_not_drawn(monkeypatch):
    forget(monkeypatch, "matplotlib")
    comparison = hasd.compare(BOWL, np.zeros(2), ["hasd", "agd"], budget=10)
    assert len(comparison.rows()) == 2
    with pytest.raises(ImportError, match=r"a plot needs matplotlib: pip install 'hasd\[plot\]'"):
        comparison.plot()


def test_an_experiment_says_so_before_it_computes(monkeypatch, tmp_path, capsys):
    forget(monkeypatch, "matplotlib")
    out = tmp_path / "out"
    assert main(["reproduce", "gradnorm", "--out", str(out)]) != 0
    assert not list(out.iterdir())  # the tables would have been written first
    said = capsys.readouterr().err
    assert said == "hasd: error: the experiments draw figures with matplotlib: pip install 'hasd[demo]'\n"


def test_training_without_pytorch_says_what_to_install_before_it_computes(monkeypatch, tmp_path, capsys):
    forget(monkeypatch, "torch")
    assert main(["reproduce", "training", "--out", str(tmp_path)]) == 1
    assert not list(tmp_path.iterdir())
    said = capsys.readouterr().err
    assert said == "hasd: error: the experiment training needs torch: pip install 'hasd[demo,torch]'\n"


def test_all_experiments_without_pytorch_are_all_but_training(monkeypatch, tmp_path, capsys):
    forget(monkeypatch, "torch")
    asked = []
    monkeypatch.setattr("hasd.cli.save", lambda chosen, *others: asked.extend(one.name for one, _ in chosen) or [])
    assert main(["reproduce", "all", "--jobs", "1", "--out", str(tmp_path)]) == 0
    assert "gradnorm" in asked and "training" not in asked
    assert capsys.readouterr().err.startswith("hasd: left out: the experiment training needs torch")


ADAPTERS = {
    "torch": ("minimize", 'hasd.torch needs PyTorch: pip install "hasd[torch]"'),
    "jax": ("eval_params", 'hasd.jax needs JAX: pip install "hasd[jax]"'),
    "sklearn": ("LpRegressor", 'hasd.sklearn needs scikit-learn 1.6 or newer: pip install "hasd[sklearn]"'),
    "dask": ("affine", None),  # blocks in this process need no Dask
}
"""A name of each adapter, and what is said where its library is missing."""


@pytest.fixture(params=ADAPTERS)
def absent(request, monkeypatch):
    """An adapter that has not been loaded, and whose library is not installed."""
    forget(monkeypatch, request.param)
    for name in [name for name in sys.modules if name.startswith(f"hasd.{request.param}")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(vars(hasd), request.param, raising=False)
    return request.param


def test_an_adapter_names_its_extra_however_it_is_asked_for(absent):
    name, said = ADAPTERS[absent]
    if said is None:
        assert callable(getattr(getattr(hasd, absent), name))
        return
    asked = (lambda: getattr(hasd, absent), lambda: import_module(f"hasd.{absent}"))
    for ask in asked:
        with pytest.raises(ImportError, match=re.escape(said)):
            ask()


def test_looking_around_loads_nothing_that_is_missing(absent):
    """Mutation: __dir__ lists every adapter, and help(hasd) ends in an ImportError."""
    assert absent not in dir(hasd) and set(hasd.__all__) <= set(dir(hasd))
    assert "minimize" in pydoc.render_doc(hasd)


def test_an_unknown_attribute_of_hasd_raises_attribute_error():
    with pytest.raises(AttributeError, match="module 'hasd' has no attribute 'tensorflow'"):
        hasd.tensorflow  # noqa: B018


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_an_adapter_is_loaded_on_first_use(adapter):
    pytest.importorskip(adapter)
    name, _ = ADAPTERS[adapter]
    before = "import sys, hasd; assert not {'torch', 'jax', 'sklearn', 'dask'} & set(sys.modules)"
    code = f"{before}; assert {adapter!r} in dir(hasd); assert callable(hasd.{adapter}.{name})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
