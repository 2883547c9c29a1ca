"""``hasd solve FILE``: data from a file, a certified solution into a folder.

`read` is the funnel every file goes through; `problems` calls the solvers; `summary`, `write` and `plot` tell.
"""

from .contents import Request
from .data import Cost, Pair
from .faults import FileProblem
from .read import read

__all__ = ["Cost", "FileProblem", "Pair", "Request", "read"]
