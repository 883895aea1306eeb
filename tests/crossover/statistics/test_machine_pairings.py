from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pytest

from crossover.answers.other_crossovers import other_crossovers
from crossover.answers.sentences import answer
from crossover.claims.claims import check_claims
from crossover.config.studies import Refinement
from crossover.report.report_sections import study_section
from crossover.statistics.comparisons import compare_lines, headline_rows
from crossover.statistics.machine_pairings import machine_pairings
from crossover.statistics.refinement_stage import plan_stage
from crossover.tables.frames import records
from report_pages import tables_of

PowerLaws = Callable[..., pd.DataFrame]
SIZES = {2: 100, 3: 10_000, 4: 1_000_000}
AXES = {"disc_depth": "parameters"}


def slower(rows: pd.DataFrame, times: float, **values: str) -> pd.DataFrame:
    return rows.assign(step_time_s=rows["step_time_s"] * times, **values)


@pytest.fixture
def laptop_and_server(power_laws: PowerLaws) -> pd.DataFrame:
    """A server's CPU takes 1 us a parameter and its GPU 1 ms; a laptop has only a CPU, of four times the time."""
    server = power_laws(SIZES, machine="server")
    laptop = slower(server[server["device"] == "cpu"], 4, machine="laptop", device_name="Brand C2")
    return pd.concat([laptop, server])


def found(table: pd.DataFrame, **values: str) -> dict[str, object]:
    for column, value in values.items():
        table = table[table[column] == value]
    (row,) = records(table)
    return row


def test_each_machine_has_its_own_answer(laptop_and_server: pd.DataFrame) -> None:
    headlines = headline_rows(compare_lines(laptop_and_server, AXES))
    own = found(headlines, machine="server")
    assert own["crossover"] == pytest.approx(1000)
    assert answer(own).startswith("On server the GPU (Brand G1) beats the CPU (Brand C1) from about 1,000 parameters")
    alone = found(headlines, machine="laptop")
    assert alone["status"] == "no_accelerator"
    assert answer(alone) == "Only the CPU (Brand C2) was measured on laptop, no GPU: half of the answer is missing."
    assert len(headlines) == 2


def test_a_cpu_without_accelerator_is_set_against_that_of_another_machine(laptop_and_server: pd.DataFrame) -> None:
    """4 us a parameter reach 1 ms at 250; and the laptop takes four times as long everywhere."""
    table = compare_lines(laptop_and_server, AXES)
    across = found(table, pair="device", baseline_machine="laptop", machine="server")
    assert across["crossover"] == pytest.approx(250)
    assert (across["baseline_name"], across["contender_name"]) == ("Brand C2", "Brand G1")
    cpus = found(table, pair="machine")
    assert (cpus["device"], cpus["baseline"], cpus["contender"]) == ("cpu", "laptop", "server")
    assert cpus["status"] == "below_range"
    assert len(table) == 4


def test_what_is_across_machines_says_so(laptop_and_server: pd.DataFrame) -> None:
    device, machine = other_crossovers(compare_lines(laptop_and_server, AXES))
    assert device["compared"] == "GPU (Brand G1) of server against CPU (Brand C2) of laptop"
    assert device["sentence"].startswith(
        "Across machines, the GPU of server takes less time than the CPU of laptop from about 250 parameters on"
    )
    assert machine["compared"] == "CPU (Brand C1) of server against CPU (Brand C2) of laptop"
    assert machine["sentence"].startswith(
        "On the CPU server takes less time than laptop at every size measured on both"
    )


def test_two_whole_machines_are_compared_device_by_device(power_laws: PowerLaws) -> None:
    """The second's GPU takes 4 ms: it crosses its own CPU at 4000, and is never set against the first one's CPU."""
    rows = pd.concat([power_laws(SIZES, machine="a"), power_laws(SIZES, gpu_s=4e-3, machine="b")])
    table = compare_lines(rows, AXES)
    crossings = headline_rows(table).set_index("machine")["crossover"]
    assert crossings.to_dict() == {"a": pytest.approx(1000), "b": pytest.approx(4000)}
    others = table.drop(headline_rows(table).index)
    assert others["pair"].tolist() == ["machine", "machine"]
    assert found(others, device="cuda")["status"] == "above_range"


