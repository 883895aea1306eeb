"""Answers on crossovers of devices, settings, devices at their best and references, and on the effect of transfers."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from statistics import geometric_mean
from typing import Any

import numpy as np
import pandas as pd

from crossover.answers.vocabulary import Row, estimate, flags_of, interval_columns, ratio_columns, trials_columns
from crossover.config.studies import steps_of_run
from crossover.config.words import (
    BASELINE,
    COPYING,
    CPU_THREADS,
    FROM_HOST,
    PLAIN,
    PLAIN_SIDES,
    PROTOCOLS,
    X_AXES,
    is_cpu,
    series_axes,
    threads_of_side,
)
from crossover.statistics.best import BEST, CANDIDATE_AXES, best_axes, candidates_of
from crossover.statistics.choices import choose
from crossover.statistics.intervals import SampleMean, compared, interval_of, ratio_of_intervals
from crossover.statistics.ratios import sign_of
from crossover.statistics.references import PAIR as REFERENCE
from crossover.statistics.references import host_factors
from crossover.tables.frames import first_row, headline_rows, records, rows_with, with_x
from crossover.tables.labels import (
    axis_label,
    device_label,
    machine_words,
    name_by,
    short_name,
    side_word,
    varying,
)
from crossover.tables.references import facts_of
from crossover.tables.registry import CELL_AXES
from crossover.tables.run_tables import RunTables
from crossover.text import cores_text

StepsPerRun = int | Mapping[str, int] | None

RESIDENT = PROTOCOLS[0]
"""The protocol that keeps data on the device."""


def crossover_answers(tables: RunTables, steps_per_run: StepsPerRun) -> list[Row]:
    """One answer for each crossover in a study's tables: main ones first, those over a second axis last."""
    crossovers, main = _crossovers_to_answer(tables)
    labelled = _is_labelled(crossovers)
    order = sorted(crossovers.index, key=lambda index: index not in main)
    rows = [(row, index in main) for index, row in zip(order, records(crossovers.loc[order]), strict=True)]
    rows += [(row, False) for row in records(headline_rows(tables.crossovers, second=True))]
    several = {axis: varying(tables.cells, series_axes(axis)) for axis in {row["x_axis"] for row, _ in rows}}
    return [
        _answer(row, tables, several[row["x_axis"]], labelled)
        | {"main": is_main, "capacity": _steps_of_run(steps_per_run, row)}
        for row, is_main in rows
    ]


def _steps_of_run(steps_per_run: StepsPerRun, row: Mapping[str, Any]) -> int | None:
    """Steps of the run to which a crossover applies; None if they differ along the x axis, or if it is about single
    steps."""
    given = steps_per_run is not None and (row["batch_size"] is not None or isinstance(steps_per_run, int))
    return steps_of_run(steps_per_run, row["batch_size"]) if row["cost"] == "run" and given else None


def _crossovers_to_answer(tables: RunTables) -> tuple[pd.DataFrame, set[Any]]:
    """The crossovers of a study that get an answer, and the labels of the main ones.

    Main ones compare devices in all costs, or precisions and executions if the CPU has no time. For two sides on one
    device, money is left out, since it is proportional to time.
    """
    pair = tables.crossovers["pair"]
    settings = ~pair.isin([BEST, REFERENCE]) & (tables.crossovers["cost"] != "money")
    first_axis = ~tables.crossovers["second_axis"].astype(bool)
    crossovers = tables.crossovers[first_axis & ((pair == "device") | settings)]
    pairs = crossovers[(crossovers["pair"] != "device") & (crossovers["cost"] == "time")]
    if BASELINE not in set(tables.cells.dropna(subset=["step_time_s"])["device"]) and len(pairs):
        return crossovers.drop(headline_rows(crossovers).index), set(pairs.index)
    costly = crossovers[(crossovers["cost"] != "time") & (crossovers["status"] != "incomplete")]
    return crossovers, {*headline_rows(crossovers).index, *headline_rows(costly.assign(cost="time")).index}


def _is_labelled(crossovers: pd.DataFrame) -> bool:
    """Whether the sides differ only in the names of their devices."""
    return headline_rows(crossovers)["contender"].nunique() > 1


