"""The configuration: read, completed with defaults, and checked before any job starts."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from crossover.claim_forms import check_claims_of
from crossover.discovery import Machine
from crossover.errors import UserError
from crossover.options import memory_size
from crossover.published_rows import read_published_rows
from crossover.studies import BatchSearch, Effort, Study, check_offered, known_workloads, workload_traits
from crossover.validation import Locator, allowed_names, as_typed, check, read_yaml, shown_path


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
    time_limit_s: float
    results: str
    effort: Effort
    largest_batch: BatchSearch
    datasets: Mapping[str, Mapping[str, Any]]
    compare: tuple[ComparedRun, ...]
    """Two runs, or none."""
    compare_from: str
    """The file that names them."""


def read_configuration(config: Mapping[str, Any], folder: Path, sources: Sequence[Path]) -> Configuration:
    """Check a config and the studies that it names.

    `config` is the merged mapping, `folder` the config folder with schema.yaml and studies/,
    `sources` the files that the mapping was merged from, the last one winning. Raises UserError.
    """
    schema = read_yaml(folder / "schema.yaml")
    locate = Locator(sources, config)
    complete = check(as_typed(config, schema), schema, locate)
    _check_memory_limit(complete["largest_batch"]["memory_limit"], locate)
    _check_csv(complete["datasets"]["higgs"]["csv"], locate)
    _check_folder(complete["datasets"]["mnist"]["folder"], locate)
    studies = tuple(
        _read_study(name, folder, _study_schema(schema), complete["datasets"], locate) for name in complete["studies"]
    )
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
        time_limit_s=float(complete["time_limit_s"]),
        results=complete["results"].rstrip("/"),
        effort=Effort(**{key: type(getattr(Effort, key))(value) for key, value in complete["effort"].items()}),
        largest_batch=BatchSearch(**complete["largest_batch"]),
        datasets=complete["datasets"],
        compare=tuple(_compared_run(name) for name in complete["compare"] or ()),
        compare_from=locate(("compare",)),
    )


def check_compared(configuration: Configuration) -> None:
    """Raise UserError where there are no two runs to compare."""
    where = f"{configuration.compare_from}: compare"
    if not configuration.compare:
        raise UserError(
            f"{where}: null, but compare_runs needs two results folders; "
            'name them, as --config "compare=[results, results/second]"'
        )
    for run in configuration.compare:
        if not Path(run.measurements).is_file():
            raise UserError(
                f"{where}: {run.measurements} does not exist; allowed: the results folder of a finished run, or "
                f"folder:study; `snakemake --cores 1 --config results={run.folder}` makes it"
            )


def _check_memory_limit(size: int | str | None, locate: Locator) -> None:
    """Raise UserError where a text is no size of memory."""
    try:
        memory_size(str(1 if size is None else size))
    except ArgumentTypeError as error:
        raise UserError(f"{locate(('largest_batch', 'memory_limit'))}: largest_batch.memory_limit: {error}") from None


def _compared_run(name: str) -> ComparedRun:
    single = re.fullmatch(r"(?P<folder>.+):(?P<study>[A-Za-z0-9_-]+)", name)
    folder = single["folder"] if single else name
    return ComparedRun(name, folder.rstrip("/"), single["study"] if single else None)


def check_device_list(configuration: Configuration, machine: Machine) -> None:
    """Raise UserError where a device that the config names cannot be used on this machine."""
    for device in configuration.devices or ():
        if device not in machine.devices:
            raise UserError(
                f"{configuration.devices_from}: devices: '{device}' cannot be used on this machine; "
                f"allowed here: auto, {', '.join(machine.devices)} ({machine.note or 'no other device was found'}); "
                "for a cluster set check_devices to false, as profiles/slurm does"
            )


def check_executor(configuration: Configuration, local: bool) -> None:
    """Raise UserError where jobs run elsewhere, but the devices would be those of this machine."""
    if configuration.devices is None and not local:
        raise UserError(
            f"{configuration.devices_from}: devices: 'auto' takes this machine's, but the jobs run elsewhere; name "
            "them, as profiles/slurm does (--config on the command line replaces all of a profile's config)"
        )


def _study_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a study, whose `effort` takes the keys of the run's, but none of its defaults."""
    study: dict[str, Any] = schema["$defs"]["study"]
    effort = schema["properties"]["effort"]
    keys = {
        key: {name: value for name, value in rule.items() if name != "default"}
        for key, rule in effort["properties"].items()
    }
    partial = {**study["properties"]["effort"], "additionalProperties": False, "properties": keys}
    return {**study, "properties": {**study["properties"], "effort": partial}}


