"""The real workflow with a tiny config: run, resume, re-runs after changes, and messages for a user's mistakes."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import check_run
from crossover.errors import UserError
from crossover.files import sha256_of
from crossover.tables.outdated import MARK
from crossover.tables.rows import with_column
from crossover.tables.run_tables import TABLES
from workflow_copy import PARTS, WorkflowCopy

ROWS = {("disc_depth", "resident", size) for size in (2, 3)} | {
    ("hsf_width", protocol, size) for protocol in ("resident", "as_published") for size in (5, 10)
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[WorkflowCopy, str]:
    """A workflow whose main job has run with the README's command, and its output."""
    workflow = WorkflowCopy(tmp_path_factory.mktemp("finished") / "workflow")
    return workflow, workflow.run("--resources", "gpu=1")


@pytest.fixture
def ran(finished: tuple[WorkflowCopy, str], tmp_path: Path) -> WorkflowCopy:
    return WorkflowCopy.copy_of(finished[0], tmp_path / "copy")


@pytest.fixture
def fresh(tmp_path: Path) -> WorkflowCopy:
    return WorkflowCopy(tmp_path / "workflow")


def test_the_main_job_makes_every_table_figure_and_report(finished: tuple[WorkflowCopy, str]) -> None:
    results = finished[0].results
    made = {path.name for path in results.iterdir() if path.is_file()}
    tables = {f"{name}.{suffix}" for name in TABLES for suffix in ("parquet", "csv")}
    reports = {"report.html", "summary.md", "summary.txt", "provenance.json"}
    reports |= {"datapackage.json", "measurements.schema.json", "thresholds.json", "SHA256SUMS"}
    assert made == tables | reports | {"plan.json", "measurements.parquet"}
    # The speed-ups are those of a GPU measured elsewhere over this CPU.
    drawn = {str(path.relative_to(results / "figures")) for path in (results / "figures").rglob("*.*")}
    kinds = {
        "disc_depth/times",
        "disc_depth/speedups",
        "hsf_width/times",
        "hsf_width/speedups",
        "hsf_width/machines",
        "hsf_width/time_split",
        "hsf_width/memory",
    }
    assert drawn == {f"{kind}.{suffix}" for kind in kinds for suffix in ("svg", "pdf", "png")}


def test_trials_and_cells_have_one_row_each_from_all_physical_cores(finished: tuple[WorkflowCopy, str]) -> None:
    measurements, cells = (
        pd.read_parquet(finished[0].results / f"{name}.parquet") for name in ("measurements", "cells")
    )
    for table in (measurements, cells[cells["origin"] == "study"]):
        assert len(table) == len(ROWS)
        assert set(table[["study", "protocol", "size"]].itertuples(index=False, name=None)) == ROWS
        assert set(table["status"]) == {"ok"}
    assert (measurements["threads"] == measurements["physical_cores"]).all()  # under --cores 1


def test_a_run_prints_progress_and_answers_and_records_its_command(finished: tuple[WorkflowCopy, str]) -> None:
    workflow, output = finished
    assert "Measured 1 of 6 trials; " in output
    # The other study's answer is in the run's last lines.
    assert "First answer, from one trial per cell: disc_depth: " in output
    assert [path.name for path in (workflow.results / "first_answers").iterdir()] == ["disc_depth.txt"]
    assert (workflow.results / "summary.txt").read_text() in output
    told = json.loads((workflow.results / "provenance.json").read_text())
    assert told["run"]["command"] == "snakemake --cores 1 --resources gpu=1"
    assert told["run"]["folder"] == str(workflow.path)
    assert told["config"]["datasets"]["higgs"]["rows"] == 500


def edited(results: Path, name: str, change: Callable[[pa.Table], pa.Table]) -> None:
    path = results / name
    pq.write_table(change(pq.read_table(path)), path)


def with_new_checksums(results: Path) -> None:
    """Recompute all checksums, like a careful forger."""
    file, sums = results / "provenance.json", results / "SHA256SUMS"
    content = json.loads(file.read_text())
    for entry in content["files"]:
        entry["sha256"] = sha256_of(results / entry["link"])
    file.write_text(json.dumps(content))
    names = [line.split("  ")[1] for line in sums.read_text().splitlines()]
    sums.write_text("".join(f"{sha256_of(results / name)}  {name}\n" for name in names))


def with_values(column: str, change: Callable[[Any], Any]) -> Callable[[pa.Table], pa.Table]:
    def edit(table: pa.Table) -> pa.Table:
        first, *others = table[column].to_pylist()
        return with_column(table, column, [change(first), *others])

    return edit


MEASURED = "measurements.parquet"


