"""Pairs of several GPUs with fewer, and the crossovers between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from crossover.compare.crossovers import crossovers_of
from crossover.compare.pairings import pairings, with_costs
from crossover.tables.frames import records

US, MS = 1e-6, 1e-3
BATCHES = (64, 256, 1024, 4096, 16384, 65536)
OVER_BATCH = {"disc_depth": "batch_size"}


@pytest.fixture
def shared_out(row: Callable[..., dict[str, Any]]) -> Callable[[float], pd.DataFrame]:
    """Rows of steps that take 1 us for each sample on one GPU. N GPUs need an N-th of that, and communicate."""

    def build(communication_s: float) -> pd.DataFrame:
        rows = [
            row(
                batch_size=batch,
                device=device,
                trial=trial,
                step_time_s=(batch * US / ranks + communication_s * (ranks - 1)) * 1.001 ** (trial - 2),
            )
            for batch in BATCHES
            for device, ranks in {"cpu": 1, "cuda": 1, "cuda-2": 2, "cuda-4": 4}.items()
            for trial in (1, 2, 3)
        ]
        return pd.DataFrame(rows)

    return build


def test_several_gpus_are_compared_with_one_and_with_the_next_smaller_number(
    shared_out: Callable[[float], pd.DataFrame],
) -> None:
    pairs = [(pair.pair, pair.contender, pair.baseline) for pair in pairings(shared_out(1 * MS), OVER_BATCH)]
    assert pairs == [
        ("device", "cuda", "cpu"),
        ("gpus", "cuda-2", "cuda"),
        ("gpus", "cuda-4", "cuda"),
        ("gpus", "cuda-4", "cuda-2"),
    ]


@pytest.mark.parametrize("communication_s", [0.5 * MS, 2 * MS])
def test_the_crossover_moves_with_the_time_of_communication(
    shared_out: Callable[[float], pd.DataFrame], communication_s: float
) -> None:
    """b = b / 2 + c at b = 2c; b = b / 4 + 3c at b = 4c; b / 2 + c = b / 4 + 3c at b = 8c, all in us."""
    table = crossovers_of(pairings(shared_out(communication_s), OVER_BATCH))
    rows = {(r["contender"], r["baseline"]): r for r in records(table[table["pair"] == "gpus"])}
    for sides, factor in {("cuda-2", "cuda"): 2, ("cuda-4", "cuda"): 4, ("cuda-4", "cuda-2"): 8}.items():
        exact = factor * communication_s / US
        found = rows[sides]
        assert found["status"] == "bracketed"
        assert found["bracket_low"] <= exact <= found["bracket_high"] <= 4 * found["bracket_low"]
        assert found["crossover"] == pytest.approx(exact, rel=0.25)  # interpolated between batches


def test_a_batch_each_has_no_pair_with_the_cpu(row: Callable[..., dict[str, Any]]) -> None:
    rows = [row(batch_size=b, device=d, protocol="each", step_time_s=MS) for b in BATCHES for d in ("cuda", "cuda-2")]
    pairs = [(pair.pair, pair.baseline) for pair in pairings(pd.DataFrame(rows), OVER_BATCH)]
    assert pairs == [("gpus", "cuda")]


@pytest.mark.parametrize(
    ("listed", "baseline"),
    [
        ({"precision": ["bf16", "fp32", "fp16"]}, "fp32"),
        ({"precision": ["bf16", "fp16"]}, "bf16"),
        ({"execution": ["cuda-graph", "compile"]}, "cuda-graph"),
        ({"variant": ["torch", "numpy", "jax"]}, "torch"),
    ],
)
def test_values_on_a_device_are_compared_with_the_usual_or_else_with_the_first(
    row: Callable[..., dict[str, Any]], listed: dict[str, list[str]], baseline: str
) -> None:
    ((axis, values),) = listed.items()
    rows = pd.DataFrame([row(device="cpu", size=size, **{axis: value}) for value in values for size in (1, 2)])
    pairs = [pair for pair in pairings(rows, {"disc_depth": "size"}) if pair.pair == axis]
    assert [(pair.baseline, pair.contender) for pair in pairs] == [
        (baseline, value) for value in values if value != baseline
    ]
    assert all(pair.has_crossovers for pair in pairs)


def test_n_gpus_cost_n_times_the_price_of_one(row: Callable[..., dict[str, Any]]) -> None:
    rows = pd.DataFrame([row(device=device, step_time_s=3600.0) for device in ("cpu", "cuda", "cuda-4")])
    assert with_costs(rows, {"cpu": 1.0, "cuda": 3.0})["money"].tolist() == [1.0, 3.0, 12.0]
    assert with_costs(rows, {"here": 5.0})["money"].tolist() == [5.0, 5.0, 5.0]
