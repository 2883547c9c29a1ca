"""Options of methods and settings of objectives: what cannot be meant is refused by name, before anything is run."""

from __future__ import annotations

import math
from dataclasses import fields
from functools import partial

import numpy as np
import pytest

import hasd
from hasd.methods import REGISTRY, options_of
from hasd.methods.hasd_cg import HASDCG
from hasd.methods.hasd_restart import HASDRestart
from hasd.methods.heavy_ball import HeavyBall
from hasd.methods.nemirovskii_nesterov import NemirovskiiNesterov
from hasd.objectives import EntropicTransport, LeastSquares, Logistic, LogSumExp, Multinomial, Power, SymmetricSoftmax

A = np.random.default_rng(1).standard_normal((12, 5))
F = LogSumExp(A, ridge=0.1)

VALUES = {
    "a word": "x",
    "a digit": "1",
    "True": True,
    "None": None,
    "nan": math.nan,
    "inf": math.inf,
    "-1": -1,
    "-0.5": -0.5,
    "0": 0,
    "1.5": 1.5,
    "complex": 1.0 + 0.0j,
    "a list": [1.0],
    "two numbers": np.ones(2),
    "10^400": 10**400,
    "a class": HeavyBall,
    "a method": HeavyBall(),
}
ACCEPTED = {
    ("hasd", "raise_L"): {"True": "a flag"},
    ("hasd", "restart"): {"True": "a flag"},
    ("hasd", "stronger_cuts"): {"True": "a flag"},
    ("hasd-subspace", "memory"): {"None": "by cost", "10^400": "as many directions as there are variables"},
    ("hasd-subspace", "inner"): {"10^400": "as many steps as it takes"},
    ("hasd-qn", "memory"): {"None": "by the length of x", "10^400": "as many pairs as there are iterations"},
    ("hasd-newton", "memory"): {"10^400": "as many pairs as there are iterations"},
    ("hasd-paper", "search"): {},
    ("hasd-paper", "weights"): {},
    ("hasd-restart", "G_hat"): {"None": "certified restarts", "1.5": "any positive number"},
    ("hasd-restart", "constant"): {"1.5": "any positive number"},
    ("hasd-restart", "inner"): {"a method": "any that does without mu"},
    ("heavy-ball", "momentum"): {"0": "no momentum"},
    ("linear-coupling", "weights"): {},
    ("nemirovskii-nesterov", "T"): {},
    ("nemirovskii-nesterov", "R"): {"1.5": "any positive number"},
}
"""Every option of every method, with those of the values that it takes, and why."""


def options() -> list[tuple[str, str]]:
    return [(method, option) for method in hasd.method_names() for option in options_of(method)]


def run(method: str, **given):
    return hasd.minimize(F, np.ones(5), method=method, **given)


def test_the_table_holds_every_option():
    assert set(ACCEPTED) == set(options())


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize(("method", "option"), options())
def test_an_option_is_refused_by_name_or_taken(method, option, value):
    if value in ACCEPTED[method, option]:
        res = run(method, maxiter=3, **{option: VALUES[value]})
        assert res.nit > 0 and res.fun < F(np.ones(5))
    else:
        with pytest.raises((TypeError, ValueError), match=f"^{option} must be .*, got "):
            REGISTRY[method](**{option: VALUES[value]})


@pytest.mark.parametrize("method", hasd.method_names())
def test_a_field_that_is_no_option_is_unknown(method):
    factory = REGISTRY[method]
    names = {field.name for field in fields(factory.func if isinstance(factory, partial) else factory)}
    assert {"name", "default_p"} <= names
    for name in names - set(options_of(method)):
        with pytest.raises(TypeError, match=f"unknown option '{name}'"):
            run(method, **{name: "x"})


def test_a_method_that_needs_options_names_those_that_are_missing(monkeypatch):
    monkeypatch.setitem(REGISTRY, "nemirovskii-nesterov", NemirovskiiNesterov)
    iterations, radius = "T=, the number of iterations that are planned", r"R=, a bound on \|\|x_0 - x\*\|\|_p"
    for given, missing in (({}, f"{iterations}, and {radius}"), ({"T": 5}, radius), ({"R": 1.0}, iterations)):
        said = f"^method 'nemirovskii-nesterov' needs {missing}$"
        with pytest.raises(TypeError, match=said):
            run("nemirovskii-nesterov", **given)
        with pytest.raises(TypeError, match=said):
            hasd.compare(F, np.ones(5), {"it": {"method": "nemirovskii-nesterov", **given}})


def test_a_method_for_l_p_norms_refuses_a_norm_of_the_users_own():
    class Weighted(hasd.Lp):
        """A norm that is not l_p, as far as anybody can tell."""

    for method in ("nemirovskii-nesterov", HASDRestart(inner=NemirovskiiNesterov(T=5, R=1.0))):
        with pytest.raises(TypeError, match=r"^method '.*' needs p to be a number, got "):
            run(method, p=Weighted(3.0))


MISSPELT = {
    "max_iter": ({}, "maxiter"),
    "MAXITER": ({}, "maxiter"),
    "timelimit": ({}, "time_limit"),
    "momentun": ({"method": "heavy-ball"}, "momentum"),
    "serach": ({"method": "hasd-paper"}, "search"),
    "gaptol": ({"method": HeavyBall()}, "gap_tol"),
}
"""Options, beside what they are given with, and what was meant."""


@pytest.mark.parametrize("option", MISSPELT)
def test_a_misspelt_option_is_answered_with_the_one_that_was_meant(option):
    given, meant = MISSPELT[option]
    said = rf"^unknown option '{option}'; did you mean '{meant}'\? (Besides what every|Method|The options of) "
    with pytest.raises(TypeError, match=said):
        hasd.minimize(F, np.ones(5), **given, **{option: 5})
    with pytest.raises(TypeError, match=said):
        hasd.compare(F, np.ones(5), {"it": given.get("method", "auto")}, budget=10, **{option: 5})


