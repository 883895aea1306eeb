from __future__ import annotations

from dataclasses import fields, replace

from crossover.config.options import search_options, trial_options
from crossover.config.studies import BatchSearch, Effort
from crossover.config.words import AXES
from trials import CELL


def test_a_search_has_every_axis_but_the_batch_size_and_no_option_that_is_not_set() -> None:
    shared = {"seed": 1, "cpu_threads": 2, "time_limit_s": 60.0}
    options = search_options(vars(CELL), BatchSearch(start=8, memory_limit="8GB"), **shared)
    given = dict(option.removeprefix("--").split("=") for option in options)
    assert given == {
        **{axis: str(getattr(CELL, axis)) for axis in AXES if axis not in ("batch_size", "machine")},
        "start": "8",
        "memory-limit": "8GB",
        "timed-batches": "100",
        "seed": "1",
        "cpu-threads": "2",
        "time-limit-s": "60.0",
        "isolation": "auto",
    }
    assert "--limit=9" in search_options(vars(CELL), BatchSearch(limit=9), **shared)


def test_mistakes_of_the_latency_are_an_option_without_a_value() -> None:
    shared = {"seed": 1, "cpu_threads": "auto", "time_limit_s": 60.0, "effort": Effort()}
    assert "--latency-mistakes" in trial_options(CELL, **shared, latency_mistakes=True)
    assert not any("mistakes" in option for option in trial_options(CELL, **shared))


def test_options_name_every_axis_and_every_effort() -> None:
    options = trial_options(CELL, seed=1, cpu_threads="auto", time_limit_s=60.0, effort=Effort())
    names = {option.split("=")[0] for option in options}
    expected = {
        *(axis for axis in AXES if axis != "machine"),
        "seed",
        "cpu_threads",
        "time_limit_s",
        "latency_steps",
        "isolation",
        *(field.name for field in fields(Effort)),
    }
    assert names == {f"--{name.replace('_', '-')}" for name in expected}


def test_only_a_machine_that_has_a_name_is_an_option() -> None:
    named = replace(CELL, machine="h200")
    shared = {"seed": 1, "cpu_threads": "auto", "time_limit_s": 60.0}
    assert set(trial_options(named, **shared, effort=Effort())) - set(
        trial_options(CELL, **shared, effort=Effort())
    ) == {"--machine=h200"}
    assert "--machine=h200" in search_options(vars(named), BatchSearch(), **shared)
