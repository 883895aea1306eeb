"""Options, parameters and resources (threads, GPUs, memory, minutes) of measuring jobs."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

from crossover.config.config_keys import Configuration
from crossover.config.configuration import real_files
from crossover.config.models import Model
from crossover.config.study import Study, effort_of
from crossover.config.words import AS_WRITTEN, AXES, COMPUTES_IN, HERE, is_cpu, ranks_of_side
from crossover.config.workloads import memory_mb, workload_traits
from crossover.files import relative_path
from crossover.machine.code_key import Code, Modules, code_of, digests_of
from crossover.machine.discovery import Machine
from crossover.machine.named_files import content_keys
from crossover.machine.written_files import RECORD
from crossover.plan.keys import Key
from crossover.plan.run_plan import Classes

START_MIN = 6
"""Minutes for a process to start from a cold network file system, and to end."""

SEARCH_MIN = 60
"""Minutes for all tries of a search but the longest. There are some fifty, each far shorter than the limit."""

GPU_ONLY = "gpu_model"
"""The resource that a job without a GPU must not request."""

NO_RESOURCES = ("devices", "cores")
"""Keys of a class of nodes that are not resources of its jobs."""

Wildcards = Mapping[str, Any]

NOT_COUNTED = ("origin", "file", *(field.name for field in fields(Model) if not field.compare))
"""Keys of a model and its table that are no part of a result's key: of a file only the content counts."""


