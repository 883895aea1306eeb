"""Seconds that Snakemake takes for each of many jobs, without waiting for all of them."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from crossover.errors import UserError

FIRST = 20
"""Jobs that do not count: the first ones start servers and fill caches."""

POLL_S = 0.5

BARE_RULES = {
    "shell": 'shell:\n        "python3 one.py {output}"',
    "script": 'script:\n        "one.py"',
}
"""Rules that do nothing but start Python, in the two ways that Snakemake has."""

BARE_SCRIPTS = {
    "shell": "import sys\n\nopen(sys.argv[1], 'w').close()\n",
    "script": "open(snakemake.output[0], 'w').close()\n",
}


def make_bare(folder: Path, way: str, jobs: int) -> None:
    """Write a workflow of one rule that starts Python for so many files, in one of the ways of BARE_RULES."""
    folder.mkdir(parents=True)
    (folder / "one.py").write_text(BARE_SCRIPTS[way], encoding="utf-8")
    text = f"""rule all:
    input:
        [f"out/{{job}}.txt" for job in range({jobs})],


rule one:
    output:
        "out/{{job}}.txt",
    {BARE_RULES[way]}
"""
    (folder / "Snakefile").write_text(text, encoding="utf-8")


def seconds_per_job(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], log: Path, outputs: str, jobs: int
) -> float:
    """Run a workflow until `jobs` files `outputs`, a pattern below the folder, are there; the wall time between two.

    It is then killed: asked to end, Snakemake (9.27) may wait for itself for ever. Raises UserError where it ends
    before.
    """
    with (
        log.open("w", encoding="utf-8") as output,
        subprocess.Popen(
            command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        ) as process,
    ):
        try:
            while process.poll() is None and len(list(folder.glob(outputs))) < jobs + FIRST:
                time.sleep(POLL_S)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return mean_interval_s([path.stat().st_mtime for path in folder.glob(outputs)], log)


def mean_interval_s(times_s: Sequence[float], log: Path) -> float:
    """Mean time from one of the later files to the next; raises UserError where there are too few."""
    later = sorted(times_s)[FIRST:]
    if len(later) < 2:
        raise UserError(f"only {len(times_s)} jobs finished, and {FIRST + 2} are needed; see {log}")
    return (later[-1] - later[0]) / (len(later) - 1)
