"""Objects that stand for work that is not done yet, and results that look like them."""

from __future__ import annotations

from concurrent.futures import Future
from functools import partialmethod
from subprocess import Popen
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from pyarrow import dataset
from scipy.optimize import minimize
from scipy.sparse.linalg import aslinearoperator
from torch import nn

from crossover.measurement.user.pending import pending_kind


def lazy(name: str, **methods: Any) -> Any:
    """An object with these methods, which return these values."""
    return type(
        name, (), {method: partialmethod(lambda _self, value: value, value) for method, value in methods.items()}
    )()


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ([1, (number for number in [1])], "an iterator (generator)"),
        ((np.ones(2), [Future(), Future()]), "a future (Future)"),
        (Popen.__new__(Popen), "a future (Popen)"),
        (lazy("LazyFrame", collect=1), "a LazyFrame before its collect()"),
        ([lazy("Frame", compute=1, __dask_graph__={"sum": 1}, __array__=1)], "a Frame before its compute()"),
        ([dataset.dataset(pa.table({"a": [1]})).scanner()], "a Scanner before its to_table()"),
        (aslinearoperator(np.eye(2)) @ aslinearoperator(np.eye(2)), "a _ProductLinearOperator before its matvec()"),
        (
            {"rows": lazy("Rows", __iter__=1)},
            "a Rows without a length, which computes its values when it is iterated over",
        ),
    ],
)
def test_work_that_is_not_done_yet_is_named(value: Any, kind: str) -> None:
    assert pending_kind(value) == kind


def test_a_thread_is_pending_while_it_runs() -> None:
    ended = Event()
    thread = Thread(target=ended.wait)
    thread.start()
    assert pending_kind([thread]) == "a Thread that still runs"
    ended.set()
    thread.join()
    assert pending_kind([thread]) is None


@pytest.mark.parametrize(
    "value",
    [
        *(None, "text", 1.5, [1, 2], {"a": 1}, np.ones(3), torch.ones(3), nn.Linear(1, 1), SimpleNamespace(collect=1)),
        pd.DataFrame({"collect": [1], "compute": [2]}),
        {"predict": abs, "score": 0.5},
        lazy("DataArray", compute=1, __dask_graph__=None),
        *(pa.table({"a": [1]}), pa.array([1]), lazy("Table", __len__=1, to_pandas=1, __iter__=1)),
        minimize(lambda x: float(x @ x), np.ones(2), method="L-BFGS-B"),  # hess_inv is a LinearOperator
    ],
)
def test_results_are_not_pending(value: Any) -> None:
    assert pending_kind(value) is None
