"""Machines ranked by time and by money, by hand and in simulations."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats

from crossover.compare.cells import hourly_price, means_of, summarise
from crossover.tables.frames import records
from crossover.topics.ranking.table import Standing, is_ranking, machines_of, standings_along
from crossover.topics.references.table import EAGER_SPREAD

Row = Callable[..., dict[str, Any]]
STUDY = "disc_depth"
SIDES = {"laptop": ("here", "cpu"), "host": ("h200", "cpu"), "gpu": ("h200", "cuda")}


def ranked(
    row: Row,
    seconds: Mapping[str, Mapping[int, list[float]]],
    prices: Mapping[str, float] | None = None,
    steps: Any = None,
    **values: Any,
) -> pd.DataFrame:
    """Table `machines` from the times of trials by side and size."""
    rows = [
        row(machine=SIDES[side][0], device=SIDES[side][1], size=size, trial=trial, step_time_s=time_s, **values)
        for side, by_size in seconds.items()
        for size, times_s in by_size.items()
        for trial, time_s in enumerate(times_s, 1)
    ]
    columns = pd.DataFrame(rows)
    means = means_of(columns, prices)
    return machines_of(summarise(columns, means), means, {STUDY: "size"}, {STUDY: steps})


def by_side(table: pd.DataFrame, column: str) -> list[tuple[str, Any]]:
    names = {side: name for name, side in SIDES.items()}
    return [(names[row["machine"], row["device"]], row[column]) for row in records(table)]


def repeated(values: Mapping[str, Any], **columns: NDArray[Any]) -> pd.DataFrame:
    """Trials that differ in these columns only."""
    rows = np.zeros(len(columns["size"]), int)
    return pd.DataFrame([values]).iloc[rows].reset_index(drop=True).assign(**columns)


def around(seconds: float, spread: float = 0.01) -> list[float]:
    """Three trials whose logarithms have this standard deviation."""
    return [seconds * math.exp(spread * deviation) for deviation in (-1, 0, 1)]


def test_the_ratios_to_the_first_are_simultaneous(row: Row) -> None:
    """Three sides are compared in pairs: t is the quantile of 1 - 0.025 / 3 with 4 degrees of freedom, and the standard
    error is sqrt(2 / 3) x 1 %.
    """
    table = ranked(row, {"laptop": {4: around(3.0)}, "host": {4: around(1.01)}, "gpu": {4: around(1.0)}})
    assert by_side(table, "cost_rank") == [("gpu", 1), ("host", 2), ("laptop", 3)]
    assert by_side(table, "behind") == [("gpu", False), ("host", False), ("laptop", True)]
    assert by_side(table, "slower_than") == [("gpu", []), ("host", []), ("laptop", [1, 2])]
    half_width = stats.t.ppf(1 - 0.025 / 3, 4) * math.sqrt(2 / 3) * 0.01
    last = records(table)[-1]
    assert last["ratio"] == pytest.approx(3)
    assert (last["ratio_low"], last["ratio_high"]) == pytest.approx(
        (3 * math.exp(-half_width), 3 * math.exp(half_width))
    )
    assert set(table["ranked_by"]) == {"time"}


def test_money_is_time_multiplied_by_the_price_of_the_machine(row: Row) -> None:
    """2 ms at 0.9 per hour cost half as much as 1 ms at 3.6; 500 steps of 1 ms at 3.6 per hour cost 0.0005."""
    seconds = {"laptop": {4: around(2e-3)}, "gpu": {4: around(1e-3)}}
    table = ranked(row, seconds, {"here": 0.9, "h200": 3.6}, steps=500, energy_per_step_j=7.0)
    assert by_side(table, "cost_rank") == [("laptop", 1), ("gpu", 2)]
    assert by_side(table, "run_price") == [("laptop", pytest.approx(0.00025)), ("gpu", pytest.approx(0.0005))]
    assert by_side(table, "run_time_s") == [("laptop", pytest.approx(1.0)), ("gpu", pytest.approx(0.5))]
    assert by_side(table, "run_energy_j") == [("laptop", pytest.approx(3500)), ("gpu", pytest.approx(3500))]
    assert set(table["ranked_by"]) == {"money"}


def test_a_side_without_a_price_is_not_ranked_by_money(row: Row) -> None:
    seconds = {"laptop": {4: [1.0]}, "host": {4: [2.0]}, "gpu": {4: [3.0]}}
    assert len(ranked(row, seconds, {"h200": 1.0})) == 2
    assert by_side(ranked(row, seconds, {"here": 1.0}), "ranked_by") == [(side, "time") for side in seconds]


def test_with_single_trials_a_side_is_behind_from_twice_the_cost(row: Row) -> None:
    table = ranked(row, {"laptop": {4: [1.0]}, "host": {4: [1.9]}, "gpu": {4: [2.1]}})
    assert by_side(table, "behind") == [("laptop", False), ("host", False), ("gpu", True)]
    assert table["ratio_low"].isna().all()


def test_sides_are_ranked_where_all_have_a_time(row: Row) -> None:
    table = ranked(row, {"laptop": {4: [1.0], 8: [2.0], 9: [2.0]}, "host": {4: [1.0], 8: [1.0]}, "gpu": {8: [3.0]}})
    assert set(table["size"]) == {8}
    assert ranked(row, {"laptop": {4: [1.0]}}).empty


@pytest.mark.parametrize(
    ("machine", "device", "price"),
    [
        ("here", "cpu-4", 1.0),
        ("here", "cuda", 8.0),
        ("h200", "cuda", 4.0),
        ("h200", "cpu", 4.0),
        ("a100", "cpu", 1.0),
        ("a100", "cuda", None),
    ],
)
def test_the_price_of_a_machine_and_device(machine: str, device: str, price: float | None) -> None:
    hourly = hourly_price({"cpu": 1.0, "cuda": None, "here": 8.0, "h200": 4.0}, machine, device)
    assert hourly == price or (price is None and math.isnan(hourly))


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        # All tie at 8, which belongs to no range and ends the one before it.
        (
            {2: (1, 5, 5), 4: (1, 5, 5), 8: (1, 1, 1), 16: (1, 5, 5)},
            [("laptop", "host gpu", 2, 4, True), ("laptop", "host gpu", 16, 16, True)],
        ),
        # Nobody is first if two tie; the third is slower than each of them.
        ({2: (1, 1, 5), 4: (1, 1, 5)}, [("laptop host", "gpu", 2, 4, False)]),
        ({2: (1, 5, 5), 4: (5, 1, 5)}, [("laptop", "host gpu", 2, 2, True), ("host", "laptop gpu", 4, 4, True)]),
        ({2: (1, 5, 25), 4: (5, 5, 1)}, [("laptop", "host gpu", 2, 2, True), ("gpu", "laptop host", 4, 4, True)]),
        ({2: (1, 1, 1)}, []),
    ],
)
def test_a_standing_names_who_is_behind_whom(row: Row, seconds: Any, expected: Any) -> None:
    times = {
        side: {size: around(of_sides[index], 0.001) for size, of_sides in seconds.items()}
        for index, side in enumerate(SIDES)
    }

    def named(names: str) -> frozenset[tuple[str, str]]:
        return frozenset(SIDES[name] for name in names.split())

    assert standings_along(ranked(row, times), "size") == [
        Standing(named(ahead), named(behind), low, high, is_first) for ahead, behind, low, high, is_first in expected
    ]


def of_reference(row: Row, times_s: Mapping[tuple[str, str], Mapping[int, list[float]]]) -> pd.DataFrame:
    """Table `machines`, in which all machines but `here` are references."""
    trials = pd.DataFrame(
        [
            row(machine=machine, device=device, size=size, trial=trial, step_time_s=time_s)
            for (machine, device), by_size in times_s.items()
            for size, cell in by_size.items()
            for trial, time_s in enumerate(cell, 1)
        ]
    )
    is_here = trials["machine"] == "here"
    parts = [summarise(trials[is_here]), summarise(trials[~is_here], origin="reference")]
    cells = pd.concat([part for part in parts if len(part)])
    return machines_of(cells, means_of(trials), {STUDY: "size"}, {STUDY: None})


def test_the_spread_between_hosts_cancels_within_a_host(row: Row) -> None:
    """1.7 times is less than hosts may differ, but more than the trials of two devices of one host."""
    here, cpu, gpu = ("here", "cpu"), ("h100", "cpu"), ("h100", "cuda")
    table = of_reference(row, {here: {4: around(1.7, 0.03)}, cpu: {4: around(1.7, 0.03)}, gpu: {4: around(1.0, 0.03)}})
    behind = {(line["machine"], line["device"]): line["behind"] for line in records(table)}
    assert behind == {here: False, cpu: True, gpu: False}


def test_cpus_of_references_are_in_the_table_but_not_in_a_standing(row: Row) -> None:
    sides = {("here", "cpu"): 1.0, ("h100", "cpu"): 0.01, ("h100", "cuda"): 40.0}
    table = of_reference(row, {side: {4: around(seconds)} for side, seconds in sides.items()})
    assert len(table) == 3
    (standing,) = standings_along(table, "size")
    assert standing == Standing(frozenset({("here", "cpu")}), frozenset({("h100", "cuda")}), 4.0, 4.0, True)


@pytest.mark.parametrize(
    ("sides", "ranked_too"),
    [
        (["here cpu"], False),
        (["here cpu", "here cuda"], False),  # two sides are compared by their crossover
        (["anna cpu", "ben cpu"], True),
        (["here cpu", "h200 cpu", "h200 cuda"], True),
    ],
)
def test_a_ranking_compares_sides_that_no_crossover_compares(sides: list[str], ranked_too: bool) -> None:
    machines, devices = zip(*map(str.split, sides), strict=True)
    assert is_ranking(pd.DataFrame({"machine": machines, "device": devices})) == ranked_too


@pytest.mark.parametrize(("truth", "least_declared"), [((1.0, 0.99, 0.98), 0), ((1.0, 0.7, 0.5), 950)])
def test_a_side_ranked_behind_is_seldom_faster_than_the_first(
    row: Row, truth: tuple[float, float, float], least_declared: int
) -> None:
    """Trials differ by 5 %. At most 5 % of 1,000 points rank a side behind a first side that is truly slower."""
    times_s = dict(zip(SIDES, truth, strict=True))
    draws = np.random.default_rng(1).normal(0, 0.05, (3, 1000, 4))
    sides, sizes, numbers = np.indices(draws.shape).reshape(3, -1)
    machines, devices = (np.array(names)[sides] for names in zip(*SIDES.values(), strict=True))
    seconds = np.array(truth)[sides] * np.exp(draws.ravel())
    trials = repeated(row(), machine=machines, device=devices, size=sizes + 1, trial=numbers, step_time_s=seconds)
    table = machines_of(summarise(trials), means_of(trials), {STUDY: "size"}, {STUDY: None})
    table["true_s"] = [times_s[side] for side, _ in by_side(table, "cost_rank")]
    first_s = table[table["cost_rank"] == 1].set_index("size")["true_s"]
    behind = table[table["behind"].astype(bool)]
    assert behind.loc[behind["true_s"] < behind["size"].map(first_s), "size"].nunique() <= 50
    assert behind["size"].nunique() >= least_declared


def test_the_interval_of_a_reference_covers_other_hosts_of_its_kind(row: Row) -> None:
    """Hosts differ by EAGER_SPREAD, trials by 3 %; each of 400 sizes stands for a simulated pair of hosts."""
    random = np.random.default_rng(1)
    hosts = np.exp(random.normal(0, EAGER_SPREAD / math.sqrt(2), (400, 2)))
    trials = np.exp(random.normal(0, 0.03, (400, 3)))
    sizes, machines, numbers = np.indices((400, 2, 3)).reshape(3, -1)
    seconds = hosts[sizes, 0] * trials[sizes, numbers]
    values = {"machine": np.array(["h100", "other"])[machines], "size": sizes + 1, "trial": numbers + 1}
    rows = repeated(row(device="cuda"), **values, step_time_s=seconds)
    table = machines_of(summarise(rows, origin="reference"), means_of(rows), {STUDY: "size"}, {STUDY: None})
    of_reference = table[table["machine"] == "h100"].sort_values("size")
    other = hosts[:, 1]
    covered = ((of_reference["step_time_low_s"] <= other) & (other <= of_reference["step_time_high_s"])).mean()
    assert 0.93 <= covered <= 0.99
    assert not table["behind"].any()
