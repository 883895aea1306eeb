"""Answers on what loading and copying data cost: as a share of a step, and as a shift of the crossover."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from crossover.compare.cells import cell_key
from crossover.compare.intervals import (
    FASTER,
    INCONCLUSIVE,
    SINGLE_TRIAL,
    SLOWER,
    columns_of,
    compared,
    decided,
    ratio_of,
)
from crossover.config.words import BASELINE, COPYING, DEVICES, FROM_HOST, PROTOCOLS, series_axes
from crossover.tables.frames import headline_rows, records
from crossover.tables.labels import axis_label, name_by, side_word, varying
from crossover.tables.registry import CELL_AXES, SERIES_AXES
from crossover.tables.run_tables import RunTables
from crossover.text import number_text, percent_text, seconds_text
from crossover.topics.answer import Comparison, Ranged
from crossover.topics.caveats import basis
from crossover.topics.crossovers.sides import caveats_of_series, ratio_of_crossovers
from crossover.topics.wording import HOST_MEMORY, confidence_text, point_of, span_text

BOUND = 0.5
"""Share of a step above which loading or copying data counts as the bottleneck of the step."""


@dataclass(frozen=True, kw_only=True)
class Loading(Ranged):
    """The share of a step that resident data save: of loading its data or, as `Copying`, of copying them."""

    kind = "loading"
    statuses = ("bounds", FASTER, SLOWER, INCONCLUSIVE, SINGLE_TRIAL)
    differences = ("bounds", SLOWER)

    share: float
    share_low: float | None
    share_high: float | None
    from_host_s: float
    resident_s: float

    def what(self) -> str:
        return "Loading"

    def sentence_on(self, alike: Sequence[Self]) -> str:
        shares = span_text([answer.share for answer in alike], percent_text)
        if self.status == FASTER:
            return f"{self.what()} does not slow a step down on the {self.device}"
        if self.status == "bounds":
            bottleneck = f"not the network, is the bottleneck on the {self.device}"
            return f"{self.what()}, {bottleneck}: it takes {shares} of a step"
        significance = ", but not significantly" if self.status == INCONCLUSIVE else ""
        return f"{self.what()} takes {shares} of a step on the {self.device}{significance}"

    def details(self) -> list[str]:
        times = f"{seconds_text(self.from_host_s)} with it and {seconds_text(self.resident_s)} on resident data"
        return [*confidence_text(self.share_low, self.share_high, "share"), f"a step takes {times}"]


@dataclass(frozen=True, kw_only=True)
class Copying(Loading):
    kind = "copying"
    in_sentence = ("protocol",)

    protocol: str

    def what(self) -> str:
        return f"Transfer from {HOST_MEMORY[self.protocol]} host memory and back"


def loading_answers(tables: RunTables, together: int) -> list[Loading]:
    """The share of data loading in a step and, on an accelerator, the share of transfers from the host."""
    pairs = tables.ratios[tables.ratios["pair"] == "protocol"]
    pairs = pairs[pairs["device"].isin(DEVICES)]
    pairs = pairs[(pairs["device"] != BASELINE) | ~pairs["baseline"].isin(COPYING)]
    varied_axes = [axis for axis in varying(tables.cells, [*SERIES_AXES, "size"]) if axis != "protocol"]
    return [_loading_share(row, tables, varied_axes, together) for row in records(pairs)]


def _loading_share(row: dict[str, Any], tables: RunTables, varied_axes: Iterable[str], together: int) -> Loading:
    resident, loaded = (tables.means[cell_key(cell)]["time"] for cell in (row, row | {"protocol": row["baseline"]}))
    ratio = ratio_of(resident, loaded, together)
    value, low, high = (None if end is None else 1 - 1 / end for end in (ratio.mean, ratio.low, ratio.high))
    is_bound = low is not None and low > BOUND
    both = tables.rows_with("cells", [axis for axis in CELL_AXES if axis != "protocol"], row)
    about: dict[str, Any] = {
        "machine": row["machine"],
        "series": name_by(row, varied_axes),
        "status": "bounds" if is_bound else decided(low, high, 0.0, SLOWER, FASTER),
        "share": value,
        "share_low": low,
        "share_high": high,
        "device": side_word(row["device"]),
        "resident_s": row["contender_s"],
        "from_host_s": row["baseline_s"],
        **basis(row["trials"], both),
    }
    return Copying(**about, protocol=row["baseline"]) if row["baseline"] in COPYING else Loading(**about)


RESIDENT = PROTOCOLS[0]


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
    ratio = ratio_of_crossovers(resident, transferred, together)
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
