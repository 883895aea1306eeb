"""The command lines of the measuring scripts, as the workflow calls them: plain values, without dependencies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from crossover.config.studies import BatchSearch, Cell, Effort
from crossover.config.words import AXES, HERE


def trial_options(cell: Cell, **settings: Any) -> list[str]:
    """Command-line options of scripts/measure_cell.py that are the same for every trial of a cell."""
    return [*axis_options(vars(cell)), *setting_options(**settings)]


def axis_options(axes: Mapping[str, Any]) -> list[str]:
    """Those of them that name the cell."""
    return as_options(cell_values(axes))


def setting_options(
    *,
    seed: int,
    cpu_threads: int | str,
    time_limit_s: float,
    effort: Effort,
    latency_steps: int = 0,
    latency_mistakes: bool = False,
    isolation: str = "auto",
) -> list[str]:
    """The others, which all trials of a study share; these are the `settings` of `trial_options`."""
    values = {
        "seed": seed,
        "cpu_threads": cpu_threads,
        "time_limit_s": time_limit_s,
        "latency_steps": latency_steps,
        "latency_mistakes": latency_mistakes,
        "isolation": isolation,
        **{f.name: getattr(effort, f.name) for f in fields(Effort)},
    }
    return as_options(values)


def search_options(
    axes: Mapping[str, Any],
    search: BatchSearch,
    *,
    seed: int,
    cpu_threads: int | str,
    time_limit_s: float,
    isolation: str = "auto",
) -> list[str]:
    """Command-line options of scripts/find_largest_batch.py for a cell; its batch size does not count."""
    values = {
        **{axis: value for axis, value in cell_values(axes).items() if axis != "batch_size"},
        **{f.name: getattr(search, f.name) for f in fields(BatchSearch)},
        "seed": seed,
        "cpu_threads": cpu_threads,
        "time_limit_s": time_limit_s,
        "isolation": isolation,
    }
    return as_options(values)


def cell_values(axes: Mapping[str, Any]) -> dict[str, Any]:
    """The axes of a cell as values of options; a machine without a name is None, which asks for no option."""
    machine = axes.get("machine", HERE)
    return {axis: axes.get(axis) for axis in AXES} | {"machine": None if machine == HERE else machine}


def as_options(values: Mapping[str, Any]) -> list[str]:
    """One option for each value; none for None and False, and True is said by the option's name alone."""
    return [
        option_name(name) if value is True else f"{option_name(name)}={value}"
        for name, value in values.items()
        if value is not None and value is not False
    ]


def option_name(name: str) -> str:
    """The command-line option of a measuring script that sets a field."""
    return f"--{name.replace('_', '-')}"