@dataclass(frozen=True)
class Jobs:
    """The measuring jobs of a run."""

    config: Configuration
    machine: Machine
    cores: int | None
    """Number given with --cores; None if a cluster's scheduler assigns cores."""
    gpus: int = 1
    """Number given with --resources gpu."""

    def job(self, kind: str, wildcards: Wildcards) -> dict[str, Any]:
        """A job for the command of its rule, which adds the device, the number of threads, and files.

        The fields are those of `crossover.measurement.process.jobs`.
        """
        settings = {**self.settings(kind, wildcards), "plan_key": self.key(kind, wildcards).key}
        if kind == "probe":
            return {"cell": {"machine": wildcards.get("machine", HERE)}, **settings}
        study = self._studies[wildcards["study"]]
        cell = {axis: value for axis, value in wildcards.items() if axis in AXES and axis != "device"}
        cell |= {axis: int(cell[axis]) for axis in ("size", "batch_size") if axis in cell}
        job = {"cell": cell, **settings, "time_limit_s": self.time_limit_s(wildcards)}
        if again := wildcards.get("again"):
            job["repeat"] = int(again.rpartition("-")[2])
        if model := study.user_model:
            cell["model"] = model_values(model)
            job["written_files"] = str(self._written_files)
        return job

    def settings(self, kind: str, wildcards: Wildcards) -> dict[str, Any]:
        """What the config sets for a kind of job (a trial, training, search for the largest batch, or probe)."""
        if kind == "probe":
            return {"precisions": self._precisions}
        study = self._studies[wildcards["study"]]
        if kind == "trial":
            latencies = {"latency_steps": study.latency_steps, "latency_mistakes": study.latency_mistakes}
            return {"seed": self.config.keys.seed, "effort": self._efforts[study.name], **latencies}
        if kind == "batch_try":
            return {"seed": self.config.keys.seed, "search": asdict(self.config.keys.largest_batch)}
        quality = study.quality
        assert quality is not None
        return {"epochs": quality.epochs, "test_share": quality.test_share}

    def key(self, kind: str, wildcards: Wildcards) -> Key:
        """The key of a result. Axes and numbers of trials and trainings are part of its path, and not of its key."""
        axes = tuple(wildcards.get(axis, "") for axis in ("study", "workload", "execution", "device"))
        known = (kind, *axes)
        if known not in self._keys:
            self._keys[known] = Key.of(self._parts(kind, wildcards))
        return self._keys[known]

    def key_of_result(self, kind: str, wildcards: Wildcards) -> Key | None:
        """The key of a result in the results folder; None if its study does not ask for such results."""
        if kind == "probe":
            return self.key(kind, wildcards)
        study = self._studies.get(wildcards["study"])
        if study is None or study.workload != wildcards["workload"] or (kind == "training" and not study.quality):
            return None
        return self.key(kind, wildcards)

    def keys(self, cells: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The keys of all results of some cells, with their parts, for `plan.json`."""
        keys: dict[str, Key] = {}
        for cell in cells:
            study = self._studies[cell["study"]]
            asked = {"trial": True, "batch_try": study.largest_batch, "probe": True, "training": study.quality}
            for kind in (kind for kind, is_asked in asked.items() if is_asked):
                key = self.key(kind, {**cell, "trial": "1", "seed": "1"})
                keys[key.key] = key
        return [asdict(key) for key in keys.values()]

    @cached_property
    def _keys(self) -> dict[tuple[str, ...], Key]:
        return {}

    def _parts(self, kind: str, wildcards: Wildcards) -> dict[str, str]:
        settings = {**self.settings(kind, wildcards), "cpu_threads": self.config.keys.cpu_threads}
        if kind != "probe" and (model := self._studies[wildcards["study"]].user_model):
            settings |= model_values(model)
        parts = {name: str(value) for name, value in _flat(settings) if name not in NOT_COUNTED}
        parts |= self._machine_parts(wildcards["device"].partition("-")[0])
        if kind == "probe":
            return parts | {"code of the measurement": Key.of(digests_of("crossover.measurement.ranks.links")).key}
        code = self._codes(kind, wildcards["workload"], self._studies[wildcards["study"]].user_model).parts
        if self.machine.elsewhere:  # each node has variables of its own
            code = {name: value for name, value in code.items() if not name.startswith("variable ")}
        if wildcards["execution"] == "compile":
            parts["compilers"] = str(self.machine.compilers)
        if dataset := workload_traits(wildcards["workload"]).dataset:
            parts[f"dataset {dataset}"] = self.dataset_key(dataset)
        return parts | code

    def _machine_parts(self, device: str) -> dict[str, str]:
        machine = self.machine
        return {
            "torch": machine.torch_version,
            **({} if is_cpu(device) else {"driver": str(machine.driver_version)}),
            "hardware": str(machine.hardware.get(device)),
            **machine.conditions.get(device, {}),
            **{f"variable {name}": value for name, value in machine.variables.items()},
        }

    def dataset_key(self, name: str) -> str:
        """The key of a dataset: its options, the code that makes it, and the content of the user's files."""
        if name not in self._dataset_keys:
            options = self.config.datasets[name]
            files = {Path(file).name: Path(file) for file in real_files(options)}
            shown = {key: value for key, value in options.items() if not files or key not in ("csv", "folder")}
            parts = {"options": json.dumps(shown, sort_keys=True), **digests_of("crossover.datasets")}
            self._dataset_keys[name] = Key.of(parts | content_keys(files)).key
        return self._dataset_keys[name]

    @property
    def dataset_keys(self) -> dict[str, str]:
        """The keys of all datasets of the run's studies."""
        datasets = {workload_traits(study.workload).dataset for study in self.config.studies}
        return {name: self.dataset_key(name) for name in sorted(filter(None, datasets))}

    @cached_property
    def _dataset_keys(self) -> dict[str, str]:
        return {}

    @cached_property
    def _precisions(self) -> list[str]:
        """The precisions of all studies whose products a probe measures; functions have none that is known."""
        precisions = {precision for study in self.config.studies for precision in study.precisions}
        for study in self.config.studies:
            precisions |= {*study.compared.precisions} if study.compared else set()
        return sorted({COMPUTES_IN.get(precision, precision) for precision in precisions - {AS_WRITTEN}})

    @cached_property
    def _efforts(self) -> dict[str, dict[str, Any]]:
        """The effort of the trials of each study."""
        return {study.name: asdict(effort_of(study, self.config.effort)) for study in self.config.studies}

    @property
    def at_once(self) -> int:
        """Number of GPU trials that this machine measures side by side; 1 if it measures only the CPU."""
        accelerated = not all(map(is_cpu, self.config.devices or self.machine.devices))
        if self.machine.elsewhere or not accelerated or not self.config.keys.cluster.side_by_side:
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
        nodes, auto = self.machine.nodes, self.config.keys.cpu_threads == "auto"
        threads = 1 if auto else int(self.config.keys.cpu_threads)
        if is_cpu(wildcards["device"]):
            node_class = (self.config.keys.cluster.classes or {}).get(wildcards.get("machine", HERE), {})
            return node_class.get("cores") or max(threads, self.cores or (nodes.cpus if nodes else 1))
        return ((nodes.cpus_per_gpu if nodes and auto else None) or threads) * ranks_of_side(wildcards["device"])

    @property
    def resources_of_class(self) -> dict[str, Callable[[Wildcards], str | None]]:
        """The resources that classes of nodes set, such as `slurm_partition`, as functions of a job's wildcards."""
        classes = self.config.keys.cluster.classes or {}

        def value_of(name: str, wildcards: Wildcards) -> str | None:
            value = classes[wildcards["machine"]].get(name)
            needs_gpu = name == GPU_ONLY and is_cpu(wildcards["device"])
            return None if value is None or needs_gpu else str(value)

        return {name: partial(value_of, name) for name in resources_of(classes)}

    def gpu(self, wildcards: Wildcards) -> int | None:
        """GPUs that a measuring job requests: None for a CPU cell, since 0 would still be a request."""
        if is_cpu(wildcards["device"]):
            return None
        # Here, jobs wait for their turn and lease their GPUs themselves, since Snakemake starts whatever fits: one
        # that requested several would start last. If the run leaves some GPUs to others, these must not be leased.
        is_counted = self.machine.elsewhere or self.machine.has_spare_gpus
        return ranks_of_side(wildcards["device"]) if is_counted else 1

    def runtime_min(self, wildcards: Wildcards, attempt: int, start_min: int = START_MIN) -> int:
        """Minutes that a measuring process requests, `start_min` more than its time limit."""
        return (math.ceil(self.time_limit_s(wildcards) / 60) + start_min) * attempt

    def trial_min(self, wildcards: Wildcards, attempt: int) -> int:
        """Minutes that a trial requests: twice those of a process, since an invalid trial may be measured once more."""
        return 2 * self.runtime_min(wildcards, attempt)

    def search_min(self, wildcards: Wildcards, attempt: int) -> int:
        return self.runtime_min(wildcards, attempt, SEARCH_MIN)

    def mem_mb(self, wildcards: Wildcards, attempt: int) -> int:
        """Megabytes that a measuring job requests, doubled for each further attempt."""
        study = self._studies[wildcards["study"]]
        first_mb = study.mem_mb or memory_mb(wildcards["workload"], int(wildcards["size"]))
        return first_mb << (attempt - 1)

    def time_limit_s(self, wildcards: Wildcards) -> float:
        """The time limit of a measuring process."""
        return self._studies[wildcards["study"]].time_limit_s or self.config.keys.time_limit_s

    @property
    def _written_files(self) -> Path:
        return Path(self.config.results, RECORD)

    @cached_property
    def _studies(self) -> dict[str, Study]:
        return {study.name: study for study in self.config.studies}

    @cached_property
    def _codes(self) -> Callable[[str, str, Model | None], Code]:
        modules = Modules()
        return cache(lambda kind, workload, model: code_of(kind, workload, modules, model, self._written_files))


def model_values(model: Model) -> dict[str, Any]:
    """A user's model as JSON, without the defaults.

    Files are relative to the working directory, so that a moved project needs no new measurements.
    """
    values = {f.name: getattr(model, f.name) for f in fields(model) if getattr(model, f.name) != f.default}
    if model.file is not None:
        values["origin"] = relative_path(model.origin)
    if model.table is not None:
        values["table"] = {**asdict(model.table), "file": relative_path(model.table.file)}
    return values


def _flat(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The entries of a mapping and of the mappings in it."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value)
        else:
            yield name, value


def resources_of(classes: Classes | None) -> list[str]:
    """The resources that at least one class of nodes sets."""
    return sorted({name for values in (classes or {}).values() for name in values if name not in NO_RESOURCES})
