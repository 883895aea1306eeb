"""The configuration: read, completed with defaults, and checked before any job starts."""

from __future__ import annotations

import os
import re
from argparse import ArgumentTypeError
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crossover.config.efforts import check_effort, check_effort_of
from crossover.config.options import memory_size
from crossover.config.studies import BatchSearch, Effort, Refinement, Study
from crossover.config.study_files import read_study, study_schema
from crossover.config.validation import Locator, check
from crossover.config.yaml_files import Layer, merged, read_yaml, shown_path
from crossover.errors import UserError
from crossover.machine.discovery import Machine


@dataclass(frozen=True)
class ComparedRun:
    """A results folder, or a single study of it, that another one is compared with."""

    name: str
    """As the config has it."""
    folder: str
    study: str | None

    @property
    def measurements(self) -> str:
        """Path of its table of trials."""
        return f"{self.folder}/measurements.parquet"


@dataclass(frozen=True)
class Configuration:
    """The checked config."""

    studies: tuple[Study, ...]
    devices: tuple[str, ...] | None
    """None: the devices of this machine."""
    devices_from: str
    """The file that names the devices."""
    check_devices: bool
    several_hosts: bool
    trials: int
    seed: int
    cpu_threads: int | str
    isolation: str
    side_by_side: bool
    time_limit_s: float
    results: str
    check_pairs: int | None
    """None: each check's own number."""
    effort: Effort
    refinement: Refinement
    largest_batch: BatchSearch
    price_per_hour: Mapping[str, float] | None
    """Of the machine that holds a device; None: crossovers in money are not asked for."""
    currency: str | None
    datasets: Mapping[str, Mapping[str, Any]]
    merge: Sequence[str] | Mapping[str, str] | None
    """Results folders to join, and the names of their machines if they are given."""
    merge_from: str
    """The file that names them."""
    hardware: Mapping[str, Mapping[str, Any]] | None
    """Classes of nodes; None: all nodes are alike."""
    compare: tuple[ComparedRun, ...]
    """Two runs, or none."""
    compare_from: str
    """The file that names them."""
    complete: Mapping[str, Any]
    """All of it as one file would say it, defaults included."""


def read_configuration(layers: Sequence[Layer], folder: Path) -> Configuration:
    """Check a config and the studies that it names.

    `layers` are its values and where they come from, the last one winning, `folder` is the config folder with
    schema.yaml and studies/. Raises UserError.
    """
    schema = read_yaml(folder / "schema.yaml")
    locate = Locator(layers)
    complete = check(merged(layers), schema, locate)
    _check_results(complete["results"], locate)
    _check_memory_limit(complete["largest_batch"]["memory_limit"], locate)
    _check_csv(complete["datasets"]["higgs"]["csv"], locate)
    _check_folder(complete["datasets"]["mnist"]["folder"], locate)
    effort = Effort(**{key: type(getattr(Effort, key))(value) for key, value in complete["effort"].items()})
    check_effort(effort, locate)
    _check_prices(complete, locate)
    studies = tuple(
        read_study(name, folder, study_schema(schema), complete["datasets"], locate) for name in complete["studies"]
    )
    for study in studies:
        check_effort_of(study, effort, shown_path(folder / "studies" / f"{study.name}.yaml"))
    devices = complete["devices"]
    return Configuration(
        studies=studies,
        devices=None if devices == "auto" else tuple(devices),
        devices_from=locate(("devices",)),
        check_devices=complete["check_devices"],
        several_hosts=complete["several_hosts"],
        trials=complete["trials"],
        seed=complete["seed"],
        cpu_threads=complete["cpu_threads"],
        isolation=complete["isolation"],
        side_by_side=complete["side_by_side"],
        time_limit_s=float(complete["time_limit_s"]),
        results=os.path.normpath(complete["results"]),
        check_pairs=complete["check_pairs"],
        effort=effort,
        refinement=Refinement(**complete["refinement"]),
        largest_batch=BatchSearch(**complete["largest_batch"]),
        price_per_hour=complete["price_per_hour"],
        currency=complete["currency"],
        datasets=complete["datasets"],
        merge=complete["merge"],
        merge_from=locate(("merge",)),
        hardware=complete["hardware"],
        compare=tuple(_compared_run(name) for name in complete["compare"] or ()),
        compare_from=locate(("compare",)),
        complete=complete,
    )


def check_compared(configuration: Configuration) -> None:
    """Raise UserError where there are no two runs to compare."""
    where = f"{configuration.compare_from}: compare"
    if not configuration.compare:
        raise UserError(
            f"{where}: null, but compare_runs needs two results folders; "
            'name them, as --config "compare=[results, results/second]"'
        )
    first, second = configuration.compare
    if (first.folder, first.study) == (second.folder, second.study):
        raise UserError(f"{where}: {first.name} and {second.name} are one run; allowed: two results folders or studies")
    for run in configuration.compare:
        if not Path(run.measurements).is_file():
            raise UserError(
                f"{where}: {run.measurements} does not exist; allowed: the results folder of a finished run, or "
                f"folder:study; `snakemake --cores 1 --config results={run.folder}` makes it"
            )


