from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pytest

from crossover.statistics import comparisons
from crossover.statistics.comparisons import compare_lines, headline_rows
from crossover.statistics.crossover import Crossover

PowerLaws = Callable[..., pd.DataFrame]
SIZE = {"disc_depth": "size"}
PARAMETERS = {"disc_depth": "parameters"}


def test_a_crossover_in_parameters_and_as_a_size(power_laws: PowerLaws) -> None:
    """The CPU takes 1 us a parameter and the GPU 1 ms: equal at 1000, a third of the way in logs."""
    (found,) = compare_lines(power_laws({2: 100, 4: 100_000}), {"disc_depth": "parameters"}).to_dict("records")
    assert found["status"] == "bracketed"
    assert found["crossover"] == pytest.approx(1000)
    assert found["crossover_parameters"] == pytest.approx(1000)
    assert found["crossover_size"] == pytest.approx(2 * 2 ** (1 / 3))
    assert (found["bracket_low"], found["bracket_high"]) == (100, 100_000)
    assert (found["bracket_low_size"], found["bracket_high_size"]) == (pytest.approx(2), pytest.approx(4))
    assert (found["baseline"], found["contender"]) == ("cpu", "cuda")
    assert (found["baseline_name"], found["contender_name"]) == ("Brand C1", "Brand G1")


def test_a_crossover_over_the_size_gives_parameters_too(power_laws: PowerLaws) -> None:
    (found,) = compare_lines(power_laws({2: 100, 4: 100_000}), {"disc_depth": "size"}).to_dict("records")
    assert found["crossover"] == found["crossover_size"] == pytest.approx(2 * 2 ** (1 / 3))
    assert found["crossover_parameters"] == pytest.approx(1000)


def test_each_line_has_its_own_row(power_laws: PowerLaws) -> None:
    lines = [power_laws({2: 100, 4: 100_000}, gpu_s=gpu_s, batch_size=n) for n, gpu_s in ((10, 1e-3), (20, 1.0))]
    table = compare_lines(pd.concat(lines), {"disc_depth": "size"})
    assert dict(zip(table["batch_size"], table["status"], strict=True)) == {10: "bracketed", 20: "above_range"}


def test_without_accelerator_the_row_says_so(power_laws: PowerLaws) -> None:
    rows = power_laws({2: 100, 4: 100_000})
    (found,) = compare_lines(rows[rows["device"] == "cpu"], {"disc_depth": "size"}).to_dict("records")
    assert found["status"] == "no_accelerator"
    assert pd.isna(found["contender"])
    assert pd.isna(found["crossover"])


@pytest.mark.parametrize("trials", [1, 3])
def test_trials_are_the_fewest_behind_a_point(power_laws: PowerLaws, trials: int) -> None:
    rows = power_laws({2: 100, 4: 100_000}, trials=trials)
    (found,) = compare_lines(rows, {"disc_depth": "size"}).to_dict("records")
    assert found["trials"] == trials


def test_a_cell_out_of_memory_is_not_imputed(power_laws: PowerLaws) -> None:
    rows = power_laws({2: 100, 3: 3000, 4: 100_000})
    lost = (rows["size"] == 3) & (rows["device"] == "cuda")
    rows.loc[lost, ["status", "step_time_s"]] = ["oom", None]
    (found,) = compare_lines(rows, {"disc_depth": "parameters"}).to_dict("records")
    assert found["status"] == "incomplete"
    assert pd.isna(found["crossover"])


def test_the_time_of_an_invalid_trial_does_not_count(power_laws: PowerLaws) -> None:
    """Of three GPU trials at the largest size, the one that others disturbed would turn the answer around."""
    rows = power_laws({2: 100, 3: 3000, 4: 100_000}, trials=3)
    disturbed = (rows["size"] == 4) & (rows["device"] == "cuda") & (rows["trial"] == 2)
    (before,) = compare_lines(rows, {"disc_depth": "parameters"}).to_dict("records")
    rows.loc[disturbed, ["status", "step_time_s"]] = ["invalid", 1e9]
    (found,) = compare_lines(rows, {"disc_depth": "parameters"}).to_dict("records")
    assert (before["status"], found["status"]) == ("bracketed", "bracketed")
    assert found["crossover"] == pytest.approx(before["crossover"], rel=0.02)
    rows.loc[rows["device"] == "cuda", "status"] = "invalid"
    (found,) = compare_lines(rows, {"disc_depth": "parameters"}).to_dict("records")
    assert found["status"] == "incomplete"


