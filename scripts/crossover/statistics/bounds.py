"""Upper bound of the speed-up that a GPU measured elsewhere could give a model that was not measured there."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from crossover.config.words import is_cpu
from crossover.statistics.intervals import ENDS
from crossover.statistics.roofs import WORK, compute_roof_s, memory_roof_s, or_nan
from crossover.tables.frames import on_all_cores, records
from crossover.tables.labels import product_family
from crossover.tables.references import Reference
from crossover.tables.registry import CELL_AXES
from crossover.tables.roofs import Roofs
from crossover.tables.run_tables import table_of

PAIR = "bound"
LAUNCH, COMPUTE, MEMORY = "launch", "compute", "memory"
"""The roofs of a step; column `contender` names the highest."""

HIGHEST_TOLD = 100
"""Limits of a speed-up above this say nothing, and so do gains of remedies that were tried under load."""


def bounds_of(
    cells: pd.DataFrame, measurements: pd.DataFrame, references: Sequence[Reference], elsewhere: pd.DataFrame
) -> pd.DataFrame:
    """Rows of table `ratios` with pair `bound`: the largest possible speed-up of a reference's GPU over this CPU.

    A step on that GPU takes at least the longest of three times: its operations at the peak rate, its bytes at the
    bandwidth, and the launch of one kernel. The rates come from the fastest repeats of the reference's probes, and the
    operations and bytes from the CPU's eager step. Studies that were measured on an accelerator of this machine, or on
    any reference with the same product, are left out. `elsewhere` has the references' trials that match trials of this
    machine.
    """
    with_roofs = [reference for reference in references if len(reference.roofs)]
    if not with_roofs:
        return table_of("ratios")
    timed = on_all_cores(cells).dropna(subset=["step_time_s", "flops_per_step"])
    timed = timed[timed["execution"] == "eager"]
    ok = measurements[measurements["status"] == "ok"]
    work = ok.groupby(CELL_AXES, sort=False)[list(WORK)].first()
    has_accelerator = {study for study, device in cells[["study", "device"]].values if not is_cpu(device)}
    rows: list[dict[str, Any]] = []
    products = {reference.facts.name: product_family(reference.facts.device_name) for reference in references}
    with_gpu = elsewhere[~elsewhere["device"].map(is_cpu).astype(bool)]
    for reference in with_roofs:
        same_product = with_gpu["machine"].map(products) == products[reference.facts.name]
        measured = {*with_gpu.loc[same_product, "study"]}
        unmeasured = timed[~timed["study"].isin(has_accelerator | measured)]
        rows += _rows(records(unmeasured), work, reference)
    return table_of("ratios", rows)


def _rows(cells: Sequence[Mapping[str, Any]], work: pd.DataFrame, reference: Reference) -> Iterator[dict[str, Any]]:
    roofs, device = Roofs.best_of(reference.roofs), reference.roofs["device"].iloc[0]
    for cell in cells:
        products, others, _ = work.loc[tuple(cell[axis] for axis in CELL_AXES)]
        roofs_s = {
            LAUNCH: roofs.graph_launch_s,
            COMPUTE: compute_roof_s(cell["flops_per_step"], str(cell["precision"]), roofs),
            MEMORY: memory_roof_s(products, roofs) + memory_roof_s(others, roofs),
        }
        if any(math.isnan(roof_s) for roof_s in roofs_s.values()):
            continue
        highest, least_s = max(roofs_s.items(), key=lambda item: item[1])
        yield {
            **{axis: cell[axis] for axis in CELL_AXES},
            "machine": reference.facts.name,
            "device": device,
            "parameters": cell["parameters"],
            "pair": PAIR,
            "baseline": cell["device"],
            "baseline_machine": cell["machine"],
            "baseline_threads": cell["threads"],
            "contender": highest,
            **{f"ratio{end}": or_nan(cell[f"step_time{end}_s"]) / least_s for end in ENDS},
            "trials": cell["trials"],
            "baseline_s": cell["step_time_s"],
            "contender_s": least_s,
        }
