"""Options of the command line that would change nothing, since the selected studies decide otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from crossover.config.config_keys import Configuration
from crossover.config.figure_kinds import asks_for_crossovers
from crossover.config.study import Study, effort_of
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
