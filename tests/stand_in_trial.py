"""Replaces scripts/measure_cell.py in tests of a cluster or of several GPUs, which do not test the measurement.

It records what its job was assigned, waits as long as a file `hold` names its device, and writes a made-up row. On a
machine that lacks them, a file `gpus` says how many GPUs to pretend; it leases one of these as a trial would. A file
`disturbed` lists the trials whose rows are flagged, one per line: size, device, trial and number of the repeat.
"""

import json
import os
import sys
import time
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path

from crossover.files import atomic_path
from crossover.measurement.process.command import read_job
from crossover.measurement.process.jobs import TrialJob
from crossover.tables.columns import Measurement, write_record

job = read_job(TrialJob, __doc__, sys.argv[1:])
cell = job.cell
hold, notes, gpus = Path("hold"), Path("notes"), Path("gpus")
lease = ExitStack()
if gpus.exists():
    from crossover.measurement.process.reservation import reserve
    from fake_nvml import FakeGpu, FakeNvml

    sys.modules["pynvml"] = FakeNvml(*(FakeGpu(f"GPU-{number}") for number in range(int(gpus.read_text()))))
    lease.enter_context(reserve(job, alone=job.repeat > 0))
note = {
    "size": cell.size,
    "device": cell.device,
    "trial": job.trial,
    "repeat": job.repeat,
    "job": os.environ.get("SLURM_JOB_ID", ""),
    "pid": os.getpid(),
    "gpus": os.environ.get("CUDA_VISIBLE_DEVICES", ""),
    "cpus": len(os.sched_getaffinity(0)),
    "began": time.time(),
}
notes.mkdir(exist_ok=True)
note_file = notes / f"{note['job']}-{note['pid']}.json"


def write_note(**more: float) -> None:
    with atomic_path(note_file) as path:
        path.write_text(json.dumps({**note, **more}))


def held() -> bool:
    """Whether the file `hold` names the device; the file may be removed at any time."""
    with suppress(FileNotFoundError):
        return cell.device in hold.read_text()
    return False


write_note()
while held():
    time.sleep(0.05)
axes = {**cell.values, "trial": job.trial, "repeat": job.repeat}
who = f"{cell.size} {cell.device} {job.trial} {job.repeat}"
disturbed = Path("disturbed").exists() and who in Path("disturbed").read_text().splitlines()
facts = {
    "status": "ok",
    "flag_names": ["busy_host"] if disturbed else [],
    "parameters": cell.size,
    "size_name": "size",
    "threads": note["cpus"],
}
time_s = 1e-3 * cell.size * (50 if disturbed else 1)
times = {"step_time_s": time_s, "samples_s": [time_s] * 3}
facts["command"] = job.command
facts["plan_key"] = job.plan_key
started_at = datetime.now(UTC).isoformat()
with atomic_path(Path(job.output)) as path:
    write_record(Measurement(**axes, **facts, **times, started_at=started_at, hostname=os.uname().nodename), path)
write_note(ended=time.time())
lease.close()