@pytest.mark.parametrize(
    ("name", "change", "finding"),
    [
        (
            MEASURED,
            with_values("step_time_s", lambda time: 0.5 * time),
            "trial 1: step_time_s .*, but the median of its samples is",
        ),
        (MEASURED, lambda table: table.slice(1), "differs from what the rows in cells/ give: 5 rows; expected: 6"),
        (MEASURED, with_values("trial", lambda _: 2), "trials 2; expected: 1 to 1"),
        (MEASURED, lambda table: table.drop_columns(["energy_j"]), "column 'energy_j' is missing"),
        ("ratios.parquet", lambda table: table.slice(1), "differs from what the rows give.*: [0-9]+ rows; expected: "),
    ],
)
def test_a_planted_edit_is_found(
    ran: WorkflowCopy,
    name: str,
    change: Callable[[pa.Table], pa.Table],
    finding: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(ran.path)
    edited(ran.results, name, change)
    with_new_checksums(ran.results)
    assert check_run.main(["results", "--json=check.json"]) == 1
    content = json.loads(Path("check.json").read_text())
    assert not content["valid"]
    assert re.search(finding, "\n".join(entry["what"] for entry in content["findings"])), content
    assert "checksum" not in capsys.readouterr().out


def test_edited_roofs_and_provenance_are_found(ran: WorkflowCopy, capsys: pytest.CaptureFixture[str]) -> None:
    roofs, provenance = ran.results / "roofs/cpu.json", ran.results / "provenance.json"
    probed = json.loads(roofs.read_text())
    roofs.write_text(json.dumps([{**probed[0], "value": 10 * probed[0]["value"]}, *probed[1:]]))
    version = pd.read_parquet(ran.results / MEASURED)["torch_version"][0]
    provenance.write_text(provenance.read_text().replace(version, "2.0.0"))
    with_new_checksums(ran.results)
    assert check_run.main([str(ran.results)]) == 1
    wrong = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("Note")]
    assert wrong[0] == f"{provenance}: machines: differs from what the rows give"
    assert wrong[1].startswith(
        f"{ran.results}/roofs.parquet: differs from what the files in roofs/ give: column value, "
    )
    assert len(wrong) == 3


def test_tables_of_another_version_are_reported_in_one_line(ran: WorkflowCopy) -> None:
    file = ran.results / "provenance.json"
    content = json.loads(file.read_text())
    (ran.results / "machines.parquet").unlink()
    content["files"] = [entry for entry in content["files"] if entry["name"] != "machines.parquet"]
    file.write_text(json.dumps(content))
    message = r": made by an older version \(Crossover \d\S+, commit None\), which has no table 'machines'; use that"
    with pytest.raises(UserError, match=message):
        check_run.main([str(ran.results)])


