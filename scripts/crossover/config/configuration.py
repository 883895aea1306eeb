"""Read the config, complete it with defaults, and check it before any job starts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from crossover.config.config_keys import ConfigKeys, Configuration
from crossover.config.figure_kinds import asks_for_crossovers
from crossover.config.layers import Layer, Locator, check, joined
from crossover.config.studies import ENDS, PRESETS, Effort, Refinement
from crossover.config.study import Study, StudyFile, effort_of
from crossover.config.study_files import OF_ONE_STUDY, read_study, study_file, study_names, study_of_model
from crossover.config.words import HERE
from crossover.config.workloads import workload_traits
from crossover.errors import UserError, allowed_names, shown_path
from crossover.files import why_not_writable, working_folder
from crossover.text import listed

OWN_FOLDERS = ("config", "docs", "envs", "profiles", "report", "rules", "scripts", "tests", ".git", ".snakemake")
"""Folders of the workflow itself, in which results are not allowed."""

STUDY_ONLY = {field.name for field in fields(StudyFile)} - {field.name for field in fields(ConfigKeys)}
"""Keys of a study that are no keys of a config."""

DOUBLINGS = 6
"""Doublings of the trials at a crossover in a run with `minutes`, which the time usually ends before."""

WIDTH_IN_TIME = 0.05
"""Default of `target_width` in a run with `minutes`."""


def read_configuration(layers: Sequence[Layer], folder: Path) -> Configuration:
    """Read and check a config, in which later layers override earlier ones, and its studies; raises UserError."""
    locate = Locator(layers)
    values = _merged(layers)
    of_study = [key for key in values if key in STUDY_ONLY]
    keys = check({key: value for key, value in values.items() if key not in of_study}, ConfigKeys, locate)
    _check_of_one_study(keys, locate)
    if of_study:
        key = of_study[0]
        raise UserError(f"{locate((key,))}: {key}: a key of a study; give it to one: {_override(keys, key, locate)}")
    trials_given = keys.trials is not None
    preset, effort, refinement, trials = _with_preset(keys)
    keys = replace(keys, effort={"preset": preset, **asdict(effort), "refinement": asdict(refinement)}, trials=trials)
    _check_results(keys.results, folder.parent, locate)
    _check_prices(keys, locate)
    _check_effort(effort, locate(("effort",)))
    studies = tuple(_with_pairs(study, refinement) for study in _read_studies(keys, folder, locate))
    for name, study in zip(keys.studies, studies, strict=False):
        file = shown_path(study_file(name, folder))
        _check_effort(effort_of(study, effort), file, ", with the run's numbers where the study has none")
    devices = None if isinstance(keys.devices, str) else keys.devices
    config = Configuration(keys, studies, devices, locate(("devices",)), effort, refinement, trials, trials_given)
    _check_effects(layers, config)
    return config


def _with_pairs(study: Study, run: Refinement) -> Study:
    """The study with the run's pairs to refine, if these are not the default ones and it has none of its own.

    Its main answers are on its pairs.
    """
    if study.refinement is None or run.pairs == Refinement().pairs:
        return study
    return replace(study, refinement={"pairs": list(run.pairs), **study.refinement})


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
    earlier `model` and what describes it.
    """
    values: dict[str, Any] = {}
    for _, new in layers:
        if new.get("studies") is not None and values.get("model") is not None:
            values = {key: value for key, value in values.items() if key not in ("model", *OF_ONE_STUDY)}
        before, after = values.get("effort"), new.get("effort")
        if isinstance(after, Mapping) and isinstance(before, str):
            new = {**new, "effort": {"preset": before, **after}}
        elif isinstance(after, Mapping) and "preset" in after:
            values = {**values, "effort": {}}
        values = joined(values, new)
    return values


def _read_studies(keys: ConfigKeys, folder: Path, locate: Locator) -> Iterator[Study]:
    of_model = None if keys.model is None else study_of_model(keys, locate)
    names = sorted({*([of_model.name] if of_model else keys.studies), *study_names(folder)})
    for name in keys.overrides:
        if name not in names:
            raise UserError(
                f"{locate(('overrides', name))}: overrides: '{name}' is unknown; {allowed_names(name, names)}"
            )
    if of_model:
        yield of_model
        return
    for name in keys.studies:
        yield read_study(name, folder, keys, locate)


def _check_of_one_study(keys: ConfigKeys, locate: Locator) -> None:
    """Raise UserError if keys of `model` or of one study are given for several."""
    given = [key for key in OF_ONE_STUDY if getattr(keys, key) is not None]
    names = keys.studies
    if given and keys.model is None and len(names) > 1:
        key = given[0]
        raise UserError(
            f"{locate((key,))}: {key}: for `model` or one study, but {len(names)} are selected; select one, "
            f"or give it to a study: {_override(keys, key, locate)}"
        )


