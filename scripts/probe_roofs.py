"""Measure a device's peak rates, bandwidths and launch times, and write one JSON file.

    python scripts/probe_roofs.py '{"precisions": ["fp32", "bf16"]}' --device=cuda --output=roofs.json

Without `precisions`, all that the device has are probed. A probe takes up to about 20 seconds, and is repeated at most
twice while other processes disturb it. Roofs that stayed disturbed are probed once more, by the next run.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from crossover.errors import UserError, one_line_errors
from crossover.files import atomic_path
from crossover.measurement.process.attempts import run_supervised
from crossover.measurement.process.command import read_job
from crossover.measurement.process.jobs import ProbeJob
from crossover.measurement.process.reservation import reserve
from crossover.plan.keys import mark_of_repeat


def main(arguments: list[str]) -> None:
    job = read_job(ProbeJob, __doc__, arguments)
    with reserve(job) as reserved:
        outcome = run_supervised(reserved)
    if outcome.status != "ok":
        raise UserError(f"--device: {job.cell.device} was not probed, {outcome.status}: {outcome.reason}")
    rows = [{**row, "plan_key": job.plan_key} for row in outcome.result["rows"]]
    with atomic_path(Path(job.output)) as temporary:
        temporary.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    mark = mark_of_repeat(Path(job.output))
    if (disturbed := rows[0]["disturbed"]) and not mark.exists():
        mark.touch()
        print(f"disturbed: {disturbed}; the next run probes once more")
    else:
        mark.unlink(missing_ok=True)


if __name__ == "__main__":
    with one_line_errors():
        main(sys.argv[1:])
