"""scikit-learn's estimators over the rows of a table: with NumPy, or with torch through scikit-learn's array API
dispatch."""

import os

os.environ["SCIPY_ARRAY_API"] = "1"  # SciPy reads this when it is imported

import numpy as np
import sklearn
import torch
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

from crossover import Step

SIZE_NAME = "rows"
COLUMNS = 64


def pca(rows, device, variant="torch", protocol="resident"):
    def fit(table, _target):
        return PCA(n_components=8, svd_solver="covariance_eigh").fit(table).explained_variance_

    return step(fit, rows, device, variant, protocol)


def ridge(rows, device, variant="torch", protocol="resident"):
    def fit(table, target):
        return Ridge(solver="svd").fit(table, target).coef_

    return step(fit, rows, device, variant, protocol)


def standard_scaler(rows, device, variant="torch", protocol="resident"):
    def fit(table, _target):
        return StandardScaler().fit_transform(table)

    return step(fit, rows, device, variant, protocol)


def step(fit, rows, device, variant, protocol):
    """Fit a table of random numbers; with from_host, copy it to the device first and the result back."""
    if variant == "numpy" and device != "cpu":
        raise RuntimeError("NumPy computes on the CPU only")
    random = np.random.default_rng(0)
    table = random.standard_normal((rows, COLUMNS), dtype=np.float32)
    target = table @ random.standard_normal(COLUMNS, dtype=np.float32)
    data = (table, target) if variant == "numpy" else (torch.from_numpy(table), torch.from_numpy(target))
    if protocol == "resident" and variant != "numpy":
        data = tuple(array.to(device) for array in data)

    def run():
        with sklearn.config_context(array_api_dispatch=variant != "numpy"):
            if protocol == "resident" or variant == "numpy":
                return fit(*data)
            return fit(*(array.to(device) for array in data)).cpu()

    return Step(run=run, samples=rows, unit="rows")
