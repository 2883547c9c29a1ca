"""Problems people have, from data to a certified answer: minimax and l_p fits, optimal transport, matrix balancing."""

from ._balance import balance
from ._chebyshev import chebyshev
from ._lp_fit import lp_fit
from ._transport import transport

__all__ = ["balance", "chebyshev", "lp_fit", "transport"]
