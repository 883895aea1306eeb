"""Answers on crossovers, on tuning, on the pay-back of a longer start-up, and on the effect of transfers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd

from crossover.answers.answer import Answer, Comparison
from crossover.answers.comparisons import Setting
from crossover.answers.crossings import LEADS, Best, Crossover
from crossover.answers.vocabulary import BASELINE_AXES, basis, compared_ratio, flags_of
from crossover.answers.wording import HOST_MEMORY, amount_text, ends_text, point_of, range_text
from crossover.config.study import Epochs, steps_of_run
from crossover.config.words import (
    BASELINE_SETTINGS,
    CPU_THREADS,
    FROM_HOST,
    PROTOCOLS,
    X_AXES,
    is_cpu,
    series_axes,
    threads_of_side,
)
from crossover.statistics.best import BEST, CANDIDATE_AXES, best_axes, candidates_of
from crossover.statistics.cells import cell_key
from crossover.statistics.choices import choose
from crossover.statistics.intervals import (
    INCONCLUSIVE,
    SINGLE_TRIAL,
    columns_of,
    compared,
    interval_of,
    ratio_of_intervals,
)
from crossover.statistics.references import PAIR as REFERENCE
from crossover.tables.frames import first_row, headline_rows, records, rows_with, with_x
from crossover.tables.labels import (
    axis_label,
    device_label,
    machine_words,
    name_by,
    place_on,
    side_word,
    varying,
)
from crossover.tables.registry import CELL_AXES
from crossover.tables.run_tables import RunTables
from crossover.text import cores_text, number_text, seconds_text

StepsPerRun = int | Epochs | None

RESIDENT = PROTOCOLS[0]


@dataclass(frozen=True, kw_only=True)
class Payback(Answer):
    """The number of steps after which the side with the faster step is ahead, start-up included."""

    kind = "payback"
    in_sentence = ("winner", "loser", "place")

    winner: str
    loser: str
    steps: float
    steps_low: float | None
    steps_high: float | None
    place: str
    startup_s: float
    """The absolute difference between the start-ups of both sides."""

    def sentence(self) -> str:
        loser = f" of {self.loser}" if self.loser not in ("CPU", "GPU") else ""
        is_at_once, low, high = self.steps < 1, self.steps_low, self.steps_high
        about = "~" if low is None else ""
        when = "from the first step on" if is_at_once else f"after {about}{amount_text(self.steps, 'steps')} steps"
        interval = ""
        if low is not None and (high is None or high >= 1):
            interval = f" (95 % CI {ends_text(low, high, 'steps')}{' steps' if is_at_once else ''})"
        start_up = f"{seconds_text(self.startup_s)} {'less' if is_at_once else 'more'} start-up"
        return f"{self.winner} ahead{loser} {when} at {self.place}{interval}: {start_up}"

    def summary_of(self, alike: Sequence[Self]) -> str:
        steps = range_text([answer.steps for answer in alike], "steps")
        return f"{self.winner} ahead after {steps} at {self.place}"


@dataclass(frozen=True, kw_only=True)
class Transfers(Comparison):
    """The ratio of the crossover with transfers in each step to that on resident data."""

    kind = "transfers"
    statuses = ("differ", INCONCLUSIVE, SINGLE_TRIAL)
    differences = ("differ",)
    in_sentence = ("winner", "loser", "protocol", "unit")

    protocol: str
    unit: str
    """Of the crossovers."""

    def sentence(self) -> str:
        memory = f"from {HOST_MEMORY[self.protocol]} host memory and back " if self.protocol in HOST_MEMORY else ""
        crossover = f"Crossover of {self.winner} over {self.loser} with transfers {memory}in each step"
        tie = "; no significant difference" if self.status == INCONCLUSIVE else ""
        return f"{crossover}: at {number_text(self.ratio)} times its {point_of(self.unit)} on resident data{tie}"


def crossover_answers(tables: RunTables, steps_per_run: StepsPerRun) -> list[Crossover]:
    """Answers on the crossovers of a study: main ones first, those over a second axis last."""
    crossovers, main = _crossovers_to_answer(tables)
    with_product_names = _has_several_accelerators(crossovers)
    order = sorted(crossovers.index, key=lambda index: index not in main)
    rows = [(row, index in main) for index, row in zip(order, records(crossovers.loc[order]), strict=True)]
    if (crossovers["pair"] == "device").any():
        rows += [(row, False) for row in records(headline_rows(tables.crossovers, second=True))]
    varied_axes = {axis: varying(tables.cells, series_axes(axis)) for axis in {row["x_axis"] for row, _ in rows}}
    needed = _of_sides(tables)
    answers = [
        replace(
            _answer(row, needed, varied_axes[row["x_axis"]], with_product_names),
            main=is_main,
            steps_of_run=_steps_of_run(steps_per_run, row),
        )
        for row, is_main in rows
    ]
    return list(_said_once(answers))


def _of_sides(tables: RunTables) -> RunTables:
    """The tables with only the columns that answers on sides need, since selecting rows copies all columns."""
    of_cells = [*CELL_AXES, "parameters", "threads", "status", "flag_names"]
    of_ratios = [
        *CELL_AXES,
        "parameters",
        "pair",
        "baseline",
        "baseline_machine",
        "baseline_threads",
        "contender",
        "ratio",
    ]
    return replace(
        tables,
        cells=tables.cells[of_cells],
        reference_cells=tables.reference_cells[of_cells],
        ratios=tables.ratios[of_ratios],
    )


def _said_once(answers: Sequence[Crossover]) -> Iterator[Crossover]:
    """The answers; where a crossover of runs is that of steps, the latter says so, and the former is no main answer."""
    alike: dict[tuple[Any, ...], list[Crossover]] = {}
    for answer in answers:
        alike.setdefault((answer.cost, *_sides_and_status(answer)), []).append(answer)
    for answer in answers:
        other_cost = {"time": "run", "run": "time"}.get(answer.cost)
        others = alike.get((other_cost, *_sides_and_status(answer)), ())
        twin = next((other for other in others if _is_at_same_place(answer, other)), None)
        if twin is None:
            yield answer
        elif other_cost == "run":
            yield replace(answer, holds_in_runs=True, steps_of_run=twin.steps_of_run)
        else:
            yield replace(answer, main=False)


SAME = 1.02
"""Maximum factor between two crossovers, and between the ends of their intervals, that count as the same."""


def _sides_and_status(answer: Crossover) -> tuple[str, ...]:
    return answer.machine, answer.series, answer.winner, answer.loser, answer.status, answer.unit


def _is_at_same_place(first: Crossover, second: Crossover) -> bool:
    """Whether two crossovers of the same sides that have the same status lie at the same place, or have none."""
    if first.crossover is None or second.crossover is None:
        return first.status in LEADS
    places = [
        (first.crossover, second.crossover),
        (first.crossover_low, second.crossover_low),
        (first.crossover_high, second.crossover_high),
    ]
    return all(
        one == other if one is None or other is None else 1 / SAME <= one / other <= SAME for one, other in places
    )


def _steps_of_run(steps_per_run: StepsPerRun, row: Mapping[str, Any]) -> int | None:
    """Number of steps of the run that a crossover is about. None for single steps, or if it varies along the x axis."""
    given = steps_per_run is not None and (row["batch_size"] is not None or isinstance(steps_per_run, int))
    return steps_of_run(steps_per_run, row["batch_size"]) if row["cost"] == "run" and given else None


def _crossovers_to_answer(tables: RunTables) -> tuple[pd.DataFrame, set[Any]]:
    """The crossovers of a study that get an answer, and the index labels of the main ones.

    Main ones compare devices or, if no CPU has a time, other pairs; comparisons with the CPU then get no answer. For
    pairs other than `device`, money is left out: on one device it is proportional to time, and rankings compare the
    money of machines.
    """
    crossovers = tables.crossovers[~tables.crossovers["second_axis"].astype(bool)]
    is_device = crossovers["pair"] == "device"
    is_other = ~is_device & ~crossovers["pair"].isin([BEST, REFERENCE]) & (crossovers["cost"] != "money")
    of_settings = crossovers[is_other & (crossovers["cost"] == "time")]
    has_cpu = tables.cells.dropna(subset=["step_time_s"])["device"].map(is_cpu).any()
    if len(of_settings) and not has_cpu:
        return crossovers[is_other], set(of_settings.index)
    crossovers = crossovers[is_device | is_other]
    costly = crossovers[(crossovers["cost"] != "time") & (crossovers["status"] != "incomplete")]
    return crossovers, {*headline_rows(crossovers).index, *headline_rows(costly.assign(cost="time")).index}


def _has_several_accelerators(crossovers: pd.DataFrame) -> bool:
    """Whether 'GPU' is ambiguous, so that answers name the product."""
    return headline_rows(crossovers)["contender"].nunique() > 1


def _answer(row: dict[str, Any], tables: RunTables, varied_axes: Sequence[str], with_product_names: bool) -> Crossover:
    contender, baseline = _sides(row, with_product_names)
    columns = crossover_fields(row, contender, baseline)
    about = {
        **columns,
        "series": _series_name(row, varied_axes),
        "caveats": columns["caveats"] + caveats_of_series(row, tables),
        **reach_of(row, tables, contender, baseline),
    }
    return Crossover(**about)


def _series_name(row: Mapping[str, Any], varied_axes: Sequence[str]) -> str:
    return name_by(row, [axis for axis in varied_axes if axis != row["pair"]])


def payback_answers(tables: RunTables, x_axis: str, *, has_run: bool) -> list[Payback]:
    """The number of steps after which the side with the faster step has made up for its longer start-up.

    There is one answer for each main crossover in time, at the largest point. It is a main answer if the study has a
    run (`has_run`).
    """
    crossovers, main = _crossovers_to_answer(tables)
    needed = _of_sides(tables)
    varied_axes, with_product_names = varying(tables.cells, series_axes(x_axis)), _has_several_accelerators(crossovers)
    answers = []
    for row in records(crossovers[crossovers.index.isin(main) & (crossovers["cost"] == "time")]):
        for speedup in records(speedups_of(row, tables).tail(1)):
            sides, steps = _sides(row, with_product_names), speedup["payback_steps"]
            winner, loser = sides if speedup["ratio"] > 1 else reversed(sides)
            if steps is not None and (steps >= 1 or has_run):
                if x_axis == CPU_THREADS:
                    place = cores_text(speedup["baseline_threads"], "CPU core")
                else:
                    place = place_on(first_row(tables.rows_with("cells", CELL_AXES, speedup)), x_axis)
                answers.append(
                    Payback(
                        main=has_run,
                        machine=row["machine"],
                        series=_series_name(row, varied_axes),
                        **columns_of(interval_of(speedup, "payback_steps{}"), "steps{}"),
                        winner=winner,
                        loser=loser,
                        place=place,
                        startup_s=abs(speedup["startup_s"] - speedup["baseline_startup_s"]),
                        **basis(speedup["trials"], _cells_of_speedup(speedup, needed)),
                    )
                )
    return answers


def _cells_of_speedup(speedup: Mapping[str, Any], tables: RunTables) -> pd.DataFrame:
    """The cells of a ratio on one machine: for a pair of devices, of both; else of its device in all settings."""
    if speedup["pair"] == "device":
        same = tables.rows_with("cells", [axis for axis in CELL_AXES if axis != "device"], speedup)
        return same.loc[same["device"].isin([speedup["device"], speedup["baseline"]])]
    return tables.rows_with("cells", [axis for axis in CELL_AXES if axis not in BASELINE_SETTINGS], speedup)


ONE_SIDED = ("below_range", "above_range", "edge_tie")
"""Statuses of crossovers without a change of the faster side: at most one side is ever significantly faster."""


def crossover_fields(row: Mapping[str, Any], contender: str, baseline: str) -> dict[str, Any]:
    """The fields of a crossover on its position, sides and caveats."""
    behind = row["status"] == "above_range"
    return {
        "machine": row["machine"],
        "status": row["status"],
        **{name: row[name] for name in ("crossover", "crossover_low", "crossover_high", "bracket_low", "bracket_high")},
        **{name: row[name] for name in ("sure_low", "sure_high", "roots", "caveat_at", "cost", "trials")},
        "unit": axis_label(row),
        "winner": baseline if behind else contender,
        "loser": contender if behind else baseline,
        "reason": None if _is_decided(row) else row["caveat"],
        "caveats": caveats_of_crossover(row),
    }


def _is_decided(row: Mapping[str, Any]) -> bool:
    return row["status"] not in ("incomplete", "undecided")


def caveats_of_crossover(row: Mapping[str, Any]) -> list[str]:
    """Caveats of a crossover itself: a single trial, no interval, or what its row of the table says."""
    without_interval = row["crossover_low"] is None and row["crossover_high"] is None
    caveats = ["one_trial"] if row["trials"] == 1 and without_interval else []
    if row["crossover"] is not None and without_interval:
        caveats.append("no_interval")
    if row["caveat"] and _is_decided(row) and row["status"] != "edge_tie":  # an edge tie's answer names the sizes
        caveats.append(row["caveat"])
    return caveats


def _sides(row: Mapping[str, Any], with_product_names: bool) -> tuple[str, str]:
    if row["contender"] is None:
        return "GPU", side_word(row["baseline"])
    device = side_word(row["device"])
    if row["pair"] == "machine":
        return f"{device} of {row['machine']}", f"{device} of {row['baseline_machine']}"
    if row["pair"] != "device":
        return f"{row['contender']} on the {device}", f"{row['baseline']} on the {device}"
    name = device_label(row["contender"], row["contender_name"]) if with_product_names else device
    if row["baseline_machine"] == row["machine"]:
        return name, side_word(row["baseline"])
    baseline = side_word(row["baseline"]) + machine_words("of", row["baseline_machine"])
    return name + machine_words("of", row["machine"]), baseline


def reach_of(row: dict[str, Any], tables: RunTables, contender: str, baseline: str) -> dict[str, Any]:
    """The range of sizes measured on both sides and, if one side leads, the range and the speed-ups of its lead."""
    return _reach(row, speedups_of(row, tables)["ratio"].astype(float), contender, baseline)


def speedups_of(row: Mapping[str, Any], tables: RunTables) -> pd.DataFrame:
    """The ratios between the two sides of a crossover, indexed by position on the crossover's x axis."""
    pair = ["pair", "device", "baseline", "baseline_machine", "contender"]
    if row["x_axis"] == CPU_THREADS:
        pair.remove("baseline")  # in ratios, the baseline is the CPU with its number of cores
    same_pair = tables.rows_with("ratios", [*series_axes(row["x_axis"]), *pair], row)
    return with_x(same_pair, row["x_axis"]).dropna(subset="x").set_index("x").sort_index()


