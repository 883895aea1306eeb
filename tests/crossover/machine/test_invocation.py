from __future__ import annotations

import pytest

from crossover.machine import invocation
from crossover.machine.checkout import Checkout
from crossover.machine.invocation import (
    INVOCATION,
    Invocation,
    code_version,
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


def test_a_run_is_handed_down_as_it_was_found() -> None:
    run = Invocation("snakemake --cores 1", "/a folder", DIRTY)
    hand_down_invocation(run)
    assert handed_down_invocation() == run
    assert code_version() == "a" * 40 + "-dirty"


def test_by_hand_there_is_no_run_and_the_code_is_that_of_the_checkout() -> None:
    assert handed_down_invocation() is None
    assert code_version() == "b" * 40


def test_the_command_can_be_pasted_into_a_shell() -> None:
    run = this_invocation(["--cores", "2", "--config", "studies=[a, b]"], "/here", {})
    assert run.command == "snakemake --cores 2 --config 'studies=[a, b]'"


def test_a_profile_of_the_environment_is_part_of_the_command() -> None:
    run = this_invocation([], "/here", {"SNAKEMAKE_PROFILE": "profiles/my slurm"})
    assert run.command == "SNAKEMAKE_PROFILE='profiles/my slurm' snakemake"


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (["--storage-s3-secret-key", "abc", "--cores", "1"], "--storage-s3-secret-key *** --cores 1"),
        (["--storage-s3-access-key=abc"], "--storage-s3-access-key=***"),
        (["--config", "seed=1"], "--config seed=1"),
    ],
)
def test_secrets_are_not_shown(given: list[str], shown: str) -> None:
    assert this_invocation(given, "/here", {}).command == f"snakemake {shown}"
