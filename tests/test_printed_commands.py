"""Commands that Crossover prints, pasted into a shell in a copy of the workflow as dry-runs, without git and pip."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from crossover import command
from crossover.machine import invocation
from crossover.machine.invocation import TYPED, Checkout, Invocation, this_invocation
from crossover.report import provenance
from crossover.report.provenance import rerun
from workflow_copy import WorkflowCopy

COMMIT, REMOTE = "b" * 40, "https://example.org/crossover.git"
CROSSOVER = "from crossover.command import main; main()"


@pytest.fixture(scope="module")
def workflow(tmp_path_factory: pytest.TempPathFactory) -> WorkflowCopy:
    return WorkflowCopy(tmp_path_factory.mktemp("copy of") / "crossover")


@pytest.fixture
def project(workflow: WorkflowCopy) -> Path:
    """A folder of the user's beside the checkout."""
    folder = workflow.path.parent / "project"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture
def paste(workflow: WorkflowCopy, tmp_path: Path) -> Callable[[str, Path], str]:
    """Run a command line as a user's shell would in a folder; returns its output."""
    programs = tmp_path / "bin"
    programs.mkdir()
    python = shlex.quote(sys.executable)
    lines = {
        "snakemake": f'exec {python} -m snakemake "$@"',
        "crossover": f"PYTHONPATH={shlex.quote(str(workflow.path / 'scripts'))} exec {python} -c '{CROSSOVER}' \"$@\"",
        "git": 'echo git "$@"',
        "pip": 'test "$1" = install && test -d "$(dirname "$3")" && echo pip "$@"',
    }
    for name, line in lines.items():
        (programs / name).write_text(f"#!/bin/sh\n{line}\n")
        (programs / name).chmod(0o755)

    def run(line: str, folder: Path) -> str:
        environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
        done = subprocess.run(["sh", "-c", line], cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


FORMS = {
    "without --config": "--cores 1 -n",
    "after --resources": "--cores 1 -n --resources gpu=1",
    "between --config and --resources": "-n --config effort=quick 'studies=[disc_depth]' --cores 1 --resources gpu=1",
    "another results folder": "--cores 1 -n --config effort=quick results=results/two",
    "devices of this machine": "--cores 1 -n --config effort=quick 'devices=[cpu]'",
    "one entry": "--cores 1 -n --config=effort=quick results/report.html",
    "after targets": "-n --config effort=quick --cores 1 -- everything",
}


@pytest.mark.parametrize("form", FORMS)
def test_the_command_for_another_machine_can_be_pasted(
    workflow: WorkflowCopy, paste: Callable[[str, Path], str], form: str
) -> None:
    words = shlex.split(FORMS[form].replace("results/report.html", "gpu/report.html"))
    given = this_invocation(words, str(workflow.path), {}).into("gpu", without=["devices"])
    output = paste(given, workflow.path)
    assert "devices" not in given
    assert "Measuring disc_depth" in output
    assert "gpu/report.html" in output
    assert "results/report.html" not in output
    if "effort=quick" in words:
        assert "effort=quick" in given


def typed_by(line: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Invocation:
    """The invocation of Snakemake by a command line of `crossover`."""
    ran: list[list[str]] = []
    monkeypatch.chdir(folder)
    monkeypatch.setenv(TYPED, "to be restored")
    monkeypatch.setattr(command, "CHECKOUT", folder.parent / "crossover")
    monkeypatch.setattr(sys, "argv", shlex.split(line))
    monkeypatch.setattr(os, "execv", lambda _, words: ran.append(words))
    command.main()
    words = ran[0]
    return this_invocation(words[words.index("snakemake") + 1 :], str(folder))


@pytest.mark.parametrize("options", ["--effort quick -- -n", "--results two -- -n"])
def test_the_command_for_another_machine_of_crossover_can_be_pasted(
    project: Path, paste: Callable[[str, Path], str], monkeypatch: pytest.MonkeyPatch, options: str
) -> None:
    given = typed_by(f"crossover disc_depth {options}", project, monkeypatch).into("gpu")
    assert given.startswith("crossover disc_depth ")
    output = paste(given, project)
    assert "Measuring disc_depth" in output
    assert "gpu/report.html" in output


@pytest.mark.parametrize("remote", [None, REMOTE])
def test_the_commands_that_reproduce_a_run_beside_the_checkout_can_be_pasted(
    workflow: WorkflowCopy,
    project: Path,
    paste: Callable[[str, Path], str],
    monkeypatch: pytest.MonkeyPatch,
    remote: str | None,
) -> None:
    monkeypatch.setattr(provenance, "ROOT", workflow.path)
    monkeypatch.setattr(invocation, "find_checkout", lambda: Checkout(COMMIT, remote=remote))
    run = typed_by("crossover disc_depth -- -n", project, monkeypatch)
    output = paste(" && ".join(rerun(run.checkout, run)), project)
    assert output.startswith(f"git -C ../crossover checkout {COMMIT}\npip install -r ../crossover/requirements.txt\n")
    assert "Measuring disc_depth" in output
    commands = rerun(run.checkout, run)
    assert commands[0].startswith("[ -d ../crossover ] || git clone https://") == (remote is not None)


def test_the_commands_that_reproduce_a_run_in_the_checkout_can_be_pasted(
    workflow: WorkflowCopy, paste: Callable[[str, Path], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provenance, "ROOT", workflow.path)
    run = Invocation("snakemake --cores 1 -n", str(workflow.path), Checkout(COMMIT))
    output = paste(" && ".join(rerun(run.checkout, run)), workflow.path)
    assert re.match(rf"git checkout {COMMIT}\npip install -r requirements.txt\n", output)
    assert "Measuring disc_depth" in output


def test_the_command_in_a_hint_runs_outside_the_checkout(
    workflow: WorkflowCopy, project: Path, paste: Callable[[str, Path], str]
) -> None:
    """The error of a trial by hand without its data set names the command that makes the data set."""
    words = [sys.executable, str(workflow.path / "scripts/measure_cell.py"), "--study=s", "--workload=disc_mlp"]
    words += ["--protocol=resident", "--batch-size=100", "--precision=fp32", "--execution=eager", "--size=8"]
    for folder in (project, workflow.path):
        done = subprocess.run([*words, "--device=cpu", "--output=x"], cwd=folder, capture_output=True, text=True)
        hint = re.search("`(snakemake .*)`", done.stderr)
        assert hint, done.stderr
        assert "make_dataset" in paste(f"{hint[1]} -n", folder)
