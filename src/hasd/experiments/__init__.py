"""The paper's figure, example and corollaries as data -> rows -> plot: what ``hasd reproduce`` runs.

>>> list(EXPERIMENTS)
['dimension', 'figure', 'softmax', 'search', 'restart', 'gradnorm', 'linf']
"""

from . import dimension, figure, gradnorm, linf, restart, softmax, trials
from .experiment import Experiment, collect, save
from .workers import Workers

_MODULES = (dimension, figure, softmax, trials, restart, gradnorm, linf)
EXPERIMENTS: dict[str, Experiment] = {module.EXPERIMENT.name: module.EXPERIMENT for module in _MODULES}

__all__ = ["EXPERIMENTS", "Experiment", "Workers", "collect", "save"]
