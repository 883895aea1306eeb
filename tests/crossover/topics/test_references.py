"""Times of a GPU measured elsewhere, as predicted beside this CPU."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd
import pytest

from crossover.compare.cells import means_of
from crossover.compare.intervals import SampleMean
from crossover.compare.pairings import Pairing
from crossover.tables.columns import COLUMNS
from crossover.tables.reference_files import Facts, Reference
from crossover.tables.run_tables import table_of
from crossover.topics.references import table
from crossover.topics.references.prediction import probed_slowdowns, spread_of
from crossover.topics.references.table import compared_with_references, host_slowdowns

Row = Callable[..., dict[str, Any]]
FACTS = Facts("h100", "NVIDIA H100", "Xeon", 16, "2026-11-23", "2.13.0", "3.12.3", None, "Linux", "abc", None)
CPU_S = {"here": (4.0, 4.0), "h100": (2.0, 2.0)}
"""At two sizes, this CPU takes twice as long as the reference's. The GPU takes 1 s, so no step is small."""


@pytest.fixture
def compared(row: Row) -> Callable[..., tuple[Any, ...]]:
    """The ratios, the only pairing and the predicted cells, beside a reference with further trials of its GPU."""

    def compare(*added: Mapping[str, Any], **more: Any) -> tuple[Any, ...]:
        times_s = {("here", "cpu"): CPU_S["here"], ("h100", "cpu"): CPU_S["h100"], ("h100", "cuda"): (1.0, 1.0)}
        rows = [
            row(machine=machine, device=device, size=size, step_time_s=time_s * 1.01 ** (trial - 2), trial=trial)
            | {"device_busy_s": None, **(more if device == "cuda" else {})}
            for (machine, device), of_sizes_s in times_s.items()
            for size, time_s in zip((1, 2), of_sizes_s, strict=True)
            for trial in (1, 2, 3)
        ]
        trials = pd.DataFrame(rows).reindex(columns=list(COLUMNS))
        here, there = (trials[trials["machine"] == "here"], trials[trials["machine"] != "here"])
        graphs = [row(machine="h100", device="cuda", execution="cuda-graph", **each) for each in added]
        reference = Reference(FACTS, pd.concat([there, pd.DataFrame(graphs, columns=list(COLUMNS))]))
        x_axes = {str(trials["study"].iloc[0]): "size"}
        ratios, pairs, cells = compared_with_references(here, there, x_axes, means_of(trials), [reference])
        return ratios, *pairs, cells

    return compare


def gpu_s(pair: Pairing) -> list[float]:
    return pair.trials.query("side == 'cuda' and trial == 2")["time"].tolist()


def deviation(host_share: float, *factors: float) -> float:
    """Of the spread between hosts, of the furthest of predictions with other exponents, and of the slowdown.

    That is from one step on which the GPU is far ahead.
    """
    return math.hypot(0.05, max(abs(math.log(factor)) for factor in factors) / 1.96, 0.26 * host_share)


def test_a_step_is_its_part_on_the_device_and_the_hosts_part_at_the_pace_of_this_cpu(compared: Any) -> None:
    """A graph takes 0.2 s at size 1 and 0.8 s at size 2 of the 1 s of a step; this CPU is half as fast."""
    ratios, pair, cells = compared({"size": 1, "step_time_s": 0.2}, {"size": 2, "step_time_s": 0.8})
    expected = [0.2 + 2 * 0.8, 0.8 + 2 * 0.2]
    assert gpu_s(pair) == pytest.approx(expected)
    assert pair.prediction is not None
    assert pair.prediction.slowdown == pytest.approx(2)
    assert [*pair.prediction.host_share.values()] == pytest.approx([1.6 / 1.8, 0.4 / 1.2], rel=1e-3)
    others = [((0.2 + 2**power * 0.8) / 1.8, (0.8 + 2**power * 0.2) / 1.2) for power in (0.7, 1.3)]
    deviations = [deviation(*at_size) for at_size in zip((1.6 / 1.8, 0.4 / 1.2), *others, strict=True)]
    assert [*pair.prediction.deviation.values()] == pytest.approx(deviations, rel=1e-3)
    of_gpu = ratios[ratios["contender"] == "cuda"]
    assert of_gpu["ratio"].tolist() == pytest.approx([4 / time_s for time_s in expected], rel=1e-3)
    assert of_gpu["deviation"].tolist() == pytest.approx(deviations, rel=1e-3)
    # Beyond the trials, which add 0.9 %, the interval has 1.96 deviations and more, by the degrees of freedom.
    half_widths = (of_gpu["ratio_high"] / of_gpu["ratio"]).astype(float).map(math.log)
    assert all(1.96 * own < half < 2.1 * own for own, half in zip(deviations, half_widths, strict=True))
    assert (cells["origin"] == "predicted").all()
    assert cells["step_time_s"].tolist() == pytest.approx(expected, rel=1e-3)
    measured = ratios[ratios["contender"] == "h100"]
    assert measured["ratio"].tolist() == pytest.approx([2, 2])
    assert measured["deviation"].isna().all()