def _reach(row: Mapping[str, Any], speedups: pd.Series, contender: str, baseline: str) -> dict[str, Any]:
    """As `reach_of`. With ties at one end, the lead extends from the other end to the last size before the ties.

    With ties at both, it holds at a size between them, `sure_low` and `sure_high`. Speed-ups are those of time only.
    """
    if speedups.empty:
        return {}
    ends = {"smallest": speedups.index.min(), "largest": speedups.index.max()}
    if row["status"] == "multiple" and row["cost"] == "time":
        return ends | _sides_of_lead(bool(speedups.iloc[-1] > 1), contender, baseline) | {"reach": ends["largest"]}
    if row["status"] not in ONE_SIDED or (row["cost"] != "time" and row["status"] != "edge_tie"):
        return ends
    wins, to_the_end = row["status"] == "below_range", row["status"] == "above_range"
    if row["status"] == "edge_tie":
        low, high = (row[f"crossover_{end}"] or row[f"bracket_{end}"] for end in ("low", "high"))
        to_the_end = high is None
        bound = low if to_the_end else high
        sure = row["slower_up_to"] if row["faster_from"] is None else row["faster_from"]
        wins = row["faster_from"] is not None if sure is not None else bool(speedups.get(bound, 0) > 1)
        if bound not in speedups.index:  # ties at both ends have no bound
            between = {"sure_low": sure, "sure_high": sure}
            return ends if sure is None else ends | _sides_of_lead(wins, contender, baseline) | between
        if sure is None and row["cost"] != "time":
            return ends
        unsure = row["caveat_at"]
        speedups = speedups[speedups.index < min(unsure) if to_the_end else speedups.index > max(unsure)]
        if speedups.empty:
            return ends
    ahead = speedups if wins else 1 / speedups
    ratios = {"ratio_low": ahead.min(), "ratio_high": ahead.max()} if row["cost"] == "time" else {}
    reach = speedups.index.max() if to_the_end else speedups.index.min()
    return ends | _sides_of_lead(wins, contender, baseline) | {"reach": reach} | ratios


