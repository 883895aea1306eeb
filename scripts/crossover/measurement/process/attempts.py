"""A trial or a training from its request to its row: which process does it, what its end means, a second attempt."""

from __future__ import annotations

import platform
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from crossover.files import atomic_path
from crossover.machine.threads import confine
from crossover.measurement.process.forking import ForkedProcess, NoServerError
from crossover.measurement.process.processes import Child, FreshProcess
from crossover.measurement.process.requests import Job, Request, TrainingRun
from crossover.measurement.process.supervision import ChildLostError, Outcome, kernel_oom_kills, supervise
from crossover.tables.columns import Measurement
from crossover.tables.row_files import write_record

BATCH_JOBS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID", "FLUX_JOB_ID", "KUBERNETES_SERVICE_HOST")
"""Variables of batch systems, in whose jobs a process must stay among the job's own."""


def choose_isolation(wanted: str, environment: Mapping[str, str]) -> str:
    """What `auto` means here: the trial server on a Linux machine of one's own, a fresh process elsewhere."""
    if wanted != "auto":
        return wanted
    own_machine = platform.system() == "Linux" and not any(name in environment for name in BATCH_JOBS)
    return "server" if own_machine else "process"


def measure(request: Request, environment: Mapping[str, str]) -> None:
    """Measure a trial and write its row, atomically; one is measured once more whose fault may have gone by itself.

    Raises ChildFailedError where the measuring process ended by an error, which it has printed.
    """
    with atomic_path(Path(request.output)) as temporary:
        request = replace(request, output=str(temporary))
        outcome = _attempt(request, environment)
        if outcome.transient:
            print(f"invalid: {outcome.reason}; measuring once more", file=sys.stderr)
            outcome = _attempt(replace(request, attempts=2), environment)
        if not outcome.written:
            write_record(Measurement(**outcome.facts, status=outcome.status, reason=outcome.reason), temporary)


def train(job: TrainingRun, environment: Mapping[str, str]) -> None:
    """Train a model and write its row, atomically. Raises ChildFailedError as `measure` does."""
    from crossover.tables.columns import Training  # not for a trial, which should start quickly

    with atomic_path(Path(job.output)) as temporary:
        outcome = run_supervised(replace(job, output=str(temporary)), environment)
        if not outcome.written:
            write_record(Training(**outcome.facts, status=outcome.status, reason=outcome.reason), temporary)


def _attempt(request: Request, environment: Mapping[str, str]) -> Outcome:
    """One process that measures, or this one."""
    if request.isolation == "none":
        confine(request.cpus)
        from crossover.machine.trust import may_pass
        from crossover.measurement.process.child import do

        row = do(request)
        write_record(row, Path(request.output))
        return Outcome(str(row.status), row.reason, True, {}, transient=may_pass(vars(row)))
    return run_supervised(request, environment)


def run_supervised(job: Job, environment: Mapping[str, str]) -> Outcome:
    """Have a measuring process do a job, forked by the trial server where the job asks for that and there is one.

    Raises ChildFailedError where the measuring process ended by an error, which it has printed.
    """
    with _temporary_folder(environment) as own:
        if job.isolation == "server":
            try:
                return _supervised(ForkedProcess(job, own), job)
            except (NoServerError, ChildLostError) as reason:
                print(f"no trial server: {reason}; starting a fresh process", file=sys.stderr)
        fresh = replace(job, isolation="process")
        return _supervised(FreshProcess(fresh, own), fresh)


@contextmanager
def _temporary_folder(environment: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """An environment with a folder for temporary files, which goes however the measuring process ends.

    torch's compiler leaves its own folder behind, even where nothing is compiled.
    """
    with tempfile.TemporaryDirectory(prefix="xo-", ignore_cleanup_errors=True) as folder:
        yield {**environment, "TMPDIR": folder}


def _supervised(child: Child, job: Job) -> Outcome:
    try:
        return supervise(child, job.time_limit_s, kernel_oom_kills)
    finally:
        child.kill()