@pytest.mark.parametrize(("busy_s", "seconds", "others"), [(0.4, 1.6, (0.7, 1.3)), (None, 2.0, (0.0, 1.3))])
def test_without_a_graph_the_profile_gives_the_devices_part_and_without_both_it_may_be_all(
    compared: Any, busy_s: float | None, seconds: float, others: Sequence[float]
) -> None:
    _, pair, _ = compared(device_busy_s=busy_s)
    assert gpu_s(pair) == pytest.approx([seconds] * 2)
    device = busy_s or 0.0
    factors = [(device + 2**power * (1 - device)) / seconds for power in others]
    expected = deviation(2 * (1 - device) / seconds, *factors)
    assert [*pair.prediction.deviation.values()] == pytest.approx([expected] * 2, rel=1e-3)


def test_nothing_is_predicted_beside_a_cpu_that_others_slow_down(
    compared: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "MOST_SLOWDOWN", 1.9)
    ratios, cells = compared()
    assert ratios["contender"].tolist() == ["h100"] * 2
    assert cells.empty


def test_no_part_of_the_device_is_longer_than_the_step(compared: Any) -> None:
    _, pair, _ = compared({"size": 1, "step_time_s": 9.0})
    assert gpu_s(pair) == pytest.approx([1.0, 1.0])


def test_probes_of_both_cpus_give_a_slowdown(row: Row) -> None:
    here, there = (
        table_of("roofs", [{"device": device, "roof": "framework", "value": value} for device, value in values.items()])
        for values in ({"cpu": 3e-4}, {"cpu": 2e-4, "cuda": 9.0})
    )
    trials, none = pd.DataFrame([row()]), table_of("roofs")
    (slowdown,) = probed_slowdowns(here, [Reference(FACTS, trials, there)]).values()
    assert (math.exp(slowdown.mean), slowdown.variance) == pytest.approx((1.5, 2 * 0.18**2))
    assert probed_slowdowns(here, [Reference(FACTS, trials, none)]) == {}
    assert probed_slowdowns(none, [Reference(FACTS, trials, there)]) == {}


def test_small_steps_give_the_slowdown_before_probes_and_these_before_the_smallest_step(compared: Any) -> None:
    """This CPU takes twice as long; the GPU is 1.2 times as fast as it at size 1, or 3 times at both sizes."""
    ratios, *_ = compared()
    of_cpu = ratios[ratios["contender"] == "h100"]
    probes = {"h100": SampleMean(math.log(1.5), 0.06, math.inf)}

    def slowdown(gpu: list[float], probed: Mapping[str, SampleMean]) -> SampleMean:
        of_gpu = of_cpu.assign(device="cuda", contender="cuda", ratio=gpu)
        return host_slowdowns(pd.concat([of_cpu, of_gpu]), {str(of_cpu["study"].iloc[0]): "size"}, probed)["h100"]

    small, smallest = slowdown([1.2, 3.0], probes), slowdown([3.0, 3.0], {})
    assert (math.exp(small.mean), small.variance) == pytest.approx((2, 0.16**2))
    assert slowdown([3.0, 3.0], probes) is probes["h100"]
    assert (math.exp(smallest.mean), smallest.variance) == pytest.approx((2, 0.26**2))


def test_probes_give_no_slowdown_where_others_take_this_cpu(compared: Any) -> None:
    """The probes ran 1.5 times as long here. Every step takes more than 20 times as long, or only one of them."""
    ratios, *_ = compared()
    of_cpu = ratios[ratios["contender"] == "h100"]
    probes = {"h100": SampleMean(math.log(1.5), 0.06, math.inf)}
    x_axes = {str(of_cpu["study"].iloc[0]): "size"}
    taken = host_slowdowns(of_cpu.assign(ratio=[90.0, 25.0]), x_axes, probes)["h100"]
    assert taken.mean == pytest.approx(math.log(90.0))
    assert host_slowdowns(of_cpu.assign(ratio=[90.0, 15.0]), x_axes, probes) == probes


def test_the_spread_of_trials_is_pooled_over_sizes(row: Row) -> None:
    """ln(time) is -0.1 and 0.1 at size 1, with variance 0.02, and -0.2, 0 and 0.2 at size 2, with variance 0.04."""
    logs = {1: (-0.1, 0.1), 2: (-0.2, 0.0, 0.2), 3: (5.0,)}
    rows = [row(size=size, step_time_s=math.exp(log)) for size, of_size in logs.items() for log in of_size]
    assert spread_of(pd.DataFrame(rows), "size") == SampleMean(0.0, pytest.approx((0.02 + 2 * 0.04) / 3), 3)
    assert spread_of(pd.DataFrame(rows[-1:]), "size") is None
