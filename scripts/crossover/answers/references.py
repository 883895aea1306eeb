"""Answers from machines measured elsewhere: from where on their GPU would pay off over the CPU here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import geometric_mean
from typing import Any

from crossover.answers.crossovers import answer_of, reach_of
from crossover.answers.vocabulary import Row
from crossover.config.words import is_cpu
from crossover.statistics.references import PAIR, host_factors
from crossover.tables.frames import records
from crossover.tables.labels import name_by, short_name, varying
from crossover.tables.registry import LINE_AXES
from crossover.tables.run_tables import RunTables

SHARED = [axis for axis in LINE_AXES if axis != "machine"]


def reference_answers(own: RunTables, accelerated: bool) -> list[Row]:
    """One answer for each line and reference: its GPU against the CPU here, or, with a GPU here, both against it."""
    several = varying(own.cells, SHARED)
    if accelerated:
        return _devices(own, several)
    crossovers = own.crossovers[own.crossovers["pair"] == PAIR]
    factors = host_factors(own.ratios[own.ratios["pair"] == PAIR])
    return [_would_pay_off(row, own, several, factors) for row in records(crossovers)]


def _would_pay_off(
    row: dict[str, Any], own: RunTables, several: Sequence[str], factors: Mapping[tuple[object, ...], float]
) -> Row:
    measured_on = _facts(own, row["machine"])["measured_on"]
    gpu = f"{short_name(row['contender_name'])} (reference, {measured_on})"
    return {
        **answer_of(row, gpu, "this CPU"),
        "kind": "reference",
        "main": row["cost"] == "time" or row["status"] != "incomplete",
        "line": name_by(row, several),
        "measured_on": measured_on,
        "factor": factors.get(tuple(row[axis] for axis in LINE_AXES)),
        **reach_of(row, own.ratios, gpu, "this CPU"),
    }


def _devices(own: RunTables, several: Sequence[str]) -> list[Row]:
    """Each device here against the same kind of device of a reference, over the sizes of a line."""
    ratios = own.ratios[(own.ratios["pair"] == PAIR) & (own.ratios["contender"] == own.ratios["machine"])]
    found = []
    for _, line in ratios.groupby([*LINE_AXES, "device"], sort=False):
        first = records(line)[0]
        facts = _facts(own, first["machine"])
        name = facts["cpu_model"] if is_cpu(first["device"]) else facts["device_name"]
        found.append(
            {
                "kind": "set_up",
                "machine": first["machine"],
                "line": name_by(first, several),
                "status": "measured",
                "value": geometric_mean(line["ratio"].astype(float)),
                "low": line["ratio"].min(),
                "high": line["ratio"].max(),
                "unit": "times",
                "device": first["device"],
                "winner": short_name(name),
                "trials": line["trials"].min(),
                "measured_on": facts["measured_on"],
            }
        )
    return found


def _facts(own: RunTables, machine: str) -> dict[str, Any]:
    return records(own.references[own.references["machine"] == machine])[0]
