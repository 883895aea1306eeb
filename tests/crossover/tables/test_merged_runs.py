from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crossover.errors import UserError
from crossover.tables.columns import SCHEMA_VERSION, arrow_schema
from crossover.tables.merged_runs import MergedRun, join_runs, measured_there, merged_runs

Row = Callable[..., dict[str, Any]]


@pytest.fixture
def run(row: Row, tmp_path: Path) -> Callable[..., str]:
    """Writes the table of a run; each row may replace plain values."""

    def write(folder: str, *rows: dict[str, Any], **values: Any) -> str:
        path = tmp_path / folder / "measurements.parquet"
        path.parent.mkdir()
        known = [row(**{"schema_version": SCHEMA_VERSION, **values, **one}) for one in rows or ({},)]
        pq.write_table(pa.Table.from_pylist(known, schema=arrow_schema()), path)
        return str(path.parent)

    return write


def names(*folders: str | MergedRun) -> list[str]:
    runs = [folder if isinstance(folder, MergedRun) else MergedRun(folder) for folder in folders]
    found: list[str] = join_runs(runs)["machine"].to_pylist()
    return found


def test_machines_are_called_after_their_hosts_in_the_order_of_the_config(run: Callable[..., str]) -> None:
    assert names(run("a", hostname="zeta"), run("b", hostname="alpha")) == ["zeta", "alpha"]


def test_hosts_of_one_name_are_told_apart_by_their_devices(run: Callable[..., str]) -> None:
    both = ({"device": "cpu"}, {"device": "cuda"})
    found = names(run("a", {}, hostname="vm"), run("b", *both, hostname="vm"), run("c", hostname="box"))
    assert found == ["vm Brand C1", "vm Brand G1", "vm Brand G1", "box"]


def test_several_like_hosts_are_one_machine(run: Callable[..., str]) -> None:
    three = [{"hostname": f"node{number}", "size": number} for number in (1, 2, 3)]
    assert names(run("a", *three), run("b", hostname="x")) == ["node1 and 2 more"] * 3 + ["x"]


def test_a_name_that_is_given_counts(run: Callable[..., str]) -> None:
    assert names(MergedRun(run("a"), "laptop"), MergedRun(run("b"), "h200")) == ["laptop", "h200"]


def test_classes_of_nodes_keep_their_names(run: Callable[..., str]) -> None:
    classes = ({"machine": "a100"}, {"machine": "h200"})
    assert names(run("a", *classes), MergedRun(run("b"), "laptop")) == ["a100", "h200", "laptop"]
    assert names(MergedRun(run("c", *classes), "site")) == ["site-a100", "site-h200"]


def test_one_name_for_two_machines_stops(run: Callable[..., str]) -> None:
    with pytest.raises(UserError, match=r"are both of machine 'here Brand C1'; name them, as --config merge='\{laptop"):
        names(run("a"), run("b"))


def test_rows_of_a_run_that_was_never_collected_are_read(row: Row, run: Callable[..., str], tmp_path: Path) -> None:
    folder = tmp_path / "b" / "cells" / "disc_depth" / "more" / "cuda"
    folder.mkdir(parents=True)
    own = [row(schema_version=SCHEMA_VERSION, trial=trial, device="cuda", hostname="b") for trial in (1, 2)]
    for one in own:
        pq.write_table(pa.Table.from_pylist([one], schema=arrow_schema()), folder / f"trial-{one['trial']}.parquet")
    assert names(run("a"), str(tmp_path / "b")) == ["here", "b", "b"]
    assert MergedRun(str(tmp_path / "b")).studies_and_devices == [("disc_depth", "cuda")]


