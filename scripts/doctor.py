"""Show what a run finds on this machine: devices, cores, clocks, disk, versions, and load by other programs.

python scripts/doctor.py
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from importlib.metadata import version

import pynvml

from crossover.config.options import new_parser
from crossover.errors import one_line_errors
from crossover.machine.counters import read_counters
from crossover.machine.discovery import find_machine
from crossover.machine.gpus import find_gpus
from crossover.machine.nvml import ask, read_gpu, session
from crossover.measurement.host.description import describe_machine
from crossover.plan.before_run import load_by_others
from crossover.text import bytes_text

LOAD_WINDOW_S = 1.0


def main() -> None:
    new_parser(__doc__).parse_args()
    for name, fact in facts_of_this_machine():
        print(f"{name + ':':<16}{fact}")


def facts_of_this_machine() -> Iterator[tuple[str, str]]:
    """Facts about this machine that affect a run, as pairs of name and text."""
    before = read_counters()
    machine, host = find_machine(), describe_machine()
    yield "host", f"{host['hostname']}, {host['operating_system']}"
    yield from machine.hardware.items()
    if machine.note:
        yield "note", machine.note
    quota = "" if host["cgroup_cpus"] is None else f", quota of {host['cgroup_cpus']:g} CPUs"
    yield "cores", f"{host['physical_cores']} usable, {host['logical_cpus']} logical CPUs{quota}"
    turbo = {True: "on", False: "off", None: "unknown"}[host["turbo"]]
    yield "clock", f"governor {host['governor'] or 'unknown'}, turbo {turbo}"
    yield "memory", bytes_text(host["memory_bytes"])
    yield "free disk", f"{bytes_text(shutil.disk_usage('.').free)} in this folder"
    yield "Python", f"{host['python_version']}, torch {machine.torch_version}, Snakemake {version('snakemake')}"
    yield "Crossover", host["crossover_version"]
    yield "NVIDIA driver", machine.driver_version or "none"
    with session(pynvml):
        for uuid in ask(pynvml, lambda: find_gpus(os.environ, pynvml).visible) or ():
            state = read_gpu(uuid, pynvml)
            count = "unknown" if state is None or state.processes is None else len(state.processes)
            yield "GPU", f"{uuid}, processes that use it: {count}"
    time.sleep(LOAD_WINDOW_S)
    yield "load by others", (load_by_others(before, read_counters()) or "none").removeprefix("load by others: ")


if __name__ == "__main__":
    with one_line_errors():
        main()