def _answer(row: dict[str, Any], tables: RunTables, several: Sequence[str], labelled: bool) -> Row:
    contender, baseline = _sides(row, labelled)
    columns = answer_of(row, contender, baseline)
    return {
        **columns,
        "kind": "crossover",
        "series": _series_name(row, several),
        "caveats": columns["caveats"] + caveats_of_series(row, tables),
        **reach_of(row, tables.ratios, contender, baseline),
    }


def _series_name(row: Mapping[str, Any], several: Sequence[str]) -> str:
    return name_by(row, [axis for axis in several if axis != row["pair"]])


def payback_answers(tables: RunTables, x_axis: str, *, has_run: bool) -> list[Row]:
    """The number of steps that pay back the start-up, at the largest size (or other point) of each main crossover in
    time.

    They are main answers where the study has a run. There is no such answer if the steps of both sides do not differ
    significantly or, in a study without a run, if the faster side has no longer start-up.
    """
    crossovers, main = _crossovers_to_answer(tables)
    several, labelled = varying(tables.cells, series_axes(x_axis)), _is_labelled(crossovers)
    answers = []
    for row in records(crossovers[crossovers.index.isin(main) & (crossovers["cost"] == "time")]):
        pair_of_ratios = "settings" if row["pair"] in PLAIN_SIDES else row["pair"]
        speedups = speedups_of(row | {"pair": pair_of_ratios}, tables.ratios)
        for speedup in records(speedups.tail(1)):
            contender, baseline = _sides(row, labelled)
            sign, steps = sign_of(speedup), speedup["payback_steps"]
            if sign and steps is not None and (steps >= 1 or has_run):
                if x_axis == CPU_THREADS:
                    place = cores_text(speedup["baseline_threads"], "CPU core")
                else:
                    place = name_by(first_row(rows_with(tables.cells, CELL_AXES, speedup)), [X_AXES[x_axis]])
                answers.append(
                    {
                        "kind": "payback",
                        "main": has_run,
                        "machine": row["machine"],
                        "series": _series_name(row, several),
                        "status": "measured",
                        **estimate(speedup, "payback_steps", "steps"),
                        "winner": contender if sign > 0 else baseline,
                        "loser": baseline if sign > 0 else contender,
                        "place": place,
                        "startup_s": abs(speedup["startup_s"] - speedup["baseline_startup_s"]),
                        **trials_columns(speedup["trials"]),
                    }
                )
    return answers


ONE_SIDED = ("below_range", "above_range", "edge_tie")
"""Statuses of crossovers in which one side leads at all sizes with a significant difference."""


def answer_of(row: Mapping[str, Any], contender: str, baseline: str) -> Row:
    """The columns common to all answers on crossovers: location, sides and caveats."""
    decided = row["status"] not in ("incomplete", "undecided")
    without_interval = row["crossover_low"] is None and row["crossover_high"] is None
    caveats = ["one_trial"] if row["trials"] == 1 and without_interval else []
    if row["crossover"] is not None and without_interval:
        caveats.append("no_interval")
    if row["caveat"] and decided and row["status"] != "edge_tie":  # an edge tie already names its sizes
        caveats.append(row["caveat"])
    behind = row["status"] == "above_range"
    return {
        "machine": row["machine"],
        "status": row["status"],
        **estimate(row, "crossover", axis_label(row)),
        "winner": baseline if behind else contender,
        "loser": contender if behind else baseline,
        "cost": row["cost"],
        "bracket_low": row["bracket_low"],
        "bracket_high": row["bracket_high"],
        "near": row["caveat_at"] if row["caveat"] else row["roots"],
        "reason": None if decided else row["caveat"],
        "trials": row["trials"],
        "caveats": caveats,
    }


def _sides(row: Mapping[str, Any], labelled: bool) -> tuple[str, str]:
    """The shortest distinct names of the contender and the baseline."""
    if row["contender"] is None:
        return "GPU", side_word(row["baseline"])
    device = side_word(row["device"])
    if row["pair"] == "machine":
        return f"{device} of {row['machine']}", f"{device} of {row['baseline_machine']}"
    if row["pair"] != "device":
        return f"{row['contender']} on the {device}", f"{row['baseline']} on the {device}"
    name = device_label(row["contender"], row["contender_name"]) if labelled else device
    if row["baseline_machine"] == row["machine"]:
        return name, side_word(row["baseline"])
    whose = machine_words("of", row["machine"]), machine_words("of", row["baseline_machine"])
    return name + whose[0], side_word(row["baseline"]) + whose[1]


