"""Bottlenecks of steps with known parts, in milliseconds."""

from __future__ import annotations

import math
import random
from typing import Any

import pandas as pd
import pytest

from crossover.compare.intervals import share_over_trials
from crossover.config.words import LARGER_BATCH
from crossover.tables.registry import CELL_AXES, REMEDIES, SPLIT
from crossover.tables.run_tables import table_of
from crossover.topics.bottlenecks.table import CALLING, LEAST, RoofTimes, bottleneck_of, split_of, with_bottlenecks

UNKNOWN = RoofTimes(*[math.nan] * 5)


def gpu(loader: float = 0, transfer: float = 0, launch: float = 0, device: float = 1, **more: Any) -> dict[str, Any]:
    """A GPU trial whose step consists of these consecutive parts."""
    held_s = launch + device
    copies = {"prepared_s": transfer + held_s, "pinned_s": held_s + transfer / 4, "transfer_s": transfer}
    return {
        "device": "cuda",
        "split_step_s": loader + transfer + held_s,
        "loading_s": loader + transfer,
        "held_s": held_s,
        "replayed_s": device,
        "working_s": held_s,
        "device_busy_s": device,
        "device_work_s": device,
        "pinned_transfer_s": transfer / 4,
        **(copies if transfer else {}),
        "products_s": device,
        "others_s": 0.0,
        **more,
    }


def cpu(
    loader: float = 0, threads: float = 0, overhead: float = 0, work: float = 1, host: float = 0, **more: Any
) -> dict[str, Any]:
    """A CPU trial whose step consists of these parts; only `work` grows with the batch."""
    held_s = threads + overhead + host + work
    return {
        "device": "cpu",
        "split_step_s": loader + held_s,
        "loading_s": loader,
        "held_s": held_s,
        "working_s": held_s,
        "one_thread_s": overhead + host + work,
        "larger_s": threads + overhead + host + LARGER_BATCH * work,
        "host_work_s": host,
        "products_s": work,
        "others_s": 0.0,
        **more,
    }


def bottleneck(trial: dict[str, Any], roofs: RoofTimes = UNKNOWN, trials: int = 3) -> dict[str, Any]:
    return bottleneck_of([trial] * trials, roofs)


PEAK = RoofTimes(memory_s=0.0, products_memory_s=0.0, compute_s=0.8, launch_s=0.0, gaps_s=0.0)
CALLS = PEAK._replace(launch_s=9.0)