def _sides_of_lead(wins: bool, contender: str, baseline: str) -> dict[str, Any]:
    return {"winner": contender if wins else baseline, "loser": baseline if wins else contender}


def caveats_of_series(row: Mapping[str, Any], tables: RunTables) -> list[str]:
    """Caveats of a crossover: cells of its sides that are not ok, and flags of the cells that it rests on.

    These are the cells within its bracket. An estimate with a reference rests on all cells, since these give the ratio
    of the CPUs, and so does a crossover without both ends of a bracket. Without a comparison, there are none.
    """
    sides = sides_of(row, tables)
    if row["status"] in ("incomplete", "no_accelerator"):
        return lost_caveat(sides)
    within = _in_bracket(sides["x"], row)
    is_wide = row["pair"] == REFERENCE or None in (row["bracket_low"], row["bracket_high"])
    return lost_caveat(sides) + flags_of(sides if is_wide else sides[sides["x"].isna() | within])


def lost_caveat(sides: pd.DataFrame) -> list[str]:
    return ["lost_cells"] if (sides["status"] != "ok").any() else []


def sides_of(row: Mapping[str, Any], tables: RunTables) -> pd.DataFrame:
    """The cells of a crossover's series on the compared devices, with column `x`; for a reference, of both machines."""
    axes = [axis for axis in series_axes(row["x_axis"]) if axis != row["pair"]]
    if row["pair"] == REFERENCE:
        axes.remove("machine")
        both = [tables.rows_with(name, axes, row) for name in ("cells", "reference_cells")]
        sides = pd.concat(both, ignore_index=True)
        sides = sides[sides["machine"].isin([row["machine"], row["baseline_machine"]])]
    else:
        sides = tables.rows_with("cells", axes, row)
    if row["x_axis"] != CPU_THREADS:
        sides = sides[sides["device"].isin([row["device"], row["baseline"], row["contender"]])]
    return with_x(sides, row["x_axis"])


