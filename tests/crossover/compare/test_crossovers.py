from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from crossover.compare.crossovers import crossovers_of
from crossover.compare.pairings import pairings
from crossover.tables.frames import headline_rows, records

PowerLaws = Callable[..., pd.DataFrame]
SIZE, PARAMETERS = {"disc_depth": "size"}, {"disc_depth": "parameters"}
GRID = {2: 100, 4: 100_000}
"""Parameters by size. The CPU takes 1 us per parameter and the GPU 1 ms, so they cross at 1000 parameters, a third of
the way on the log scale.
"""
SIZES = {2: 100, 3: 10_000, 4: 1_000_000}


def only(table: pd.DataFrame, **values: str) -> dict[str, Any]:
    for column, value in values.items():
        table = table[table[column] == value]
    (row,) = records(table)
    return row


@pytest.mark.parametrize(
    ("x_axes", "crossover", "bracket"), [(PARAMETERS, 1000, (100, 100_000)), (SIZE, 2 ** (4 / 3), (2, 4))]
)
def test_a_crossover_is_given_in_parameters_and_as_a_size(
    power_laws: PowerLaws, x_axes: dict[str, str], crossover: float, bracket: tuple[float, float]
) -> None:
    row = only(crossovers_of(pairings(power_laws(GRID), x_axes)))
    assert (row["status"], row["caveat"], row["trials"], row["cost"]) == ("bracketed", None, 1, "time")
    assert row["crossover"] == pytest.approx(crossover)
    assert row["crossover_parameters"] == pytest.approx(1000)
    assert row["crossover_size"] == pytest.approx(2 ** (4 / 3))
    assert (row["bracket_low"], row["bracket_high"]) == bracket
    assert (row["baseline"], row["contender"], row["baseline_machine"]) == ("cpu", "cuda", "here")
    assert (row["baseline_name"], row["contender_name"]) == ("Brand C1", "Brand G1")


@pytest.mark.parametrize(
    ("status", "expected"),
    [("unsupported", ("incomplete", "no_common_size", [])), ("oom", ("incomplete", "lost_between", [3000]))],
)
def test_a_cell_without_a_time_is_not_imputed(power_laws: PowerLaws, status: str, expected: Any) -> None:
    """Either no cell has a time on the GPU, or it is out of memory at size 3."""
    rows = power_laws({2: 100, 3: 3000, 4: 100_000})
    lost = (rows["device"] == "cuda") & ((rows["size"] == 3) | (status == "unsupported"))
    rows.loc[lost, ["status", "step_time_s"]] = [status, None]
    row = only(crossovers_of(pairings(rows, PARAMETERS)))
    assert (row["status"], row["caveat"], list(row["caveat_at"])) == expected
    assert (row["crossover"], row["contender"], row["contender_name"]) == (None, "cuda", "Brand G1")


def test_the_time_of_an_invalid_trial_does_not_count(power_laws: PowerLaws) -> None:
    """The invalid one of three GPU trials at the largest size would reverse the result."""
    rows = power_laws({2: 100, 3: 3000, 4: 100_000}, trials=3)
    disturbed = (rows["size"] == 4) & (rows["device"] == "cuda") & (rows["trial"] == 2)
    before = only(crossovers_of(pairings(rows, PARAMETERS)))
    rows.loc[disturbed, ["status", "step_time_s"]] = ["invalid", 1e9]
    row = only(crossovers_of(pairings(rows, PARAMETERS)))
    assert (before["status"], row["status"], before["trials"], row["trials"]) == ("bracketed", "bracketed", 3, 2)
    assert row["crossover"] == pytest.approx(before["crossover"], rel=0.02)
    for end in ("low", "high"):
        assert before[f"crossover_parameters_{end}"] == pytest.approx(before[f"crossover_{end}"])


def on_one_device(power_laws: PowerLaws, **contender: str) -> pd.DataFrame:
    """Both sides of `power_laws` on the GPU: the plain one grows with the parameters, the contender is constant."""
    rows = power_laws(GRID, trials=2)
    constant = rows["device"] == "cuda"
    both = pd.concat([rows[~constant], rows[constant].assign(**contender)])
    return both.assign(device="cuda", device_name="Brand G1")


@pytest.mark.parametrize(
    ("pair", "baseline", "contender"),
    [("precision", "fp32", "amp-fp16"), ("execution", "eager", "cuda-graph"), ("variant", "plain", "numpy")],
)
def test_precisions_executions_and_variants_of_one_device(
    power_laws: PowerLaws, pair: str, baseline: str, contender: str
) -> None:
    table = crossovers_of(pairings(on_one_device(power_laws, **{pair: contender}), PARAMETERS))
    row = only(table, pair=pair)
    assert (row["baseline"], row["contender"], row["device"]) == (baseline, contender, "cuda")
    assert (row[pair], row["trials"], row["baseline_name"]) == (contender, 2, "Brand G1")
    assert (row["status"], row["crossover"]) == ("bracketed", pytest.approx(1000))
    assert set(table["pair"]) == {"device", pair}


