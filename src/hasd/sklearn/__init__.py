"""scikit-learn estimators whose fits come with a certificate: each is one file here.

Needs scikit-learn 1.6 or newer: ``pip install "hasd[sklearn]"``.

>>> import numpy as np
>>> model = MinimaxRegressor().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
>>> bool(model.gap_ <= 1e-9)
True
"""

try:
    from .classifier import LogisticClassifier
    from .regressors import LpRegressor, MinimaxRegressor
except ImportError as error:
    raise ImportError('hasd.sklearn needs scikit-learn 1.6 or newer: pip install "hasd[sklearn]"') from error

__all__ = ["LogisticClassifier", "LpRegressor", "MinimaxRegressor"]
