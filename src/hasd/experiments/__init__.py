"""The paper's figure, example and corollaries, and training, as data -> rows -> plot: what ``hasd reproduce`` runs.

>>> list(EXPERIMENTS)
['dimension', 'figure', 'softmax', 'search', 'restart', 'gradnorm', 'linf', 'training']
"""

from . import dimension, figure, gradnorm, linf, restart, softmax, training, trials
from .experiment import Experiment, collect, save
from .workers import Workers

_MODULES = (dimension, figure, softmax, trials, restart, gradnorm, linf, training)
EXPERIMENTS: dict[str, Experiment] = {module.EXPERIMENT.name: module.EXPERIMENT for module in _MODULES}

__all__ = ["EXPERIMENTS", "Experiment", "Workers", "collect", "save"]
