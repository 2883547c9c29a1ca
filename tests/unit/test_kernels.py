"""``make test-kernels``: which tests it takes, and which kernels."""

import os

import pytest

import kernels

OWN = "Own"


def test_every_name_on_the_list_is_that_of_tests():
    for beginning in kernels.NUMERICAL:
        assert list(kernels.TESTS.glob(f"{beginning}*.py")), beginning


def chosen(monkeypatch, capsys, known, features=("X86_V3", "X86_V4")):
    """The choices of a machine whose BLAS takes these kernels for these names, and what is said about the others."""

    def probe(environment):
        return known.get(environment["OPENBLAS_CORETYPE"], (OWN, ())) if environment else (OWN, features)

    monkeypatch.setattr(kernels, "probe", probe)
    return kernels.choices(), capsys.readouterr().out.splitlines()


def test_a_kernel_of_the_cpu_is_run_and_one_that_it_cannot_run_is_named(monkeypatch, capsys):
    known = {"SkylakeX": None, "Haswell": ("Haswell", ()), "Prescott": ("Katmai", ()), "Nehalem": ("Katmai", ())}
    found, said = chosen(monkeypatch, capsys, known)
    assert list(found) == [OWN, "Haswell", "Katmai"] and found[OWN] == {}
    assert found["Haswell"] == {"OPENBLAS_CORETYPE": "Haswell", "NPY_DISABLE_CPU_FEATURES": "X86_V4"}
    assert found["Katmai"] == {"OPENBLAS_CORETYPE": "Nehalem", "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4"}
    assert said == [
        "kernel SkylakeX: left out, this CPU cannot run it",
        "kernel Sandybridge: left out, BLAS has none of that name and takes Own",
        "kernel Prescott: left out, BLAS has none of that name and takes Katmai",
    ]


def test_another_kind_of_cpu_has_its_own_kernel_only(monkeypatch, capsys):
    found, said = chosen(monkeypatch, capsys, {}, features=())
    assert found == {OWN: {}} and len(said) == len(kernels.KERNELS)


@pytest.mark.skipif(not hasattr(os, "kill"), reason="needs signals")
def test_a_probe_that_the_cpu_ends_is_told_from_one_that_fails(monkeypatch):
    monkeypatch.setattr(kernels, "PROBE", "import os; os.abort()")
    assert kernels.probe({}) is None
    monkeypatch.setattr(kernels, "PROBE", "1 / 0")
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        kernels.probe({})


def test_the_kernel_of_this_machine_is_known():
    kernel, features = kernels.probe({})
    assert isinstance(kernel, str) and isinstance(features, list)


@pytest.mark.parametrize("code", [0, 1])
def test_a_failure_under_one_kernel_is_one_of_the_whole(code, monkeypatch, capfd):
    monkeypatch.setattr(kernels, "choices", lambda: {"One": {"CODE": "0"}, "Two": {"CODE": str(code)}})
    monkeypatch.setattr(kernels, "PYTEST", ("-c", "import os; os._exit(int(os.environ['CODE']))"))
    assert kernels.main([]) == code
    assert capfd.readouterr().out.splitlines()[-1] == ("failed under Two" if code else "passed under every kernel")
