"""Read the config, complete it with defaults, and check it before any job starts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from crossover.config.config_keys import ConfigKeys
from crossover.config.studies import ENDS, PRESETS, BatchSearch, Effort, Refinement, Study, effort_of
from crossover.config.study_files import read_study, study_file, study_names, study_of_model
from crossover.config.validation import Layer, Locator, check, joined
from crossover.config.words import HERE
from crossover.errors import UserError, allowed_names, shown_path
from crossover.files import why_not_writable

OWN_FOLDERS = ("config", "docs", "envs", "profiles", "report", "rules", "scripts", "tests", ".git", ".snakemake")
"""Folders of the workflow itself, not allowed for results."""


@dataclass(frozen=True)
class Configuration:
    """The checked config."""

    studies: tuple[Study, ...]
    devices: tuple[str, ...] | None
    """None: the devices of this machine."""
    devices_from: str
    """The file in which the devices are set."""
    reference: str | tuple[str, ...]
    """Machines measured elsewhere: auto, none, or their names or folders."""
    effort: Effort
    refinement: Refinement
    trials: int
    seed: int
    results: str
    cpu_threads: int | str
    time_limit_s: float
    repeat_disturbed: int
    """Maximum number of repeats of a disturbed trial."""
    datasets: Mapping[str, Mapping[str, Any]]
    name: str
    """Name of this machine as a reference."""
    prices: Mapping[str, float] | None
    """Price per hour, by device, name of a reference, or `here` for this machine; None: no costs in money."""
    currency: str | None
    largest_batch: BatchSearch
    classes: Mapping[str, Mapping[str, Any]] | None
    """Classes of a cluster's nodes; None: all nodes are the same."""
    several_hosts: bool
    side_by_side: bool
    check_devices: bool
    complete: Mapping[str, Any]
    """The whole config as one file, defaults included."""


def read_configuration(layers: Sequence[Layer], folder: Path) -> Configuration:
    """Read and check a config and the studies it names; later layers win.

    `folder` is the workflow's config folder, with studies/. Raises UserError.
    """
    locate = Locator(layers)
    complete = check(_merged(layers), ConfigKeys, locate)
    complete, effort, refinement = _with_preset(complete)
    _check_results(complete["results"], folder.parent, locate)
    _check_prices(complete["prices"], complete["cluster"]["classes"], locate)
    _check_effort(effort, locate(("effort",)))
    studies = tuple(_read_studies(complete, folder, locate))
    for name, study in zip(complete["studies"], studies, strict=False):
        file = shown_path(study_file(name, folder))
        _check_effort(effort_of(study, effort), file, ", with the run's numbers where the study has none")
    devices, prices, cluster = complete["devices"], dict(complete["prices"] or {}), complete["cluster"]
    return Configuration(
        studies=studies,
        devices=None if devices == "auto" else tuple(devices),
        devices_from=locate(("devices",)),
        reference=complete["reference"] if isinstance(complete["reference"], str) else tuple(complete["reference"]),
        effort=effort,
        refinement=refinement,
        trials=complete["trials"],
        seed=complete["seed"],
        results=os.path.normpath(complete["results"]),
        cpu_threads=complete["cpu_threads"],
        time_limit_s=complete["time_limit_s"],
        repeat_disturbed=complete["repeat_disturbed"],
        datasets=complete["datasets"],
        name=complete["name"],
        currency=prices.pop("currency", None),
        prices=prices or None,
        largest_batch=BatchSearch(**complete["largest_batch"]),
        classes=cluster["classes"],
        several_hosts=cluster["several_hosts"],
        side_by_side=cluster["side_by_side"],
        check_devices=cluster["check_devices"],
        complete=complete,
    )


def real_files(options: Mapping[str, Any]) -> list[str]:
    """The real files that a dataset is made from; empty if the config names none."""
    csv, folder = options.get("csv"), options.get("folder")
    if folder:
        return sorted(str(path) for path in Path(folder).glob("train-*-ubyte*"))
    # A user's dataset may have an option `csv` with another meaning.
    return [csv["signal"], csv["background"]] if isinstance(csv, Mapping) else []


