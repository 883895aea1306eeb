"""Rooflines: the minimum time of a step at the rates measured on its device, as a share of the measured time.

On a GPU measured elsewhere, the minimum time bounds the speed-up for a model that was not measured there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from crossover.compare.intervals import ENDS
from crossover.config.words import COMPUTES_IN, is_cpu
from crossover.tables.frames import on_all_cores, records
from crossover.tables.labels import product_family
from crossover.tables.reference_files import Reference
from crossover.tables.registry import CELL_AXES
from crossover.tables.roof_files import Roofs
from crossover.tables.run_tables import table_of

ALONE = 1.1
"""Factor by which a single trial must be faster than its roof for the flag `above_roof`."""

FRAMEWORK_OPERATORS = 34
"""Operators of the training step that roof `framework` times, without views."""

FUSED = ("compile",)
"""Executions that fuse operators, so that they move fewer bytes than an eager step."""


def with_roofs(cells: pd.DataFrame, measurements: pd.DataFrame, roofs: pd.DataFrame) -> pd.DataFrame:
    """Add the columns COLUMNS, and the flag `above_roof` to cells that are faster than their roofs allow.

    A CPU that is limited to some of its cores has no roofs, since only the whole CPU is probed.
    """
    roofs_of = {key: Roofs.of(table) for key, table in roofs.groupby(["machine", "device"], sort=False)}
    if not roofs_of:
        return cells
    ok = measurements[measurements["status"] == "ok"]
    work = ok.groupby(CELL_AXES, sort=False)[list(WORK)].first()
    rows = [_row(cell, work, roofs_of.get((cell["machine"], cell["device"]))) for cell in cells.to_dict("records")]
    columns = pd.DataFrame(rows, cells.index, list(COLUMNS), dtype="Float64")
    above = (columns["roof_share_low"].fillna(columns["roof_share"] / ALONE) > 1).fillna(False).to_numpy(bool)
    # Without its operations, a step may be close to a roof that is not known.
    columns.loc[columns["compute_roof_s"].isna(), [*SHARES]] = pd.NA
    flags = [
        [*of_cell, "above_roof"] if wrong else of_cell
        for of_cell, wrong in zip(cells["flag_names"], above, strict=True)
    ]
    return cells.assign(
        flag_names=pd.Series(flags, cells.index, dtype=object), **{name: columns[name] for name in columns.columns}
    )


WORK = ("products_bytes_by_working_set", "others_bytes_by_working_set", "kernels_per_step")

ROOF_TIMES = ("memory_roof_s", "products_memory_roof_s", "compute_roof_s", "launch_roof_s", "gaps_s")
SHARES = ("roof_share", "roof_share_low", "roof_share_high")
COLUMNS = (*ROOF_TIMES, "bytes_per_step", *SHARES)


def _row(cell: Mapping[Any, Any], work: pd.DataFrame, roofs: Roofs | None) -> dict[str, float]:
    key = tuple(cell[axis] for axis in CELL_AXES)
    if roofs is None or key not in work.index:
        return {}
    products, others, kernels = work.loc[key]
    products_s = math.nan if cell["execution"] in FUSED else memory_roof_s(products, roofs)
    launch_s = or_nan(kernels) * roofs.graph_launch_s
    if is_cpu(cell["device"]):
        launch_s = roofs.framework_s * (1 + (_operators(products) + _operators(others)) / FRAMEWORK_OPERATORS)
    row = {
        "memory_roof_s": products_s + memory_roof_s(others, roofs),
        "products_memory_roof_s": products_s,
        "bytes_per_step": float(sum(products) + sum(others)) if products is not None else math.nan,
        "compute_roof_s": compute_roof_s(cell["flops_per_step"], str(cell["precision"]), roofs),
        "launch_roof_s": launch_s,
        "gaps_s": or_nan(kernels) * roofs.graph_gap_s,
    }
    highest_s = np.nanmax([row["memory_roof_s"], row["compute_roof_s"], 0.0]) or math.nan
    # The upper end of the step time gives the lower end of the share.
    ends = {"": "step_time_s", "_low": "step_time_high_s", "_high": "step_time_low_s"}
    return row | {f"roof_share{end}": highest_s / or_nan(cell[name]) for end, name in ends.items()}


def memory_roof_s(bytes_by_working_set: Sequence[float] | None, roofs: Roofs) -> float:
    """Seconds to move the bytes of a step, at the bandwidth of each operator's working set; NaN if unknown. Element i
    of the list has the bytes of operators that touch 2^i to 2^(i+1) bytes.
    """
    if bytes_by_working_set is None or not roofs.working_sets:
        return math.nan
    moved = np.asarray(bytes_by_working_set, float)
    touched = 2.0 ** (np.arange(len(moved)) + 0.5)
    bandwidth = np.exp(np.interp(np.log(touched), np.log(roofs.working_sets), np.log(roofs.bandwidths)))
    return float((moved / bandwidth).sum())


def _operators(bytes_by_working_set: Sequence[float] | None) -> float:
    """Maximum number of operators that move these bytes (see `memory_roof_s`); NaN if unknown."""
    if bytes_by_working_set is None:
        return math.nan
    return math.fsum(moved / 2**k for k, moved in enumerate(bytes_by_working_set))


def compute_roof_s(flops: float | None, precision: str, roofs: Roofs) -> float:
    """Seconds of the operations of a step at the peak of its precision."""
    return or_nan(flops) / roofs.peaks.get(COMPUTES_IN.get(precision, precision), math.nan)


def or_nan(value: Any) -> float:
    return math.nan if value is None or pd.isna(value) else float(value)


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
    with_roofs = [reference for reference in references if not _of_accelerator(reference).empty]
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
        rows += _bounds(records(unmeasured), work, reference)
    return table_of("ratios", rows)


def _of_accelerator(reference: Reference) -> pd.DataFrame:
    return reference.roofs[~reference.roofs["device"].map(is_cpu).astype(bool)]


def _bounds(cells: Sequence[Mapping[str, Any]], work: pd.DataFrame, reference: Reference) -> Iterator[dict[str, Any]]:
    of_accelerator = _of_accelerator(reference)
    roofs, device = Roofs.best_of(of_accelerator), of_accelerator["device"].iloc[0]
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