def test_edited_texts_and_lost_files_are_found(
    ran: WorkflowCopy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert check_run.main(["copy/results"]) == 0
    assert "the tables were not recomputed" not in capsys.readouterr().out
    monkeypatch.chdir(ran.path)
    figure = "figures/disc_depth/times.pdf"
    for name in ("report.html", "summary.md", "summary.txt", "provenance.json", figure):
        with (ran.results / name).open("a") as text:
            text.write("\n")
    thresholds, answers = ran.results / "thresholds.json", ran.results / "answers.csv"
    thresholds.write_text(thresholds.read_text().replace('"faster": "cpu"', '"faster": "gpu"').replace("null", "1", 1))
    answers.write_text(answers.read_text().replace("disc_depth", "disc", 1))
    edited(ran.results, MEASURED, lambda table: table.slice(1))
    assert check_run.main(["results"]) == 1
    output = capsys.readouterr().out
    for name in (MEASURED, "report.html", "summary.md", "summary.txt", "provenance.json", figure):
        assert f"results/{name}: was changed after the report was made: its checksum differs" in output
    assert "thresholds.json: differs from what the rows give" in output
    assert "answers.csv: differs from what the rows in Parquet give: column study, " in output
    (ran.results / "plan.json").unlink()
    (ran.results / "claims.parquet").unlink()
    assert check_run.main(["results"]) == 1
    output = capsys.readouterr().out
    assert "claims.parquet: is missing" in output
    assert "Note: results/measurements.parquet: not compared with the rows of trials" in output


def test_a_second_run_does_nothing_and_prints_the_answers_again(finished: tuple[WorkflowCopy, str]) -> None:
    workflow = finished[0]
    assert (workflow.results / "summary.txt").read_text() in workflow.run()


def new_title(workflow: WorkflowCopy) -> None:
    workflow.edit("studies/disc_depth", title="Another title")


def lost_row(workflow: WorkflowCopy) -> None:
    next((workflow.results / "cells" / "hsf_width").rglob("*.parquet")).unlink()


def other_workload(workflow: WorkflowCopy) -> None:
    measurement = workflow.path / "scripts/crossover/measurement"
    for name, text in (("workloads/disc_mlp.py", "CHANGED = True\n"), ("trial.py", "# Nothing that a trial does\n")):
        (measurement / name).write_text((measurement / name).read_text() + text)


def other_statistics(workflow: WorkflowCopy) -> None:
    module = workflow.path / "scripts/crossover/statistics/__init__.py"
    module.write_text(module.read_text() + "CHANGED = True\n")


def comments(workflow: WorkflowCopy) -> None:
    for name in ("measure_cell.py", "crossover/errors.py"):
        file = workflow.path / "scripts" / name
        file.write_text(file.read_text() + "# Nothing that a number depends on\n")


ANALYSIS = {"analyse_run": 1, "plot_figures": 1, "render_report": 1}


@pytest.mark.parametrize(
    ("change", "jobs"),
    [
        (lambda workflow: workflow.config(trials=2), {"disc_depth 2": 2, "hsf_width 2": 4, "write_plan": 1}),
        (lambda workflow: workflow.config(effort={"blocks_min": 4}), {"disc_depth 1": 2, "hsf_width 1": 4}),
        (lambda workflow: workflow.edit("studies/disc_depth", sizes=[2, 3, 4]), {"disc_depth 1": 1, "hsf_width 1": 0}),
        (other_workload, {"disc_depth 1": 2, "hsf_width 1": 0}),
        (lost_row, {"disc_depth 1": 0, "hsf_width 1": 1, "write_plan": 0}),
        (comments, {"measure_cell": 0, "write_plan": 1}),
        (new_title, {"measure_cell": 0, "collect_measurements": 0, "write_plan": 1}),
        (other_statistics, {"measure_cell": 0, "collect_measurements": 0, "write_plan": 0}),
    ],
)
def test_a_change_reruns_only_the_jobs_that_depend_on_it(
    ran: WorkflowCopy, change: Callable[[WorkflowCopy], None], jobs: dict[str, int]
) -> None:
    change(ran)
    again = ran.would_run()
    assert {name: again[name] for name in jobs} == jobs
    assert {name: again[name] for name in ANALYSIS} == ANALYSIS
    assert again["make_dataset"] == 0


def test_a_commit_reruns_nothing_and_is_recorded_in_new_rows(ran: WorkflowCopy) -> None:
    user = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.org", "-c", "commit.gpgsign=false"]
    for arguments in (["init", "--quiet"], ["add", "Snakefile", *PARTS], [*user, "commit", "--quiet", "-m", "all"]):
        subprocess.run(["git", *arguments], cwd=ran.path, check=True)
    assert ran.would_run() == {}
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ran.path, capture_output=True, text=True, check=True)
    lost = next((ran.results / "cells" / "disc_depth").rglob("trial-1.parquet"))
    lost.unlink()
    ran.run(str(lost.relative_to(ran.path)))
    assert pd.read_parquet(lost)["code_version"].tolist() == [commit.stdout.strip()]


def test_a_failed_job_keeps_its_earlier_outputs_and_runs_again(ran: WorkflowCopy) -> None:
    """The row of another machine makes the collection of rows fail."""
    path = next((ran.results / "cells").rglob("*.parquet"))
    row = pq.read_table(path)
    column = row.schema.get_field_index("hostname")
    pq.write_table(row.set_column(column, row.schema.field(column), [["elsewhere"]]), path)
    table = "results/measurements.parquet"
    earlier = (ran.path / table).read_bytes()
    done = ran.snakemake(table)
    assert done.returncode != 0
    assert "come from different environments: hostname (" in done.stdout + done.stderr
    assert "Failed: 1 job (collect_measurements 1)" in done.stderr
    assert (ran.path / table).read_bytes() == earlier
    assert ran.would_run(table)["collect_measurements"] == 1
    ran.run(table, "--config", "cluster={several_hosts: true}")
    assert (ran.path / table).read_bytes() != earlier


def test_an_earlier_report_is_marked_as_outdated_if_the_first_job_fails(ran: WorkflowCopy) -> None:
    next((ran.results / "cells").rglob("*.parquet")).unlink()
    (ran.path / "scripts" / "measure_cell.py").write_text("import nothing_of_this_name")
    assert ran.snakemake().returncode != 0
    assert not {"report.html", "thresholds.json"} & {path.name for path in ran.results.iterdir()}
    assert MARK in (ran.results / "outdated" / "report.html").read_text()