def reach_of(row: dict[str, Any], ratios: pd.DataFrame, contender: str, baseline: str) -> Row:
    """The range of sizes measured on both sides; if one side leads in time, its speed-ups and how far its lead
    reaches."""
    return _reach(row, speedups_of(row, ratios)["ratio"].astype(float), contender, baseline)


def speedups_of(row: Mapping[str, Any], ratios: pd.DataFrame) -> pd.DataFrame:
    """The ratios of a crossover's two sides, by the point on its x axis."""
    pair = ["pair", "device", "baseline", "baseline_machine", "contender"]
    if row["x_axis"] == CPU_THREADS:
        pair.remove("baseline")  # in ratios, the baseline is the CPU with its number of cores
    same_pair = rows_with(ratios, [*series_axes(row["x_axis"]), *pair], row)
    return with_x(same_pair, row["x_axis"]).dropna(subset="x").set_index("x").sort_index()


def _reach(row: Mapping[str, Any], speedups: pd.Series, contender: str, baseline: str) -> Row:
    """The columns of `reach_of`, from the contender's speed-ups by size.

    With a tie at one end, a side is ahead from the other end up to the first undecided size.
    """
    if speedups.empty:
        return {}
    ends = {"smallest": speedups.index.min(), "largest": speedups.index.max()}
    if row["status"] not in ONE_SIDED or row["cost"] != "time":
        return ends
    wins, to_the_end = row["status"] == "below_range", row["status"] == "above_range"
    if row["status"] == "edge_tie":
        low, high = (row[f"crossover_{end}"] or row[f"bracket_{end}"] for end in ("low", "high"))
        to_the_end = high is None
        bound = low if to_the_end else high
        if bound not in speedups.index:  # ties at both ends have no bound
            return ends
        wins = bool(speedups[bound] > 1)
        unsure = row["caveat_at"]
        speedups = speedups[speedups.index < min(unsure) if to_the_end else speedups.index > max(unsure)]
        if speedups.empty:
            return ends
    ahead = speedups if wins else 1 / speedups
    return ends | {
        "winner": contender if wins else baseline,
        "loser": baseline if wins else contender,
        "reach": speedups.index.max() if to_the_end else speedups.index.min(),
        "ratio_low": ahead.min(),
        "ratio_high": ahead.max(),
    }


def caveats_of_series(row: Mapping[str, Any], tables: RunTables) -> list[str]:
    """The caveats due to lost cells of a crossover's series, and to flags within its bracket."""
    sides = sides_of(row, tables)
    lost = ["lost_cells"] if (sides["status"] != "ok").any() else []
    return lost + flags_of(sides[sides["x"].isna() | _in_bracket(sides["x"], row)])


def sides_of(row: Mapping[str, Any], tables: RunTables) -> pd.DataFrame:
    """The cells of both sides of a crossover with their `x`; for a reference, of both machines."""
    axes = [axis for axis in series_axes(row["x_axis"]) if axis != row["pair"]]
    cells = tables.cells
    if row["pair"] == REFERENCE:
        axes.remove("machine")
        both = pd.concat([cells, tables.reference_cells], ignore_index=True)
        cells = both[both["machine"].isin([row["machine"], row["baseline_machine"]])]
    sides = rows_with(cells, axes, row)
    if row["x_axis"] != CPU_THREADS:
        sides = sides[sides["device"].isin([row["device"], row["baseline"], row["contender"]])]
    return with_x(sides, row["x_axis"])


def _in_bracket(x: pd.Series, row: Mapping[str, Any]) -> pd.Series:
    """Whether each point on the x axis lies within a crossover's bracket; False if an end of the bracket is
    missing."""
    low, high = row["bracket_low"], row["bracket_high"]
    return x.between(math.nan if low is None else low, math.nan if high is None else high)


def transfers(tables: RunTables, x_axis: str) -> list[Row]:
    """For each line, the ratio of the crossover with transfers in each step to the crossover on resident data."""
    headlines = headline_rows(tables.crossovers)
    axes = [axis for axis in series_axes(x_axis) if axis != "protocol"]
    several = varying(tables.cells, axes)
    answers = []
    for _, rows in headlines[headlines["status"] == "bracketed"].groupby([*axes, "device"], sort=False):
        by_protocol = {row["protocol"]: row for row in records(rows)}
        for moved in FROM_HOST if RESIDENT in by_protocol else ():
            if moved in by_protocol:
                answers.append(_transfer(by_protocol[moved], by_protocol[RESIDENT], several))
    return answers


