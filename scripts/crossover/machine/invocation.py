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

SECRET = re.compile(r"(--\S*(?:secret|passw|token|credential|-key)\S*?[= ])\S+", re.IGNORECASE)
"""An option whose value nobody else should read, such as those of Snakemake's storage plugins, and its value."""


@dataclass(frozen=True)
class Invocation:
    """How a run was started, and from which code."""

    command: str
    """The command line, without what is secret in it."""
    folder: str
    """The working directory."""
    checkout: Checkout


def this_invocation(arguments: Sequence[str], folder: str, environment: Mapping[str, str] = os.environ) -> Invocation:
    """The run whose main process this is; `arguments` are those of Snakemake."""
    command = SECRET.sub(r"\1***", shlex.join(["snakemake", *arguments]))
    if profile := environment.get(PROFILE):
        command = f"{PROFILE}={shlex.quote(profile)} {command}"
    if len(command) > LONGEST_COMMAND:
        command = f"{command[:LONGEST_COMMAND]} ..."
    return Invocation(command, folder, find_checkout())


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
