from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from crossover.report.machine_facts import column_text, fact_rows, machine_facts

Row = Callable[..., dict[str, Any]]


def test_each_device_of_each_host_is_a_machine_and_fewer_cores_are_the_cpu(row: Row) -> None:
    rows = [
        row(),
        row(device="cpu-1", device_name="Brand C1", threads=1),
        row(device="cuda", device_uuid="GPU-1", power_limit_w=700.0),
        row(device="cuda", device_uuid="GPU-2", power_limit_w=700.0, trial=2),
        row(device="cuda", hostname="there", device_uuid="GPU-3"),
    ]
    found = machine_facts([pd.DataFrame(rows)])
    assert [(one["device"], one["host"], one["rows"]) for one in found] == [
        ("CPU (Brand C1)", "here", 2),
        ("GPU (Brand G1)", "here", 2),
        ("GPU (Brand G1)", "there", 1),
    ]
    assert found[0]["groups"]["How it ran"]["threads"] == "1 to 2"
    assert found[1]["groups"]["Accelerator"] == {"device_uuid": "GPU-1 (1); GPU-2 (1)", "power_limit_w": "700 W"}


def test_trainings_count_and_what_their_table_lacks_is_left_out(row: Row) -> None:
    trainings = pd.DataFrame(
        [{"device": "cpu", "device_name": "Brand C1", "hostname": "here", "torch_version": "2.13"}]
    )
    (only,) = machine_facts([pd.DataFrame([row()]), trainings])
    assert only["rows"] == 2
    assert only["groups"]["Software"] == {"torch_version": "2.13"}


def test_machines_stand_side_by_side_and_what_none_knows_has_no_row(row: Row) -> None:
    rows = pd.DataFrame([row(amx=True, numa_nodes=1), row(device="cuda", mig=False)])
    table = fact_rows(machine_facts([rows]))
    assert table["Accelerator"] == [("mig", "whether the GPU is partitioned (MIG)", ["", "no"])]
    assert [(column, texts) for column, _, texts in table["Host"]] == [("numa_nodes", ["1", ""]), ("amx", ["yes", ""])]
    assert table["What went on beside it"] == []


def test_a_column_in_words() -> None:
    assert column_text(pd.Series([None, None], dtype=object), "governor") == ""
    assert column_text(pd.Series([0.25, 1.5, None], dtype=object), "load_before") == "0.250 to 1.50"
    assert column_text(pd.Series([80e9, 80e9]), "device_memory_bytes") == "80.0 GB"
    assert column_text(pd.Series([True, True, False], dtype=object), "turbo") == "yes (2); no (1)"
    assert column_text(pd.Series([[], ["heat"]], dtype=object), "throttle_reasons") == "none (1); heat (1)"
    many = pd.Series([f"GPU-{number}" for number in range(10)], dtype=object)
    assert column_text(many, "device_uuid").endswith("GPU-7 (1); and 2 more")


def test_a_run_without_any_row_has_no_facts() -> None:
    assert machine_facts([pd.DataFrame(columns=["device"])]) == []