def _in_bracket(x: pd.Series, row: Mapping[str, Any]) -> pd.Series:
    """Whether each point lies within a crossover's bracket; False if the bracket lacks an end."""
    low, high = row["bracket_low"], row["bracket_high"]
    return x.between(math.nan if low is None else low, math.nan if high is None else high)


def transfer_answers(tables: RunTables, x_axis: str, together: int) -> list[Transfers]:
    """The ratios of the crossover with transfers in each step to that on resident data, where both are bracketed."""
    headlines = headline_rows(tables.crossovers)
    axes = [axis for axis in series_axes(x_axis) if axis != "protocol"]
    varied_axes = varying(tables.cells, axes)
    answers = []
    for _, rows in headlines[headlines["status"] == "bracketed"].groupby([*axes, "device"], sort=False):
        by_protocol = {row["protocol"]: row for row in records(rows)}
        for protocol in FROM_HOST:
            if {protocol, RESIDENT} <= by_protocol.keys():
                both = by_protocol[protocol], by_protocol[RESIDENT]
                answers.append(_transfer_answer(*both, varied_axes, tables, together))
    return answers


def _transfer_answer(
    transferred: dict[str, Any],
    resident: dict[str, Any],
    varied_axes: Sequence[str],
    tables: RunTables,
    together: int,
) -> Transfers:
    trials = min(transferred["trials"], resident["trials"])
    of_crossovers = [caveat for row in (transferred, resident) for caveat in caveats_of_series(row, tables)]
    first, second = (interval_of(row, "crossover{}") for row in (resident, transferred))
    ratio = ratio_of_intervals(first, second, together)
    return Transfers(
        machine=transferred["machine"],
        series=name_by(transferred, varied_axes),
        status=compared(ratio, more="differ", less="differ"),
        **columns_of(ratio, "ratio{}"),
        protocol=transferred["protocol"],
        unit=axis_label(transferred),
        winner=side_word(transferred["contender"]),
        loser=side_word(transferred["baseline"]),
        trials=trials,
        caveats=[*(["one_trial"] if trials == 1 else []), *of_crossovers],
    )