def test_the_largest_size_out_of_memory_everywhere_leaves_the_search_incomplete(power_laws: PowerLaws) -> None:
    rows = power_laws({2: 100, 3: 200, 4: 100_000})
    rows.loc[rows["size"] == 4, ["status", "step_time_s"]] = ["oom", None]
    (found,) = compare_lines(rows, {"disc_depth": "parameters"}).to_dict("records")
    assert found["status"] == "incomplete"


def test_an_accelerator_without_any_time_is_not_called_missing(power_laws: PowerLaws) -> None:
    rows = power_laws({2: 100, 4: 100_000})
    rows[["status", "step_time_s"]] = ["unsupported", None]
    (found,) = compare_lines(rows, {"disc_depth": "parameters"}).to_dict("records")
    assert (found["status"], found["contender"], found["contender_name"]) == ("incomplete", "cuda", "Brand G1")


def on_one_device(power_laws: PowerLaws, **contender: str) -> pd.DataFrame:
    """Both of `power_laws`' sides on the GPU: the plain one grows with the parameters, the contender never does."""
    rows = power_laws({2: 100, 4: 100_000}, trials=2)
    constant = rows["device"] == "cuda"
    return pd.concat([rows[~constant], rows[constant].assign(**contender)]).assign(
        device="cuda", device_name="Brand G1"
    )


@pytest.mark.parametrize(
    ("pair", "baseline", "contender"), [("precision", "fp32", "amp-fp16"), ("execution", "eager", "cuda-graph")]
)
def test_precisions_and_executions_of_one_device(
    power_laws: PowerLaws, pair: str, baseline: str, contender: str
) -> None:
    table = compare_lines(on_one_device(power_laws, **{pair: contender}), PARAMETERS)
    (found,) = table[table["pair"] == pair].to_dict("records")
    assert (found["baseline"], found["contender"], found["device"]) == (baseline, contender, "cuda")
    assert (found[pair], found["cost"], found["trials"]) == (contender, "time", 2)
    assert (found["baseline_name"], found["contender_name"]) == ("Brand G1", "Brand G1")
    assert (found["status"], found["crossover"]) == ("bracketed", pytest.approx(1000))
    other = "execution" if pair == "precision" else "precision"
    assert other not in set(table["pair"])


def test_what_a_device_does_not_offer_is_no_side(power_laws: PowerLaws) -> None:
    rows = on_one_device(power_laws, precision="tf32")
    assert "precision" in set(compare_lines(rows, SIZE)["pair"])
    for lacking in ("tf32", "fp32"):
        lost = rows.copy()
        lost.loc[lost["precision"] == lacking, ["status", "step_time_s"]] = ["unsupported", None]
        assert set(compare_lines(lost, SIZE)["pair"]) == {"device"}


def powered(rows: pd.DataFrame, **watts: float) -> pd.DataFrame:
    return rows.assign(energy_per_step_j=rows["step_time_s"] * rows["device"].map(watts))


def test_the_crossover_in_energy(power_laws: PowerLaws) -> None:
    """A CPU of 100 W takes 0.1 mJ a parameter, a GPU of 250 W always 0.25 J: equal at 2500 parameters."""
    rows = powered(power_laws({2: 100, 4: 100_000}, trials=2), cpu=100.0, cuda=250.0)
    table = compare_lines(rows, PARAMETERS).set_index("cost")
    assert set(table.index) == {"time", "energy"}
    assert table.loc["time", "crossover"] == pytest.approx(1000)
    assert table.loc["energy", "crossover"] == pytest.approx(2500)
    rows.loc[rows["trial"] == 2, "energy_per_step_j"] = None
    assert compare_lines(rows, PARAMETERS).set_index("cost")["trials"].to_dict() == {"time": 2, "energy": 1}


def test_the_energy_of_a_trial_that_is_not_ok_does_not_count(power_laws: PowerLaws) -> None:
    rows = powered(power_laws({2: 100, 4: 100_000}), cpu=100.0, cuda=250.0)
    rows.loc[rows["device"] == "cpu", "status"] = "invalid"
    table = compare_lines(rows, PARAMETERS).set_index("cost")
    assert table["status"].to_dict() == {"time": "incomplete", "energy": "incomplete"}


def test_a_cost_of_one_side_only_is_incomplete_and_says_so(power_laws: PowerLaws) -> None:
    rows = powered(power_laws({2: 100, 4: 100_000}), cuda=250.0)
    table = compare_lines(rows, PARAMETERS, {"cuda": 4.0}).set_index("cost")
    assert table["status"].to_dict() == {"time": "bracketed", "energy": "incomplete", "money": "incomplete"}
    assert table.loc["energy", "message"] == "the energy of cpu was not measured"
    assert table.loc["money", "message"] == "price_per_hour lacks cpu"
    assert set(compare_lines(power_laws({2: 100}), PARAMETERS)["cost"]) == {"time"}