@pytest.mark.parametrize(
    ("trial", "roofs", "cause", "also", "remedy", "gain"),
    [
        (gpu(loader=9), PEAK, "loader", None, "prepare", 10),
        (gpu(transfer=8), PEAK, "transfer", None, "pin", 9 / 3),
        (gpu(transfer=8, pinned_s=9.0), PEAK, "transfer", None, "hold", 9),
        (gpu(launch=19), PEAK, "launch", None, "graph", 20),
        (gpu(), PEAK, "compute", None, None, None),
        (gpu(loader=1), PEAK, "loader", "compute", "prepare", 2),
        (gpu(launch=1, loader=1.5), PEAK, "loader", "launch", "prepare", 3.5 / 2),
        (gpu(), UNKNOWN, "unexplained", None, None, None),
        (gpu(), UNKNOWN._replace(launch_s=0.9), "launch", None, "graph", 1),
        (gpu(launch=9, replayed_s=None, fits_graph=False), PEAK, "host", None, None, None),
        (gpu(launch=9, replayed_s=None), PEAK, "launch", None, None, None),  # no graph was tried
        (
            gpu(launch=9, replayed_s=None, fits_graph=False, device_work_s=None, products_s=None),
            *(PEAK, "unexplained", None, None, None),  # no profile, and no times of operators
        ),
        (gpu(launch=9, host_work_s=7.0), PEAK, "host", None, None, None),
        (gpu(launch=9, host_work_s=99.0), PEAK, "host", None, None, None),  # overlaps with the device's work
        (gpu(launch=9, host_work_s=4.0), PEAK, "launch", "host", None, None),
        (gpu(launch=9, host_work_s=1.0), PEAK, "launch", None, "graph", 10 / 2),
        (
            gpu(device=9, host_work_s=9.0),
            PEAK._replace(compute_s=9.0),
            "compute",
            None,
            None,
            None,
        ),  # overlaps completely
        # Without the gaps of a graph, 0.6 of 1 is the run time of tiny kernels.
        (
            gpu(launch=1, replayed_s=None, fits_graph=False),
            UNKNOWN._replace(launch_s=0.9, gaps_s=0.3),
            *("host", "launch", None, None),
        ),
        (gpu(products_s=0.0, others_s=1.0), UNKNOWN._replace(memory_s=0.7), "memory", None, None, None),
        (gpu(), PEAK._replace(memory_s=0.9, products_memory_s=0.9), "memory", None, None, None),
        (
            gpu(products_s=0.5, others_s=0.5),
            PEAK._replace(compute_s=0.4, memory_s=0.4),
            *("memory", "compute", None, None),
        ),
        (cpu(loader=9), CALLS, "loader", None, "prepare", 10),
        (cpu(threads=4), CALLS, "threads", None, "one_thread", 5),
        (cpu(overhead=9), CALLS, "overhead", None, "larger_batch", 40 / 13),
        (cpu(host=9), CALLS, "host", None, None, None),
        (cpu(host=9, larger_s=4 * 9 + 4), CALLS, "host", None, None, None),  # host work that grows with the batch
        (cpu(overhead=9, larger_s=None), CALLS, "overhead", None, None, None),
        (cpu(overhead=9, larger_s=None, execution="compile"), CALLS._replace(compute_s=9.0), "compute", *[None] * 3),
        # Work on weights does not grow with the batch either, but calls take at most a tenth of the step.
        (cpu(overhead=9), CALLS._replace(launch_s=1 / CALLING, memory_s=2.0), "memory", None, None, None),
        (
            cpu(overhead=9),
            CALLS._replace(launch_s=1 / CALLING, memory_s=0.7, compute_s=0.0),
            *("unexplained", None, None, None),
        ),
        (cpu(overhead=9), CALLS._replace(launch_s=1 / CALLING, memory_s=2.0, compute_s=2.1), "compute", *[None] * 3),
        (cpu(overhead=9, larger_s=None), CALLS._replace(launch_s=1 / CALLING), "compute", None, None, None),
        (
            cpu(threads=4, work=3),  # distributing work to threads does not grow either
            CALLS._replace(launch_s=0.0, memory_s=2.0, compute_s=1.9),
            *("threads", "compute", "one_thread", 7 / 3),
        ),
        # Without a roof, calls take at most what the operators leave.
        (cpu(overhead=9, products_s=10.0), CALLS._replace(launch_s=math.nan, compute_s=9.0), "compute", *[None] * 3),
    ],
)
def test_the_largest_part_is_the_bottleneck_with_the_gain_of_its_remedy(
    trial: dict[str, Any], roofs: RoofTimes, cause: str, also: str | None, remedy: str | None, gain: float | None
) -> None:
    columns = bottleneck(trial, roofs)
    assert (columns["bottleneck"], columns["second_bottleneck"], columns.get("remedy")) == (cause, also, remedy)
    assert remedy is None or remedy in REMEDIES
    assert columns.get("gain") == (None if gain is None else pytest.approx(gain))


@pytest.mark.parametrize(
    ("trial", "predicted"),
    [
        (gpu(loader=99), None),  # the remaining part is too short for a prediction
        (gpu(transfer=8), 9 / 3),
        (gpu(transfer=8, launch=0.5), 9.5 / 3),  # copies and launches overlap
        (gpu(launch=99, device_busy_s=0.7), 100 / (0.7 + 0.3)),
    ],
)
def test_the_gain_is_predicted_from_the_parts(trial: dict[str, Any], predicted: float | None) -> None:
    columns = bottleneck(trial, PEAK._replace(gaps_s=0.3))
    assert columns["predicted_gain"] == (None if predicted is None else pytest.approx(predicted))