def best_answers(tables: RunTables, x_axis: str, together: int) -> Sequence[Best | Setting]:
    """The crossovers of accelerators with the CPU, both in their fastest configurations, and how far tuning moves them.

    Without such crossovers, the answers are the speed-ups that tuning gives each device.
    """
    axes = best_axes(x_axis)
    varied_axes = varying(tables.cells, axes)
    headlines = headline_rows(tables.crossovers)
    at_best = tables.crossovers[tables.crossovers["pair"] == BEST]
    candidates = candidates_of(tables)
    if at_best.empty:
        return _fastest_candidates(tables, candidates, varied_axes, x_axis, together)
    return [
        _best_answer(row, candidates, rows_with(headlines, [*axes, "contender"], row), varied_axes)
        for row in records(at_best)
    ]


def _fastest_candidates(
    tables: RunTables, candidates_of_study: pd.DataFrame, varied_axes: Sequence[str], x_axis: str, together: int
) -> list[Setting]:
    """The speed-up of a device's fastest candidate over the baseline, at the largest point with several candidates."""
    answers = []
    along = X_AXES[x_axis]
    for _, candidates in candidates_of_study.dropna(subset=["step_time_s"]).groupby(
        [*best_axes(x_axis), "device"], sort=False
    ):
        counted = candidates[candidates["counts"] & candidates.duplicated(along, keep=False)]
        at_largest = counted[counted[along] == counted[along].max()].sort_values("step_time_s")
        if at_largest.empty:
            continue
        is_eager = at_largest["execution"] == BASELINE_SETTINGS["execution"]
        is_plain = is_eager & (at_largest["side"] == at_largest["device"])
        rows = records(at_largest)
        times = [tables.means[cell_key({**row, "device": row["side"]})]["time"] for row in rows]
        choice = choose(times, next(iter(np.flatnonzero(is_plain).tolist()), None), together)
        best, baseline = rows[choice.chosen], rows[choice.baseline]
        names = candidate_names([best, baseline], candidates)
        answers.append(
            Setting(
                machine=best["machine"],
                series=name_by(best, varied_axes),
                **compared_ratio(choice.ratio),
                device=side_word(best["device"]),
                place=place_on(best, x_axis),
                winner=names[0],
                loser=names[1],
                **basis(min(best["trials"], baseline["trials"]), pd.DataFrame([best, baseline])),
            )
        )
    return answers