@pytest.mark.slow
def test_an_earlier_report_is_set_aside_if_the_analysis_fails(ran: WorkflowCopy) -> None:
    next((ran.results / "cells").rglob("*.parquet")).unlink()
    script = ran.path / "scripts" / "analyse_run.py"
    works = script.read_text()
    script.write_text(works.replace("    plan = plan_file", "    raise ValueError\n    plan = plan_file"))
    earlier = (ran.results / "measurements.parquet").read_bytes()
    assert ran.snakemake().returncode != 0
    assert (ran.results / "measurements.parquet").read_bytes() != earlier
    assert not {"report.html", "summary.txt", "cells.csv", "figures"} & {path.name for path in ran.results.iterdir()}
    assert MARK in (ran.results / "outdated" / "report.html").read_text()
    script.write_text(works)
    ran.run()
    assert MARK not in (ran.results / "report.html").read_text()
    assert (ran.results / "cells.csv").is_file()
    assert not (ran.results / "outdated").exists()


def test_a_users_mistake_is_reported_in_one_line_before_any_job(fresh: WorkflowCopy) -> None:
    """Only the output is tested here; other tests cover the kinds of mistakes."""
    fresh.edit("studies/hsf_width", sizes=[5, 1.5])
    config = fresh.path / "config" / "config.yaml"
    for start in (
        "error: config/studies/hsf_width.yaml: sizes.1: 1.5 is not allowed",
        "error: config/config.yaml: line 2, column ",
    ):
        done = fresh.snakemake("--quiet", "all")
        lines = [line for line in done.stderr.splitlines() if line and not line.startswith(("Using workf", "Config f"))]
        assert done.returncode == 1
        assert len(lines) == 1, done.stderr
        assert lines[0].startswith(start)
        assert not fresh.results.exists()
        config.write_text("studies: [disc_depth\ntrials: 3\n")


@pytest.mark.slow
def test_the_workflow_runs_from_another_folder_and_as_a_module(fresh: WorkflowCopy, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    snakefile = "workflow/Snakefile"
    assert fresh.would_run("--snakefile", snakefile, "--directory", str(elsewhere)) == fresh.would_run()
    module = (
        f'module crossover:\n    snakefile: "{fresh.path}/{snakefile}"\n    config: {{"studies": ["disc_depth"]}}\n'
    )
    target = 'rule mine:\n    default_target: True\n    input: "results/report.html"\n'
    (elsewhere / "Snakefile").write_text(f"{module}use rule * from crossover as their_*\n{target}")
    jobs = fresh.would_run("--snakefile", str(elsewhere / "Snakefile"), "--directory", str(elsewhere))
    assert (jobs["their_write_plan"], jobs["disc_depth 3"], jobs["hsf_width 1"]) == (1, 2, 0)


@pytest.mark.slow
def test_a_study_that_only_trains_ends_in_a_report(fresh: WorkflowCopy) -> None:
    fresh.config(studies=["quality"])
    quality = {"seeds": 2, "classes": ["outside", "inside"]}
    small = {"workload": "disc_mlp", "sizes": [2], "batch_sizes": [100], "precisions": ["fp32"]}
    fresh.edit("studies/quality", **small, quality=quality)
    fresh.run()
    table = pd.read_parquet(fresh.results / "quality.parquet")
    assert table[["precision", "seed", "status"]].values.tolist() == [["fp32", 1, "ok"], ["fp32", 2, "ok"]]
    assert (fresh.results / "report.html").is_file()
    assert not (fresh.results / "cells").exists()
    fresh.edit("studies/quality", quality={**quality, "seeds": 3})
    assert fresh.would_run()["train_model"] == 1


@pytest.mark.slow
def test_the_largest_batches_are_searched_if_the_study_says_so(fresh: WorkflowCopy) -> None:
    search = {"start": 500, "limit": 2000, "memory_limit": "1 GB", "timed_batches": 3}
    fresh.config(studies=["disc_depth"], largest_batch=search, cpu_threads=2)
    fresh.edit("studies/disc_depth", sizes=[2], batch_sizes=[50, 100], claims=[], figures=["throughput"])
    assert fresh.would_run()["find_largest_batch"] == 0
    fresh.run("largest_batches")
    path = fresh.results / "largest_batch/disc_depth/disc_mlp/plain/resident/fp32/eager/size-2/cpu.json"
    assert [path] == list((fresh.results / "largest_batch").rglob("*.json"))
    largest = json.loads(path.read_text())
    assert (largest["largest"], largest["memory_limit_bytes"], largest["threads"]) == (2000, 10**9, 2)
    fresh.edit("studies/disc_depth", largest_batch=True)
    assert fresh.would_run()["find_largest_batch"] == 0
    fresh.run()
    cells = pd.read_parquet(fresh.results / "cells.parquet")
    searched = cells[cells["origin"] == "search"]
    assert searched[["study", "size", "batch_size"]].values.tolist() == [["disc_depth", 2, 2000]]
