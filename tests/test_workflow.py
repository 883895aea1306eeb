"""The real workflow with a tiny config: run, resume, re-runs after changes, and messages for a user's mistakes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
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
from crossover.tables.rows import with_column
from crossover.tables.run_tables import REPORT_FILES, TABLES
from workflow_copy import PARTS, TINY, WorkflowCopy, copy_workflow

ROWS = {("disc_depth", 2), ("disc_depth", 3), ("hsf_width", 5), ("hsf_width", 10)}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[WorkflowCopy, str]:
    """A workflow whose main job has run with the README's command, and its output."""
    workflow = WorkflowCopy(tmp_path_factory.mktemp("finished") / "workflow")
    workflow.config(reference=["h100"])  # each takes seconds
    return workflow, workflow.run("--resources", "gpu=1")


@pytest.fixture
def ran(finished: tuple[WorkflowCopy, str], tmp_path: Path) -> WorkflowCopy:
    return WorkflowCopy.copy_of(finished[0], tmp_path / "copy")


@pytest.fixture
def results(finished: tuple[WorkflowCopy, str], tmp_path: Path) -> Path:
    """A copy of the results, without the rest of the workflow."""
    return Path(shutil.copytree(finished[0].results, tmp_path / "copied"))


@pytest.fixture
def fresh(tmp_path: Path) -> WorkflowCopy:
    return WorkflowCopy(tmp_path / "workflow")


def test_the_main_job_makes_every_table_and_report(finished: tuple[WorkflowCopy, str]) -> None:
    results = finished[0].results
    made = {path.name for path in results.iterdir() if path.is_file()}
    tables = {f"{name}.{suffix}" for name in TABLES for suffix in ("parquet", "csv")}
    assert made == tables | {*REPORT_FILES.values()} | {"plan.json", "measurements.parquet"}
    assert not (results / "figures").exists()


def test_figures_are_drawn_as_files_when_asked_for(ran: WorkflowCopy) -> None:
    ran.run("figures")
    figures = ran.results / "figures"
    drawn = {str(path.relative_to(figures)) for path in figures.glob("*/*")}
    # The speed-ups are those of a GPU measured elsewhere over this CPU.
    kinds = ("disc_depth/times", "disc_depth/speedups", "hsf_width/times")
    assert drawn == {f"{kind}.{name}" for kind in kinds for name in ("svg", "pdf", "png")}


def test_trials_and_cells_have_one_row_each_from_all_physical_cores(finished: tuple[WorkflowCopy, str]) -> None:
    measurements, cells = (
        pd.read_parquet(finished[0].results / f"{name}.parquet") for name in ("measurements", "cells")
    )
    for table in (measurements, cells[cells["origin"] == "study"]):
        assert len(table) == len(ROWS)
        assert set(table[["study", "size"]].itertuples(index=False, name=None)) == ROWS
        assert set(table["status"]) == {"ok"}
    assert (measurements["threads"] == measurements["physical_cores"]).all()  # under --cores 1


def test_a_run_prints_progress_and_answers_and_records_its_command(finished: tuple[WorkflowCopy, str]) -> None:
    workflow, output = finished
    assert "Measured 1 of 4 trials; " in output
    # The other study's answer is in the run's last lines.
    assert "First answer, preliminary (one trial per cell): disc_depth: " in output
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


def test_edited_trials_are_found(results: Path) -> None:
    edited(results, MEASURED, with_values("step_time_s", lambda time: 0.5 * time))
    edited(results, MEASURED, lambda table: pa.concat_tables([table.slice(2), table.slice(0, 1)]))
    edited(results, MEASURED, with_values("trial", lambda _: 2))
    findings = "\n".join(finding.what for finding in check_run.check_trials(results))
    assert re.search("trial 1: step_time_s .*, but the median of its samples is", findings)
    assert "trials 2; expected: 1 to 1" in findings
    assert "differs from what the rows in cells/ give: 3 rows; expected: 4" in findings