def _override(keys: ConfigKeys, key: str, locate: Locator) -> str:
    """The config entry that gives a key to the first study of the run."""
    name = keys.studies[0] if keys.model is None else study_of_model(keys, locate).name
    return f"overrides={{{name}: {{{key}: ...}}}}"


def _with_preset(keys: ConfigKeys) -> tuple[str, Effort, Refinement, int]:
    """The preset, and its numbers with the changes of `effort` and `trials`."""
    numbers: dict[str, Any] = {"preset": keys.effort} if isinstance(keys.effort, str) else dict(keys.effort)
    name: str = numbers.pop("preset", "default")
    refined: Mapping[str, Any] = numbers.pop("refinement", {})
    preset = PRESETS[name]
    if keys.trials is not None and preset.refinement.first_trials == 1:
        refined = {"first_trials": keys.trials, **refined}  # a preset of single trials adds few others
    if keys.minutes is not None:
        refined = {"doublings": DOUBLINGS, "target_width": WIDTH_IN_TIME, **refined}
    return name, replace(preset.effort, **numbers), replace(preset.refinement, **refined), keys.trials or preset.trials


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


def _check_prices(keys: ConfigKeys, locate: Locator) -> None:
    prices, classes = keys.prices, keys.cluster.classes
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


def _check_effects(layers: Sequence[Layer], config: Configuration) -> None:
    """Raise UserError if a key of the last layer, which is the command line, has no effect on any study.

    Earlier layers, and the only layer of a Snakemake module, may hold keys for studies of other runs.
    """
    if len(layers) == 1:
        return
    layer, given = layers[-1]
    names = config.keys.studies if config.keys.model is None else [study.name for study in config.studies]
    for problem in _without_effect(given, config, dict(zip(names, config.studies, strict=True))):
        raise UserError(f"{layer}: {problem}")


def _without_effect(given: Mapping[str, Any], config: Configuration, studies: Mapping[str, Study]) -> Iterator[str]:
    selected = listed([*studies])
    used = {name: _numbers_of(study, config) for name, study in studies.items()}
    for name, overrides in (given.get("overrides") or {}).items():
        if name not in studies:
            yield f"overrides: '{name}' is not selected; allowed: {selected}, or select it with studies"
        for key, value in _flat(overrides):
            if value != (most := used[name].get(key, value)):
                spelled = _spelled(key, value)
                yield f"overrides.{name}.{key}: {value:g} is more than the run's {most:g}; give {spelled} too"
    for key, value in _flat(given):
        of_studies = {name: numbers[key] for name, numbers in used.items() if key in numbers}
        if of_studies and value not in of_studies.values():
            shown = listed([f"{name} has {number:g}" for name, number in of_studies.items()])
            override = f"overrides={{{next(iter(studies))}: {{{_spelled(key, value, ': ')}}}}}"
            yield f"{key}: {value}, but {shown} of its own; give {override} too"
    effort = given.get("effort")
    if isinstance(effort, Mapping):
        if "latencies_max_s" in effort and not any(study.latency_steps for study in studies.values()):
            yield "effort.latencies_max_s: no selected study has latency_steps; remove it"
        if "refinement" in effort and not any(map(_may_be_refined, studies.values())):
            yield "effort.refinement: no selected study looks for crossovers or other comparisons to refine; remove it"
    read = {workload_traits(study.workload).dataset for study in studies.values()}
    for name in given.get("datasets") or {}:
        if name not in read:
            yield f"datasets.{name}: no selected study reads it ({selected}); remove it, or select one that does"


def _numbers_of(study: Study, config: Configuration) -> dict[str, float]:
    """The numbers with which a study is measured, by key: its own, or those of the run."""
    effort = asdict(effort_of(study, config.effort))
    return {
        "trials": min(study.trials or config.trials, config.trials),
        "time_limit_s": study.time_limit_s or config.keys.time_limit_s,
        **{f"effort.{key}": number for key, number in effort.items()},
    }


def _flat(values: Mapping[str, Any]) -> list[tuple[str, float]]:
    """The numbers among values of a config or study, and those of its effort."""
    effort = values.get("effort")
    inner = {f"effort.{key}": value for key, value in effort.items()} if isinstance(effort, Mapping) else {}
    return [(key, value) for key, value in {**values, **inner}.items() if isinstance(value, int | float)]


def _spelled(key: str, value: float, sign: str = "=") -> str:
    """An entry of the command line, or with ": " one of a mapping: `trials=3`, `effort={timed_max_s: 9}`."""
    above, _, last = key.rpartition(".")
    return f"{above}{sign}{{{last}: {value:g}}}" if above else f"{last}{sign}{value:g}"


def _may_be_refined(study: Study) -> bool:
    """Whether refinement may add trials to a study, on machines with a CPU and an accelerator."""
    compares = asks_for_crossovers(study.figures) or study.candidates is not None
    varies = len(study.precisions) > 1 or len(study.executions) > 1
    return study.timed and study.refinement is not None and len(study.points) > 1 and (compares or varies)
