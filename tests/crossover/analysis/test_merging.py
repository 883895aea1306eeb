from __future__ import annotations

import pyarrow as pa
import pytest

from crossover.analysis.merging import ENVIRONMENT_COLUMNS, check_environments
from crossover.errors import UserError
from crossover.records import COLUMNS


def rows(*changes: dict[str, str]) -> pa.Table:
    alike = {"device": "cuda", **dict.fromkeys(ENVIRONMENT_COLUMNS, "same")}
    return pa.Table.from_pylist([{**alike, **change} for change in changes])


def test_the_columns_are_those_of_a_row() -> None:
    assert set(ENVIRONMENT_COLUMNS) <= set(COLUMNS)


def test_like_rows_pass_and_devices_may_differ_from_each_other() -> None:
    check_environments(rows({}, {}, {"device": "cpu", "threads": "other", "hostname": "other"}), several_hosts=False)


@pytest.mark.parametrize("column", ENVIRONMENT_COLUMNS)
def test_any_unlike_field_is_named_with_its_values(column: str) -> None:
    with pytest.raises(UserError, match=rf"rows of device 'cuda' .*: {column} \(same, other\);") as caught:
        check_environments(rows({}, {column: "other"}), several_hosts=False)
    assert "\n" not in str(caught.value)


def test_several_hosts_may_be_wanted_but_not_several_kinds_of_them() -> None:
    check_environments(rows({}, {"hostname": "other"}), several_hosts=True)
    with pytest.raises(UserError, match="torch_version"):
        check_environments(rows({}, {"hostname": "other", "torch_version": "other"}), several_hosts=True)
