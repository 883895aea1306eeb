from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest
from snakemake.cli import get_argument_parser

from crossover.command import build_command
from crossover.machine import invocation
from crossover.machine.invocation import (
    INVOCATION,
    Checkout,
    Invocation,
    code_version,
    find_checkout,
    hand_down_invocation,
    handed_down_invocation,
    this_invocation,
)

DIRTY = Checkout("a" * 40, changed=("Snakefile", "rules/a b.smk"))


@pytest.fixture(autouse=True)
def known_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(invocation, "find_checkout", lambda: Checkout("b" * 40))
    monkeypatch.setenv(INVOCATION, "to be restored")
    monkeypatch.delenv(INVOCATION)


def test_jobs_read_the_invocation_of_the_run() -> None:
    run = Invocation("snakemake --cores 1", "/a folder", DIRTY)
    hand_down_invocation(run)
    assert handed_down_invocation() == run
    assert code_version() == "a" * 40 + "-dirty"


def test_without_a_run_the_code_version_is_that_of_the_checkout() -> None:
    assert handed_down_invocation() is None
    assert code_version() == "b" * 40


def test_the_command_includes_a_profile_from_the_environment() -> None:
    run = this_invocation([], "/here", {"SNAKEMAKE_PROFILE": "profiles/my slurm"})
    assert run.command == "SNAKEMAKE_PROFILE='profiles/my slurm' snakemake"


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (["--storage-s3-secret-key", "abc", "--cores", "1"], "--storage-s3-secret-key *** --cores 1"),
        (["--storage-s3-access-key=abc"], "--storage-s3-access-key=***"),
        (["--config", "studies=[a, b]"], "--config 'studies=[a, b]'"),
    ],
)
def test_the_command_is_quoted_for_a_shell_and_hides_secrets(given: list[str], shown: str) -> None:
    assert this_invocation(given, "/here", {}).command == f"snakemake {shown}"


def config_of(command: str) -> tuple[dict[str, str], list[str]]:
    """The entries of --config and the targets of Snakemake's command, as Snakemake reads them."""
    words = shlex.split(command)
    options = get_argument_parser([]).parse_args(words[words.index("snakemake") + 1 :])
    return dict(entry.split("=", 1) for entry in options.config or ()), [*options.targets]


@pytest.mark.parametrize(
    ("given", "entries", "targets"),
    [
        ("--config devices=[cpu]", {}, []),
        ("--config effort=quick devices=[cpu] trials=3 --cores 1", {"effort": "quick", "trials": "3"}, []),
        ("--config devices=cpu results=two effort=quick", {"effort": "quick"}, []),
        ("-Cdevices=[cpu] all", {}, ["all"]),
        ("--config devices=[cpu] trials=3 --cores 1 -- all", {"trials": "3"}, ["all"]),
        ("--config 'overrides={mine: {devices: [cpu]}}'", {"overrides": "{mine: {devices: [cpu]}}"}, []),
        ("--cores 1 all", {}, ["all"]),
    ],
)
def test_the_command_for_a_gpu_chooses_all_devices(given: str, entries: dict[str, str], targets: list[str]) -> None:
    run = Invocation(f"snakemake {given}", "/here", DIRTY)
    assert config_of(run.into("gpu", {"devices": "auto"})) == (
        {**entries, "devices": "auto", "results": "gpu"},
        targets,
    )
    assert config_of(run.into("again"))[0] == {**config_of(run.command)[0], "results": "again"}


def test_the_command_of_a_module_with_its_own_config_says_what_to_change_there() -> None:
    run = this_invocation(["--cores", "1", "--config", "mine=3"], "/here", {}, own_config=True)
    command = "snakemake --cores 1 --config mine=3"
    assert run.into("again") == f"{command}  # after setting results: again in the module's config"
    change = "devices: auto, results: gpu"
    assert (
        run.elsewhere("gpu", {"devices": "auto"}).command
        == f"{command}  # after setting {change} in the module's config"
    )
    assert shlex.split(run.into("again"), comments=True) == shlex.split(command)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("--devices cpu", ""),
        ("--effort quick --devices cpu --trials 3", " --effort quick --trials 3"),
        ("--results two --devices=[cpu] --trials=3", " --trials=3"),
        ("--devices cpu -- --cores 4", ""),
    ],
)
def test_the_command_of_crossover_for_a_gpu_chooses_all_devices(given: str, kept: str) -> None:
    run = Invocation("snakemake", "/here", DIRTY, typed=f"crossover disc_depth {given}")
    end = " -- --cores 4" if "--cores" in given else ""
    command = run.into("gpu", {"devices": "auto"})
    assert command == f"crossover disc_depth{kept} --devices auto --results gpu{end}"
    words = build_command(shlex.split(command)[1:])
    assert "results=gpu" in words
    assert [word for word in words if word.startswith("devices")] == ["devices=auto"]
    assert run.into("again").count("--devices") == given.count("--devices")


def git(folder: Path, *arguments: str) -> str:
    user = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", "-C", str(folder), *user, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "workflow"
    (folder / "scripts").mkdir(parents=True)
    (folder / "Snakefile").write_text("rule all:\n")
    (folder / "scripts" / "run.py").write_text("print(1)\n")
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message=first")
    return folder


def test_only_changed_or_new_code_makes_a_checkout_dirty(repository: Path) -> None:
    (repository / "results").mkdir()
    (repository / "results" / "report.html").write_text("")
    (repository / "notes.txt").write_text("")
    assert find_checkout(repository).changed == ()
    (repository / "scripts" / "run.py").write_text("print(2)\n")
    (repository / "scripts" / "new one.py").write_text("")
    checkout = find_checkout(repository)
    assert checkout.changed == ("scripts/run.py", "scripts/new one.py")
    assert checkout.code_version == f"{checkout.commit}-dirty"


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://me:secret@example.org/a/b.git", "https://example.org/a/b.git"),
        ("git@example.org:a.git", "git@example.org:a.git"),
    ],
)
def test_the_password_of_the_remote_is_removed(repository: Path, address: str, shown: str) -> None:
    git(repository, "remote", "add", "origin", address)
    assert find_checkout(repository).remote == shown


def test_a_copy_inside_another_repository_has_no_commit(repository: Path) -> None:
    copy = repository / "copy"
    copy.mkdir()
    (copy / "Snakefile").write_text("rule all:\n")
    for checkout in (find_checkout(copy), find_checkout(repository.parent)):
        assert (checkout.commit, checkout.code_version) == (None, None)
        assert "no git checkout" in (checkout.unknown or "")


def test_missing_git_is_the_reason_for_an_unknown_commit(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "'git'" in (find_checkout(repository).unknown or "")