def test_a_lost_column_is_found_although_the_checksums_agree(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (results / "plan.json").unlink()  # so that the tables are not computed again
    edited(results, MEASURED, lambda table: table.drop_columns(["energy_j"]))
    with_new_checksums(results)
    assert check_run.main([str(results), f"--json={tmp_path / 'check.json'}"]) == 1
    content = json.loads((tmp_path / "check.json").read_text())
    assert not content["valid"]
    (wrong,) = (entry["what"] for entry in content["findings"] if entry["is_wrong"])
    assert "column 'energy_j' is missing" in wrong
    output = capsys.readouterr().out
    assert "checksum" not in output
    assert output.endswith(f"{results}: 1 finding\n")


def test_tables_of_another_version_are_reported_in_one_line(results: Path) -> None:
    file = results / "provenance.json"
    content = json.loads(file.read_text())
    (results / "machines.parquet").unlink()
    content["files"] = [entry for entry in content["files"] if entry["name"] != "machines.parquet"]
    file.write_text(json.dumps(content))
    message = r": made by an older version \(Crossover \d\S+, commit None\), which has no table 'machines'; use that"
    with pytest.raises(UserError, match=message):
        check_run.main([str(results)])


def test_edited_tables_and_texts_and_lost_files_are_found(
    finished: tuple[WorkflowCopy, str], results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check_run.main([str(finished[0].results)]) == 0
    assert "the tables were not recomputed" not in capsys.readouterr().out
    texts = [results / name for name in ("report.html", "summary.md", "summary.txt")]
    for text in texts:
        text.write_bytes(text.read_bytes() + b"\n")
    thresholds, answers, provenance = (results / name for name in ("thresholds.json", "answers.csv", "provenance.json"))
    thresholds.write_text(thresholds.read_text().replace('"faster": "cpu"', '"faster": "gpu"').replace("null", "1", 1))
    answers.write_text(answers.read_text().replace("disc_depth", "disc", 1))
    version = pd.read_parquet(results / MEASURED)["torch_version"][0]
    provenance.write_text(provenance.read_text().replace(version, "2.0.0"))
    probed = json.loads((results / "roofs/cpu.json").read_text())
    probed[0]["value"] *= 10
    (results / "roofs/cpu.json").write_text(json.dumps(probed))
    edited(results, "ratios.parquet", lambda table: table.slice(1))
    assert check_run.main([str(results)]) == 1
    output = capsys.readouterr().out
    for path in (*texts, answers, provenance, thresholds):
        assert f"{path}: was changed after the report was made: its checksum differs" in output
    assert f"{thresholds}: differs from what the rows give" in output
    assert f"{answers}: differs from what the rows in Parquet give: column study, " in output
    assert f"{provenance}: machines: differs from what the rows give\n" in output
    assert f"{results}/roofs.parquet: differs from what the files in roofs/ give: column value, " in output
    assert re.search("ratios.parquet: differs from what the rows give.*: [0-9]+ rows; expected: ", output)
    (results / "plan.json").unlink()
    (results / "claims.parquet").unlink()
    assert check_run.main([str(results)]) == 1
    output = capsys.readouterr().out
    assert "claims.parquet: is missing" in output
    assert f"Note: {results}/measurements.parquet: not compared with the rows of trials" in output


def append(workflow: WorkflowCopy, name: str, text: str) -> None:
    file = workflow.path / "scripts" / name
    file.write_text(file.read_text() + text)


def comments_and_more_sizes_and_trials(workflow: WorkflowCopy) -> None:
    for name in ("measure_cell.py", "crossover/errors.py"):
        append(workflow, name, "# Nothing that a number depends on\n")
    workflow.config(trials=2)
    workflow.edit("studies/disc_depth", sizes=[2, 3, 4])


def other_workload_and_lost_row(workflow: WorkflowCopy) -> None:
    append(workflow, "crossover/measurement/workloads/disc_mlp.py", "CHANGED = True\n")
    append(workflow, "crossover/measurement/trial.py", "# Nothing that a trial does\n")
    next((workflow.results / "cells" / "hsf_width").rglob("*.parquet")).unlink()


def edited_analysis(workflow: WorkflowCopy) -> None:
    append(workflow, "crossover/topics/answers.py", "CHANGED = True\n")


ANALYSIS = {"analyse_run": 1, "render_report": 1}


@pytest.mark.parametrize(
    ("change", "jobs"),
    [
        (
            comments_and_more_sizes_and_trials,
            {"disc_depth 1": 1, "disc_depth 2": 3, "hsf_width 1": 0, "hsf_width 2": 2, "write_plan": 1},
        ),
        (edited_analysis, {"give_first_answer": 1, "measure_cell": 0, "probe_roofs": 0}),
        (other_workload_and_lost_row, {"disc_depth 1": 2, "hsf_width 1": 1, "write_plan": 1}),
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


def test_after_a_commit_a_second_run_only_prints_the_answers_again(ran: WorkflowCopy) -> None:
    user = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.org", "-c", "commit.gpgsign=false"]
    for arguments in (["init", "--quiet"], ["add", "Snakefile", *PARTS], [*user, "commit", "--quiet", "-m", "all"]):
        subprocess.run(["git", *arguments], cwd=ran.path, check=True)
    output = ran.run()
    assert "Nothing to be done" in output
    assert (ran.results / "summary.txt").read_text() in output


def test_a_failed_job_leaves_neither_its_outputs_nor_an_earlier_report_and_runs_again(ran: WorkflowCopy) -> None:
    """The row of another machine makes the collection of rows fail."""
    path = next((ran.results / "cells" / "hsf_width").rglob("*.parquet"))
    row = pq.read_table(path)
    column = row.schema.get_field_index("hostname")
    pq.write_table(row.set_column(column, row.schema.field(column), [["elsewhere"]]), path)
    table = "results/measurements.parquet"
    done = ran.snakemake()
    assert done.returncode != 0
    assert "come from different environments: hostname (" in done.stdout + done.stderr
    assert "Failed: 1 job (collect_measurements 1)" in done.stderr
    assert not (ran.path / table).exists()
    assert not {*REPORT_FILES.values()} & {path.name for path in ran.results.iterdir()}
    ran.run(table, "--config", "cluster={several_hosts: true}")
    assert (ran.path / table).exists()


def test_a_users_mistake_is_reported_in_one_line_before_any_job(fresh: WorkflowCopy) -> None:
    """Only the output is tested here; other tests cover the kinds of mistakes."""
    fresh.edit("studies/hsf_width", sizes=[5, 1.5])
    done = fresh.snakemake("--quiet", "all")
    lines = [line for line in done.stderr.splitlines() if line and not line.startswith(("Using workf", "Config f"))]
    assert done.returncode == 1
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("error: config/studies/hsf_width.yaml: sizes.1: 1.5 is not allowed")
    assert not fresh.results.exists()


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
    use = "use rule * from crossover as their_*\n"
    again = "use rule write_plan from crossover as their_write_plan with:\n    threads: 1\n"
    (elsewhere / "Snakefile").write_text(f"{module}{use}{again}{target}")
    from_module = ("--snakefile", str(elsewhere / "Snakefile"), "--directory", str(elsewhere))
    jobs = fresh.would_run(*from_module)
    assert (jobs["their_write_plan"], jobs["disc_depth 3"], jobs["hsf_width 1"]) == (1, 2, 0)
    # Snakemake's own lists of jobs come before and after those of a dry-run.
    assert fresh.run("--dry-run", *from_module).count("\nTo measure: ") == 2


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
    assert [*check_run.check_trials(fresh.results)] == []
    fresh.edit("studies/quality", quality={**quality, "seeds": 3})
    assert fresh.would_run()["train_model"] == 1


@pytest.mark.slow
def test_the_largest_batches_are_searched_if_the_study_says_so(fresh: WorkflowCopy) -> None:
    search = {"start": 500, "limit": 2000, "memory_limit_gb": 1, "timed_batches": 3}
    fresh.config(studies=["disc_depth"], largest_batch=search, cpu_threads=2)
    fresh.edit("studies/disc_depth", sizes=[2], batch_sizes=[50, 100], claims=[], figures=["throughput"])
    assert fresh.would_run()["find_largest_batch"] == 0
    output = fresh.run("largest_batches")
    assert "To measure: 1 search.\n" in output
    answer = (
        r"\ndisc_depth: Largest batch tried, which fits: 2,000 on the CPU.*, the limit of the search; memory limit 1"
    )
    assert len(re.findall(answer, output)) == 1
    assert re.search(answer, fresh.run("largest_batches"))  # there is nothing to do
    path = fresh.results / "largest_batch/disc_depth/disc_mlp/plain/resident/fp32/eager/size-2/cpu.json"
    assert [path] == list((fresh.results / "largest_batch").rglob("*.json"))
    largest = json.loads(path.read_text())
    assert (largest["largest"], largest["memory_limit_bytes"], largest["threads"]) == (2000, 10**9, 2)
    fresh.edit("studies/disc_depth", largest_batch=True)
    assert fresh.would_run()["find_largest_batch"] == 0
    fresh.run()
    cells = pd.read_parquet(fresh.results / "cells.parquet")
    searched = cells[cells["origin"] == "search"]
    assert searched[["study", "size", "largest_batch"]].values.tolist() == [["disc_depth", 2, 2000]]


def test_what_snakemakes_users_expect_works_on_a_finished_run(ran: WorkflowCopy) -> None:
    for line, shown in (
        ("--summary", "results/report.html"),
        ("--dag", "digraph snakemake_dag"),
        ("--dry-run --forcerun analyse_run", "analyse_run"),
        ("--dry-run --forceall --until measure_cell", "measure_cell"),
        ("--dry-run --batch all=1/2", "Nothing to be done"),
        ("--dry-run --forceall --groups measure_cell=cells", "measure_cell"),
        ("--touch", "Nothing to be done"),
        ("--dry-run", "Nothing to be done"),
        ("--report report.zip", "Report created"),
    ):
        assert shown in ran.run(*line.split()), line


@pytest.mark.slow
def test_a_module_with_a_prefix_and_other_keys_runs_like_the_workflow_itself(tmp_path: Path) -> None:
    copy_workflow(tmp_path / "workflow")

    def run(**keys: object) -> subprocess.CompletedProcess[str]:
        config = {"studies": ["disc_depth"], "sizes": [2], "trials": 1, "devices": ["cpu"], "effort": TINY}
        config |= {"repeat_disturbed": 0, **keys}
        source = "workflow/workflow/Snakefile"
        module = f'module mine:\n    snakefile: "{source}"\n    prefix: "mine"\n    config: {config}\n\n\n'
        (tmp_path / "Snakefile").write_text(f"{module}use rule * from mine as mine_*\n")
        command = [sys.executable, "-m", "snakemake", "--cores", "1", "mine/results/measurements.parquet"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)

    report = tmp_path / "mine" / "results" / "report.html"
    report.parent.mkdir(parents=True)
    report.touch()
    report.with_name("provenance.json").write_text('{"machines": [{"host": "n1"}]}')
    measured = run(minutes=1)
    assert measured.returncode == 0, measured.stderr
    assert re.search("To measure: 1 trial.*\nBudget: 1 min.*\n(.*\n)*Measured 1 of 1 trial", measured.stderr)
    assert "mine/results: measured on n1, and this host is " in measured.stderr
    assert not report.exists()
    changed = run(effort={**TINY, "blocks_min": 4})
    assert "Note: 1 result is measured again: " in changed.stderr
    refused = run(cluster={"classes": {"a": {"devices": ["cpu"]}}})
    assert refused.stderr.splitlines()[-1].startswith("error: cluster.classes: a are classes of a cluster's nodes")
