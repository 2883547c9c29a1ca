"""f(x) = phi(Ax - b) + ridge/2 ||x||_2^2, and the five losses the package brings."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from .._checks import check_flags, number, whole_number
from .._math.arrays import copy_of, largest_size, to_float64
from .._math.doubt import EPS, Doubt, Sizes, roundings
from .._math.geometry import dot
from . import _dual as dual
from ._images import Images, LocalImages
from ._intercept import InterceptImages, InterceptLoss
from ._loss import Loss, has_curvature, refuse_what_is_no_loss
from ._operators import Matrix, Vector, apply, as_data, as_point, quiet, row_blocks
from ._sizes import DataSizes, MatrixSizes
from ._smoothness import Smoothness, add_ridge
from .base import Objective, in_precision_of
from .losses import LogisticLoss, LogSumExpLoss, PowerLoss, SquareLoss, SymmetricSoftmaxLoss

LONG_BLOCK = 2**13
"""Entries of A that are turned into longer numbers at a time."""


class AffineObjective(Objective):
    """f(x) = phi(Ax - b) + ridge/2 ||x||_2^2, wherever the rows of A are."""

    loss: Any
    rows: int | None
    """Of A; None for the identity."""

    @abstractmethod
    def loss_at(self, x: Vector) -> float:
        """phi(Ax - b); one product."""

    @abstractmethod
    def loss_and_gradient_at(self, x: Vector) -> tuple[float, Vector]:
        """phi(Ax - b) and A^T phi'(Ax - b); two products."""

    @abstractmethod
    def sizes(self) -> DataSizes | None:
        """Norms of the data, from which rounding errors are estimated; None for an operator."""

    @quiet
    def __call__(self, x: npt.ArrayLike) -> float:
        """f(x); one product."""
        point = self._point(x)
        return self.loss_at(point) + self._ridge_value(point)

    @quiet
    def value_and_grad(self, x: npt.ArrayLike) -> tuple[float, Vector]:
        """f(x) and A^T phi'(Ax - b) + ridge x; two products."""
        point = self._point(x)
        value, g = self.loss_and_gradient_at(point)
        if self.ridge > 0.0:
            g += self.ridge * to_float64(point)
        return value + self._ridge_value(point), in_precision_of(point, g)

    @property
    def bounded_below(self) -> bool:
        """True with a ridge, or if the loss is bounded below."""
        return self.ridge > 0.0 or getattr(self.loss, "bounded_below", False)

    @property
    def has_curvature(self) -> bool:
        """Whether the loss knows its second derivative, which all work on images needs."""
        return has_curvature(self.loss)

    def doubt(self, at: Sizes, image: float | None = None) -> Doubt | None:
        """What value and gradient may be off by; None for an operator, and for a loss that does not say it."""
        sizes = self.sizes()
        if sizes is None or not hasattr(self.loss, "doubt"):
            return None
        far = sizes.largest_product(at)
        dz = sizes.image_doubt(at, self.precision, far, image) + self._image_doubt(far)
        return sizes.doubt(at, self.loss, self.rows or at.d, self.ridge, self.precision, dz)

    def _image_doubt(self, size: float) -> float:
        """What the loss itself adds to the errors of an image whose entries are of this size."""
        own = getattr(self.loss, "image_doubt", None)
        return 0.0 if own is None else own(size)

    def _point(self, x: npt.ArrayLike) -> Vector:
        return as_point(x, self.dimension, "x", x if self.model is None else self.model)

    def _ridge_value(self, x: Vector) -> float:
        if self.ridge == 0.0:
            return 0.0
        x = to_float64(x)
        return 0.5 * self.ridge * dot(x, x)


