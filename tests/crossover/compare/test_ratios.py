from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from crossover.compare.cells import means_of
from crossover.compare.crossovers import crossovers_of
from crossover.compare.pairings import pairings
from crossover.compare.ratios import ratios_of
from crossover.tables.frames import records

Row = Callable[..., dict[str, Any]]


def ratios(rows: list[dict[str, Any]], pair: str, x_axis: str = "size") -> list[dict[str, Any]]:
    table = pd.DataFrame(rows)
    of_pairs = ratios_of(table, means_of(table), pairings(table, {row["study"]: x_axis for row in rows}))
    return [ratio for ratio in records(of_pairs) if ratio["pair"] == pair]


def values(pairs: list[dict[str, Any]], *columns: str) -> dict[tuple[Any, ...], float]:
    return {tuple(ratio[column] for column in columns): pytest.approx(ratio["ratio"]) for ratio in pairs}


def test_each_accelerator_is_compared_with_each_cpu_side(row: Row) -> None:
    """The CPU takes 8 ms (40 ms on one core), the GPU 2 ms, without a time at size 3."""
    times = {"cpu": 8e-3, "cpu-1": 40e-3, "cuda": 2e-3, "xpu": 4e-3}
    rows = [row(size=size, device=device, step_time_s=time) for size in (2, 3) for device, time in times.items()]
    rows[6] |= {"status": "oom"}
    pairs = ratios(rows, "device")
    assert values(pairs, "size", "contender", "baseline") == {
        **{(2, "cuda", "cpu"): 4, (2, "cuda", "cpu-1"): 20},
        **{(size, "xpu", side): ratio for size in (2, 3) for side, ratio in (("cpu", 2), ("cpu-1", 10))},
    }
    first = pairs[0]
    assert (first["device"], first["baseline_s"], first["contender_s"]) == ("cuda", *map(pytest.approx, (8e-3, 2e-3)))
    assert (first["parameters"], first["trials"], first["ratio_low"]) == (230, 1, None)


def test_the_interval_is_that_of_welch(row: Row) -> None:
    """Logs ± 0.1 around the means: each mean has the variance 0.1^2; 2 degrees of freedom, t = 4.302653."""
    rows = [
        row(device=device, trial=trial, step_time_s=time * math.exp(sign * 0.1))
        for device, time in (("cpu", 4e-3), ("cuda", 1e-3))
        for trial, sign in ((1, -1), (2, 1))
    ]
    ((ratio),) = ratios([*rows, row(device="cpu", trial=3, status="invalid", step_time_s=9.0)], "device")
    spread = 4.302653 * 0.1 * math.sqrt(2)
    ends = [4 * math.exp(-spread), 4 * math.exp(spread)]
    assert [ratio["ratio_low"], ratio["ratio_high"]] == pytest.approx(ends, rel=1e-5)
    assert ratio["trials"] == 2


def test_settings_are_compared_with_the_plain_ones_on_the_same_device(row: Row) -> None:
    times = {("fp32", "eager"): 8e-3, ("bf16", "eager"): 4e-3, ("fp32", "compile"): 2e-3, ("bf16", "compile"): 1e-3}
    rows = [
        row(device=device, precision=precision, execution=execution, step_time_s=time * scale)
        for device, scale in (("cuda", 1), ("cpu-half", 3))
        for (precision, execution), time in times.items()
    ]
    pairs = ratios(rows, "settings")
    assert values(pairs, "device", "contender", "baseline") == {
        ("cuda", "bf16, eager", "fp32, eager"): 2,
        ("cuda", "fp32, compile", "fp32, eager"): 4,
        ("cuda", "bf16, compile", "fp32, eager"): 8,
    }


@pytest.mark.parametrize("x_axis", ["size", "cpu_threads"])
def test_each_setting_is_compared_with_the_plain_one_of_its_axis(row: Row, x_axis: str) -> None:
    """The pairs of crossovers, by axis: `bf16, compile` with `fp32, compile` and with `bf16, eager`."""
    times = {("fp32", "eager"): 8e-3, ("bf16", "eager"): 4e-3, ("fp32", "compile"): 2e-3, ("bf16", "compile"): 0.5e-3}
    rows = [
        row(device="cuda", precision=precision, execution=execution, step_time_s=time)
        for (precision, execution), time in times.items()
    ]
    by_precision, by_execution = (ratios(rows, pair, x_axis) for pair in ("precision", "execution"))
    assert values(by_precision, "execution", "contender", "baseline") == {
        ("eager", "bf16", "fp32"): 2,
        ("compile", "bf16", "fp32"): 4,
    }
    assert values(by_execution, "precision", "contender", "baseline") == {
        ("fp32", "compile", "eager"): 4,
        ("bf16", "compile", "eager"): 8,
    }


@pytest.mark.parametrize("x_axis", ["size", "parameters"])
def test_each_crossover_has_its_ratios(row: Row, x_axis: str) -> None:
    """Every pair of the crossovers, of two machines with two precisions and executions, has a ratio at each size."""
    rows = [
        row(
            **{"machine": machine, "device": device, "precision": precision, "execution": execution},
            **{"size": size, "parameters": 10 * size},
        )
        for machine in ("a", "b")
        for device in ("cpu", "cpu-1", "cuda")
        for precision in ("fp32", "bf16")
        for execution in ("eager", "compile")
        for size in (2, 3)
    ]
    table, x_axes = pd.DataFrame(rows), {"disc_depth": x_axis}
    sides = ["pair", "machine", "device", "precision", "execution", "baseline", "baseline_machine", "contender"]
    crossovers = crossovers_of(pairings(table, x_axes)).query("cost == 'time'")
    counts = ratios_of(table, means_of(table), pairings(table, x_axes)).groupby(sides).size()
    assert {counts[tuple(crossover)] for crossover in crossovers[sides].to_numpy()} == {2}


@pytest.mark.parametrize(
    ("precisions", "executions", "expected"),
    [
        (("bf16",), ("eager", "compile"), {"compile": "eager"}),
        (("bf16", "tf32"), ("eager",), {"tf32": "bf16"}),
        (("fp32",), ("eager",), {}),
        (("fp32", "bf16"), ("compile",), {"bf16": "fp32"}),
    ],
)
def test_the_plain_settings_are_the_usual_ones_or_the_first(
    row: Row, precisions: tuple[str, ...], executions: tuple[str, ...], expected: dict[str, str]
) -> None:
    rows = [row(precision=precision, execution=execution) for precision in precisions for execution in executions]
    assert {ratio["contender"]: ratio["baseline"] for ratio in ratios(rows, "settings")} == expected


def test_machines_are_compared_device_by_device_with_the_first_that_has_it(row: Row) -> None:
    times = {("a", "cpu"): 8.0, ("b", "cpu"): 2.0, ("b", "cuda"): 1.0, ("c", "cuda"): 0.5, ("c", "cpu"): 4.0}
    rows = [row(machine=machine, device=device, step_time_s=time) for (machine, device), time in times.items()]
    assert values(ratios(rows, "machine"), "machine", "baseline_machine", "device") == {
        ("b", "a", "cpu"): 4,
        ("c", "a", "cpu"): 2,
        ("c", "b", "cuda"): 2,
    }
    # Machine a has no accelerator, so the other machines' accelerators are also compared with its CPU.
    assert values(ratios(rows, "device"), "machine", "baseline_machine") == {
        ("b", "b"): 2,
        ("b", "a"): 8,
        ("c", "c"): 8,
        ("c", "a"): 16,
    }
