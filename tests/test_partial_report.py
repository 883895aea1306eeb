"""A report at any moment: before anything is measured, beside a run, after failures; and what a run ends with."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from house import House

pytestmark = pytest.mark.slow


@pytest.fixture
def fresh(tmp_path: Path) -> House:
    house = House(tmp_path / "house")
    house.edit("studies/hsf_width", protocols=["resident"], claims=[])
    return house


def partial(house: House, *options: str) -> str:
    """Ask for the partial report; what it says to a reader."""
    done = house.snakemake(*options, "--", "partial_report")
    assert done.returncode == 0, done.stderr
    page = (house.path / "results" / "partial" / "report.html").read_text()
    text = re.sub(r"<style>.*?</style>|<[^>]+>", " ", page, flags=re.DOTALL)
    assert "Partial: " in done.stderr
    assert "results/partial/report.html" in done.stderr
    return " ".join(text.split())


def test_before_anything_is_measured_all_is_missing_and_the_lock_of_a_run_stays(fresh: House) -> None:
    """The files with which a run of this Snakemake keeps others from its rows."""
    locks = fresh.path / ".snakemake" / "locks"
    locks.mkdir(parents=True)
    row = "results/cells/disc_depth/disc_mlp/plain/resident/batch-100/fp32/eager/size-2/cpu/trial-1.parquet"
    for kind, files in (("output", f"{row}\nresults/report.html\n"), ("input", f"{row}\n")):
        (locks / f"0.{kind}.lock").write_text(files)
    assert "LockException" in fresh.snakemake("--keep-going").stderr
    text = partial(fresh, "--nolock")
    assert {path.name for path in locks.iterdir()} == {"0.output.lock", "0.input.lock"}
    shutil.rmtree(locks)
    assert "This report is partial: 0 of 4 trials have finished" in text
    assert "disc_depth: 0 of 2 trials; hsf_width: 0 of 2 trials" in text
    assert "No trial has a time, so there is no answer yet" in text
    assert "not measured yet" in text
    results = fresh.path / "results"
    assert [path.name for path in results.iterdir()] == ["partial"]
    assert fresh.would_run()["measure_cell"] == 4


def test_a_part_is_reported_and_the_run_goes_on_where_it_was(fresh: House) -> None:
    rows = [f"results/cells/disc_depth/disc_mlp/plain/resident/batch-100/fp32/eager/size-{size}/cpu" for size in (2, 3)]
    assert fresh.snakemake(*(f"{row}/trial-1.parquet" for row in rows)).returncode == 0
    (fresh.path / rows[1] / "trial-1.parquet").write_bytes(b"broken")
    results = fresh.path / "results"
    text = partial(fresh)
    assert "This report is partial: 1 of 4 trials have finished" in text
    assert "1 trial unreadable" in text
    assert "delete the file and run the same command again" in text
    assert (fresh.path / "results" / "partial" / "figures" / "disc_depth" / "times.svg").is_file()
    assert not (fresh.path / "results" / "partial" / "figures" / "hsf_width").exists()
    assert not (fresh.path / "results" / "report.html").exists()
    problems = pd.read_csv(fresh.path / "results" / "partial" / "problems.csv")
    kinds = problems[problems["kind"] != "flagged"][["study", "kind", "count"]].values.tolist()
    assert sorted(kinds) == [["disc_depth", "unreadable", 1], ["hsf_width", "missing", 2]]
    (fresh.path / rows[1] / "trial-1.parquet").unlink()
    jobs = fresh.would_run()
    assert (jobs["measure_cell"], jobs["disc_depth 1"], jobs["hsf_width 1"]) == (3, 1, 2)
    first = (fresh.path / rows[0] / "trial-1.parquet").stat().st_mtime_ns
    done = fresh.snakemake()
    assert done.returncode == 0, done.stderr
    assert (fresh.path / rows[0] / "trial-1.parquet").stat().st_mtime_ns == first
    assert re.search(r"^Measured 2 of 3 trials; .* left\.$", done.stderr, flags=re.MULTILINE)
    assert "Partial" not in done.stderr
    closing = (fresh.path / "results" / "summary.txt").read_text()
    assert closing in done.stderr
    assert closing.startswith("disc_depth: Only the CPU")
    assert "Report: results/report.html" in closing
    assert "This report is partial: all 4 trials asked for so far have finished" in partial(fresh)
    summary = (results / "partial" / "summary.md").read_text()
    assert "without its target `partial_report`" in summary
    assert "To reproduce" not in summary
    assert "To reproduce" in (results / "summary.md").read_text()
    assert "0 of 4 trials have finished" in partial(fresh, "--config", "seed=9")
    assert fresh.would_run() == Counter()


def test_failed_cells_keep_the_others_and_are_told_with_the_command_for_what_has_finished(fresh: House) -> None:
    """How many rows a CSV file has is not known before it is read."""
    for name in ("signal", "background"):
        (fresh.path / f"{name}.csv").write_text("lep_pt_1,lep_pt_2\n" + "1.5,2.5\n3.5,4.5\n" * 40)
    csv = {"signal": "signal.csv", "background": "background.csv"}
    fresh.config(studies=["hsf_width"], datasets={"higgs": {"csv": csv}})
    fresh.edit("studies/hsf_width", batch_sizes=[32, 5000], sizes=[5, 10], claims=[])
    done = fresh.snakemake("--config", "seed=3")
    assert done.returncode != 0
    too_large = "batch size 5000 is larger than the dataset; allowed: at most its 107 rows"
    assert f"error: {too_large}" in done.stdout + done.stderr
    assert "Failed: 2 jobs (measure_cell 2)" in done.stderr
    command = "snakemake --nolock --cores 1 --config seed=3 -- partial_report"
    assert f"A report of what has finished: {command}" in done.stderr
    text = partial(fresh, *command.removesuffix(" -- partial_report").split()[1:])
    assert "2 of 4 trials have finished" in text
    assert "2 trials failed" in text
    assert "CPU: 5 and 10 neurons in each hidden layer" in text
    assert too_large in text
    assert "2 trials failed" in (fresh.path / "results" / "partial" / "summary.md").read_text()


def test_the_plan_of_a_stage_that_was_made_counts_and_one_that_was_not_does_not(fresh: House) -> None:
    """A device without a row is enough for a plan."""
    fresh.config(devices=["cpu", "cuda"], check_devices=False, studies=["disc_depth"])
    assert "0 of 4 trials have finished" in partial(fresh)
    plan = fresh.path / "results" / "refinement" / "stage-1.json"
    plan.parent.mkdir()
    cell = (
        '{"study": "disc_depth", "workload": "disc_mlp", "variant": "plain", "protocol": "resident", '
        '"batch_size": 100, "precision": "fp32", "execution": "eager", "size": 7, "device": "cuda", "trials": [1, 2]}'
    )
    plan.write_text(f'{{"stage": 1, "cells": [{cell}, {cell.replace("disc_depth", "gone")}], "why": []}}')
    text = partial(fresh)
    assert "0 of 6 trials have finished" in text
    assert "GPU" in text
    plan.write_text(plan.read_text()[:40])
    done = fresh.snakemake("--dry-run", "--quiet", "all", "--", "partial_report")
    assert done.returncode != 0
    assert (
        done.stderr.splitlines()[-1]
        == f"error: results/refinement/{plan.name}: not a readable plan; delete it and run again"
    )