def test_what_only_minimize_takes_is_not_suggested_to_iterate():
    takes = "esides what every method takes, 'hasd-qn' takes: memory$"
    with pytest.raises(TypeError, match=rf"^unknown option 'max_iter': b{takes}"):
        hasd.iterate(F, np.ones(5), method="hasd-qn", max_iter=5)
    with pytest.raises(TypeError, match=rf"^unknown option 'metod'; did you mean 'method'\? B{takes}"):
        hasd.iterate(lambda x: (x @ x, 2 * x), np.ones(5), jac=True, metod="hasd")


@pytest.mark.parametrize(
    ("name", "meant"), [("hsad", "hasd"), ("HASD", "hasd"), ("heavyball", "heavy-ball"), ("hasd_qn", "hasd-qn")]
)
def test_a_misspelt_method_is_answered_with_the_one_that_was_meant(name, meant):
    said = rf"^unknown method '{name}'; did you mean '{meant}'\? The methods are: auto, "
    with pytest.raises(ValueError, match=said):
        run(name)
    with pytest.raises(ValueError, match=said):
        hasd.iterate(F, np.ones(5), method=name)
    with pytest.raises(ValueError, match=said):
        hasd.compare(F, np.ones(5), [name], budget=10)


def test_a_name_that_is_like_no_other_is_answered_with_what_there_is():
    with pytest.raises(ValueError, match=r"^unknown method 'simplex': the methods are: auto, hasd, "):
        run("simplex")
    with pytest.raises(
        TypeError, match=r"^unknown option 'inertia': besides what every method takes, 'heavy-ball' takes: momentum$"
    ):
        run("heavy-ball", inertia=0.5)


def test_numbers_of_numpy_are_kept_as_plain_ones():
    """A checkpoint compares how options are written."""
    for number in (np.float64(0.5), np.float32(0.5), np.array(0.5)):
        assert repr(HeavyBall(momentum=number)) == repr(HeavyBall(momentum=0.5))
        assert repr(HASDRestart(G_hat=4 * number, constant=number)) == repr(HASDRestart(G_hat=2.0, constant=0.5))


def test_inner_methods_that_cannot_be_run_inside_are_refused():
    with pytest.raises(ValueError, match=r"^inner must be a method that does not need mu"):
        HASDRestart(inner=HASDRestart(G_hat=2.0))
    with pytest.raises(TypeError, match=r"needs an objective f\(x\) = phi\(Ax - b\)"):
        hasd.minimize(lambda x: (x @ x, 2 * x), np.ones(3), jac=True, mu=2.0, method="hasd-restart", inner=HASDCG())


def test_a_period_beyond_all_numbers_never_ends():
    res = run("hasd-restart", G_hat=1.0, constant=1e308, L=1e10, maxiter=3)
    assert res.nit == 3


# ------------------------------------------------------------------------------------------------------ objectives

SETTINGS = {
    ("LogSumExp", "alpha"): lambda alpha: LogSumExp(A, alpha=alpha),
    ("LogSumExp", "ridge"): lambda ridge: LogSumExp(A, ridge=ridge),
    ("SymmetricSoftmax", "alpha"): lambda alpha: SymmetricSoftmax(A, alpha=alpha),
    ("LeastSquares", "ridge"): lambda ridge: LeastSquares(A, np.ones(12), ridge=ridge),
    ("Logistic", "ridge"): lambda ridge: Logistic(A, np.sign(A[:, 0]), ridge=ridge),
    ("Multinomial", "ridge"): lambda ridge: Multinomial(A, np.arange(12) % 3, ridge=ridge),
    ("Power", "q"): lambda q: Power(A, np.ones(12), q=q),
    ("EntropicTransport", "reg"): lambda reg: EntropicTransport(np.ones((2, 2)), [0.5, 0.5], [0.5, 0.5], reg=reg),
}
NO_NUMBERS = ["3", "x", True, np.True_, 3.0 + 0.0j, np.complex128(3.0), None, [3.0], np.array([3.0]), np.ones((1, 1)),
              np.array("3"), np.array(True), np.array(3.0 + 0.0j), np.str_("3"), np.datetime64("2020")]  # fmt: skip
NO_SETTINGS = [-1.0, -3, math.nan, math.inf, -math.inf, 10**400, 10**5000, np.array(-1.0)]


@pytest.mark.parametrize(("name", "setting"), SETTINGS)
def test_settings_of_objectives_must_be_real_numbers_in_range(name, setting):
    make = SETTINGS[name, setting]
    for value in NO_NUMBERS:
        with pytest.raises(TypeError, match=f"^{setting} must be a number, got "):
            make(value)
    for value in NO_SETTINGS:
        with pytest.raises(ValueError, match=f"^{setting} must be (finite and|a number of at most) .*, got "):
            make(value)
    for value in (3, 3.0, np.float32(3.0), np.int8(3), np.array(3), np.array(3.0)):
        f = make(value)
        kept = f.__dict__.get(setting, getattr(getattr(f, "loss", None), setting, None))
        assert kept == 3.0 and type(kept) is float


def test_a_setting_may_be_a_tensor():
    torch = pytest.importorskip("torch")
    assert LogSumExp(A, alpha=torch.tensor(3.0, requires_grad=True)).loss.alpha == 3.0
    for value in (torch.tensor([3.0]), torch.tensor(True), torch.tensor(3.0 + 0.0j)):
        with pytest.raises(TypeError, match=r"^alpha must be a number, got "):
            LogSumExp(A, alpha=value)
