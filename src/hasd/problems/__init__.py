"""Problems people have, from data to a certified answer: minimax and l_p fits, optimal transport, matrix balancing."""

from .chebyshev import chebyshev

__all__ = ["chebyshev"]
