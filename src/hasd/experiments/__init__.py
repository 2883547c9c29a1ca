"""The paper's figure, example and corollaries, and training, as data -> rows -> plot: what ``hasd reproduce`` runs.

>>> list(EXPERIMENTS)
['dimension', 'figure', 'softmax', 'search', 'restart', 'gradnorm', 'training']
"""

from . import dimension, figure, gradnorm, restart, softmax, training, trials
from .experiment import Experiment, collect, save
from .workers import Workers

EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (dimension, figure, softmax, trials, restart, gradnorm, training)
}

__all__ = ["EXPERIMENTS", "Experiment", "Workers", "collect", "save"]
