"""Commands that Crossover prints, pasted into a shell in a copy of the workflow as dry-runs, without git and pip."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from crossover import command
from crossover.home import NAME
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


def test_the_command_for_another_machine_can_be_pasted(
    workflow: WorkflowCopy, paste: Callable[[str, Path], str]
) -> None:
    """Other forms of --config are tested with Snakemake's parser, in test_invocation.py."""
    options = "-n --config effort=quick 'studies=[disc_depth]' 'devices=[cpu]' --cores 1 --resources gpu=1"
    given = this_invocation(shlex.split(options), str(workflow.path), {}).elsewhere("gpu", {"devices": "auto"}).command
    output = paste(given, workflow.path)
    assert "devices=auto" in given
    assert "[cpu]" not in given
    assert "effort=quick" in given
    assert "Measuring disc_depth" in output
    assert "gpu/report.html" in output
    assert "results/report.html" not in output


NET = "import torch\n\ndef build(width):\n    return torch.nn.Linear(width, 1), torch.ones(4, width)\n"


@pytest.mark.parametrize(
    ("line", "files", "pasted"),
    [
        ("crossover {nets}/net.py:build --devices cpu -- -n", ["net.py"], True),
        ("crossover ../nets/net.py:build --sizes=[8,16] -- -n", ["net.py"], False),
        ("crossover net.py:build -- -n", [], False),
        ("crossover {here}/net.py:build -- -n", [], False),
        ("crossover {nets}/mine.yaml -- -n", ["mine.yaml", "net.py"], False),
        ("snakemake -s {root}/Snakefile --cores 1 -n --config model={nets}/net.py:build", ["net.py"], False),
        ("snakemake -s{root}/Snakefile --cores 1 -n -C model={here}/net.py:build sizes=[8]", [], False),
        (
            "snakemake -n --snakefile={up}/Snakefile --cores 1 --config 'studies=[../nets/mine.yaml]'",
            ["mine.yaml", "net.py"],
            False,
        ),
        (
            "snakemake -s {up}/Snakefile --profile {root}/profiles/default -n --cores 1 --config model=net.py:build",
            [],
            True,
        ),
    ],
)
def test_the_command_for_another_machine_runs_in_a_copy_of_the_folder(
    workflow: WorkflowCopy,
    tmp_path: Path,
    paste: Callable[[str, Path], str],
    monkeypatch: pytest.MonkeyPatch,
    line: str,
    files: list[str],
    pasted: bool,
) -> None:
    here, nets, there = (tmp_path / name for name in ("my project", "nets", "there"))
    for folder in (here, nets):
        folder.mkdir()
        (folder / "net.py").write_text(NET)
    (nets / "mine.yaml").write_text("title: Mine\nquestion: Which?\nmodel: net.py:build\n")
    monkeypatch.setattr(invocation, "ROOT", workflow.path)
    up = os.path.relpath(workflow.path, here)
    places = {"here": here, "nets": nets, "root": workflow.path, "up": up}
    words = [word.format(**places) for word in shlex.split(line)]
    if words[0] == "crossover":
        monkeypatch.setattr(command, "ROOT", workflow.path)
        run = typed_by(shlex.join(words), here, monkeypatch)
    else:
        run = this_invocation(words[1:], str(here), {})
    given = run.elsewhere("gpu", {"devices": "auto"}, [str((nets if files else here) / "net.py")])
    assert sorted(Path(file).name for file in given.files) == files
    assert given.at_their_path == ()
    assert given.uses_checkout == (words[0] == "snakemake")
    assert str(tmp_path) not in given.command
    assert str(workflow.path) not in given.command
    assert "devices=cpu" not in given.command
    for name in files or ["net.py"]:
        assert not re.search(rf"[/\w]/{re.escape(name)}", given.command)
    if not pasted:
        return
    shutil.copytree(here, there)
    for file in given.files:
        shutil.copy(file, there)
    for folder in (here, nets):
        shutil.rmtree(folder)
    (there / "CROSSOVER").symlink_to(workflow.path)
    assert "gpu/report.html" in paste(given.command, there)


def test_files_that_a_study_names_elsewhere_must_have_the_same_path(tmp_path: Path) -> None:
    run = Invocation("snakemake --cores 1 --config studies=mine.yaml", str(tmp_path), Checkout(COMMIT))
    given = run.elsewhere("gpu", {}, [str(tmp_path / "net.py"), "/data/rows.csv"])
    assert (given.command, given.files, given.at_their_path) == (
        "snakemake --cores 1 --config studies=mine.yaml results=gpu",
        (),
        ("/data/rows.csv",),
    )


def typed_by(line: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Invocation:
    """The invocation of Snakemake by a command line of `crossover`."""
    ran: list[list[str]] = []
    monkeypatch.chdir(folder)
    monkeypatch.setenv(TYPED, "to be restored")
    monkeypatch.setattr(sys, "argv", shlex.split(line))
    monkeypatch.setattr(os, "execv", lambda _, words: ran.append(words))
    command.main()
    words = ran[0]
    return this_invocation(words[words.index("snakemake") + 1 :], str(folder))


def test_the_commands_that_reproduce_a_run_beside_the_checkout_can_be_pasted(
    workflow: WorkflowCopy,
    project: Path,
    paste: Callable[[str, Path], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(provenance, "ROOT", workflow.path)
    monkeypatch.setattr(invocation, "find_checkout", lambda: Checkout(COMMIT, remote=REMOTE))
    monkeypatch.setattr(command, "ROOT", workflow.path)
    run = typed_by("crossover disc_depth -- -n", project, monkeypatch)
    output = paste(" && ".join(rerun(run.checkout, run)), project)
    assert output.startswith(f"git -C ../crossover checkout {COMMIT}\npip install -r ../crossover/requirements.txt\n")
    assert "Measuring disc_depth" in output
    assert rerun(run.checkout, run)[0].startswith("[ -d ../crossover ] || git clone https://")
    assert not rerun(Checkout(COMMIT), run)[0].startswith("[ -d ")


def test_the_command_in_a_hint_runs_outside_the_checkout(
    workflow: WorkflowCopy, project: Path, paste: Callable[[str, Path], str]
) -> None:
    """The error of a trial by hand without its data set names the command that makes the data set."""
    job = '{"cell": {"workload": "disc_mlp", "batch_size": 100, "size": 8}}'
    words = [sys.executable, str(workflow.path / "scripts/measure_cell.py"), job, "--device=cpu", "--output=x"]
    done = subprocess.run(words, cwd=project, capture_output=True, text=True)
    hint = re.search("`(snakemake .*)`", done.stderr)
    assert hint, done.stderr
    assert "make_dataset" in paste(f"{hint[1]} -n", project)


def test_a_run_of_the_installed_package_is_reproduced_with_that_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "IS_INSTALLED", True)
    monkeypatch.setattr(provenance, "requirement_of", "/a b/{}.whl".format)
    run = Invocation("snakemake -s ../site/Snakefile --cores 1", "/x", Checkout(), typed="crossover quick")
    assert rerun(run.checkout, run) == [f"pip install '/a b/{NAME}.whl'", "crossover quick"]
    assert rerun(Checkout(), None) == [f"pip install '/a b/{NAME}.whl'"]