def powered(rows: pd.DataFrame, **watts: float) -> pd.DataFrame:
    return rows.assign(energy_per_step_j=rows["step_time_s"] * rows["device"].map(watts))


def test_the_crossover_in_energy(power_laws: PowerLaws) -> None:
    """The CPU, at 100 W, uses 0.1 mJ per parameter; the GPU, at 250 W, 0.25 J: they cross at 2500 parameters."""
    rows = powered(power_laws(GRID, trials=2), cpu=100.0, cuda=250.0)
    table = crossovers_of(pairings(rows, PARAMETERS)).set_index("cost")
    assert table["crossover"].to_dict() == {"time": pytest.approx(1000), "energy": pytest.approx(2500)}
    rows.loc[rows["trial"] == 2, "energy_per_step_j"] = None
    assert crossovers_of(pairings(rows, PARAMETERS)).set_index("cost")["trials"].to_dict() == {"time": 2, "energy": 1}
    rows.loc[rows["device"] == "cpu", "status"] = "invalid"
    table = crossovers_of(pairings(rows, PARAMETERS)).set_index("cost")
    assert table["status"].to_dict() == {"time": "incomplete", "energy": "incomplete"}


def test_a_cpu_on_fewer_cores_is_a_baseline_of_its_own(power_laws: PowerLaws) -> None:
    """It is four times slower, so it crosses at a quarter of the size; the price of the machine is the same."""
    rows = power_laws(GRID)
    slow = rows[rows["device"] == "cpu"].assign(device="cpu-1", step_time_s=lambda part: 4 * part["step_time_s"])
    table = crossovers_of(pairings(pd.concat([rows, slow]), PARAMETERS, {"cpu": 1.0, "cuda": 2.0}))
    assert {(row["baseline"], row["cost"]): row["crossover"] for row in records(table)} == {
        ("cpu", "time"): pytest.approx(1000),
        ("cpu", "money"): pytest.approx(2000),
        ("cpu-1", "time"): pytest.approx(250),
        ("cpu-1", "money"): pytest.approx(500),
    }
    alone = crossovers_of(pairings(pd.concat([rows[rows["device"] == "cpu"], slow]), PARAMETERS))
    assert alone["status"].tolist() == ["no_accelerator"]


@pytest.fixture
def laptop_and_server(power_laws: PowerLaws) -> pd.DataFrame:
    """A server's CPU takes 1 us per parameter and its GPU 1 ms; a laptop has only a CPU, which is four times slower."""
    server = power_laws(SIZES, machine="server")
    laptop = server[server["device"] == "cpu"].assign(machine="laptop", device_name="Brand C2")
    return pd.concat([laptop.assign(step_time_s=4 * laptop["step_time_s"]), server])


def test_a_cpu_without_accelerator_is_compared_with_the_accelerator_of_another_machine(
    laptop_and_server: pd.DataFrame,
) -> None:
    """At 4 us per parameter the laptop takes the GPU's 1 ms at 250; it is four times slower than the server's CPU."""
    table = crossovers_of(pairings(laptop_and_server, PARAMETERS))
    across = only(table, pair="device", baseline_machine="laptop", machine="server")
    assert across["crossover"] == pytest.approx(250)
    assert (across["baseline_name"], across["contender_name"]) == ("Brand C2", "Brand G1")
    cpus = only(table, pair="machine")
    assert (cpus["device"], cpus["baseline"], cpus["contender"]) == ("cpu", "laptop", "server")
    assert (cpus["status"], len(table)) == ("below_range", 4)
    assert only(headline_rows(table), machine="server")["crossover"] == pytest.approx(1000)
    alone = only(headline_rows(table), machine="laptop")
    assert (alone["status"], alone["contender"], alone["crossover"]) == ("no_accelerator", None, None)


def test_two_whole_machines_are_compared_device_by_device(power_laws: PowerLaws) -> None:
    """The second GPU takes 4 ms: it crosses its own CPU at 4000, and is not compared with the first machine's CPU."""
    rows = pd.concat([power_laws(SIZES, machine="a"), power_laws(SIZES, gpu_s=4e-3, machine="b")])
    table = crossovers_of(pairings(rows, PARAMETERS))
    crossings = headline_rows(table).set_index("machine")["crossover"]
    assert crossings.to_dict() == {"a": pytest.approx(1000), "b": pytest.approx(4000)}
    others = table.drop(headline_rows(table).index)
    assert others["pair"].tolist() == ["machine", "machine"]
    assert only(others, device="cuda")["status"] == "above_range"


def test_grids_that_share_no_size_are_not_compared(power_laws: PowerLaws) -> None:
    rows = pd.concat([power_laws({2: 100, 3: 10_000}, machine="a"), power_laws({5: 100, 6: 10_000}, machine="b")])
    assert {pairing.pair for pairing in pairings(rows, PARAMETERS) if pairing.other_machine} == set()
    assert headline_rows(crossovers_of(pairings(rows, PARAMETERS)))["status"].tolist() == ["bracketed", "bracketed"]
