"""What a row of table crossovers compares: its sides, their cells and speed-ups, and its caveats."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from crossover.compare.best import BEST
from crossover.compare.intervals import Interval, interval_of, ratio_of_intervals
from crossover.compare.pairings import REFERENCE
from crossover.config.words import CPU_THREADS, GPUS, is_cpu, series_axes
from crossover.tables.frames import headline_rows, with_x
from crossover.tables.labels import axis_label, device_label, machine_words, name_by, side_word
from crossover.tables.registry import CELL_AXES
from crossover.tables.run_tables import RunTables
from crossover.topics.caveats import flags_of


def ratio_of_crossovers(before: Mapping[str, Any], after: Mapping[str, Any], together: int) -> Interval:
    """The ratio of two rows' crossovers, which share no trials, corrected for `together` ratios."""
    first, second = (interval_of(row, "crossover{}") for row in (before, after))
    return ratio_of_intervals(first, second, together)


def with_needed_columns(tables: RunTables) -> RunTables:
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


def crossovers_to_answer(tables: RunTables, asked: Collection[str] = ("device",)) -> tuple[pd.DataFrame, set[Any]]:
    """The crossovers of a study that get an answer, and the index labels of those with a main answer.

    Main answers compare devices and numbers of GPUs or, if the study refines only other pairs (`asked`), these. If no
    CPU has a time, they compare all other pairs, and comparisons with the CPU get no answer. For pairs other than
    `device` and `gpus`, money is left out: on one device it is proportional to time, and rankings compare the money of
    machines.
    """
    crossovers = tables.crossovers[~tables.crossovers["second_axis"].astype(bool)]
    is_device = crossovers["pair"] == "device"
    is_gpus = crossovers["pair"] == GPUS
    has_answer = ~crossovers["pair"].isin([BEST, REFERENCE]) & ((crossovers["cost"] != "money") | is_gpus)
    is_other = ~is_device & has_answer
    of_settings = crossovers[is_other & (crossovers["cost"] == "time")]
    has_cpu = tables.cells.dropna(subset=["step_time_s"])["device"].map(is_cpu).any()
    if len(of_settings) and not has_cpu:
        return crossovers[is_other], set(of_settings.index)
    crossovers = crossovers[is_device | is_other]
    of_asked = of_settings[of_settings["pair"].isin(asked)]
    if len(of_asked) and "device" not in asked:
        return crossovers, set(of_asked.index)
    costly = crossovers[(crossovers["cost"] != "time") & (crossovers["status"] != "incomplete")]
    of_gpus = of_settings[of_settings["pair"] == GPUS]
    main = [headline_rows(crossovers), headline_rows(costly.assign(cost="time")), of_gpus]
    return crossovers, {label for rows in main for label in rows.index}


def has_several_accelerators(crossovers: pd.DataFrame) -> bool:
    """Whether 'GPU' is ambiguous, so that answers name the product."""
    return headline_rows(crossovers)["contender"].nunique() > 1


def series_name(row: Mapping[str, Any], varied_axes: Sequence[str]) -> str:
    return name_by(row, [axis for axis in varied_axes if axis != row["pair"]])


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


def side_names(row: Mapping[str, Any], with_product_names: bool) -> tuple[str, str]:
    if row["contender"] is None:
        return "GPU", side_word(row["baseline"])
    device = side_word(row["device"])
    if row["pair"] == GPUS:
        baseline = side_word(row["baseline"])
        return device, f"1 {baseline}" if baseline == "GPU" else baseline
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
    return reach_of_lead(row, speedups_of(row, tables)["ratio"].astype(float), contender, baseline)


def speedups_of(row: Mapping[str, Any], tables: RunTables) -> pd.DataFrame:
    """The ratios between the two sides of a crossover, indexed by position on the crossover's x axis."""
    pair = ["pair", "device", "baseline", "baseline_machine", "contender"]
    if row["x_axis"] == CPU_THREADS:
        pair.remove("baseline")  # in ratios, the baseline is the CPU with its number of cores
    same_pair = tables.rows_with("ratios", [*series_axes(row["x_axis"]), *pair], row)
    return with_x(same_pair, row["x_axis"]).dropna(subset="x").set_index("x").sort_index()