def test_the_crossover_in_money(power_laws: PowerLaws) -> None:
    """A GPU five times as dear an hour must be five times as fast: at 5000 parameters instead of 1000."""
    table = compare_lines(power_laws({2: 100, 4: 100_000}), PARAMETERS, {"cpu": 0.8, "cuda": 4.0}).set_index("cost")
    assert table["crossover"].to_dict() == {"time": pytest.approx(1000), "money": pytest.approx(5000)}


def test_a_cpu_on_fewer_cores_is_a_baseline_of_its_own(power_laws: PowerLaws) -> None:
    """Four times as slow, so equal at a quarter; its price is that of the same machine."""
    rows = power_laws({2: 100, 4: 100_000})
    slow = rows[rows["device"] == "cpu"].assign(device="cpu-1", step_time_s=lambda part: 4 * part["step_time_s"])
    table = compare_lines(pd.concat([rows, slow]), PARAMETERS, {"cpu": 1.0, "cuda": 2.0})
    found = {(row["baseline"], row["cost"]): row["crossover"] for row in table.to_dict("records")}
    assert found == {
        ("cpu", "time"): pytest.approx(1000),
        ("cpu", "money"): pytest.approx(2000),
        ("cpu-1", "time"): pytest.approx(250),
        ("cpu-1", "money"): pytest.approx(500),
    }
    assert set(table["contender"]) == {"cuda"}
    alone = compare_lines(pd.concat([rows[rows["device"] == "cpu"], slow]), PARAMETERS)
    assert alone["status"].tolist() == ["no_accelerator"]


def test_the_headline_is_the_time_of_the_accelerator_against_all_of_the_cpu(power_laws: PowerLaws) -> None:
    rows = pd.concat([power_laws({2: 100, 4: 100_000}, precision=name) for name in ("fp32", "tf32")])
    slow = rows[rows["device"] == "cpu"].assign(device="cpu-half")
    full = compare_lines(pd.concat([rows, slow]), PARAMETERS, {"cpu": 1.0, "cuda": 2.0})
    alone = compare_lines(rows, PARAMETERS)
    alone = alone[alone["pair"] == "device"]
    assert len(full) > len(alone) == 2
    pd.testing.assert_frame_equal(headline_rows(full).reset_index(drop=True), alone.reset_index(drop=True))
    assert headline_rows(pd.DataFrame()).empty


def test_an_interval_is_given_as_a_size_and_in_parameters(
    power_laws: PowerLaws, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From 100 to 100,000 parameters the size doubles: at 1000 and 10,000 it is a third and two thirds on the way."""
    found = Crossover("bracketed", "", 3000.0, 1000.0, 10_000.0, (100.0, 100_000.0), (3000.0,))
    monkeypatch.setattr(comparisons, "estimate_crossover", lambda *_: found)
    (row,) = compare_lines(power_laws({2: 100, 4: 100_000}), PARAMETERS).to_dict("records")
    assert [row["crossover_parameters_low"], row["crossover_parameters_high"]] == pytest.approx([1000, 10_000])
    assert [row["crossover_size_low"], row["crossover_size_high"]] == pytest.approx([2 ** (4 / 3), 2 ** (5 / 3)])


def test_a_size_that_was_added_for_one_precision_is_no_gap_of_the_other(power_laws: PowerLaws) -> None:
    """Refinement measures size 3 in bf16 on the CPU and the GPU, and in fp32 on the CPU and the XPU."""
    single, half = power_laws({2: 100, 4: 100_000}), power_laws({2: 100, 3: 5000, 4: 100_000}, precision="bf16")
    other = pd.concat([single, power_laws({3: 5000})]).replace({"device": {"cuda": "xpu"}})
    rows = pd.concat([single, half, other[(other["device"] == "xpu") | (other["size"] == 3)]])
    found = compare_lines(rows, SIZE)
    assert (found["status"] != "incomplete").all()
    on_cpu = found[(found["pair"] == "precision") & (found["device"] == "cpu")]
    assert on_cpu["trials"].tolist() == [1]
    devices = headline_rows(found).set_index(["precision", "contender"])
    assert devices["status"].to_dict() == {
        ("fp32", "cuda"): "bracketed",
        ("fp32", "xpu"): "bracketed",
        ("bf16", "cuda"): "bracketed",
    }
