from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pytest

from crossover.analysis.comparisons import compare_lines

PowerLaws = Callable[..., pd.DataFrame]


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
