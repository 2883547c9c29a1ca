"""compare(): several methods on one problem, with a table, a plot, and what they certify together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._checks import check_words, parameters, unknown_name_message, whole_number
from ._minimize import minimize
from ._plots import draw_comparison
from ._run.certificate import Certificate
from ._run.problem import Method
from ._run.report import Result
from ._run.status import Status
from ._scipy_methods import SCIPY_METHODS, minimize_by_scipy, scipy_name
from .methods import REGISTRY, make

Settings = str | Method | Mapping[str, Any]
"""How a method is given: its name, a method object, or settings of `minimize`."""
SET_HERE = ("fun", "x0", "trace", "maxfun")
"""What compare gives to every run itself."""
AGAINST = {"evaluations": "nfev", "products": "nprod", "seconds": "seconds"}
"""What a plot is drawn against, and the field of a result and column of a trace that counts it."""
HEADINGS = {
    "label": "",
    "method": "method",
    "fun": "fun",
    "above_best": "above best",
    "gap": "gap",
    "own_gap": "own gap",
    "nfev": "nfev",
    "nprod": "nprod",
    "nit": "nit",
    "seconds": "seconds",
    "status": "status",
}
"""The columns of the printed table."""
FORMATS = {"fun": ".10g", "above_best": ".2e", "gap": ".2e", "own_gap": ".2e", "seconds": ".3g"}
WORDS = ("label", "method", "status")
"""Columns that are aligned on the left."""


@dataclass(frozen=True, repr=False)
class Comparison:
    """What `compare` returns: the results by label, a table (`rows`, `print`) and a plot of them.

    Evaluations are counted alike for all methods: a call for the value, the gradient or both at one point is one
    (``nfev``).  A finite difference takes one for each variable and one for the point.
    """

    results: dict[Any, Result]
    budget: float | None

    def __repr__(self) -> str:
        """The table, and on what its gaps rest; columns without information are left out."""
        rows = [{**row, "label": str(row["label"])} for row in self.rows()]
        kept = [name for name in HEADINGS if any(_informs(name, row) for row in rows)]
        cells = [[HEADINGS[name] for name in kept], *([_cell(name, row[name]) for name in kept] for row in rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        sides = ["<" if name in WORDS else ">" for name in kept]
        lines = ("  ".join(map("{:{}{}}".format, line, sides, widths)).rstrip() for line in cells)
        return "\n".join([*lines, self._bound_text])

    @property
    def best(self) -> float:
        """The lowest value that any method recorded."""
        return float(np.fmin.reduce([value for res in self.results.values() for value in (res.fun, *res.trace["fun"])]))

    @property
    def lower(self) -> float:
        """The largest lower bound on the minimum that any run certifies; it holds for all, as the function is one.

        It rests on what that one run rests on: that f is convex, and on the ``radius`` (an l_2 bound on the distance
        from x0 to a minimiser) or the ``mu`` that the run was given; ``res.certificate.assumes`` says which.  The bound
        of a run does not count if the other runs refute what it assumes, by a value below the bound, or by a
        contradiction that they met under the same assumptions or weaker ones.  It is -inf if no bound is left.
        """
        return max((res.lower for res in self._standing.values()), default=-math.inf)

    @property
    def _contradictions(self) -> list[Certificate]:
        """The certificates whose assumptions a run has shown to be wrong: its own run, or one with a lower value."""
        run = [res for res in self.results.values() if math.isfinite(res.fun)]
        least = min((res.certificate.upper for res in run), default=math.inf)
        return [res.certificate for res in run if res.certificate.withdrawn or res.lower > least]

    @property
    def _standing(self) -> dict[Any, Result]:
        """The runs whose assumptions do not imply any that is refuted."""
        refuted = self._contradictions
        return {
            label: res
            for label, res in self.results.items()
            if not any(_assumes_no_less(res.certificate, one) for one in refuted)
        }

    @property
    def _bound_text(self) -> str:
        """What is certified, in a sentence."""
        for label, res in self._standing.items():
            if res.lower == self.lower > -math.inf:
                assumed = res.certificate.assumes
                return f"The minimum is at least {self.lower!r}, certified by {label} (assumed: {assumed})."
        if self._contradictions:
            wrong = "a radius is too small, mu is too large, or the function is not convex"
            return f"Nothing is certified, because the runs contradict what they assume: {wrong}."
        return "Nothing is certified: that takes a method of hasd and radius= or mu=."

    def rows(self) -> list[dict[str, Any]]:
        """One row for each method, in the order given; ``pandas.DataFrame(comparison.rows())`` makes a table of them.

        ``above_best`` is how far fun is above `best`.  ``gap`` bounds f(x) - min f by the certificates of all runs:
        it is fun - `lower`, with an allowance for the rounding of fun, or the method's own gap if that is smaller.
        ``own_gap`` is what the method certified by itself; SciPy's methods certify nothing.  Both are inf where nothing
        is certified, or what it rests on is refuted.  ``status`` is the name of the `hasd.Status`; for SciPy's methods
        "precision" means that they ended by themselves without reaching a tolerance.
        """
        best, lower = self.best, self.lower
        own = {label: res.gap for label, res in self._standing.items()}
        return [
            {
                "label": label,
                "method": res.method,
                "fun": res.fun,
                "above_best": res.fun - best,
                "gap": float(np.fmin(res.certificate.upper - lower, own.get(label, math.inf))),
                "own_gap": own.get(label, math.inf),
                **{name: res[name] for name in ("nfev", "nprod", "nit", "seconds", "success")},
                "status": Status.of(res.status).word,
            }
            for label, res in self.results.items()
        ]

    def plot(
        self, ax: Any = None, *, against: str = "evaluations", reference: float | None = None, certified: bool = False
    ) -> Any:
        """Draw how far the best value so far was above the best of all methods; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; None makes a new figure.  The axes are returned.
        against : {"evaluations", "products", "seconds"}
            What is on the horizontal axis; products are those with A, which are counted for `hasd.objectives`.
        reference : float, optional
            The value to measure from instead of the best one, for example the minimum if it is known.
        certified : bool
            Draw the best value so far minus the best lower bound so far as well, dashed, for each run that has one.
        """
        check_words(against=(against, tuple(AGAINST)))
        column, floor = AGAINST[against], self.best if reference is None else reference
        if not any(res[column] for res in self.results.values()):
            raise ValueError(f"no {against} were counted: they are for functions of Ax - b from hasd.objectives")
        curves = {}
        for label, res in self.results.items():
            spent = np.append(res.trace[column], res[column])
            best = np.fmin.accumulate(np.append(res.trace["upper"], res.fun))
            gap = best - np.append(res.trace["lower"], res.lower if math.isfinite(res.lower) else math.nan)
            curves[str(label)] = spent, best - floor, gap if certified else None
        unit = "products with A" if against == "products" else against
        above = "f − best value seen" if reference is None else "f − reference"
        return draw_comparison(curves, unit, above, ax)


def _assumes_no_less(one: Certificate, other: Certificate) -> bool:
    """Whether all that the other assumes follows from what this one assumes."""
    reach, other_reach = (math.inf if radius is None else radius for radius in (one.radius, other.radius))
    return reach <= other_reach and one.mu >= other.mu and other.assumed in ("", one.assumed)


def _informs(name: str, row: Mapping[str, Any]) -> bool:
    """Whether an entry of the table says more than nothing: a method other than its label, a gap, a product."""
    value = row[name]
    if name == "method":
        return value != row["label"]
    return value > 0 and math.isfinite(value) if name in ("gap", "own_gap", "nprod") else True


def _cell(name: str, value: Any) -> str:
    """An entry of the table as text."""
    if name in ("gap", "own_gap") and not math.isfinite(value):
        return "none"
    return format(value, FORMATS.get(name, ""))


def compare(
    fun: Any,
    x0: Any,
    methods: str | Iterable[str | Method] | Mapping[Any, Settings],
    budget: int | None = None,
    **common: Any,
) -> Comparison:
    """Run several methods on one problem, ours and SciPy's, and set them side by side.

    Parameters
    ----------
    fun, x0
        As in `minimize`.
    methods : list or mapping
        Names, or a mapping from labels to methods.  A method is a name, a method object, or a dictionary of settings
        of `minimize`, which come before the common ones: ``{"p = 3": {"method": "hasd", "p": 3}}``.  The names are
        those of `method_names`, "auto", and of ``scipy.optimize.minimize``: CG, BFGS, Newton-CG, L-BFGS-B, TNC, SLSQP,
        in upper or lower case.
    budget : int, optional
        The evaluations that each method may ask for.  With a budget the tolerances are 0 unless you give some, so that
        the budget is what ends a run; without one each method runs until its own tolerance.
    **common
        Settings of `minimize` for every method.  Of these, SciPy's methods take ``args``, ``jac``, ``maxiter``,
        ``time_limit``, and in SciPy's sense ``tol`` and, where they have it (CG, BFGS, L-BFGS-B, TNC), ``gtol``; the
        others are not for them, except that x0 may have the shape that ``p`` has.  Further settings in
        the dictionary of a SciPy method are its options in SciPy, such as ``maxcor``.

    Returns
    -------
    Comparison
        Print it for a table; ``rows()``, ``plot()``, ``results`` (by label) and ``lower``, the best certified lower
        bound of all runs.

    Examples
    --------
    >>> import numpy as np, hasd
    >>> f = hasd.objectives.Quadratic(np.diag(np.arange(1.0, 50.0)))
    >>> both = hasd.compare(f, np.ones(49), ["gradient-descent", "agd"], budget=100, L=49.0, p=2)
    >>> [row["method"] for row in sorted(both.rows(), key=lambda row: row["fun"])]
    ['agd', 'gradient-descent']

    With a radius, the lower bound of one method is a bound for the others too, SciPy's among them:

    >>> norms = {"p = 2": {"method": "hasd", "p": 2}, "p = inf": {"method": "hasd", "p": np.inf}}
    >>> all_three = hasd.compare(f, np.ones(49), {**norms, "SciPy": "L-BFGS-B"}, radius=7.0, tol=1e-8)
    >>> [row["gap"] < 1e-4 for row in all_three.rows()], all_three.results["SciPy"].gap
    ([True, True, True], inf)
    """
    if budget is not None:
        common = {"tol": 0.0, **common}
        whole_number("budget", budget, least=1)
    if "method" in common:
        raise TypeError("compare takes the methods from methods; method must not be given")
    runs = {label: {**common, **own} for label, own in _own_settings(methods).items()}
    if not runs:
        raise ValueError("methods must name at least one method")
    for settings in runs.values():
        _check(settings)
    return Comparison({label: _run(fun, x0, budget, settings) for label, settings in runs.items()}, budget)


def _own_settings(methods: Any) -> dict[Any, dict[str, Any]]:
    """The settings of each method by its label."""
    if isinstance(methods, str | Method):
        methods = [methods]
    if not isinstance(methods, Mapping):
        labels = [one if isinstance(one, str) else getattr(one, "name", repr(one)) for one in methods]
        for label in labels:
            if labels.count(label) > 1:
                raise ValueError(f"two of the methods are called {label!r}: give a mapping from labels to methods")
        methods = dict(zip(labels, methods, strict=True))
    own = {
        label: {"method": "auto", **given} if isinstance(given, Mapping) else {"method": given}
        for label, given in methods.items()
    }
    if any("args" in settings for settings in own.values()):
        raise TypeError("args must be given to compare itself: all methods minimise one function")
    return own


def _check(settings: Mapping[str, Any]) -> None:
    """Refuse unknown names and options before anything is run."""
    for name in SET_HERE:
        if name in settings:
            raise TypeError(f"compare sets {name} itself; it must not be given")
    for name in ("bounds", "constraints"):
        if settings.get(name):
            raise TypeError(f"compare minimises without {name}; {name} must not be given")
    method = settings["method"]
    if "options" in settings:
        raise TypeError('options must be given as settings of their own: {"method": "L-BFGS-B", "maxcor": 30}')
    if not isinstance(method, str) or scipy_name(method) is not None or method == "auto":
        return
    names = ("auto", *REGISTRY, *SCIPY_METHODS)
    if method not in REGISTRY:
        raise ValueError(unknown_name_message("method", method, names, f"the methods are: {', '.join(names)}"))
    make(method, {name: settings[name] for name in settings if name not in parameters(minimize)}, minimize)


def _run(fun: Any, x0: Any, budget: int | None, settings: dict[str, Any]) -> Result:
    """One run by one method."""
    theirs = scipy_name(settings["method"])
    if theirs is None:
        return minimize(fun, x0, maxfun=budget, **settings)
    ours_alone = {*parameters(minimize)} - {*parameters(minimize_by_scipy)} | {"method"}
    taken = {name: value for name, value in settings.items() if name not in ours_alone}
    return minimize_by_scipy(fun, x0, theirs, maxfun=budget, **taken)