def test_a_gpu_alone_is_set_against_the_cpu_of_another_machine(power_laws: PowerLaws) -> None:
    rows = pd.concat([power_laws(SIZES, machine="a"), power_laws(SIZES, gpu_s=1e-2, machine="b")])
    alone = rows[(rows["machine"] == "a") | (rows["device"] == "cuda")]
    across = found(compare_lines(alone, AXES), pair="device", machine="b", baseline_machine="a")
    assert across["crossover"] == pytest.approx(10_000)


def test_grids_that_share_no_size_are_not_compared(power_laws: PowerLaws) -> None:
    rows = pd.concat([power_laws({2: 100, 3: 10_000}, machine="a"), power_laws({5: 100, 6: 10_000}, machine="b")])
    assert list(machine_pairings(rows)) == []
    assert headline_rows(compare_lines(rows, AXES))["status"].tolist() == ["bracketed", "bracketed"]


def test_one_machine_is_compared_with_no_other(power_laws: PowerLaws) -> None:
    rows = power_laws(SIZES)
    assert list(machine_pairings(rows)) == []
    (row,) = records(compare_lines(rows, AXES))
    assert (row["machine"], row["baseline_machine"]) == ("here", "here")
    assert answer(row).startswith("On this machine the GPU")


def test_each_machine_is_refined_where_its_own_crossover_lies(power_laws: PowerLaws) -> None:
    """At 1 us a parameter against 1 ms and 100 ms; sizes 2, 4 and 8 have 100, 10,000 and 1,000,000 parameters."""
    sizes = {2: 100, 4: 10_000, 8: 1_000_000}
    rows = pd.concat([power_laws(sizes, machine="a"), power_laws(sizes, gpu_s=1e-1, machine="b")])
    plan = plan_stage(rows, 1, {"disc_depth": Refinement()}, AXES, 1)
    assert {(cell.machine, cell.device, cell.size) for cell in plan.trials} == {
        ("a", "cpu", 3),
        ("a", "cuda", 3),
        ("b", "cpu", 6),
        ("b", "cuda", 6),
    }


def test_a_claim_is_checked_on_each_machine_that_has_the_study(power_laws: PowerLaws) -> None:
    """With 1 ms the GPU wins from 1000 on, with 100 ms from 100,000 on."""
    rows = [power_laws(SIZES, trials=3, gpu_s=gpu_s, machine=name) for name, gpu_s in (("a", 1e-3), ("b", 1e-1))]
    other = power_laws(SIZES, machine="c", study="another")
    table = pd.concat([*rows, other])
    claim = {
        "study": "disc_depth",
        "statement": "from 1000 on",
        "source": "Somebody (2019)",
        "crossover_between": {"range": [900, 1100]},
    }
    checked = check_claims([claim], table, compare_lines(table, {**AXES, "another": "size"}))
    assert dict(zip(checked["machine"], checked["verdict"], strict=True)) == {"a": "reproduced", "b": "differs"}


def test_the_section_of_a_study_tells_its_machines_apart(laptop_and_server: pd.DataFrame) -> None:
    spec = {"title": "", "question": "", "published": None, "figures": ["times"], "steps_per_run": None}
    section = study_section("disc_depth", spec, tables_of(laptop_and_server), ())
    assert [text.split(" ")[:2] for _, text in section["answers"]] == [["Only", "the"], ["On", "server"]]
    assert section["machines"]["machines"] == ["laptop", "server"]
    assert {row["line"].split(", ")[0] for row in section["cost_models"]} == {"laptop", "server"}
