"""Problems people have, from data to a certified answer: minimax and l_p fits, optimal transport, matrix balancing."""

from .balance import balance
from .chebyshev import chebyshev
from .lp import lp_fit
from .transport import transport

__all__ = ["balance", "chebyshev", "lp_fit", "transport"]