def reach_of_lead(row: Mapping[str, Any], speedups: pd.Series, contender: str, baseline: str) -> dict[str, Any]:
    """As `reach_of`, from the speed-ups by position on the x axis."""
    if speedups.empty:
        return {}
    wins, lead = _lead(row, speedups)
    sides = (contender, baseline) if wins else (baseline, contender)
    named = dict(zip(("winner", "loser"), sides, strict=True)) if lead else {}
    return {"smallest": speedups.index.min(), "largest": speedups.index.max()} | named | lead


def _lead(row: Mapping[str, Any], speedups: pd.Series) -> tuple[bool, dict[str, Any]]:
    """Whether the contender is the side that leads, and where; empty if neither leads."""
    if row["status"] == "edge_tie":
        return _lead_beside_ties(row, speedups)
    if row["cost"] != "time" or row["status"] not in ("multiple", "below_range", "above_range"):
        return False, {}
    if row["status"] == "multiple":
        return bool(speedups.iloc[-1] > 1), {"reach": speedups.index.max()}
    wins = row["status"] == "below_range"
    led = speedups[~speedups.index.isin(row["caveat_at"])] if row["caveat"] == "unsure_sizes" else speedups
    return wins, _range_of_lead(row, led, wins=wins, to_the_end=not wins)


def _lead_beside_ties(row: Mapping[str, Any], speedups: pd.Series) -> tuple[bool, dict[str, Any]]:
    """With ties at one end, the lead extends from the other end to the last size before the ties.

    With ties at both, it holds at a size between them, `sure_low` and `sure_high`.
    """
    low, high = (row[f"crossover_{end}"] or row[f"bracket_{end}"] for end in ("low", "high"))
    to_the_end = high is None
    bound = low if to_the_end else high
    sure = row["slower_up_to"] if row["faster_from"] is None else row["faster_from"]
    if bound not in speedups.index:  # ties at both ends have no bound
        return row["faster_from"] is not None, {} if sure is None else {"sure_low": sure, "sure_high": sure}
    if sure is None and row["cost"] != "time":
        return False, {}
    wins = bool(speedups[bound] > 1) if sure is None else row["faster_from"] is not None
    unsure = row["caveat_at"]
    led = speedups[speedups.index < min(unsure) if to_the_end else speedups.index > max(unsure)]
    return wins, {} if led.empty else _range_of_lead(row, led, wins=wins, to_the_end=to_the_end)


def _range_of_lead(row: Mapping[str, Any], led: pd.Series, *, wins: bool, to_the_end: bool) -> dict[str, Any]:
    """The end of the lead beyond which the sides may cross and, for times, its lowest and highest speed-up."""
    ahead = led if wins else 1 / led
    ratios = {"ratio_low": ahead.min(), "ratio_high": ahead.max()} if row["cost"] == "time" else {}
    return {"reach": led.index.max() if to_the_end else led.index.min()} | ratios


def caveats_of_series(row: Mapping[str, Any], tables: RunTables) -> list[str]:
    """Caveats of a crossover: cells of its sides that are not ok, and flags of the cells that it rests on.

    These are the cells within its bracket. An estimate with a reference rests on all cells, since these give the ratio
    of the CPUs, and so does a crossover without both ends of a bracket. Without a comparison, there are none.
    """
    sides = sides_of(row, tables)
    if row["status"] in ("incomplete", "no_accelerator"):
        return lost_caveat(sides)
    within = in_bracket(sides["x"], row)
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


def in_bracket(x: pd.Series, row: Mapping[str, Any]) -> pd.Series:
    """Whether each point lies within a crossover's bracket; False if the bracket lacks an end."""
    low, high = row["bracket_low"], row["bracket_high"]
    return x.between(math.nan if low is None else low, math.nan if high is None else high)
