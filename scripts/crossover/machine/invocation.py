"""How a run was started: taken once in the main process and handed down to its jobs, wherever they run."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from crossover.machine.checkout import Checkout, find_checkout

INVOCATION = "CROSSOVER_INVOCATION"
"""The environment variable that carries it from the main process to its jobs."""

LONGEST_COMMAND = 10_000
"""A longer command, which names its targets one by one, would not fit into an environment variable."""

PROFILE = "SNAKEMAKE_PROFILE"
"""The environment variable that names a profile in place of --profile."""

SECRET = re.compile(r"(secret|passw|token|credential|access-key|api-key)", re.IGNORECASE)
"""Options whose value nobody else should read, such as those of Snakemake's storage plugins."""


@dataclass(frozen=True)
class Invocation:
    """A run of the workflow."""

    command: str
    """The command line, without what is secret in it."""
    folder: str
    """The working directory."""
    checkout: Checkout


def this_invocation(arguments: Sequence[str], folder: str, environment: Mapping[str, str] = os.environ) -> Invocation:
    """The run whose main process this is; `arguments` are those of Snakemake."""
    command = shlex.join(["snakemake", *without_secrets(arguments)])
    if profile := environment.get(PROFILE):
        command = f"{PROFILE}={shlex.quote(profile)} {command}"
    if len(command) > LONGEST_COMMAND:
        command = f"{command[:LONGEST_COMMAND]} ..."
    return Invocation(_readable(command), _readable(folder), find_checkout())


def hand_down_invocation(invocation: Invocation) -> None:
    """Tell the jobs of this workflow."""
    os.environ[INVOCATION] = json.dumps(asdict(invocation))


def handed_down_invocation(environment: Mapping[str, str] = os.environ) -> Invocation | None:
    """The run that this process is a job of; None if it is not a job."""
    handed_down = environment.get(INVOCATION)
    if not handed_down:
        return None
    fields = json.loads(handed_down)
    own = fields.pop("checkout")
    return Invocation(**fields, checkout=Checkout(**{**own, "changed": tuple(own["changed"])}))


def code_version(environment: Mapping[str, str] = os.environ) -> str | None:
    """What a row says of the code that measured it: as the run found it, or, by hand, as it is now."""
    invocation = handed_down_invocation(environment)
    return (find_checkout() if invocation is None else invocation.checkout).code_version


def without_secrets(arguments: Sequence[str]) -> list[str]:
    """A command line whose secret values are three asterisks."""
    shown, hide = [], False
    for argument in arguments:
        name, sign, _ = argument.partition("=")
        is_secret = name.startswith("-") and SECRET.search(name) is not None
        shown.append(
            "***" if hide and not argument.startswith("-") else f"{name}=***" if is_secret and sign else argument
        )
        hide = is_secret and not sign
    return shown


def _readable(text: str) -> str:
    """Text that every page can hold, though a path in it be no UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
