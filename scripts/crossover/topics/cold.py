"""Answers on how far the crossover of cold calls is from that of repeated calls, and how much slower cold calls are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from crossover.compare.intervals import columns_of
from crossover.config.words import COLD, series_axes
from crossover.tables.frames import headline_rows, records, rows_with
from crossover.tables.labels import side_word, varying
from crossover.tables.registry import CAVEATS as PLACED_CAVEATS
from crossover.tables.run_tables import RunTables
from crossover.text import listed, number_text
from crossover.topics.crossovers.answers import Crossover, crossover_answer
from crossover.topics.crossovers.sides import has_several_accelerators, ratio_of_crossovers, with_needed_columns
from crossover.topics.loading import RESIDENT
from crossover.topics.wording import amount_text, confidence_text, position_text, span_text


@dataclass(frozen=True, kw_only=True)
class Cold(Crossover):
    """The crossover of cold calls, beside that of repeated calls."""

    kind = "cold"

    repeated: Mapping[str, Any]
    """The fields of the crossover of repeated calls."""
    factor: float | None = None
    """The crossover over that of repeated calls, if both are bracketed and have intervals."""
    factor_low: float | None = None
    factor_high: float | None = None
    slowdowns: Mapping[str, Sequence[float]]
    """By side, for each size: the time of a cold call over that of a repeated one."""

    def sentence(self) -> str:
        repeated = Crossover(**self.repeated)
        if not (self.factor and self.factor_low and self.factor_high):
            return f"Cold calls: {_placed(self)}; repeated calls: {_placed(repeated)}"
        before, after = self._known(repeated.crossover), self._known(self.crossover)
        moved = f"from {amount_text(before, self.unit)} to {position_text(after, self.unit)}"
        tie = ", but not significantly" if self.factor_low <= 1 <= self.factor_high else ""
        sides = f"{self.winner} and {self.loser}"
        return f"A cold call moves the crossover of {sides} {moved}, {number_text(self.factor)} times{tie}"

    def summary_of(self, alike: Sequence[Self]) -> str:
        return f"Cold calls: {super().summary_of(alike)}"

    def details(self) -> list[str]:
        slower = [f"{span_text(ratios, number_text)}x as long on the {side}" for side, ratios in self.slowdowns.items()]
        takes = [f"a cold call takes {listed(slower)}"] if slower else []
        return [*confidence_text(self.factor_low, self.factor_high, "times"), *takes]


def _placed(crossover: Crossover) -> str:
    """What is known of a crossover, with its interval."""
    return crossover.crossing() + "".join(f" ({interval})" for interval in crossover.interval()[:1])


def cold_answers(tables: RunTables, x_axis: str, together: int) -> list[Cold]:
    """The crossovers of cold calls that have one of repeated calls beside them; the main answers of their study."""
    headlines = headline_rows(tables.crossovers).dropna(subset="contender")
    of_cold_calls = headlines[headlines["protocol"] == COLD]
    if of_cold_calls.empty:  # as in most studies, whose tables need not be copied
        return []
    with_product_names = has_several_accelerators(tables.crossovers)
    axes = [axis for axis in series_axes(x_axis) if axis != "protocol"]
    varied_axes, needed = varying(tables.cells, axes), with_needed_columns(tables)
    answers = []
    for row in records(of_cold_calls):
        for beside in records(rows_with(headlines, [*axes, "protocol", "contender"], row | {"protocol": RESIDENT})):
            cold, repeated = (crossover_answer(one, needed, varied_axes, with_product_names) for one in (row, beside))
            also = [name for name in repeated.caveats if name not in ("no_interval", *PLACED_CAVEATS)]
            about = vars(cold) | {"main": True, "caveats": [*cold.caveats, *also]}
            about |= _factor(beside, row, together) | {"slowdowns": _slowdowns(row, tables, axes)}
            answers.append(Cold(**about, repeated=asdict(repeated)))
    return answers


def _factor(repeated: Mapping[str, Any], cold: Mapping[str, Any], together: int) -> dict[str, float | None]:
    """The ratio of two crossovers, as fields of `Cold`."""
    if not repeated["status"] == cold["status"] == "bracketed":
        return {}
    ratio = ratio_of_crossovers(repeated, cold, together)
    return columns_of(ratio, "factor{}") if ratio.low else {}


def _slowdowns(row: Mapping[str, Any], tables: RunTables, axes: Sequence[str]) -> dict[str, Sequence[float]]:
    """As in `Cold`, for the sides of a crossover."""
    cells = tables.rows_with("cells", axes, row)
    times = cells.pivot_table(index=["size", "batch_size"], columns=["device", "protocol"], values="step_time_s")
    ratios = {
        side_word(device): (times[device, COLD] / times[device, RESIDENT]).dropna().tolist()
        for device in (row["contender"], row["baseline"])
        if {(device, COLD), (device, RESIDENT)} <= {*times}
    }
    return {side: values for side, values in ratios.items() if values}
