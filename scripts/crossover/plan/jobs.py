"""Options, parameters and resources (threads, GPUs, memory, minutes) of measuring jobs."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

from crossover.config.configuration import Configuration
from crossover.config.models import Model
from crossover.config.options import (
    as_options,
    axis_options,
    model_options,
    search_options,
    setting_options,
    training_options,
)
from crossover.config.studies import Candidates, Study, effort_of, quality_of
from crossover.config.words import COMPUTES_IN, HERE, is_cpu
from crossover.config.workloads import memory_mb
from crossover.errors import failures
from crossover.machine.code_key import Modules, code_of, digests_of
from crossover.machine.discovery import Machine
from crossover.plan.run_plan import Classes, cell_of_wildcards
from crossover.time_limits import NOTES, Note, read_notes

START_MIN = 6
"""Minutes for a process to start from a cold network file system, and to end."""

SEARCH_MIN = 60
"""Minutes for all tries of a search but the longest. There are some fifty, each far shorter than the limit."""

ROOFS_MIN = 10
"""Minutes that the probe of a device requests; it takes seconds."""
ROOFS_MB = 4000

GPU_ONLY = "gpu_model"
"""The resource that a job without a GPU must not request."""

NO_RESOURCES = ("devices", "cores")
"""Keys of a class of nodes that are not resources of its jobs."""

Wildcards = Mapping[str, Any]

Params = dict[str, Any]
"""What a result depends on: options of its command, code, versions of torch and the driver, hardware. A
change in any of them triggers a new measurement."""


@dataclass(frozen=True)
class Jobs:
    """The measuring jobs of a run."""

    config: Configuration
    machine: Machine
    cores: int | None
    """Number given with --cores; None if a cluster's scheduler assigns cores."""
    gpus: int = 1
    """Number given with --resources gpu."""

    def trial(self, wildcards: Wildcards) -> Params:
        again = wildcards.get("again", "").rpartition("-")[2]
        repeat = [f"--repeat={again}"] if again else []
        trial = f"--trial={wildcards['trial']}"
        options = [*axis_options(wildcards), *self.settings[wildcards["study"]], trial, *repeat]
        return self._params("trial", wildcards, options)

    def search(self, wildcards: Wildcards) -> Params:
        shared = self._shared(self._studies[wildcards["study"]])
        return self._params("batch_try", wildcards, search_options(wildcards, self.config.largest_batch, **shared))

    def training(self, wildcards: Wildcards) -> Params:
        study = self._studies[wildcards["study"]]
        quality = quality_of(study)
        assert quality is not None
        options = training_options(
            cell_of_wildcards(wildcards), quality, **self._shared(study) | {"seed": wildcards["seed"]}
        )
        return self._params("training", wildcards, options)

    def roofs(self, wildcards: Wildcards) -> dict[str, Any]:
        """Parameters of a probe of a device."""
        machine = wildcards.get("machine", HERE)
        axes = {"machine": None if machine == HERE else machine, "device": wildcards["device"]}
        precisions = {precision for study in self.config.studies for precision in study.precisions}
        for study in self.config.studies:
            precisions |= {*candidates.precisions} if (candidates := Candidates.of(vars(study))) else set()
        products = {COMPUTES_IN.get(precision, precision) for precision in precisions}
        probed = Path(self.config.results, "roofs", wildcards.get("machine", ""), f"{wildcards['device']}.json")
        given = {"precisions": ",".join(sorted(products)), "cpu_threads": self.config.cpu_threads}
        return {
            "options": shlex.join(as_options(axes | given)),
            "code": digests_of("crossover.measurement.roofs"),
            "disturbed": failures(probed) if self.config.repeat_disturbed else 0,
            **self._versions(wildcards),
        }

    def limit(self, kind: str, wildcards: Wildcards) -> str:
        """Options of the time limit. They affect no result, so a change of them triggers no new measurement."""
        limit_s = self._time_limit_s(self._studies[wildcards["study"]])
        note = f"{self.config.results}/{NOTES}/{_note(kind, wildcards)}"
        return shlex.join(as_options({"time_limit_s": limit_s, "limit_note": note}))

    @cached_property
    def settings(self) -> dict[str, list[str]]:
        """Options that all trials of a study share, by study."""
        return {
            study.name: setting_options(
                effort_of(study, self.config.effort),
                **self._shared(study),
                latency_steps=study.latency_steps,
                latency_mistakes=study.latency_mistakes,
            )
            for study in self.config.studies
        }

    @property
    def at_once(self) -> int:
        """Number of GPU trials that this machine measures side by side; 1 if it measures only the CPU."""
        accelerated = not all(map(is_cpu, self.config.devices or self.machine.devices))
        if self.machine.elsewhere or not accelerated or not self.config.side_by_side:
            return 1
        return max(1, min(self.gpus, self.cores or 1))

    @property
    def share(self) -> int:
        """Cores that each job of this machine requests from Snakemake; 1 on a cluster's login node.

        All request the same number, since Snakemake starts whatever fits: a CPU trial that requested all cores would
        wait until no GPU trial is left. `crossover.machine.turns` decides whether a started job runs beside others or
        alone.
        """
        return 1 if self.machine.elsewhere else (self.cores or 1) // self.at_once

    def threads(self, wildcards: Wildcards) -> int:
        """Cores that a measuring job requests; the trial itself determines its number of threads.

        On a cluster, a CPU cell requests all cores of its node, and a GPU cell its GPU's share unless the config gives
        a number.
        """
        if not self.machine.elsewhere:
            return self.share
        nodes, auto = self.machine.nodes, self.config.cpu_threads == "auto"
        threads = 1 if auto else int(self.config.cpu_threads)
        if is_cpu(wildcards["device"]):
            node_class = (self.config.classes or {}).get(wildcards.get("machine", HERE), {})
            return node_class.get("cores") or max(threads, self.cores or (nodes.cpus if nodes else 1))
        return (nodes.cpus_per_gpu if nodes and auto else None) or threads

    def resources(self, kind: str) -> dict[str, Callable[..., object]]:
        """GPUs, memory, minutes and node class that a kind of job requests, as functions of its wildcards."""

        def minutes(wildcards: Wildcards, attempt: int) -> int:
            if kind == "probe":
                return ROOFS_MIN
            limit_min = math.ceil(self._time_limit_s(self._studies[wildcards["study"]]) / 60)
            each_min = limit_min + (SEARCH_MIN if kind == "batch_try" else START_MIN)
            # Twice, since an invalid trial may be measured once more.
            return each_min * attempt * (2 if kind == "trial" else 1)

        return {
            **self._class_resources(),
            # None for a CPU cell, since 0 would still be a request.
            "gpu": lambda wildcards: None if is_cpu(wildcards["device"]) else 1,
            "mem_mb": (lambda _wildcards: ROOFS_MB) if kind == "probe" else self.mem_mb,
            "runtime": minutes,
        }

    def _class_resources(self) -> dict[str, Callable[[Wildcards], str | None]]:
        classes = self.config.classes or {}

        def value_of(name: str, wildcards: Wildcards) -> str | None:
            value = classes[wildcards["machine"]].get(name)
            needs_gpu = name == GPU_ONLY and is_cpu(wildcards["device"])
            return None if value is None or needs_gpu else str(value)

        return {name: partial(value_of, name) for name in resources_of(classes)}

    def mem_mb(self, wildcards: Wildcards, attempt: int) -> int:
        """Megabytes that a measuring job requests, doubled for each further attempt."""
        study = self._studies[wildcards["study"]]
        first_mb = study.mem_mb or memory_mb(wildcards["workload"], int(wildcards["size"]))
        return first_mb << (attempt - 1)

    def _time_limit_s(self, study: Study) -> float:
        return study.time_limit_s or self.config.time_limit_s

    @cached_property
    def _studies(self) -> dict[str, Study]:
        return {study.name: study for study in self.config.studies}

    def _shared(self, study: Study) -> dict[str, Any]:
        return {"seed": self.config.seed, "cpu_threads": self.config.cpu_threads, **model_options(study.model)}

    def _params(self, kind: str, wildcards: Wildcards, options: Sequence[str]) -> Params:
        study = self._studies[wildcards["study"]]
        note = self._notes.get(_note(kind, wildcards), Note())
        return {
            "options": shlex.join(options),
            "code": self._code_keys(kind, wildcards["workload"], study.model),
            "compilers": self.machine.compilers if wildcards["execution"] == "compile" else None,
            "limit_raised": note.raised_with(self._time_limit_s(study)),
            **self._versions(wildcards),
        }

    def _versions(self, wildcards: Wildcards) -> Params:
        device = wildcards["device"].partition("-")[0]
        return {
            "torch": self.machine.torch_version,
            "driver": None if is_cpu(device) else self.machine.driver_version,
            "hardware": self.machine.hardware.get(device),
        }

    @cached_property
    def _notes(self) -> Mapping[str, Note]:
        return read_notes(Path(self.config.results, NOTES))

    @cached_property
    def _code_keys(self) -> Callable[[str, str, Model | None], str]:
        modules = Modules()
        return cache(lambda kind, workload, model: code_of(kind, workload, modules, model).key)


def _note(kind: str, wildcards: Wildcards) -> str:
    """The file in which a job notes that it was ended by its time limit."""
    # `again` is empty unless the trial is repeated.
    values = [str(value) for _, value in sorted(wildcards.items()) if value != ""]
    return "/".join([kind, *values]) + ".json"


def resources_of(classes: Classes | None) -> list[str]:
    """The resources that at least one class of nodes sets."""
    return sorted({name for values in (classes or {}).values() for name in values if name not in NO_RESOURCES})