def test_the_shares_of_any_step_add_up_to_1() -> None:
    draw = random.Random(1)
    for _ in range(500):
        parts = [draw.expovariate(1) for _ in range(4)]
        trial = gpu(*parts) if draw.random() < 0.5 else cpu(*parts)
        noisy = {key: value * draw.uniform(0.7, 1.3) if key.endswith("_s") else value for key, value in trial.items()}
        split = split_of(noisy, RoofTimes(*(draw.expovariate(1) for _ in range(5))))
        assert math.fsum(split.values()) == pytest.approx(1)
        assert min(split.values()) >= 0
        assert list(split) == list(SPLIT)


def test_shares_have_intervals_over_trials() -> None:
    trials = [gpu(launch=launch) for launch in (1, 2, 3)]
    columns = bottleneck_of(trials, PEAK)
    wanted = share_over_trials([1 / 2, 2 / 3, 3 / 4])
    assert columns["launch_share"] == pytest.approx(wanted.mean)
    assert (columns["launch_share_low"], columns["launch_share_high"]) == pytest.approx((wanted.low, wanted.high))
    assert columns["remedy_trials"] == 3
    assert bottleneck(gpu(), trials=1)["compute_share_low"] is None


def test_a_second_cause_needs_its_share_of_the_step() -> None:
    peak = PEAK._replace(compute_s=0.4)
    assert bottleneck(gpu(0.11, 0.19, LEAST + 0.01, 0.49), peak)["second_bottleneck"] == "launch"
    assert bottleneck(gpu(0.12, LEAST + 0.01, 0.18, 0.49), peak)["second_bottleneck"] == "transfer"
    assert bottleneck(gpu(0.17, 0.17, 0.17, 0.49), peak)["second_bottleneck"] is None
    assert bottleneck(gpu(0.0, 0.0, LEAST + 0.01, 0.79), PEAK)["second_bottleneck"] is None


def test_the_profile_of_the_first_trial_counts_for_all_trials_of_a_cell() -> None:
    axes = dict.fromkeys(CELL_AXES, "a") | {"size": 1, "batch_size": 2, "device": "cuda"}
    trials = [
        axes | gpu(launch=99, device_busy_s=busy) | {"status": "ok", "trial": number, "flag_names": []}
        for number, busy in ((1, 0.7), (2, None))
    ]
    untried = axes | {"size": 2, "status": "ok", "split_step_s": 1.0, "held_s": None}
    cells = table_of("cells", [axes | {"gaps_s": 0.3}, axes | {"size": 2}])
    rows = with_bottlenecks(cells, pd.DataFrame([*trials, untried]))
    assert rows["bottleneck"].tolist() == ["launch", pd.NA]
    assert rows["predicted_gain"].tolist() == [pytest.approx(100.0), pd.NA]


def test_calls_take_no_longer_for_each_operator_than_the_shortest_step_of_the_series() -> None:
    """The larger cell has twice the operators of the smaller one, whose step takes 0.5 times what the roof gives."""
    axes = dict.fromkeys(CELL_AXES, "a") | {"batch_size": 2, "device": "cpu"}
    steps = {1: cpu(overhead=0.5, work=0), 2: cpu(overhead=8, work=2)}
    launch_s = {1: 1.0, 2: 2.0}
    trials = [axes | {"size": size, "status": "ok", "flag_names": []} | step for size, step in steps.items()]
    cells = table_of(
        "cells",
        [
            axes | {"size": size, "step_time_s": step["held_s"], "launch_roof_s": launch_s[size]}
            for size, step in steps.items()
        ],
    )
    rows = with_bottlenecks(cells, pd.DataFrame(trials))
    assert rows["overhead_share"].tolist() == pytest.approx([1.0, 0.5 * 2 / 10])
    alone = with_bottlenecks(cells.iloc[1:], pd.DataFrame(trials[1:]))
    assert alone["overhead_share"].tolist() == pytest.approx([CALLING * 2 / 10])
    assert rows["launch_roof_s"].tolist() == [1.0, 2.0]
