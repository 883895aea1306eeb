"""Answers from machines measured elsewhere, and thresholds for programs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from crossover.answers.thresholds import as_environment, thresholds_of
from crossover.report.formats import amount_text
from crossover.report.templates import environment_of
from crossover.tables.columns import COLUMNS
from crossover.tables.frames import records
from crossover.tables.reference_facts import Facts
from crossover.tables.references import Reference
from crossover.tables.run_tables import RunTables
from crossover.thresholds import read_thresholds, should_use_gpu
from report_pages import TEMPLATES, study, tables_of

Row = Callable[..., dict[str, Any]]
SIZES = (100, 1000, 10_000)
STUDY = "disc_depth"
FACTS = Facts("h200", "NVIDIA H200", "Xeon", 16, "2026-11-23", "2.13.0", "3.12.3", None, "Linux", "abc", None)


def trials(row: Row, device: str, seconds: Callable[[int], float], **values: Any) -> list[dict[str, Any]]:
    """Three trials at each size, 1 % apart."""
    return [
        row(
            **{"device": device, "size": size, "parameters": 7 * size, "trial": trial, "model_key": "key"}
            | {"step_time_s": seconds(size) * 1.01 ** (trial - 2), "device_name": device.upper(), **values}
        )
        for size in SIZES
        for trial in (1, 2, 3)
    ]


@pytest.fixture
def own(row: Row) -> list[dict[str, Any]]:
    """A CPU of 4 us x size, without a GPU."""
    return trials(row, "cpu", lambda size: 4e-6 * size)


@pytest.fixture
def elsewhere(row: Row) -> Callable[..., Reference]:
    """A machine whose GPU takes 2 ms at any size, beside a CPU four times as fast as the one here."""

    def build(**values: Any) -> Reference:
        rows = trials(row, "cuda", lambda _: 2e-3, device_name="NVIDIA H200", **values)
        rows += trials(row, "cpu", lambda size: 1e-6 * size, **values)
        table = pd.DataFrame(rows).assign(machine="h200").reindex(columns=list(COLUMNS))
        return Reference(FACTS, table)

    return build


def tables(rows: list[dict[str, Any]], *references: Reference, **more: Any) -> RunTables:
    return tables_of(pd.DataFrame(rows), {STUDY: study(**more)}, references=references)


def of_kind(found: RunTables, kind: str) -> list[dict[str, Any]]:
    return [row for row in records(found.answers) if row["kind"] == kind]


def test_a_gpu_elsewhere_is_held_against_the_cpu_here(own: Any, elsewhere: Any) -> None:
    found = tables(own, elsewhere())
    (answer,) = of_kind(found, "reference")
    assert (answer["main"], answer["status"], answer["machine"]) == (True, "bracketed", "h200")
    assert (answer["winner"], answer["loser"]) == ("NVIDIA H200 (reference, 2026-11-23)", "this CPU")
    assert answer["factor"] == pytest.approx(4)
    # 2 ms as measured there, 8 ms beside a CPU that takes four times as long.
    assert answer["value"] == pytest.approx(2000)
    assert 100 < answer["low"] < 500 < 2000 < answer["high"] < 3000
    assert answer["measured_on"] == "2026-11-23"
    assert not of_kind(found, "crossover"), "that no GPU was measured here need not be said again"


def test_of_a_gpu_elsewhere_the_range_alone_is_said(own: Any, elsewhere: Any) -> None:
    words: Any = environment_of(TEMPLATES).get_template("words.j2").module
    (answer,) = of_kind(tables(own, elsewhere()), "reference")
    low, high = (amount_text(answer[end], answer["unit"]) for end in ("low", "high"))
    assert words.said(answer).endswith(f" (reference, 2026-11-23): {low} to {high} linear layers")
    one_end = {"above": answer | {"high": None}, "below": answer | {"low": None}}
    for word, end in (("above", low), ("below", high)):
        assert words.said(one_end[word]).endswith(f" (reference, 2026-11-23): {word} {end} linear layers")
    beside = "95 % CI; allowing for this host's CPU, 4.00x slower"
    assert words.notes(answer) == beside
    other = answer | {"low": answer["low"] / 2}
    lowest = amount_text(other["low"], answer["unit"])
    assert f" above {lowest} to {high} linear layers, by series" in words.summed([answer, other])


def test_with_prices_it_is_said_in_money_too(own: Any, elsewhere: Any) -> None:
    prices = {"cpu": 1, "cuda": 1.5}
    found = tables_of(pd.DataFrame(own), {STUDY: study()}, prices=prices, references=[elsewhere()])
    values = {answer["cost"]: (answer["value"], answer["main"]) for answer in of_kind(found, "reference")}
    assert values == {"time": (pytest.approx(2000), True), "money": (pytest.approx(3000), True)}


@pytest.mark.parametrize("change", [{"model_key": "other"}, {"batch_size": 7}, {"precision": "bf16"}, {"study": "s"}])
def test_only_the_same_cells_of_the_same_model_count(own: Any, elsewhere: Any, change: dict[str, Any]) -> None:
    found = tables(own, elsewhere(**change))
    assert not of_kind(found, "reference")
    assert of_kind(found, "crossover")[0]["main"]


def test_it_is_in_no_table_of_what_was_measured_here(own: Any, elsewhere: Any) -> None:
    without, with_it = tables(own), tables(own, elsewhere())
    for name in ("cells", "bottlenecks", "problems", "best_ways"):
        pd.testing.assert_frame_equal(getattr(without, name), getattr(with_it, name))
    for name in ("crossovers", "ratios"):
        table = getattr(with_it, name)
        pd.testing.assert_frame_equal(getattr(without, name), table[table["pair"] != "reference"], check_dtype=False)


def test_no_claim_is_held_against_it(own: Any, elsewhere: Any) -> None:
    claims = [
        {"statement": "it wins", "source": "A", "crossover_between": {"range": [300, 700]}},
        {
            "statement": "by far",
            "source": "A",
            "speedup_between": {
                "slow": {"device": "cpu"},
                "fast": {"device": "cuda"},
                "where": {"size": 10_000},
                "range": [1, 100],
            },
        },
    ]
    found = tables(own, elsewhere(), claims=claims)
    assert set(found.claims["verdict"]) == {"no_data"}


def test_with_a_gpu_here_each_device_is_held_against_its_like(row: Row, own: Any, elsewhere: Any) -> None:
    found = tables(own + trials(row, "cuda", lambda _: 3e-3), elsewhere())
    assert not of_kind(found, "reference")
    values = {answer["device"]: (answer["value"], answer["winner"]) for answer in of_kind(found, "set_up")}
    assert values == {
        "cpu": (pytest.approx(4), "Xeon"),
        "cuda": (pytest.approx(1.5), "NVIDIA H200"),
    }


def use_it(known: Any, size: float, **axes: Any) -> bool | None:
    """The same for a GPU measured elsewhere."""
    return should_use_gpu(known, STUDY, size, gpu_measured_elsewhere=True, **axes)


class TestThresholds:
    @pytest.fixture
    def known(self, own: Any, elsewhere: Any, tmp_path: Path) -> list[Any]:
        file = tmp_path / "thresholds.json"
        file.write_text(json.dumps(thresholds_of(tables(own, elsewhere()), "today")))
        return list(read_thresholds(file))

    def test_the_device_is_known_outside_of_the_interval(self, known: Any) -> None:
        (line,) = known
        assert (line["unit"], line["gpu"], line["gpu_measured_elsewhere"]) == ("linear layers", "NVIDIA H200", True)
        assert (line["gpu_torch_version"], line["gpu_measured_on"]) == ("2.13.0", "2026-11-23")
        sizes = {100: False, 450: False, 3000: True, 10_000: True, 1: False, 20_000: True, 1000: None}
        assert {size: use_it(known, size) for size in sizes} == sizes
        assert use_it(known, 1000, default=True) is True

    def test_a_gpu_elsewhere_is_no_reason_to_use_one_here(self, known: Any) -> None:
        with pytest.raises(ValueError, match=r"no line has .*'gpu_measured_elsewhere': False"):
            should_use_gpu(known, STUDY, 100)

    def test_a_gpu_here_has_the_facts_of_its_own_host(self, row: Row, own: Any) -> None:
        host = {"torch_version": "2.12.0", "driver_version": "580", "started_at": "2026-11-22T10:00:00Z"}
        found = tables(own + trials(row, "cuda", lambda _: 2e-3, **host))
        (line,) = thresholds_of(found, "today")["thresholds"]
        facts = {"gpu_torch_version": "2.12.0", "gpu_driver_version": "580", "gpu_measured_on": "2026-11-22"}
        assert facts.items() <= line.items()
        assert should_use_gpu([line], STUDY, 100) is False

    @pytest.mark.parametrize("tie", [100, 10_000])
    def test_beyond_a_tie_at_an_end_the_side_ahead_is_known(self, row: Row, own: Any, tie: int) -> None:
        """The GPU is behind below a tie at the largest size, and ahead above one at the smallest."""
        factor = 4 if tie == 10_000 else 0.25

        def seconds(size: int) -> float:
            return 4e-6 * size * (1 if size == tie else factor)

        (line,) = thresholds_of(tables(own + trials(row, "cuda", seconds)), "today")["thresholds"]
        assert line["status"] == "edge_tie"
        far = 100 if tie == 10_000 else 10_000
        assert should_use_gpu([line], STUDY, far) is (tie == 100)
        assert should_use_gpu([line], STUDY, tie) is None

    def test_a_line_must_be_named_where_there_are_several(self, known: Any) -> None:
        both = [*known, {**known[0], "batch_size": 5}]
        assert use_it(both, 100, batch_size=5) is False
        with pytest.raises(ValueError, match=r"allowed: one; name one of each of \{'batch_size': \['100', '5'\]\}"):
            use_it(both, 100)
        with pytest.raises(ValueError, match=r"no line has .*'precision': 'bf16'.*; allowed: studies \['disc_depth'\]"):
            use_it(both, 100, precision="bf16")

    def test_a_line_without_a_size_in_common_is_not_known(self, known: Any) -> None:
        assert use_it([{**known[0], "smallest": None, "largest": None}], 100) is None

    def test_a_shell_has_them_too(self, known: Any) -> None:
        (unit, line) = as_environment(known).splitlines()
        assert unit == "# linear layers; NVIDIA H200, measured elsewhere; bracketed; trials: 3"
        name, _, value = line.partition("=")
        assert name == "DISC_DEPTH_H200_PLAIN_RESIDENT_BATCH_100_FP32_EAGER_CUDA_FASTER_FROM"
        assert float(value) == known[0]["from"]
        behind = {"faster_below": "gpu", "until": 1e7, "faster_above": "cpu", "gpu_measured_elsewhere": False}
        (unit, line) = as_environment([{**known[0], **behind, "status": "reversed"}]).splitlines()
        assert "measured here; reversed" in unit
        assert line.endswith("_CUDA_FASTER_UNTIL=10000000")

    def test_other_files_are_refused(self, tmp_path: Path) -> None:
        (tmp_path / "t.json").write_text('{"version": 2}')
        with pytest.raises(ValueError, match="not thresholds of version 1"):
            read_thresholds(tmp_path / "t.json")