def test_a_table_without_a_column_of_today_is_read_and_one_without_times_is_not(run: Callable[..., str]) -> None:
    file = Path(run("a"), "measurements.parquet")
    table = pq.read_table(file)
    pq.write_table(table.drop_columns(["machine", "energy_j"]), file)
    joined = join_runs([MergedRun(str(file.parent))])
    assert joined.schema.names == arrow_schema().names
    assert joined["energy_j"].null_count == 1
    pq.write_table(table.drop_columns(["step_time_s"]), file)
    with pytest.raises(UserError, match=r"measurements\.parquet: column 'step_time_s' is missing"):
        names(str(file.parent))


def test_flags_that_are_no_longer_raised_are_left_out(run: Callable[..., str]) -> None:
    older = run("a", {"flags": ["noisy", "busy_host"]}, {"flags": None, "trial": 2}, schema_version=4)
    assert join_runs([MergedRun(older)])["flags"].to_pylist() == [["busy_host"], []]


def test_rows_of_another_version_stop(run: Callable[..., str]) -> None:
    old = run("a")
    file = Path(old, "measurements.parquet")
    table = pq.read_table(file)
    pq.write_table(table.set_column(0, "schema_version", pa.array([1])), file)
    with pytest.raises(UserError, match=rf"rows of version 1, but this workflow reads versions 2 to {SCHEMA_VERSION};"):
        names(old)


def test_unlike_rows_of_one_machine_stop_and_those_of_two_do_not(run: Callable[..., str]) -> None:
    mixed = run("a", {"torch_version": "2.12.0"}, {"torch_version": "2.13.0", "trial": 2})
    with pytest.raises(UserError, match=rf"^{mixed}: the rows of device 'cpu' come .*torch_version"):
        names(mixed)
    assert len(names(run("b", torch_version="2.12.0", hostname="b"), run("c", torch_version="2.13.0"))) == 2


def test_tables_that_cannot_be_merged_are_one_line_before_any_job(run: Callable[..., str]) -> None:
    folder = run("a")
    file = Path(folder, "measurements.parquet")
    table = pq.read_table(file)
    lists = table.set_column(table.column_names.index("device"), "device", pa.array([[1]]))
    for spoilt, message in (
        (lists, f"{file}: not rows of trials .*; copy it anew, or measure again with this version"),
        (table.drop_columns(["study"]), f"{file}: column 'study' is missing; copy it anew"),
        (table.slice(0, 0), f"merge: {folder} holds no rows; allowed: the results folder of a run"),
    ):
        pq.write_table(spoilt, file)
        with pytest.raises(UserError, match=f"^{message}"):
            measured_there([MergedRun(folder)], Path("config/studies"))
    file.write_bytes(b"PAR1")
    with pytest.raises(UserError, match=f"^{file}: not a readable table .*; copy it anew"):
        measured_there([MergedRun(folder)], Path("config/studies"))


def test_a_folder_without_rows_stops(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"neither measurements\.parquet nor rows in cells/"):
        names(str(tmp_path))


def test_studies_and_devices_are_those_that_were_measured(run: Callable[..., str], tmp_path: Path) -> None:
    studies = tmp_path / "studies"
    studies.mkdir()
    (studies / "disc_depth.yaml").touch()
    runs = [MergedRun(run("a", {"device": "cpu-half"}, {"device": "cuda"}))]
    assert measured_there(runs, studies) == {"studies": ["disc_depth"], "devices": ["cpu", "cuda"]}
    with pytest.raises(UserError, match="holds study 'mine', which has no file in config/studies/ here; copy it"):
        measured_there([*runs, MergedRun(run("b", study="mine"))], studies)


@pytest.mark.parametrize(
    ("merge", "words"),
    [
        (["a", "results/merged"], "results/merged is where the joined results go"),
        ({"x": "a", "y": "./a/"}, r"a is named twice"),
        ({"here": "a", "y": "b"}, "'here' stands for a machine without a name"),
    ],
)
def test_folders_that_cannot_be_merged_stop(merge: Any, words: str) -> None:
    with pytest.raises(UserError, match=words):
        merged_runs(merge, "results/merged")