def _merged(layers: Sequence[Layer]) -> dict[str, Any]:
    """Merge all layers. An effort that names a preset replaces the previous one; any other effort overrides its
    numbers."""
    values: dict[str, Any] = {}
    for _, new in layers:
        before, after = values.get("effort"), new.get("effort")
        if isinstance(after, Mapping) and isinstance(before, str):
            new = {**new, "effort": {"preset": before, **after}}
        elif isinstance(after, Mapping) and "preset" in after:
            values = {**values, "effort": {}}
        values = joined(values, new)
    return values


def _read_studies(values: Mapping[str, Any], folder: Path, locate: Locator) -> Iterator[Study]:
    """The studies listed in the config, or the study of its `model`."""
    if values["model"] is not None:
        yield study_of_model(values, values["datasets"], locate(("model",)))
        return
    if values["overrides"]:
        names = sorted({*values["studies"], *study_names(folder)})
        for name in values["overrides"]:
            if name not in names:
                raise UserError(
                    f"{locate(('overrides', name))}: overrides: '{name}' is unknown; {allowed_names(name, names)}"
                )
    for name in values["studies"]:
        yield read_study(name, folder, values["datasets"], locate, values["overrides"].get(name))


def _with_preset(complete: Mapping[str, Any]) -> tuple[dict[str, Any], Effort, Refinement]:
    """The config with all numbers of its effort and its number of trials, and the effort and refinement as values."""
    given = complete["effort"] if isinstance(complete["effort"], Mapping) else {"preset": complete["effort"]}
    name = given.get("preset", "default")
    preset = PRESETS[name]
    effort = replace(preset.effort, **{key: given[key] for key in given if key not in ("preset", "refinement")})
    refinement = replace(preset.refinement, **given.get("refinement", {}))
    trials = preset.trials if complete["trials"] is None else complete["trials"]
    numbers = {**asdict(effort), "refinement": {**asdict(refinement), "pairs": list(refinement.pairs)}}
    return {**complete, "effort": {"preset": name, **numbers}, "trials": trials}, effort, refinement


def _check_effort(effort: Effort, file: str, whose: str = "") -> None:
    """Raise UserError if a minimum time of the effort exceeds its maximum."""
    for least, most in ENDS:
        low, high = getattr(effort, least), getattr(effort, most)
        if low > high:
            raise UserError(
                f"{file}: effort.{least}: {low:g} is more than effort.{most}, {high:g}{whose}; lower the first or "
                "raise the second"
            )


def _check_results(results: str, workflow: Path, locate: Locator) -> None:
    """Raise UserError unless the results folder is writable and separate from the workflow's folders."""
    folder = Path(results)
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if os.path.lexists(path))
    problem = None
    if not there.is_dir():
        problem = f"cannot be made, since {shown_path(there)} is not a folder"
    elif Path.cwd().is_relative_to(folder.resolve()):
        problem = "holds the working directory"
    elif any(folder.resolve().is_relative_to(workflow.resolve() / name) for name in OWN_FOLDERS):
        problem = "is the workflow's own"
    elif why := why_not_writable(there):
        problem = f"cannot be written: no file can be made in {shown_path(there)} ({why})"
    if problem:
        raise UserError(f"{locate(('results',))}: results: {results} {problem}; allowed: a folder for this run alone")


def _check_prices(prices: Mapping[str, Any] | None, classes: Mapping[str, Any] | None, locate: Locator) -> None:
    """Raise UserError if no machine has a price, or if the nodes of several classes would share a price."""
    if prices and len(classes or ()) > 1:
        raise UserError(
            f"{locate(('prices',))}: prices: they are of one machine, but cluster.classes names several; allowed: null"
        )
    if prices and classes and HERE in prices:
        raise UserError(
            f"{locate(('prices', HERE))}: prices.{HERE}: cluster.classes names the machine that measures; allowed: its "
            "price by device, such as {cpu: 0.8, cuda: 4}"
        )
    if prices is not None and not prices.keys() - {"currency"}:
        raise UserError(
            f"{locate(('prices',))}: prices: none is given; allowed: null, or prices such as {{here: 0.8, h200: 4}}"
        )