def _best_answer(
    row: dict[str, Any], candidates_of_study: pd.DataFrame, headlines: pd.DataFrame, varied_axes: Sequence[str]
) -> Best:
    candidates = rows_with(candidates_of_study, best_axes(row["x_axis"]), row)
    chosen = candidates[candidates["chosen"] & candidates["counts"]].sort_values(X_AXES[row["x_axis"]])
    sides = {
        side: _fastest_of(chosen[chosen["device"] == row[side]], candidates, row) for side in ("baseline", "contender")
    }
    contender, baseline = side_word(row["contender"]), side_word(row["baseline"])
    columns = crossover_fields(row, contender, baseline)
    times = chosen.pivot_table(index=row["x_axis"], columns="device", values="step_time_s")
    if {row["baseline"], row["contender"]} <= set(times):
        speedups = (times[row["baseline"]] / times[row["contender"]]).dropna()
        columns |= _reach(row, speedups, contender, baseline)
        if len(speedups) < candidates[row["x_axis"]].nunique():
            columns["compared_at"] = speedups.index.tolist()
    winner, loser = ("baseline", "contender") if columns["winner"] == baseline else ("contender", "baseline")
    plain = _plainest(headlines, row["precision"].partition("+")[0])
    both_cross = plain["status"] == row["status"] == "bracketed"
    about = {
        **columns,
        "main": True,
        "series": name_by(row, varied_axes),
        "caveats": [*columns["caveats"], *flags_of(chosen)],
        "winner_configurations": sides[winner],
        "loser_configurations": sides[loser],
        "moved_status": plain["status"],
        "moved_from": plain["crossover"],
        "factor": row["crossover"] / plain["crossover"] if both_cross else None,
    }
    return Best(**about)


def _plainest(headlines: pd.DataFrame, precision: str) -> dict[str, Any]:
    wanted = BASELINE_AXES | {"precision": precision}
    rows = records(headlines)
    nearest = max(rows, key=lambda row: sum(row[axis] == value for axis, value in wanted.items()), default=None)
    return nearest or {"status": None, "crossover": None}


def _fastest_of(chosen: pd.DataFrame, candidates: pd.DataFrame, row: Mapping[str, Any]) -> list[str]:
    """The names of a device's fastest candidates within the bracket, else at the smallest and the largest size."""
    shown = chosen[_in_bracket(chosen[row["x_axis"]], row)]
    if shown.empty:
        shown = pd.concat([chosen.head(1), chosen.tail(1)])
    return list(dict.fromkeys(candidate_names(records(shown), candidates)))


def candidate_names(shown: Sequence[dict[str, Any]], candidates: pd.DataFrame) -> list[str]:
    """The name of each row: 'eager on 1 core', 'eager on all cores'. Cores are named if a row has a number of them."""
    axes = [axis for axis in CANDIDATE_AXES if axis != "device"]
    named = [axis for axis in axes if axis == "execution" or candidates[axis].nunique() > 1]
    on_cores = any(threads_of_side(row["side"]) for row in shown)
    cores = [side_word(row["side"]).partition(" ")[2] or "on all cores" if on_cores else "" for row in shown]
    return [f"{name_by(row, named)} {on}".strip() for row, on in zip(shown, cores, strict=True)]