def _transfer(moved: dict[str, Any], resident: dict[str, Any], several: Collection[str]) -> Row:
    ratio = ratio_of_intervals(interval_of(resident, "crossover{}"), interval_of(moved, "crossover{}"))
    return {
        "kind": "transfers",
        "machine": moved["machine"],
        "series": name_by(moved, several),
        "status": compared(ratio, more="differ", less="differ"),
        **interval_columns(ratio, "times"),
        "quantity": moved["protocol"] if moved["protocol"] in COPYING else None,
        "place": axis_label(moved),
        "winner": side_word(moved["contender"]),
        "loser": side_word(moved["baseline"]),
        **trials_columns(min(moved["trials"], resident["trials"])),
    }


def best_answers(tables: RunTables, x_axis: str) -> list[Row]:
    """The crossover of each accelerator over the CPU, both at their best, with the configurations and the shift due to
    tuning."""
    axes = best_axes(x_axis)
    several = varying(tables.cells, axes)
    headlines = headline_rows(tables.crossovers)
    at_best = tables.crossovers[tables.crossovers["pair"] == BEST]
    candidates = candidates_of(tables)
    if at_best.empty:
        return _fastest_candidates(candidates, several, x_axis)
    return [
        _best(row, candidates, rows_with(headlines, [*axes, "contender"], row), several) for row in records(at_best)
    ]


def _fastest_candidates(candidates_of_study: pd.DataFrame, several: Sequence[str], x_axis: str) -> list[Row]:
    """The fastest candidate of each device over the plain candidate, at the largest size with several candidates."""
    answers = []
    along = X_AXES[x_axis]
    for _, candidates in candidates_of_study.dropna(subset=["step_time_s"]).groupby(
        [*best_axes(x_axis), "device"], sort=False
    ):
        counted = candidates[candidates["counts"] & candidates.duplicated(along, keep=False)]
        at_largest = counted[counted[along] == counted[along].max()].sort_values("step_time_s")
        if at_largest.empty:
            continue
        is_plain = (at_largest["execution"] == PLAIN_SIDES["execution"]) & (at_largest["side"] == at_largest["device"])
        rows = records(at_largest)
        times = [SampleMean.of_interval(interval_of(row, "step_time{}_s"), row["trials"]) for row in rows]
        choice = choose(times, next(iter(np.flatnonzero(is_plain).tolist()), None))
        best, baseline = rows[choice.chosen], rows[choice.baseline]
        answers.append(
            {
                "kind": "setting",
                "machine": best["machine"],
                "series": name_by(best, several),
                **ratio_columns(choice.ratio),
                "device": side_word(best["device"]),
                "place": name_by(best, [along]),
                "winner": _candidate_words(best, candidates),
                "loser": _candidate_words(baseline, candidates),
                "winner_s": best["step_time_s"],
                "loser_s": baseline["step_time_s"],
                **trials_columns(min(best["trials"], baseline["trials"])),
            }
        )
    return answers


def _best(
    row: dict[str, Any], candidates_of_study: pd.DataFrame, headlines: pd.DataFrame, several: Sequence[str]
) -> Row:
    candidates = rows_with(candidates_of_study, best_axes(row["x_axis"]), row)
    chosen = candidates[candidates["chosen"] & candidates["counts"]].sort_values(X_AXES[row["x_axis"]])
    sides = {
        side: _fastest_of(chosen[chosen["device"] == row[side]], candidates, row) for side in ("baseline", "contender")
    }
    contender, baseline = side_word(row["contender"]), side_word(row["baseline"])
    columns = answer_of(row, contender, baseline)
    times = chosen.pivot_table(index=row["x_axis"], columns="device", values="step_time_s")
    if {row["baseline"], row["contender"]} <= set(times):
        speedups = (times[row["baseline"]] / times[row["contender"]]).dropna()
        columns |= _reach(row, speedups, contender, baseline)
    winner, loser = ("baseline", "contender") if columns["winner"] == baseline else ("contender", "baseline")
    plain = _plainest(headlines, row["precision"].partition("+")[0])
    both_cross = plain["status"] == row["status"] == "bracketed"
    return {
        **columns,
        "kind": "best",
        "main": True,
        "series": name_by(row, several),
        "winner_configurations": sides[winner],
        "loser_configurations": sides[loser],
        "moved_status": plain["status"],
        "moved_from": plain["crossover"],
        "factor": row["crossover"] / plain["crossover"] if both_cross else None,
    }


