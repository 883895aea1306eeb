"""Leave-one-machine-out check of crossovers and speed-ups predicted from a machine's CPU and another machine's GPU.

Each folder is a reference made by `snakemake export_reference`, or the results of a run on a machine with a GPU. They
must have studies in common.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from statistics import geometric_mean
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import yaml

from crossover.compare.cells import cell_key, means_of
from crossover.compare.crossover import ESTIMATED
from crossover.compare.crossovers import crossovers_of
from crossover.compare.pairings import Pairing, XAxes, pairings
from crossover.config.options import new_parser
from crossover.config.words import BASELINE, HERE, is_cpu
from crossover.errors import UserError
from crossover.tables.frames import headline_rows, records, rows_with, x_axes_of
from crossover.tables.reference_files import Reference, read_reference, write_reference
from crossover.tables.registry import CELL_AXES, SERIES_AXES
from crossover.topics.references.table import agreeing, compared_with_references

STUDIES = Path(__file__).parents[2] / "config" / "studies"
SERIES = [axis for axis in SERIES_AXES if axis != "machine"]
DECIDED = ("bracketed", "reversed", "below_range", "above_range")
"""Statuses that give the size of a single crossover, or say that it lies below or above all sizes."""
SHOWN = ["study", "protocol", "batch_size", "precision", "execution"]


def read_machine(folder: Path) -> Reference:
    """A reference, or a finished run on a machine with a GPU, which is exported to a temporary folder.

    It is named after its folder, since references that replace one another have the same name.
    """
    if not (folder / "measurements.parquet").is_file():
        reference, name = read_reference(folder), folder.resolve().name
        facts, trials = replace(reference.facts, name=name), reference.trials.assign(machine=name)
        return replace(reference, facts=facts, trials=trials)
    tables = [pd.read_parquet(folder / f"{name}.parquet") for name in ("measurements", "roofs")]
    with TemporaryDirectory() as temporary:
        return write_reference(tables[0], folder.resolve().name, None, Path(temporary), tables[1])


def predictions(
    references: Sequence[Reference], x_axes: XAxes | None = None, cpu_trials: int | None = None
) -> pd.DataFrame:
    """One row per series and ordered pair of machines, if the crossover on the second machine is DECIDED.

    Studies of a single size, which have none, are left out. `x_axes` has the x axis of studies; it is the size for
    others. The predictions use the trials 1 to `cpu_trials` of each CPU cell, and the crossover `measured` on the
    second machine the others; without `cpu_trials`, both use all. `predicted_low` and `predicted_high` are the ends of
    the interval (with single trials, of the bracket): 0 or infinity for an open end, and both 0 or infinity if the
    crossover is predicted below or above all sizes. `holds` says whether they enclose the crossover `measured`; it is
    missing without a prediction.
    """
    rows = []
    for there, here in permutations(references, 2):
        trials, axes = _here(here, x_axes)
        of_cpu, is_first = trials["device"].map(is_cpu), trials["trial"] <= (cpu_trials or math.inf)
        cpu, others = trials[of_cpu & is_first], trials[~(of_cpu & is_first)] if cpu_trials else trials
        _, pairs = _predicted(cpu, there, axes)
        for row in records(crossovers_of(pairs).query("cost == 'time'")):
            measured = records(rows_with(headline_rows(crossovers_of(pairings(others, axes))), SERIES, row))
            if measured and measured[0]["status"] in DECIDED:
                rows.append(_compared(row, measured[0], there.facts.name, here.facts.name))
    return pd.DataFrame(rows)


def speedups(references: Sequence[Reference], x_axes: XAxes | None = None) -> pd.DataFrame:
    """One row per cell and ordered pair of machines: the speed-up predicted, with its interval, and that measured.

    All trials of both machines are used. `holds` says whether the interval encloses the measured one.
    """
    rows = []
    for there, here in permutations(references, 2):
        trials, axes = _here(here, x_axes)
        times_s = trials[trials["status"] == "ok"].groupby([*CELL_AXES])["step_time_s"].agg(geometric_mean)
        ratios, _ = _predicted(trials[trials["device"].map(is_cpu)], there, axes)
        for row in records(ratios[(ratios["contender"] == ratios["device"]) & ratios["ratio_low"].notna()]):
            cpu, gpu = (cell_key(row | {"machine": HERE, "device": side}) for side in (BASELINE, row["device"]))
            if cpu in times_s and gpu in times_s:
                rows.append({**row, "measured": times_s[cpu] / times_s[gpu]})
    table = pd.DataFrame(rows)
    return table.assign(holds=table["measured"].between(table["ratio_low"], table["ratio_high"]))


def _here(machine: Reference, x_axes: XAxes | None) -> tuple[pd.DataFrame, XAxes]:
    """The trials of a machine as if measured in this run, in studies of several sizes, and the x axis of each study."""
    trials = machine.trials.assign(machine=HERE)
    trials = trials[trials.groupby("study")[["size", "batch_size"]].transform("nunique").gt(1).any(axis=1)]
    return trials, x_axes_of(dict.fromkeys(trials["study"], "size") | dict(x_axes or {}), trials)


def _predicted(cpu: pd.DataFrame, there: Reference, axes: XAxes) -> tuple[pd.DataFrame, list[Pairing]]:
    """The ratios and pairings of a CPU's trials with another machine's GPU."""
    elsewhere = agreeing(cpu, [there])
    ratios, pairs, _ = compared_with_references(cpu, elsewhere, axes, means_of(pd.concat([cpu, elsewhere])), [there])
    return ratios, pairs


def _compared(prediction: dict[str, Any], measured: dict[str, Any], there: str, here: str) -> dict[str, Any]:
    has_interval = prediction["crossover_low"] is not None or prediction["crossover_high"] is not None
    low, high = _ends_of(prediction, "crossover" if has_interval else "bracket")
    is_predicted = prediction["status"] in (*DECIDED, "edge_tie") and (low, high) != (0, math.inf)
    if not is_predicted:
        low = high = math.nan
    truth = measured["crossover"]
    if truth is None:
        truth, _ = _ends_of(measured, "crossover")
    return {
        "gpu_of": there,
        "cpu_of": here,
        **{axis: prediction[axis] for axis in SHOWN},
        "measured": truth,
        "predicted": prediction["crossover"],
        "predicted_low": low,
        "predicted_high": high,
        "holds": low <= truth <= high if is_predicted else None,
    }


def _ends_of(row: Mapping[str, Any], prefix: str) -> tuple[float, float]:
    """The ends of the interval or bracket; 0 or infinity for an end that is open or beyond the measured range."""
    if row["status"] in ESTIMATED:
        return row[f"{prefix}_low"] or 0, row[f"{prefix}_high"] or math.inf
    return (0, 0) if row["status"] == "below_range" else (math.inf, math.inf)


def main(arguments: list[str]) -> None:
    parser = new_parser(__doc__)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="a reference, or results of a run")
    split = "predict from N trials of each CPU cell, and compare with the others"
    parser.add_argument("--cpu-trials", type=int, metavar="N", help=split)
    options = parser.parse_args(arguments)
    studies = {path.stem: yaml.safe_load(path.read_text()) for path in STUDIES.glob("*.yaml")}
    x_axes = {name: study["x_axis"] for name, study in studies.items() if "x_axis" in study}
    machines = [read_machine(folder) for folder in options.folders]
    table = predictions(machines, x_axes, options.cpu_trials)
    if table.empty:
        raise UserError("no two references have a study in common; name two or more with the same study")
    print(table.to_string(index=False, float_format="{:.4g}".format))
    low, high = table["predicted_low"], table["predicted_high"]
    is_open = (low == 0) ^ (high == math.inf)
    widths = (high / low)[(low > 0) & (high < math.inf)]
    counts = f"{is_open.sum()} have an open end; no prediction for {low.isna().sum()} more series"
    width = f"; median of high over low: {widths.median():.2g}" if len(widths) else ""
    print(f"{table['holds'].sum()} of {low.notna().sum()} predictions hold, {counts}{width}")
    ratios = speedups(machines, x_axes)
    width = f"; median of high over low: {(ratios['ratio_high'] / ratios['ratio_low']).median():.2g}"
    print(f"{ratios['holds'].sum()} of {len(ratios)} predicted speed-ups hold, from all trials{width}")
