"""Read the config, complete it with defaults, and check it before any job starts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from crossover.config.config_keys import ConfigKeys
from crossover.config.effects import check_effects
from crossover.config.studies import ENDS, PRESETS, BatchSearch, Effort, Refinement
from crossover.config.study import Study, effort_of
from crossover.config.study_files import OF_ONE_STUDY, read_study, study_file, study_names, study_of_model
from crossover.config.validation import Layer, Locator, check, joined
from crossover.config.words import HERE
from crossover.errors import UserError, allowed_names, shown_path
from crossover.files import why_not_writable, working_folder

OWN_FOLDERS = ("config", "docs", "envs", "profiles", "report", "rules", "scripts", "tests", ".git", ".snakemake")
"""Folders of the workflow itself, in which results are not allowed."""


@dataclass(frozen=True)
class Configuration:
    """The checked config."""

    studies: tuple[Study, ...]
    devices: tuple[str, ...] | None
    """None for `auto`."""
    devices_from: str
    """Name of the layer that sets the devices, for messages."""
    reference: str | tuple[str, ...]
    """`auto`, `none`, or names or folders of references."""
    effort: Effort
    refinement: Refinement
    trials: int
    seed: int
    results: str
    cpu_threads: int | str
    time_limit_s: float
    repeat_disturbed: int
    datasets: Mapping[str, Mapping[str, Any]]
    name: str
    """Name of this machine when exported as a reference."""
    prices: Mapping[str, float] | None
    """Price per hour, by device, reference or `here`."""
    currency: str | None
    largest_batch: BatchSearch
    classes: Mapping[str, Mapping[str, Any]] | None
    """Classes of a cluster's nodes, by name; None if all nodes are the same."""
    several_hosts: bool
    side_by_side: bool
    check_devices: bool
    complete: Mapping[str, Any]
    """All keys and values of the config, including defaults."""


def read_configuration(layers: Sequence[Layer], folder: Path) -> Configuration:
    """Read and check a config, in which later layers override earlier ones, and its studies; raises UserError."""
    locate = Locator(layers)
    complete = asdict(check(_merged(layers), ConfigKeys, locate))
    _check_of_one_study(complete, locate)
    complete, effort, refinement = _with_preset(complete)
    _check_results(complete["results"], folder.parent, locate)
    _check_prices(complete["prices"], complete["cluster"]["classes"], locate)
    _check_effort(effort, locate(("effort",)))
    studies = tuple(_read_studies(complete, folder, locate))
    for name, study in zip(complete["studies"], studies, strict=False):
        file = shown_path(study_file(name, folder))
        _check_effort(effort_of(study, effort), file, ", with the run's numbers where the study has none")
    check_effects(layers, complete, studies)
    devices, reference, prices = complete["devices"], complete["reference"], dict(complete["prices"] or {})
    unchanged = ("trials", "seed", "cpu_threads", "time_limit_s", "repeat_disturbed", "datasets", "name")
    return Configuration(
        studies=studies,
        devices=None if devices == "auto" else tuple(devices),
        devices_from=locate(("devices",)),
        reference=reference if isinstance(reference, str) else tuple(reference),
        effort=effort,
        refinement=refinement,
        results=os.path.normpath(complete["results"]),
        currency=prices.pop("currency", None),
        prices=prices or None,
        largest_batch=BatchSearch(**complete["largest_batch"]),
        complete=complete,
        **complete["cluster"],
        **{key: complete[key] for key in unchanged},
    )


def real_files(options: Mapping[str, Any]) -> list[str]:
    """The user's files from which a dataset is made; empty if there are none."""
    csv, folder = options.get("csv"), options.get("folder")
    if folder:
        return sorted(str(path) for path in Path(folder).glob("train-*-ubyte*"))
    # A user's dataset may have an option `csv` with another meaning.
    return [csv["signal"], csv["background"]] if isinstance(csv, Mapping) else []


def _merged(layers: Sequence[Layer]) -> dict[str, Any]:
    """Merge all layers.

    An `effort` with a preset replaces an earlier one; one without changes only its own numbers. Studies replace an
    earlier `model` and what describes it, and one of `batch_size` and `batch_sizes` replaces an earlier other one.
    """
    values: dict[str, Any] = {}
    for _, new in layers:
        if new.get("studies") is not None and values.get("model") is not None:
            values = {key: value for key, value in values.items() if key not in ("model", "batch_size", *OF_ONE_STUDY)}
        for key, other in (("batch_size", "batch_sizes"), ("batch_sizes", "batch_size")):
            if new.get(key) is not None and new.get(other) is None:
                values.pop(other, None)
        before, after = values.get("effort"), new.get("effort")
        if isinstance(after, Mapping) and isinstance(before, str):
            new = {**new, "effort": {"preset": before, **after}}
        elif isinstance(after, Mapping) and "preset" in after:
            values = {**values, "effort": {}}
        values = joined(values, new)
    return values


