"""Why a run ended."""

from __future__ import annotations

from enum import Enum


class Status(Enum):
    """Why a run ended: a code and a sentence.  0, 1, 2, 3 and 99 mean what they mean in SciPy; ours start at 10.

    >>> Status.MAXITER.code, Status.MAXITER.success
    (1, False)
    """

    CONVERGED = (0, "Converged: the gradient's dual norm is within the tolerance.")
    MAXITER = (1, "Maximum number of iterations reached.")
    PRECISION = (2, "No further progress is possible at machine precision.")
    NONFINITE = (3, "Twenty trial points in a row gave a non-finite value or gradient.")
    MAXFUN = (10, "Maximum number of function evaluations reached.")
    TIME = (11, "Time limit reached.")
    NONFINITE_START = (12, "The value or the gradient at x0 is not finite.")
    UNBOUNDED = (13, "The function is unbounded below: it took the value -inf, or falls without end along a line.")
    GAP = (14, "Converged: the certified gap is within gap_tol.")
    NONCONVEX = (15, "No further progress is possible, and the function is not convex, or noisy.")
    GRADIENT = (17, "No further progress is possible, because the gradient does not fit the values of the function.")
    INTERRUPTED = (16, "Interrupted by the user.")
    CALLBACK = (99, "`callback` raised `StopIteration`.")

    @classmethod
    def of(cls, code: int) -> Status:
        """The status of a result's code."""
        return next(status for status in cls if status.code == code)

    @property
    def code(self) -> int:
        """The number reported as ``res.status``."""
        return self.value[0]

    @property
    def message(self) -> str:
        """The sentence reported as ``res.message``."""
        return self.value[1]

    @property
    def word(self) -> str:
        """The same in one word, for tables and progress bars.

        >>> Status.GAP.word, Status.MAXFUN.word
        ('converged', 'maxfun')
        """
        return "converged" if self.success else self.name.lower()

    @property
    def success(self) -> bool:
        """True only where a tolerance was met."""
        return self in (Status.CONVERGED, Status.GAP)


class Stop(Exception):
    """Raised inside a step that cannot be completed; carries the status.  Never leaves the loop."""

    def __init__(self, status: Status):
        """Keep the status."""
        super().__init__(status.message)
        self.status = status