def _plainest(headlines: pd.DataFrame, precision: str) -> dict[str, Any]:
    """The crossover with the settings closest to the plain ones, in the first precision of the accuracy class."""
    wanted = {**PLAIN_SIDES, "precision": precision, "variant": PLAIN}
    rows = records(headlines)
    nearest = max(rows, key=lambda row: sum(row[axis] == value for axis, value in wanted.items()), default=None)
    return nearest or {"status": None, "crossover": None}


def _fastest_of(chosen: pd.DataFrame, candidates: pd.DataFrame, row: Mapping[str, Any]) -> list[str]:
    """A device's fastest candidates within the bracket, or at the smallest and largest measured size."""
    x = row["x_axis"]
    beside = chosen[_in_bracket(chosen[x], row)]
    ends = beside if len(beside) else chosen.iloc[[0, -1]] if len(chosen) else chosen
    return list(dict.fromkeys(_candidate_words(candidate, candidates) for candidate in records(ends)))


def _candidate_words(candidate: dict[str, Any], candidates: pd.DataFrame) -> str:
    """The name of a candidate: its execution and what else differs among the candidates."""
    axes = [axis for axis in CANDIDATE_AXES if axis != "device"]
    named = [axis for axis in axes if axis == "execution" or candidates[axis].nunique() > 1]
    cores = [side_word(candidate["side"]).partition(" ")[2]] if threads_of_side(candidate["side"]) else []
    return ", ".join([name_by(candidate, named), *cores])


def reference_answers(tables: RunTables, x_axis: str, *, accelerated: bool) -> list[Row]:
    """One answer per series and reference: its GPU over this machine's CPU or, if this machine has a GPU, device by
    device.
    """
    several = varying(tables.cells, [axis for axis in series_axes(x_axis) if axis != "machine"])
    if accelerated:
        return _set_ups(tables, several, x_axis)
    crossovers = tables.crossovers[tables.crossovers["pair"] == REFERENCE]
    factors = host_factors(tables.ratios[tables.ratios["pair"] == REFERENCE], x_axis)
    return [_would_pay_off(row, tables, several, factors) for row in records(crossovers)]


def _would_pay_off(
    row: dict[str, Any], tables: RunTables, several: Sequence[str], factors: Mapping[tuple[object, ...], float]
) -> Row:
    measured_on = facts_of(tables.reference_cells)[row["machine"]].measured_on
    gpu = f"{short_name(row['contender_name'])} (reference, {measured_on})"
    columns = answer_of(row, gpu, "this CPU")
    return {
        **columns,
        "caveats": columns["caveats"] + caveats_of_series(row, tables),
        "kind": "reference",
        "main": row["cost"] == "time" or row["status"] != "incomplete",
        "series": name_by(row, several),
        "measured_on": measured_on,
        "factor": factors.get(tuple(row[axis] for axis in series_axes(row["x_axis"]))),
        **reach_of(row, tables.ratios, gpu, "this CPU"),
    }


def _set_ups(tables: RunTables, several: Sequence[str], x_axis: str) -> list[Row]:
    """One answer per series and device: its slowdown relative to the same kind of device of a reference."""
    ratios = tables.ratios[
        (tables.ratios["pair"] == REFERENCE) & (tables.ratios["contender"] == tables.ratios["machine"])
    ]
    answers = []
    for _, line in ratios.groupby([*series_axes(x_axis), "device"], sort=False):
        first = records(line)[0]
        facts = facts_of(tables.reference_cells)[first["machine"]]
        name = facts.cpu_model if is_cpu(first["device"]) else facts.device_name
        answers.append(
            {
                "kind": "set_up",
                "machine": first["machine"],
                "series": name_by(first, several),
                "status": "measured",
                "value": geometric_mean(line["ratio"].astype(float)),
                "low": line["ratio"].min(),
                "high": line["ratio"].max(),
                "unit": "times",
                "device": first["device"],
                "winner": short_name(name),
                "trials": line["trials"].min(),
                "measured_on": facts.measured_on,
            }
        )
    return answers
