"""PyTorch: `minimize` with the gradient from autograd, the methods as an optimizer, and optimizers for training.

>>> import torch
>>> from hasd.torch import HASD, minimize
>>> A = torch.eye(3, dtype=torch.float64)
>>> res = minimize(lambda x: torch.logsumexp(A @ x, 0) + x @ x, torch.ones(3, dtype=torch.float64))
>>> res.success, type(res.x).__name__, res.x.dtype
(True, 'Tensor', torch.float64)

Tensors stay in their type and on their device.  Needs ``pip install "hasd[torch]"``.
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError('hasd.torch needs PyTorch: pip install "hasd[torch]"') from error

from .functional import minimize
from .optimizer import HASD
from .parameters import parameter_groups
from .stacey import Stacey
from .stochastic import StochasticHASD

__all__ = ["HASD", "Stacey", "StochasticHASD", "minimize", "parameter_groups"]