class Affine(AffineObjective):
    """f(x) = phi(Ax - b) + ridge/2 ||x||_2^2 for any loss phi.

    A is a dense array (of NumPy, PyTorch or another library that follows the array API standard, on any device), a
    SciPy sparse matrix or a LinearOperator.  A is not copied; ``b`` is.  Methods that work on cached images use
    ``loss``, ``A``, ``b``, ``forward``, ``adjoint`` and ``image``.

    >>> import numpy as np
    >>> from hasd.objectives.losses import PowerLoss
    >>> f = Affine(PowerLoss(4), np.eye(2), b=[1.0, 0.0])
    >>> f.value_and_grad(np.zeros(2))
    (0.25, array([-1.,  0.]))
    >>> f.nprod
    2
    """

    identity_allowed: ClassVar[bool] = False

    def __init__(
        self, loss: Loss | Callable[..., Loss], A: Matrix | None, b: npt.ArrayLike | None = None, ridge: float = 0.0
    ) -> None:
        """Check and keep the data."""
        self.ridge = number("ridge", ridge, least=0.0)
        self.A = self._AT = self.rows = self.dimension = None
        if A is not None or not self.identity_allowed:
            self.A = self._check_matrix(A, "A")
            self._AT = self.A.T  # a view of the same data, made once
            self.rows, self.dimension = self.A.shape
        if isinstance(loss, type) and loss is not LogisticLoss:
            refuse_what_is_no_loss(loss)
        labelled = callable(loss)  # that class, or what makes a loss: labels come in the place of b
        model = b if self.A is None else self.A
        vector = None if b is None else as_data(b, self.rows, "y" if labelled else "b", model, "A")
        self.loss, self.b = (loss(vector), None) if callable(loss) else (loss, vector)
        refuse_what_is_no_loss(self.loss)
        if self.A is None and vector is not None:
            self.dimension = vector.shape[0]
        self._data = MatrixSizes(self.A, self.b)

    def forward(self, x: Vector) -> Vector:
        """A x in float64; one product."""
        self.nprod += 1
        return copy_of(to_float64(x)) if self.A is None else apply(self.A, x)

    def adjoint(self, u: Vector) -> Vector:
        """A^T u in float64; one product."""
        self.nprod += 1
        return copy_of(to_float64(u)) if self._AT is None else apply(self._AT, u)

    @quiet
    def image(self, x: Vector) -> Vector:
        """z = Ax - b; one product."""
        z = self.forward(x)
        return z if self.b is None else z - self.b

    def loss_at(self, x: Vector) -> float:
        """phi(Ax - b)."""
        return self.loss.value(self.image(x))

    def loss_and_gradient_at(self, x: Vector) -> tuple[float, Vector]:
        """phi(Ax - b) and A^T phi'(Ax - b)."""
        value, slope = self.loss.value_and_slope(self.image(x))
        return value, self.adjoint(slope)

    def duality_gap(self, x: npt.ArrayLike, radius: float | None = None, iterations: int = 100) -> float:
        """A certified upper bound on f(x) - f*, computed from points of the dual.

        It is at most ||grad f||^2/(2 ridge), agrees with the true gap to second order near the minimiser, and allows
        for rounding.  The formulas are in ``hasd.objectives._dual``.

        * With a ridge, f* is the minimum over all y.
        * With a radius, f* is the minimum over ||y||_2 <= radius: give one for which a minimiser is in this ball.
        * With neither, the bound needs a dual point u with A^T u = 0, which holds only up to rounding.  If the residual
          is larger, there is no bound.  If it is of the size of rounding, the bound allows for it for every y with
          ||y||_2 <= 100 (||x||_2 + ||w||_2), where w is the Newton step at x.  Only if all minimisers are further away
          than that could the bound be too small.

        The result is inf if no dual point was found.  This can happen for log-sum-exp without ridge and radius, if the
        Newton step leaves the simplex (x is far from the minimiser, or f is unbounded below).  For losses that are
        bounded below the result is at most f(x) - min phi.  It is NaN if f(x) is NaN, or if the loss has no
        ``conjugate`` (which must be inf outside its domain).

        It takes two products with A, two more for each of at most ``iterations`` conjugate residuals, and one whenever
        those are restarted: at most 2 + 3 * ``iterations``.  With ``iterations=0`` it takes two products and uses
        only the dual points phi'(Ax - b) and 0, and so it does for a loss without a second derivative.

        >>> f = LeastSquares([[1.0], [1.0]], b=[0.0, 2.0])
        >>> f([0.0]) - f([1.0]), round(f.duality_gap([0.0]), 9)
        (1.0, 1.0)
        """
        if getattr(self.loss, "conjugate", None) is None:
            return math.nan
        if radius is not None:
            radius = number("radius", radius, least=0.0)
        whole = int(whole_number("iterations", iterations, least=0, finite=True))
        return dual.duality_gap(self, self._point(x), radius, whole if self.has_curvature else 0)

    @property
    def has_hessian(self) -> bool:
        """Whether the entries of A are at hand.

        A subclass with products of its own has another matrix than A: only images of its own know its Hessian.
        """
        products, images = (next(c for c in type(self).__mro__ if n in c.__dict__) for n in ("forward", "images"))
        return super().has_hessian and issubclass(images, products)

    @property
    def matrix(self) -> Matrix | None:
        """A; None for the identity."""
        return self.A

    @property
    def model(self) -> Any:
        """A, or b where A is the identity."""
        return self.b if self.A is None else self.A

    def images(self) -> Images:
        """The space of images Ax - b, for methods that keep them."""
        return LocalImages(self)

    def smoothness(self, p: float) -> Smoothness:
        """The declared L_p of the loss plus ridge d^{1-2/p}."""
        return add_ridge(self.loss.smoothness(self.A, p), self.ridge, p, self.dimension)

    def sizes(self) -> DataSizes | None:
        """Norms of the data, from which rounding errors are estimated; None for an operator."""
        return self._data.affine

    @quiet
    def sharpen(self, x: Vector, at: Sizes) -> tuple[float, Vector, Doubt] | None:
        """f, its gradient and their doubt, with the image recomputed in extended precision (one slow product).

        None where there are no longer numbers, for data that are not NumPy's and dense, and for losses that do not say
        what they may be off by.
        """
        sizes, long = self.sizes(), np.finfo(np.longdouble)
        if type(self.A) is not np.ndarray or sizes is None or not hasattr(self.loss, "doubt") or long.eps >= EPS:
            return None
        n, d = self.A.shape
        point = x.astype(np.longdouble).reshape(d, -1)  # a column for each class
        z = np.empty((point.shape[1], n))
        for rows in row_blocks(self.A.shape, LONG_BLOCK):
            part = (self.A[rows].astype(np.longdouble) @ point).T
            z[:, rows] = part if self.b is None else part - self.b[rows]
        far = sizes.largest_product(at) + sizes.largest
        dz = float(long.eps) * roundings(sizes.terms) * far + 0.5 * EPS * largest_size(z) + self._image_doubt(far)
        value, slope = self.loss.value_and_slope(z.ravel())
        g = self.adjoint(slope) + self.ridge * to_float64(x)
        doubt = sizes.doubt(at, self.loss, self.rows or n, self.ridge, self.precision, dz)
        return value + self._ridge_value(x), in_precision_of(x, g), doubt


