"""A real Slurm of one node, started for the tests that need one and stopped after them.

It runs in a container without systemd, control groups or a GPU: a GPU is a link to /dev/null, which Slurm counts,
assigns and names in CUDA_VISIBLE_DEVICES like a real one.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
from filelock import FileLock

from processes import PATIENCE_S, TESTER, wait_for

GPUS = 2
PACKAGES = ("slurm-wlm", "munge")
CONFIGURATION = Path("/etc/slurm/slurm.conf")
"""The path is fixed, since the executor plugin removes SLURM_CONF from the environment of a job's srun."""
DEVICES = CONFIGURATION.with_name("gres.conf")
OURS = "# Written by the tests of Crossover, and removed when they end.\n"
LOCK = Path("/run/lock/crossover-slurm.lock")


def lacks() -> str | None:
    """Why Slurm cannot be started on this machine; None if it can."""
    if os.geteuid() != 0:
        return "only root can start Slurm's daemons"
    if CONFIGURATION.exists() and not CONFIGURATION.read_text().startswith(OURS):
        return f"this machine has a Slurm of its own ({CONFIGURATION}), which the tests leave alone"
    missing = [name for name in ("slurmctld", "slurmd", "munged") if shutil.which(name, path=_path()) is None]
    if missing and shutil.which("apt-get") is None:
        return f"{', '.join(missing)} not installed, and there is no apt-get to install {' and '.join(PACKAGES)}"
    if missing:
        return f"{', '.join(missing)} not installed; `apt-get install {' '.join(PACKAGES)}` installs them"
    return None


class Cluster:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.node = _output("hostname", "-s")
        hardware = _output("slurmd", "-C")
        self.cores = int(_number("CPUs", hardware))
        self._slurmd: subprocess.Popen[bytes] | None = None
        (folder / "state").mkdir()
        (folder / "spool").mkdir()
        for gpu in range(GPUS):
            (folder / f"gpu{gpu}").symlink_to("/dev/null")
        DEVICES.write_text(f"{OURS}Name=gpu File={folder}/gpu[0-{GPUS - 1}]\n")
        CONFIGURATION.write_text(OURS + self._configuration(hardware))

    def _configuration(self, hardware: str) -> str:
        topology = " ".join(re.findall(r"(?:Boards|SocketsPerBoard|CoresPerSocket|ThreadsPerCore)=\d+", hardware))
        memory_mb = int(int(_number("RealMemory", hardware)) * 0.9)  # the kernel's value varies a little
        settings = {
            "ClusterName": "crossover",
            "SlurmctldHost": f"{self.node}(127.0.0.1)",
            "SlurmUser": "root",
            "StateSaveLocation": self.folder / "state",
            "SlurmdSpoolDir": self.folder / "spool",
            "SlurmctldPidFile": self.folder / "slurmctld.pid",
            "SlurmdPidFile": self.folder / "slurmd.pid",
            # A container has no control groups, so only affinity restricts a job to its cores.
            "ProctrackType": "proctrack/linuxproc",
            "TaskPlugin": "task/affinity",
            "TaskPluginParam": "Cores",
            "JobAcctGatherType": "jobacct_gather/none",
            "AccountingStorageType": "accounting_storage/none",
            "MpiDefault": "none",
            "SelectType": "select/cons_tres",
            "SelectTypeParameters": "CR_Core_Memory",
            # Reject jobs that do not fit at once; otherwise they would wait for ever.
            "EnforcePartLimits": "ALL",
            "MinJobAge": 600,
            "KillWait": 2,
            "ReturnToService": 2,
            "GresTypes": "gpu",
        }
        node = f"NodeName={self.node} NodeAddr=127.0.0.1 {topology} RealMemory={memory_mb} Gres=gpu:{GPUS}"
        partitions = [
            f"PartitionName=cpu Nodes={self.node} Default=YES MaxTime=60 DefMemPerCPU=500",
            f"PartitionName=gpu Nodes={self.node} MaxTime=60 DefMemPerCPU=500",
        ]
        lines = [*(f"{key}={value}" for key, value in settings.items()), node, *partitions]
        return "\n".join(lines) + "\n"

    def daemon(self, *command: str | Path) -> subprocess.Popen[bytes]:
        """Start a daemon that stays in the foreground; its output goes to `<name>.log`."""
        with (self.folder / f"{Path(command[0]).name}.log").open("ab") as log:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=_environment())

    def start_slurmd(self) -> None:
        self._slurmd = self.daemon("slurmd", "-D")
        try:
            wait_for(lambda: self.node_state() in ("idle", "mix", "alloc"), "the node")
        except TimeoutError as late:
            logs = "\n".join(path.read_text(errors="replace")[-3000:] for path in self.folder.glob("*.log"))
            raise TimeoutError(f"{late}\n{logs}") from None

    def stop_slurmd(self) -> None:
        if self._slurmd is not None:
            self._slurmd.terminate()
            self._slurmd.wait(PATIENCE_S)

    def node_state(self) -> str:
        return _output("sinfo", "--noheader", "--format=%t", "--partition=cpu", check=False).rstrip("*")

    def update_node(self, **values: str) -> None:
        _output("scontrol", "update", f"NodeName={self.node}", *(f"{key}={value}" for key, value in values.items()))

    def jobs(self) -> list[dict[str, str]]:
        lines = _output("scontrol", "--oneliner", "show", "job").splitlines()
        return [dict(re.findall(r"([\w:/]+)=(\S*)", line)) for line in lines if line.startswith("JobId=")]

    def active(self) -> list[str]:
        return _output("squeue", "--noheader", "--format=%i").split()

    def cancel(self, *jobs: str) -> None:
        if jobs:
            _output("scancel", *jobs)

    def limit(self, job: str, seconds: int) -> None:
        _output("scontrol", "update", f"JobId={job}", f"TimeLimit=00:00:{seconds:02}")

    def empty(self) -> None:
        """Cancel every job; without control groups, Slurm misses processes whose parent was killed."""
        self.cancel(*self.active())
        wait_for(lambda: not self.active(), "the jobs to end")
        lost = [process for process in psutil.process_iter(["environ"]) if self._has_started(process)]
        for process in lost:
            process.kill()
        psutil.wait_procs(lost, PATIENCE_S)

    def _has_started(self, process: psutil.Process) -> bool:
        environment = process.info["environ"] or {}
        return "SLURM_JOB_ID" in environment and environment.get(TESTER) == os.environ[TESTER]


