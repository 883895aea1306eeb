"""Options of the command line that would change nothing, since the selected studies decide otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from crossover.config.config_keys import Configuration
from crossover.config.figure_kinds import asks_for_crossovers
from crossover.config.studies import CAPS
from crossover.config.study import Study
from crossover.config.validation import Layer
from crossover.config.workloads import workload_traits
from crossover.errors import UserError
from crossover.text import listed


def check_effects(layers: Sequence[Layer], config: Configuration) -> None:
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
    for name in given.get("overrides") or {}:
        if name not in studies:
            yield f"overrides: '{name}' is not selected; allowed: {selected}, or select it with studies"
    yield from _overridden_in_vain(given, config, studies)
    yield from _decided_by_studies(given, config, studies)
    read = {workload_traits(study.workload).dataset for study in studies.values()}
    for name in given.get("datasets") or {}:
        if name not in read:
            yield f"datasets.{name}: no selected study reads it ({selected}); remove it, or select one that does"


def _overridden_in_vain(given: Mapping[str, Any], config: Configuration, studies: Mapping[str, Study]) -> Iterator[str]:
    """Numbers of `overrides` above those of the run, which the run's limit."""
    for name, overrides in (given.get("overrides") or {}).items():
        study = studies[name]
        if "trials" in overrides and (study.trials or 0) > config.trials:
            yield (
                f"overrides.{name}.trials: {study.trials} is more than the run's {config.trials}; give "
                f"trials={study.trials} too"
            )
        for key in (key for key in CAPS if key in (overrides.get("effort") or {})):
            value, most = study.effort[key], getattr(config.effort, key)
            if value > most:
                yield (
                    f"overrides.{name}.effort.{key}: {value:g} is more than the run's {most:g}; give "
                    f"effort={{{key}: {value:g}}} too"
                )


def _decided_by_studies(given: Mapping[str, Any], config: Configuration, studies: Mapping[str, Study]) -> Iterator[str]:
    """Numbers for the whole run that all selected studies set themselves, or that none of them uses."""
    trials = config.trials
    own = {name: study.trials for name, study in studies.items() if study.trials}
    if given.get("trials") is not None and _for_each(studies, [number < trials for number in own.values()]):
        yield _set_by("trials", own, trials)
    limit = given.get("time_limit_s")
    limits = {name: study.time_limit_s for name, study in studies.items() if study.time_limit_s is not None}
    if limit is not None and _for_each(studies, [number != limit for number in limits.values()]):
        yield _set_by("time_limit_s", limits, limit)
    effort = given.get("effort")
    for key, value in effort.items() if isinstance(effort, Mapping) else ():
        numbers = {name: study.effort[key] for name, study in studies.items() if key in study.effort}
        if _for_each(studies, [n < value if key in CAPS else n != value for n in numbers.values()]):
            yield _set_by(f"effort.{key}", numbers, value)
        if key == "latencies_max_s" and not any(study.latency_steps for study in studies.values()):
            yield f"effort.{key}: no selected study has latency_steps; remove it"
        if key == "refinement" and not any(map(_may_be_refined, studies.values())):
            yield f"effort.{key}: no selected study looks for crossovers or other comparisons to refine; remove it"


def _for_each(studies: Mapping[str, Study], in_vain: Sequence[bool]) -> bool:
    """Whether all studies have a number of their own, and the run's has no effect on any of them."""
    return len(in_vain) == len(studies) and all(in_vain)


def _set_by(key: str, own: Mapping[str, Any], value: object) -> str:
    shown = listed([f"{study} has {number:g}" for study, number in own.items()])
    *above, last = key.split(".")
    inner = "".join(f"{part}: {{" for part in above) + f"{last}: {value}" + "}" * len(above)
    also = " too" if last in ("trials", *CAPS) else " instead"
    return f"{key}: {value}, but {shown} of its own; give overrides={{{next(iter(own))}: {{{inner}}}}}{also}"


def _may_be_refined(study: Study) -> bool:
    """Whether refinement may add trials to a study, on machines with a CPU and an accelerator."""
    compares = asks_for_crossovers(study.figures) or study.candidates is not None
    varies = len(study.precisions) > 1 or len(study.executions) > 1
    return study.timed and study.refinement is not None and len(study.points) > 1 and (compares or varies)
