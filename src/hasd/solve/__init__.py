"""``hasd solve FILE``: data from a file, a certified solution into a folder.

`files` is the one way in, `formats` its readers on pandas, pyarrow, scikit-learn and NumPy, `data` makes a matrix and a
target of what they read; `problems` calls the solvers; `output` and `plot` tell.
"""

from .data import Cost, Pair
from .faults import FileProblem
from .files import read
from .settings import Settings

__all__ = ["Cost", "FileProblem", "Pair", "Settings", "read"]