def check_merge(configuration: Configuration) -> None:
    """Raise UserError where there are no runs to merge."""
    if not configuration.merge:
        raise UserError(
            f"{configuration.merge_from}: merge: null, but merge needs results folders of one machine or more; "
            "name them, as --config merge='{laptop: results_a, h200: results_b}'"
        )


CHECKOUT = Path(__file__).resolve().parents[3]
OWN_FOLDERS = ("config", "docs", "envs", "profiles", "report", "rules", "scripts", "tests", ".git", ".snakemake")


def _check_results(results: str, locate: Locator) -> None:
    """Raise UserError where no folder of the run's own can be made, or there is none."""
    folder = Path(results)
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if os.path.lexists(path))
    problem = None
    if not there.is_dir():
        problem = f"cannot be made, since {shown_path(there)} is no folder"
    elif Path.cwd().is_relative_to(folder.resolve()):
        problem = "holds the working directory"
    elif any(folder.resolve().is_relative_to(CHECKOUT / name) for name in OWN_FOLDERS):
        problem = "is the workflow's own"
    elif not os.access(there, os.W_OK | os.X_OK):
        problem = f"cannot be written, since {shown_path(there)} is not yours"
    if problem:
        raise UserError(f"{locate(('results',))}: results: {results} {problem}; allowed: a folder for this run alone")


def _check_memory_limit(size: int | str | None, locate: Locator) -> None:
    """Raise UserError where a text is no size of memory."""
    try:
        memory_size(str(1 if size is None else size))
    except ArgumentTypeError as error:
        raise UserError(f"{locate(('largest_batch', 'memory_limit'))}: largest_batch.memory_limit: {error}") from None


def _compared_run(name: str) -> ComparedRun:
    single = re.fullmatch(r"(?P<folder>.+):(?P<study>[A-Za-z0-9_-]+)", name)
    folder = single["folder"] if single else name
    return ComparedRun(name, os.path.normpath(folder), single["study"] if single else None)


def real_files(options: Mapping[str, Any]) -> list[str]:
    """The real files that a dataset is made from, if the config names any; what is missing, its maker says."""
    csv, folder = options.get("csv"), options.get("folder")
    if folder:
        return sorted(str(path) for path in Path(folder).glob("train-*-ubyte*"))
    # A dataset of a user's own may have an option of that name that means something else.
    return [csv["signal"], csv["background"]] if isinstance(csv, Mapping) else []


def check_device_list(configuration: Configuration, machine: Machine) -> None:
    """Raise UserError where a device that the config names cannot be used on this machine."""
    for device in configuration.devices or ():
        if device not in machine.devices:
            raise UserError(
                f"{configuration.devices_from}: devices: '{device}' cannot be used on this machine; "
                f"allowed here: auto, {', '.join(machine.devices)} ({machine.note or 'no other device was found'}); "
                "to plan or report what another machine measures, set check_devices to false"
            )


def check_executor(configuration: Configuration, machine: Machine, local: bool) -> None:
    """Raise UserError where jobs run elsewhere, but nobody says what is there; `local`: they run here after all."""
    if local and machine.elsewhere:
        raise UserError(
            "--jobs: counts the jobs of a cluster, but these run here; give --cores, or a cluster's profile"
        )
    if local or machine.nodes is not None:
        return
    if configuration.devices is None:
        raise UserError(
            f"{configuration.devices_from}: devices: 'auto' takes what Slurm says of its nodes, but sinfo says "
            "nothing of the jobs' partition; name the nodes' devices, as [cpu, cuda]"
        )
    classes = configuration.hardware or {"": {}}
    if configuration.cpu_threads == "auto" and not all(one.get("cores") for one in classes.values()):
        raise UserError(
            "cpu_threads: 'auto' takes the cores that Slurm says its nodes have, but sinfo says nothing of the jobs' "
            "partition; give the cores of a node that a job may have, as cpu_threads=8"
        )


def _check_prices(complete: Mapping[str, Any], locate: Locator) -> None:
    """Raise UserError where there are several machines, but prices of one."""
    if complete["price_per_hour"] and (complete["merge"] or len(complete["hardware"] or ()) > 1):
        raise UserError(
            f"{locate(('price_per_hour',))}: price_per_hour: the prices are of one machine, but several are named by "
            "merge or hardware; allowed: null"
        )


def _check_csv(csv: Mapping[str, Any] | None, locate: Locator) -> None:
    for role in ("signal", "background") if csv else ():
        path = Path(csv[role])  # type: ignore[index]
        if not path.is_file():
            key = ("datasets", "higgs", "csv", role)
            raise UserError(f"{locate(key)}: {'.'.join(key)}: {path} does not exist; give the path of a CSV file")


def _check_folder(folder: str | None, locate: Locator) -> None:
    if folder is not None and not Path(folder).is_dir():
        key = ("datasets", "mnist", "folder")
        raise UserError(f"{locate(key)}: {'.'.join(key)}: {folder} is no folder; give the one with MNIST's files")
