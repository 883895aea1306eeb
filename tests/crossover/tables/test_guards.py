from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pytest

from crossover.errors import UserError
from crossover.tables.columns import COLUMNS
from crossover.tables.guards import (
    CONDITIONS,
    DEVICE_COLUMNS,
    ENVIRONMENT_COLUMNS,
    check_environments,
    check_hosts,
    differing_environments,
)


def rows(*changes: Mapping[str, str | None]) -> pa.Table:
    alike = {"machine": "here", "device": "cuda", **dict.fromkeys(ENVIRONMENT_COLUMNS, "same")}
    return pa.Table.from_pylist([{**alike, **change} for change in changes])


@pytest.mark.parametrize("column", [ENVIRONMENT_COLUMNS[1], ENVIRONMENT_COLUMNS[-1]])
def test_the_error_shows_the_differing_column_with_its_values(column: str) -> None:
    assert column in COLUMNS
    check_environments(rows({}, {"device": "cpu", column: "other"}), several_hosts=False)
    with pytest.raises(UserError, match=rf"rows of device 'cuda' .*: {column} \(same, other\);"):
        check_environments(rows({}, {column: "other"}), several_hosts=False)


@pytest.mark.parametrize("column", [column for columns in CONDITIONS.values() for column in columns])
def test_rows_of_a_cell_that_differ_in_a_condition_are_not_joined(column: str) -> None:
    assert column in COLUMNS
    cell = {"study": "s", "workload": "model", "model": "net.py:build", "execution": "eager"}
    first, second = ({**cell, column: value} for value in ("one", "two"))
    unknown = {**cell, column: None}
    check_environments(rows(first, first, unknown), several_hosts=False)
    with pytest.raises(UserError, match=rf"{column} \(one, two\).*; delete the rows of one") as raised:
        check_environments(rows(first, unknown, second), several_hosts=False)
    assert "\n" not in str(raised.value)


def test_rows_of_forks_and_of_the_fresh_process_that_replaced_one_are_joined() -> None:
    forked, fresh = (
        {"isolation": isolation, "trial": trial} for isolation, trial in (("server", "1"), ("process", "2"))
    )
    check_environments(rows(forked, fresh), several_hosts=False)
    assert differing_environments(rows(forked).to_pandas(), rows(fresh).to_pandas()) == []


def test_runs_are_compared_in_the_conditions_of_their_devices() -> None:
    for column in DEVICE_COLUMNS:
        first, second = (rows({column: value}).to_pandas() for value in ("one", "two"))
        assert differing_environments(first, second) == [f"{column}: one against two (cuda)"]


def test_several_hosts_may_differ_only_in_their_names() -> None:
    check_environments(rows({}, {"hostname": "other"}), several_hosts=True)
    with pytest.raises(UserError, match="torch_version"):
        check_environments(rows({}, {"hostname": "other", "torch_version": "other"}), several_hosts=True)


CPU_ELSEWHERE = ({"device": "cpu", "hostname": "login"}, {"device": "cuda", "hostname": "node7"})


def test_rows_of_two_devices_must_come_from_one_host() -> None:
    with pytest.raises(
        UserError,
        match=r"come from different hosts: hostname \(login for cpu, node7 for cuda\); "
        "measure",
    ):
        check_environments(rows(*CPU_ELSEWHERE), several_hosts=False)
    check_environments(rows(*CPU_ELSEWHERE), several_hosts=True)


def test_several_hosts_must_have_the_same_cpu() -> None:
    unlike = [{**row, "cpu_model": f"CPU of {row['hostname']}"} for row in CPU_ELSEWHERE]
    with pytest.raises(UserError, match=r"cpu_model \(CPU of login for cpu, CPU of node7 for cuda\)") as raised:
        check_environments(rows(*unlike), several_hosts=True)
    assert "several_hosts" not in str(raised.value)


def test_roofs_and_rows_must_come_from_one_host() -> None:
    """Each table alone is from one host; the table of roofs has no CPU model."""
    roofs = rows(CPU_ELSEWHERE[1]).drop_columns(["cpu_model"])
    with pytest.raises(UserError, match=r"hostname \(login for cpu, node7 for cuda\)"):
        check_hosts([rows(CPU_ELSEWHERE[0]), roofs], several_hosts=False)
    check_hosts([rows(CPU_ELSEWHERE[0]), roofs], several_hosts=True)


def test_differing_columns_of_two_runs_are_listed() -> None:
    """A device measured in only one run is not compared."""
    first = rows({}, {"device": "cpu"}).to_pandas()
    assert differing_environments(first, rows({}, {"device": "xpu", "hostname": "other"}).to_pandas()) == []
    second = rows({"torch_version": "2.12.0", "device_name": "G2"}, {"device": "cpu", "torch_version": "2.12.0"})
    assert differing_environments(first, second.to_pandas()) == [
        "device_name: same against G2 (cuda)",
        "torch_version: same against 2.12.0 (cuda, cpu)",
    ]


def test_rows_may_differ_between_classes_of_nodes_but_not_within_one() -> None:
    a100, h200 = {"machine": "a100", "device_name": "A100"}, {"machine": "h200", "device_name": "H200"}
    check_environments(rows(a100, h200), several_hosts=False)
    with pytest.raises(UserError, match=r"rows of device 'cuda' of machine 'h200' come .*device_name \(H200, A100\)"):
        check_environments(rows(a100, h200, {**h200, "device_name": "A100"}), several_hosts=False)