@contextmanager
def running(folder: Path) -> Iterator[Cluster]:
    """Run a cluster with its files in a folder; only one runs on a machine at a time, and other test runs wait."""
    with ExitStack() as ends:
        ends.enter_context(FileLock(LOCK))
        ends.callback(DEVICES.unlink, missing_ok=True)
        ends.callback(CONFIGURATION.unlink, missing_ok=True)
        cluster = Cluster(folder)
        if not _answers("munge", "--no-input"):
            run = Path("/run/munge")
            run.mkdir(exist_ok=True)
            shutil.chown(run, "munge", "munge")
            munged = cluster.daemon("runuser", "--user=munge", "--", "munged", "--foreground")
            ends.callback(_end, munged)
            wait_for(lambda: _answers("munge", "--no-input"), "munge")
        ends.callback(_end, cluster.daemon("slurmctld", "-D"))
        wait_for(lambda: _answers("scontrol", "ping"), "slurmctld")
        ends.callback(cluster.stop_slurmd)
        cluster.start_slurmd()
        ends.callback(cluster.empty)
        yield cluster


def _end(daemon: subprocess.Popen[bytes]) -> None:
    daemon.send_signal(signal.SIGTERM)
    daemon.wait(PATIENCE_S)


def _path() -> str:
    """PATH with the folders of daemons, which are not on every user's path."""
    return os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])


def _environment() -> dict[str, str]:
    return {**os.environ, "PATH": _path()}


def _output(*command: str, check: bool = True) -> str:
    done = subprocess.run(command, capture_output=True, text=True, env=_environment(), timeout=PATIENCE_S)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr or done.stdout}")
    return done.stdout.strip()


def _answers(*command: str) -> bool:
    return subprocess.run(command, capture_output=True, env=_environment(), timeout=PATIENCE_S).returncode == 0


def _number(key: str, text: str) -> str:
    match = re.search(rf"\b{key}=(\d+)", text)
    assert match is not None, text
    return match[1]