def _read_studies(config: Mapping[str, Any], folder: Path, locate: Locator) -> Iterator[Study]:
    of_model = None if config["model"] is None else study_of_model(config, locate)
    names = sorted({*([of_model.name] if of_model else config["studies"]), *study_names(folder)})
    for name in config["overrides"]:
        if name not in names:
            raise UserError(
                f"{locate(('overrides', name))}: overrides: '{name}' is unknown; {allowed_names(name, names)}"
            )
    if of_model:
        yield of_model
        return
    for name in config["studies"]:
        yield read_study(name, folder, config, locate)


def _check_of_one_study(config: Mapping[str, Any], locate: Locator) -> None:
    """Raise UserError if the keys of `model` or of one study are given for several, or two for the same value."""
    given = [key for key in ("batch_size", *OF_ONE_STUDY) if config[key] is not None]
    if {"batch_size", "batch_sizes"} <= {*given}:
        raise UserError(f"{locate(('batch_size',))}: batch_size and batch_sizes are both given; allowed: one of them")
    names = config["studies"]
    if given and config["model"] is None and len(names) > 1:
        key = "batch_sizes" if given[0] == "batch_size" else given[0]
        raise UserError(
            f"{locate((given[0],))}: {given[0]}: for `model` or one study, but {len(names)} are selected; select one, "
            f"or give it to a study: overrides={{{names[0]}: {{{key}: ...}}}}"
        )


def _with_preset(complete: Mapping[str, Any]) -> tuple[dict[str, Any], Effort, Refinement]:
    numbers = complete["effort"]
    numbers = {"preset": numbers} if isinstance(numbers, str) else dict(numbers)
    name = numbers.pop("preset", "default")
    preset = PRESETS[name]
    refined = numbers.pop("refinement", {})
    if complete["trials"] is not None and preset.refinement.first_trials == 1:
        refined = {"first_trials": complete["trials"], **refined}  # a preset of single trials adds few others
    refinement = replace(preset.refinement, **refined)
    effort = replace(preset.effort, **numbers)
    trials = preset.trials if complete["trials"] is None else complete["trials"]
    all_refined = {**asdict(refinement), "pairs": list(refinement.pairs)}
    all_numbers = {"preset": name, **asdict(effort), "refinement": all_refined}
    return {**complete, "effort": all_numbers, "trials": trials}, effort, refinement


def _check_effort(effort: Effort, file: str, whose: str = "") -> None:
    for least, most in ENDS:
        low, high = getattr(effort, least), getattr(effort, most)
        if low > high:
            raise UserError(
                f"{file}: effort.{least}: {low:g} is more than effort.{most}, {high:g}{whose}; lower the first or "
                "raise the second"
            )


def _check_results(results: str, workflow: Path, locate: Locator) -> None:
    folder = Path(results)
    existing = next(path for path in (folder.absolute(), *folder.absolute().parents) if os.path.lexists(path))
    problem = None
    if not existing.is_dir():
        problem = f"cannot be made, since {shown_path(existing)} is not a folder"
    elif working_folder().is_relative_to(folder.resolve()):
        problem = "contains the working directory"
    elif any(folder.resolve().is_relative_to(workflow.resolve() / name) for name in OWN_FOLDERS):
        problem = "belongs to the workflow itself"
    elif why := why_not_writable(existing):
        problem = f"cannot be written: no file can be made in {shown_path(existing)} ({why})"
    if problem:
        raise UserError(f"{locate(('results',))}: results: {results} {problem}; allowed: a folder for this run alone")


def _check_prices(prices: Mapping[str, Any] | None, classes: Mapping[str, Any] | None, locate: Locator) -> None:
    if prices and len(classes or ()) > 1:
        raise UserError(
            f"{locate(('prices',))}: prices: for one machine, but cluster.classes names several; allowed: null"
        )
    if prices and classes and HERE in prices:
        raise UserError(
            f"{locate(('prices', HERE))}: prices.{HERE}: not possible with cluster.classes; allowed: prices by device, "
            "such as {cpu: 0.8, cuda: 4}"
        )
    if prices is not None and not prices.keys() - {"currency"}:
        raise UserError(
            f"{locate(('prices',))}: prices: none is given; allowed: null, or prices such as {{here: 0.8, h200: 4}}"
        )