class LogSumExp(Affine):
    """f(x) = alpha log sum_i exp((<a_i, x> - b_i)/alpha) + ridge/2 ||x||_2^2.

    This is a smoothed maximum.  L_p = max_{i,j} ||a_i - a_j||_{p*}^2/(4 alpha), the smallest constant that holds for
    every b.

    >>> f = LogSumExp([[1.0, 0.0], [0.0, 1.0]], alpha=0.5)
    >>> f.value_and_grad([0.0, 0.0])
    (0.34657359027997264, array([0.5, 0.5]))
    >>> f.smoothness(float("inf"))
    Smoothness(2.0, exact=True)
    """

    def __init__(self, A: Matrix, b: npt.ArrayLike | None = None, alpha: float = 1.0, ridge: float = 0.0) -> None:
        """Check and keep the data."""
        super().__init__(LogSumExpLoss(alpha), A, b, ridge)


class SymmetricSoftmax(Affine):
    """f(x) = alpha log sum_i (exp(z_i/alpha) + exp(-z_i/alpha)) + ridge/2 ||x||_2^2, z = Ax - b.

    This is a smoothed ||Ax - b||_inf; it is always bounded below.  A = None stands for the identity; the dimension is
    then that of b, or of x if there is no b.  Evaluations still count as one product with A and one with A^T, so that
    budgets can be compared.  L_p <= max_i ||a_i||_{p*}^2/alpha, exact for A = None and p = inf.

    >>> f = SymmetricSoftmax(b=[3.0, -1.0], alpha=1e-3)
    >>> f([0.0, 0.0])
    3.0
    >>> f.smoothness(float("inf"))
    Smoothness(1000.0, exact=True)
    """

    identity_allowed = True

    def __init__(
        self, A: Matrix | None = None, b: npt.ArrayLike | None = None, alpha: float = 1.0, ridge: float = 0.0
    ) -> None:
        """Check and keep the data."""
        super().__init__(SymmetricSoftmaxLoss(alpha), A, b, ridge)