def _read_study(
    name: str, folder: Path, schema: Mapping[str, Any], datasets: Mapping[str, Any], locate: Locator
) -> Study:
    known = sorted(path.stem for path in (folder / "studies").glob("*.yaml"))
    if name not in known:
        raise UserError(f"{locate(('studies',))}: studies: '{name}' is unknown; {allowed_names(name, known)}")
    file = folder / "studies" / f"{name}.yaml"
    shown = shown_path(file)
    values = read_yaml(file)
    complete = check(values, schema, Locator([file], values))
    workloads = known_workloads()
    if complete["workload"] not in workloads:
        raise UserError(
            f"{shown}: workload: '{complete['workload']}' is unknown; {allowed_names(complete['workload'], workloads)}"
        )
    if (complete["latency_mistakes"] or "latency" in complete["figures"]) and not complete["latency_steps"]:
        raise UserError(f"{shown}: latency_steps: latency needs steps to time; allowed: at least 300")
    published = complete["published"]
    if published and published["crossover"] and published["crossover"] != sorted(published["crossover"]):
        raise UserError(f"{shown}: published.crossover: {published['crossover']} is reversed; allowed: lowest, highest")
    if published and published["results"]:
        _check_results(folder / "published" / published["results"], complete["steps_per_run"], shown)
    fields: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in complete.items()
    }
    fields["sizes"] = tuple(sorted(complete["sizes"]))
    _check_quality(complete, shown)
    study = Study(name=name, **fields)
    keys = {axis: f"{shown}: {axis}s" for axis in ("size", "protocol", "variant")}
    for size, protocol, variant in product(study.sizes, study.protocols, study.variants):
        check_offered(study.workload, {"size": size, "protocol": protocol, "variant": variant}, keys)
    _check_batches(study, datasets, shown)
    check_claims_of(study, shown)
    return study


def _check_results(file: Path, steps_per_run: object, shown: str) -> None:
    """Read the published results as the figures will, so that a mistake shows before any job starts."""
    try:
        _, rows = read_published_rows(file)
    except UserError as error:
        raise UserError(f"{shown}: published.results: {error}") from None
    if steps_per_run is None and any("run_time_s" in row for row in rows):
        raise UserError(f"{shown}: steps_per_run: needed to compare with the run times of published.results")


def _check_quality(study: Mapping[str, Any], shown: str) -> None:
    """Raise UserError where a study could not train models, or would do nothing at all."""
    if study["quality"] is None:
        if not study["timed"]:
            raise UserError(f"{shown}: timed: false, and quality is null: nothing is left to do; set one of them")
        return
    traits = workload_traits(study["workload"])
    if traits.dataset is None or "resident" not in traits.protocols:
        raise UserError(
            f"{shown}: quality: workload '{study['workload']}' does not train on resident data with labels; "
            "allowed: null, or a workload that does, such as higgs_mlp"
        )
    if "fp32" not in study["precisions"]:
        raise UserError(f"{shown}: precisions: {study['precisions']} lacks fp32, which quality compares with; add it")


def _check_batches(study: Study, datasets: Mapping[str, Any], shown: str) -> None:
    """A batch must fit into its dataset, where the config says how many rows that has."""
    dataset = workload_traits(study.workload).dataset
    if dataset is None:
        return
    options = datasets[dataset]
    rows = None if options.get("csv") or options.get("folder") else options.get("points", options.get("rows"))
    for batch_size in study.batch_sizes:
        if rows is not None and batch_size > rows:
            raise UserError(
                f"{shown}: batch_sizes: {batch_size} is more than dataset '{dataset}' has; "
                f"allowed: at most its {rows} rows"
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
