"""Six plain functions that take a device, as a user who has only read the docs would write them."""

from __future__ import annotations

import numpy as np
import scipy.ndimage
import scipy.sparse
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from crossover import Step


def numbers(*shape):
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32)


def fft(n, device):
    signal = numbers(n)
    if device == "cpu":
        return lambda: np.fft.rfft(signal)
    on_device = torch.from_numpy(signal).to(device)
    return lambda: torch.fft.rfft(on_device)


def sparse_product(rows, device):
    matrix = scipy.sparse.random_array((rows, rows), density=0.1, rng=0, dtype=np.float32, format="csr")
    vector = numbers(rows)
    if device == "cpu":
        return lambda: matrix @ vector
    places, values = np.stack(matrix.tocoo().coords), matrix.tocoo().data
    sparse = torch.sparse_coo_tensor(places, values, matrix.shape, device=device, check_invariants=True)
    dense = torch.from_numpy(vector).to(device)
    return lambda: sparse @ dense


def histogram(values, device):
    data = torch.from_numpy(numbers(values)).to(device)
    if device == "cpu":
        return Step(run=lambda: np.histogram(data.numpy(), 64, (-4, 4))[0], samples=values)
    # A value close to an edge may be counted in the neighbouring bin.
    return Step(run=lambda: torch.histc(data, 64, -4, 4).long(), samples=values, tolerance=1e-3)


def euler(particles, device):
    start = torch.from_numpy(numbers(particles)).to(device)

    def solve():
        position = start.clone()
        for _ in range(20):
            position += 0.01 * (1 - position**2)
        return position

    return Step(run=solve, samples=lambda: 20 * particles, unit="updates")


def sorting(keys, device):
    data = torch.rand(keys, device=device)  # the same on all devices, although it is drawn on each
    return Step(run=lambda: torch.sort(data).values, samples=keys, unit="keys")


def pipeline(rows, device):
    if device != "cpu":
        raise NotImplementedError("this pipeline is scikit-learn's")
    table = numbers(rows, 8)
    labels = table[:, 0] > 0
    model = make_pipeline(StandardScaler(), LogisticRegression())
    return Step(run=lambda: model.fit(table, labels), result=lambda: model[-1].coef_, samples=rows, unit="rows")