class LeastSquares(Affine):
    """f(x) = 1/2 ||Ax - b||_2^2 + ridge/2 ||x||_2^2.

    L_p <= min(lambda_max(A^T A) d^{1-2/p}, ||A^T A||_{p*} entrywise), exact at p = 2.

    >>> f = LeastSquares([[2.0, 0.0], [0.0, 1.0]], b=[2.0, 0.0])
    >>> f.value_and_grad([0.0, 1.0])
    (2.5, array([-4.,  1.]))
    >>> f.smoothness(2)
    Smoothness(4.0, exact=True)
    """

    def __init__(self, A: Matrix, b: npt.ArrayLike, ridge: float = 0.0) -> None:
        """Check and keep the data."""
        super().__init__(SquareLoss(), A, b, ridge)


class Logistic(Affine):
    """f(x) = 1/n sum_i log(1 + exp(-y_i <a_i, x>)) + ridge/2 ||x||_2^2, labels y_i in {-1, 1}.

    L_p <= min(lambda_max(A^T A) d^{1-2/p}, ||A^T A||_{p*} entrywise)/(4n), exact at p = 2.  With positive ``weights``
    the mean is a weighted one.  With ``intercept=True`` it is f(x) = min over c of the same with <a_i, x> + c, a
    function of x alone, in which c has no ridge; ``best_intercept(x)`` is that c.

    >>> f = Logistic([[1.0], [2.0]], y=[1, -1])
    >>> f.value_and_grad([0.0])
    (0.6931471805599453, array([0.25]))
    >>> f.smoothness(2)
    Smoothness(0.625, exact=True)
    """

    def __init__(
        self,
        A: Matrix,
        y: npt.ArrayLike,
        ridge: float = 0.0,
        weights: npt.ArrayLike | None = None,
        intercept: bool = False,
    ) -> None:
        """Check and keep the data."""
        check_flags(intercept=intercept)
        super().__init__(partial(LogisticLoss, weights=weights), A, y, ridge)
        if intercept:
            self.loss = InterceptLoss(self.loss)

    def images(self) -> Images:
        """The space of images Ax, or Ax + c with the best c."""
        return InterceptImages(self) if isinstance(self.loss, InterceptLoss) else super().images()

    def best_intercept(self, x: npt.ArrayLike) -> float:
        """The c that belongs to x, 0 where there is no intercept; one product.

        >>> round(Logistic([[0.0], [0.0], [0.0]], y=[1, 1, -1], intercept=True).best_intercept([5.0]), 6)
        0.693147
        """
        return self.loss.shift(self.image(self._point(x))) if isinstance(self.loss, InterceptLoss) else 0.0


class Power(Affine):
    """f(x) = 1/q sum_i |<a_i, x> - b_i|^q + ridge/2 ||x||_2^2, q >= 2.

    For q > 2 there is no global L_p: ``smoothness`` is inf, and the method has to find L.  At q = 2 it is that of
    ``LeastSquares``.

    >>> f = Power([[1.0, 1.0]], b=[2.0], q=4)
    >>> f.value_and_grad([0.0, 0.0])
    (4.0, array([-8., -8.]))
    >>> f.smoothness(2)
    Smoothness(inf, exact=True)
    """

    def __init__(self, A: Matrix, b: npt.ArrayLike, q: float, ridge: float = 0.0) -> None:
        """Check and keep the data."""
        super().__init__(PowerLoss(q), A, b, ridge)
