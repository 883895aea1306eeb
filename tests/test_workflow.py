"""The real workflow on a tiny config: run, resume, what re-runs when, and what a user's mistake looks like."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crossover.tables.columns import arrow_schema
from house import PARTS, House

STUDIES = ("disc_depth", "hsf_width")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[House, subprocess.CompletedProcess[str]]:
    """A house in which the main job has run, with the command of the README."""
    house = House(tmp_path_factory.mktemp("house"))
    done = house.snakemake("--resources", "gpu=1")
    assert done.returncode == 0, done.stderr
    return house, done


@pytest.fixture
def ran(finished: tuple[House, subprocess.CompletedProcess[str]], tmp_path: Path) -> House:
    """A copy of the finished house, free to be changed."""
    copy = tmp_path / "copy"
    shutil.copytree(finished[0].path, copy)
    house = House.__new__(House)
    house.path = copy
    return house


@pytest.fixture
def fresh(tmp_path: Path) -> House:
    return House(tmp_path / "house")


def test_the_main_job_ends_in_a_report(finished: tuple[House, subprocess.CompletedProcess[str]]) -> None:
    house, done = finished
    results = house.path / "results"
    page = (results / "report.html").read_text()
    assert "half of the answer is missing" in page
    assert (
        page.count("data:image/svg+xml;base64,") == 4 + 1
    )  # the CPU alone has no speed-up and waits for no host; one leads
    assert page.index("<figcaption>A row a cell") < page.index("<figcaption>Time over size")
    assert str(results.relative_to(house.path) / "report.html") in done.stderr
    for name in (
        "measurements.parquet",
        "cells.parquet",
        "crossovers.parquet",
        "cost_models.parquet",
        "cells.csv",
        "crossovers.csv",
        "cost_models.csv",
        "claims.csv",
    ):
        assert (results / name).is_file()
    for study in STUDIES:
        figures = results / "figures" / study
        assert all((figures / f"times.{suffix}").is_file() for suffix in ("svg", "pdf", "png"))
        assert (figures / "times.txt").read_text().startswith("A step takes ")
        assert (figures / "times.txt").read_text().split(" on the CPU")[0] in (results / "report.html").read_text()
        assert (figures / "memory.svg").is_file() == (study == "hsf_width")
        assert not (figures / "speedups.svg").exists()


def test_one_row_a_trial_and_one_a_cell(finished: tuple[House, subprocess.CompletedProcess[str]]) -> None:
    results = finished[0].path / "results"
    measurements, cells = (pd.read_parquet(results / f"{name}.parquet") for name in ("measurements", "cells"))
    expected = {("disc_depth", "resident", size) for size in (2, 3)} | {
        ("hsf_width", protocol, size) for protocol in ("resident", "as_published") for size in (5, 10)
    }
    for table in (measurements, cells):
        assert len(table) == len(expected)
        assert set(table[["study", "protocol", "size"]].itertuples(index=False, name=None)) == expected
        assert set(table["status"]) == {"ok"}
    assert set(pd.read_parquet(results / "crossovers.parquet")["status"]) == {"no_accelerator"}
    text = pd.read_csv(results / "cells.csv")
    assert {"step_time_s", "step_time_low_s", "step_time_high_s", "trials", "status", "flags"} <= set(text.columns)
    assert text.loc[text["study"] == "disc_depth", "parameters"].tolist() == [22, 70]


def test_without_a_gpu_no_statement_is_judged(finished: tuple[House, subprocess.CompletedProcess[str]]) -> None:
    claims = pd.read_parquet(finished[0].path / "results" / "claims.parquet")
    assert set(claims["study"]) == set(STUDIES)
    assert set(claims["verdict"]) == {"not_testable"}
    assert claims["reason"].notna().all()


def test_the_cpu_is_timed_on_its_physical_cores_under_one_core(
    finished: tuple[House, subprocess.CompletedProcess[str]],
) -> None:
    measurements = pd.read_parquet(finished[0].path / "results" / "measurements.parquet")
    assert (measurements["threads"] == measurements["physical_cores"]).all()


def test_a_second_run_does_nothing(finished: tuple[House, subprocess.CompletedProcess[str]]) -> None:
    assert finished[0].would_run() == Counter()


def test_the_report_tells_where_its_numbers_come_from(finished: tuple[House, subprocess.CompletedProcess[str]]) -> None:
    house, _ = finished
    results = house.path / "results"
    told = json.loads((results / "provenance.json").read_text())
    assert told["run"] == {"command": "snakemake --cores 1 --resources gpu=1", "folder": str(house.path)}
    assert told["code"]["commit"] is None  # the copy is no git checkout
    assert [row["rows"] for row in told["measured_by"]] == [6]
    assert told["config"]["datasets"]["higgs"]["rows"] == 500
    assert told["studies"]["disc_depth"]["sizes"] == [2, 3]
    sums = {file["name"]: file["sha256"] for file in told["files"]}
    for path in [results / "measurements.parquet", *results.glob("datasets/*.safetensors")]:
        assert sums[path.name] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert {"disc.safetensors", "higgs.safetensors", "cells.csv", "hsf_width_runtime.csv"} <= set(sums)
    page = (results / "report.html").read_text()
    assert sums["cells.csv"] in page
    assert "snakemake --cores 1 --resources gpu=1" in page


def test_a_commit_makes_nothing_again_and_new_rows_name_it(ran: House) -> None:
    user = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.org", "-c", "commit.gpgsign=false"]
    for arguments in (["init", "--quiet"], ["add", "Snakefile", *PARTS], [*user, "commit", "--quiet", "-m", "all"]):
        subprocess.run(["git", *arguments], cwd=ran.path, check=True)
    assert ran.would_run() == {}
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ran.path, capture_output=True, text=True, check=True)
    lost = next((ran.path / "results" / "cells" / "disc_depth").rglob("trial-1.parquet"))
    lost.unlink()
    done = ran.snakemake(str(lost.relative_to(ran.path)))
    assert done.returncode == 0, done.stderr
    assert pd.read_parquet(lost)["code_version"].tolist() == [commit.stdout.strip()]


def test_one_more_trial_adds_one_a_cell(ran: House) -> None:
    ran.config(trials=2)
    jobs = ran.would_run()
    assert jobs["measure_cell"] == 6
    assert (jobs["disc_depth 2"], jobs["hsf_width 2"]) == (2, 4)
    assert jobs["make_dataset"] == 0


def test_a_changed_study_is_measured_again_and_no_other(ran: House) -> None:
    ran.edit("studies/disc_depth", batch_sizes=[50])
    jobs = ran.would_run()
    assert (jobs["measure_cell"], jobs["disc_depth 1"], jobs["hsf_width 1"]) == (2, 2, 0)


def test_a_new_size_is_measured_and_the_old_ones_stay(ran: House) -> None:
    ran.edit("studies/disc_depth", sizes=[2, 3, 4])
    assert ran.would_run()["measure_cell"] == 1


def test_a_changed_effort_measures_everything_again(ran: House) -> None:
    ran.config(effort={"blocks_min": 4})
    assert ran.would_run()["measure_cell"] == 6


def test_a_changed_workload_measures_its_studies_again(ran: House) -> None:
    module = ran.path / "scripts/crossover/measurement/workloads/disc_mlp.py"
    module.write_text(module.read_text() + "\nCHANGED = True\n")
    shared = module.parents[1] / "timing.py"
    shared.write_text(shared.read_text() + "\n# Nothing that a trial does\n")
    jobs = ran.would_run()
    assert (jobs["disc_depth 1"], jobs["hsf_width 1"]) == (2, 0)


def test_a_changed_title_draws_again_without_measuring(ran: House) -> None:
    ran.edit("studies/disc_depth", title="Another title")
    jobs = ran.would_run()
    assert jobs["measure_cell"] == 0
    assert (jobs["plot_times"], jobs["render_report"]) == (1, 1)


def test_a_lost_row_is_measured_again(ran: House) -> None:
    row = next((ran.path / "results" / "cells").rglob("*.parquet"))
    row.unlink()
    assert ran.would_run()["measure_cell"] == 1


def test_a_row_that_a_killed_run_has_not_noted_is_noted_by_the_next_one(ran: House) -> None:
    notes = ran.path / ".snakemake" / "metadata"
    shutil.rmtree(notes)
    wanted = ["--forcerun", "summarise_cells", "--", "results/cells.parquet"]
    done = ran.snakemake(*wanted)
    assert done.returncode == 0, done.stderr
    ran.config(time_limit_s=200)
    assert ran.would_run()["measure_cell"] == 6  # Snakemake sees the change
    shutil.rmtree(notes)
    done = ran.snakemake("--quiet", "all", *wanted)
    assert done.returncode != 0
    assert done.stderr.splitlines()[-1].startswith("error: results/cells/")


def test_a_row_of_another_machine_stops_the_collection(ran: House) -> None:
    path = next((ran.path / "results" / "cells").rglob("*.parquet"))
    row = pq.read_table(path)
    place = row.schema.get_field_index("hostname")
    pq.write_table(row.set_column(place, row.schema.field(place), [["elsewhere"]]), path)
    table = "results/measurements.parquet"
    earlier = (ran.path / table).read_bytes()
    done = ran.snakemake(table)
    assert done.returncode != 0
    assert "rows of device 'cpu' come from unlike environments: hostname (" in done.stdout + done.stderr
    # What had finished is still there, and is made again.
    assert (ran.path / table).read_bytes() == earlier
    assert ran.would_run()["collect_measurements"] == 1
    assert ran.snakemake(table, "--config", "several_hosts=true").returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("prices", ["{cpu: 0.8}", "{cpu: 0.8, cuda: 4}"])
def test_prices_without_a_gpu_end_in_a_report_that_a_later_failure_leaves(fresh: House, prices: str) -> None:
    fresh.config(studies=["disc_depth"])
    fresh.edit("studies/disc_depth", figures=["times", "energy"])
    wanted = ("--config", f"price_per_hour={prices}")
    done = fresh.snakemake(*wanted)
    assert done.returncode == 0, done.stderr
    kept = ("report.html", "summary.md", "summary.csv", "summary.txt", "provenance.json", "cells.parquet", "cells.csv")
    earlier = {name: (fresh.path / "results" / name).read_bytes() for name in kept}
    module = fresh.path / "scripts/crossover/report/markdown_summary.py"
    sound = module.read_text()
    module.write_text(sound.replace("def summary_markdown(", "def summary_markdown(broken, "))
    done = fresh.snakemake(*wanted)
    assert "summary_markdown() missing 1 required positional argument" in done.stdout + done.stderr
    assert {name: (fresh.path / "results" / name).read_bytes() for name in kept} == earlier
    # Also where the fault is gone and Snakemake sees the files of before.
    module.write_text(sound)
    assert fresh.would_run(*wanted)["render_report"] == 1
    done = fresh.snakemake(*wanted)
    assert done.returncode == 0, done.stderr
    assert fresh.would_run(*wanted) == Counter()


def test_on_a_cluster_the_config_says_what_to_measure_and_slurm_what_there_is(fresh: House, tmp_path: Path) -> None:
    """Scripts stand for Slurm, which is never asked for a job."""
    tools = tmp_path / "bin"
    tools.mkdir()

    def snakemake(answer: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        for name, script in (("sinfo", answer), ("squeue", "exit 0")):
            (tools / name).write_text(f"#!/bin/sh\n{script}\n")
            (tools / name).chmod(0o755)
        path = os.pathsep.join([str(tools), os.environ["PATH"]])
        return fresh.snakemake("--profile", "profiles/slurm", *arguments, environment={**os.environ, "PATH": path})

    fresh.config(studies=["disc_depth"], devices="auto")
    done = snakemake("echo 'cpu 8 (null)'; echo 'gpu 8 gpu:2'", "--dry-run", "--config", "seed=1")
    assert "Measuring disc_depth: size 2 on cuda" in done.stdout + done.stderr
    (fresh.path / "mine.yaml").write_text("devices: [cpu]\n")
    done = snakemake("echo 'cpu 8 gpu:2'", "--dry-run", "--configfile", "mine.yaml", "--config", "seed=1")
    assert "Measuring disc_depth: size 2 on cpu" in done.stdout + done.stderr
    assert "on cuda" not in done.stdout + done.stderr
    done = snakemake("exit 1")
    assert done.returncode != 0
    assert "error: config/config.yaml: devices: 'auto' takes what Slurm says of its nodes, but sinfo" in done.stderr
    assert not (fresh.path / "results").exists()


def test_a_users_mistake_is_one_line_before_any_job(fresh: House) -> None:
    """Which mistakes there are is tested without Snakemake; a text that is no YAML is read before anything else."""
    fresh.edit("studies/hsf_width", sizes=[5, 1.5])
    config = fresh.path / "config" / "config.yaml"
    for start in (
        "error: config/studies/hsf_width.yaml: sizes.1: 1.5 is not allowed",
        "error: config/config.yaml: line 2, column ",
    ):
        done = fresh.snakemake("--quiet", "all")
        said = [line for line in done.stderr.splitlines() if line and not line.startswith(("Using workf", "Config f"))]
        assert done.returncode == 1
        assert len(said) == 1, done.stderr
        assert said[0].startswith(start)
        assert not (fresh.path / "results").exists()
        config.write_text("studies: [disc_depth\ntrials: 3\n")


def test_a_value_that_snakemake_reads_otherwise_stops_the_run(fresh: House) -> None:
    """Snakemake reads 2:30 as 150, as YAML 1.1 does."""
    done = fresh.snakemake("--dry-run", "--config", "trials=2:30")
    line = "error: --config: trials: line 1, column 1: not valid YAML: '2:30' is read in two ways"
    assert done.returncode == 1
    assert line in done.stderr


@pytest.mark.slow
def test_a_study_without_any_time_still_ends_in_a_report(fresh: House) -> None:
    fresh.config(studies=["disc_depth"])
    fresh.edit("studies/disc_depth", precisions=["tf32"])
    done = fresh.snakemake()
    assert done.returncode == 0, done.stderr
    assert "tf32 needs an NVIDIA GPU" in (fresh.path / "results" / "report.html").read_text()


Row = Callable[..., dict[str, Any]]


def write_run(house: House, folder: str, row: Row, times: Mapping[str, float], **values: Any) -> None:
    """The table of a run that measured size 2, in the given seconds for each study, with two trials 0.02 % apart."""
    rows = [
        row(study=study, size=2, trial=trial, step_time_s=time * 1.0002**trial, **values)
        for study, time in times.items()
        for trial in (1, 2)
    ]
    path = house.path / folder / "measurements.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=arrow_schema()), path)


def test_two_runs_are_compared_as_they_are(fresh: House, row: Row) -> None:
    """Neither of them is measured again, though their rows are not there and their torch is another one."""
    write_run(fresh, "results", row, {"disc_depth": 1.0, "hsf_width": 1.0}, torch_version="2.12.0")
    write_run(fresh, "results/second", row, {"disc_depth": 1.5}, torch_version="2.13.0")
    wanted = ["compare_runs", "--config", "compare=[results, results/second]"]
    done = fresh.snakemake(*wanted)
    assert done.returncode == 0, done.stderr
    assert "Time of results/second over time of results" in done.stdout
    assert "0 FASTER, 1 SLOWER, 0 SAME, 0 AMBIGUOUS, 1 missing" in done.stdout
    assert "torch_version: 2.12.0 against 2.13.0 (cpu)" in done.stdout
    table = pd.read_csv(fresh.path / "results" / "comparison.csv").set_index("study")
    assert table["verdict"].to_dict() == {"disc_depth": "SLOWER", "hsf_width": "missing"}
    assert table.loc["disc_depth", "ratio"] == pytest.approx(1.5)
    assert not (fresh.path / "results" / "cells").exists()
    assert fresh.would_run(*wanted) == Counter()


def test_the_doctor_prints_to_the_terminal_each_time_and_gives_no_answers(fresh: House) -> None:
    for _ in range(2):
        done = fresh.snakemake("doctor")
        assert done.returncode == 0, done.stderr
        assert "Report: " not in done.stderr + done.stdout
        assert done.stdout.strip() == (fresh.path / "results/logs/doctor.log").read_text().strip() != ""
    assert [path.name for path in (fresh.path / "results").iterdir()] == ["logs"]


@pytest.mark.slow
def test_a_study_that_only_trains_ends_in_a_report(fresh: House) -> None:
    fresh.config(studies=["quality"])
    fresh.edit(
        "studies/quality",
        workload="disc_mlp",
        sizes=[2],
        batch_sizes=[100],
        precisions=["fp32"],
        quality={"seeds": 2, "classes": ["outside", "inside"]},
    )
    done = fresh.snakemake()
    assert done.returncode == 0, done.stderr
    results = fresh.path / "results"
    table = pd.read_parquet(results / "quality.parquet")
    assert table[["precision", "seed", "status"]].values.tolist() == [
        ["fp32", 1, "ok"],
        ["fp32", 2, "ok"],
    ]
    assert [sum(support) for support in table["class_support"]] == [330, 330]
    page = (results / "report.html").read_text()
    assert "Whether using a GPU improves the model is not testable here" in page
    assert page.index("Does a model get better when a GPU trains it?") < page.index("Quality of the trained models")
    assert "Not measured" not in page
    assert "outside" in (results / "quality.txt").read_text()
    assert not (results / "cells").exists()
    fresh.edit("studies/quality", quality={"seeds": 3, "classes": ["outside", "inside"]})
    jobs = fresh.would_run()
    assert (jobs["train_model"], jobs["make_dataset"]) == (1, 0)


def test_a_studys_own_time_limit_holds_for_its_trials_trainings_and_searches(fresh: House) -> None:
    fresh.config(studies=["disc_depth", "quality"], time_limit_s=90, devices=["cpu"])
    fresh.edit("studies/disc_depth", sizes=[2], claims=[], largest_batch=True)
    small = {"workload": "disc_mlp", "sizes": [2], "batch_sizes": [100], "precisions": ["fp32"]}
    fresh.edit("studies/quality", **small, quality={"seeds": 1}, timed=True, largest_batch=True, time_limit_s=45)
    done = fresh.snakemake("--dry-run", "--printshellcmds", "all")
    assert done.returncode == 0, done.stderr
    limits: dict[tuple[str, str], set[float]] = {}
    for line in done.stdout.splitlines():
        if found := re.search(r"(\w+)\.py .*--study=(\w+) .*--time-limit-s=([\d.]+)", line):
            limits.setdefault((found[1], found[2]), set()).add(float(found[3]))
    assert limits == {
        ("measure_cell", "disc_depth"): {90},
        ("find_largest_batch", "disc_depth"): {90},
        ("measure_cell", "quality"): {45},
        ("find_largest_batch", "quality"): {45},
        ("train_model", "quality"): {45},
    }


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the kernel must keep a limit on memory")
def test_the_largest_batches_are_searched_once_for_all_batch_sizes(fresh: House) -> None:
    fresh.config(
        studies=["disc_depth"], largest_batch={"start": 500, "limit": 2000, "memory_limit": "1 GB"}, cpu_threads=2
    )
    fresh.edit("studies/disc_depth", sizes=[2], batch_sizes=[50, 100], claims=[])
    assert fresh.would_run()["find_largest_batch"] == 0
    done = fresh.snakemake("largest_batches")
    assert done.returncode == 0, done.stderr
    path = fresh.path / "results/largest_batch/disc_depth/disc_mlp/plain/resident/fp32/eager/size-2/cpu.json"
    assert [path] == list((fresh.path / "results" / "largest_batch").rglob("*.json"))
    found = json.loads(path.read_text())
    assert (found["largest"], found["memory_limit_bytes"], found["threads"]) == (2000, 10**9, 2)
    assert [one["batch_size"] for one in found["tries"]] == [500, 1000, 2000, 2000, 2000]
    assert fresh.would_run("largest_batches") == Counter()
    assert not list((fresh.path / "results").glob("largest_batches.*"))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the kernel must keep a limit on memory")
def test_a_study_that_asks_for_its_largest_batches_has_them_in_the_main_job(fresh: House) -> None:
    search = {"start": 1000, "limit": 2000, "memory_limit": "1 GB", "timed_batches": 3}
    fresh.config(studies=["disc_depth"], largest_batch=search)
    fresh.edit("studies/disc_depth", sizes=[2], batch_sizes=[50], claims=[], largest_batch=True, figures=["throughput"])
    done = fresh.snakemake()
    assert done.returncode == 0, done.stderr
    table = pd.read_parquet(fresh.path / "results/largest_batches.parquet")
    assert table[["study", "size", "largest"]].values.tolist() == [["disc_depth", 2, 2000]]
    assert pd.read_csv(fresh.path / "results/largest_batches.csv")["largest"].tolist() == [2000]
    said = "largest batch tried: 2,000, which fits (limit 1 GB)"
    assert said in (fresh.path / "results/report.html").read_text()


def test_the_cpu_on_fewer_cores_is_measured_where_a_study_asks_for_it(fresh: House) -> None:
    """Two devices, and two more sides of the CPU, whose largest batch is that of the CPU."""
    rules = ("measure_cell", "estimate_cores_worth", "find_largest_batch")
    fresh.config(studies=["disc_depth"], devices=["cpu", "cuda"], check_devices=False)
    fresh.edit("studies/disc_depth", sizes=[2], claims=[])
    plain = fresh.would_run("all", "largest_batches")
    fresh.edit("studies/disc_depth", cpu_threads=[1, "half"])
    fewer = fresh.would_run("all", "largest_batches")
    assert [plain[rule] for rule in rules] == [2, 0, 2]
    assert [fewer[rule] for rule in rules] == [4, 1, 2]
