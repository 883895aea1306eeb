"""The answer on how fast a model could be at most on a GPU that was measured elsewhere with other models."""

from __future__ import annotations

from crossover.answers.vocabulary import Row, trials_columns
from crossover.config.words import series_axes
from crossover.statistics.bounds import LAUNCH, PAIR
from crossover.tables.frames import first_row, records, with_x
from crossover.tables.labels import axis_label, machine_side, name_by, varying
from crossover.tables.run_tables import RunTables


def bound_answers(tables: RunTables, x_axis: str) -> list[Row]:
    """One answer per series, at its largest point, from the reference that could be fastest there."""
    ratios = tables.ratios[tables.ratios["pair"] == PAIR]
    if ratios.empty:
        return []
    axes = [axis for axis in series_axes(x_axis) if axis != "machine"]
    several = varying(tables.cells, axes)
    unit = axis_label(first_row(tables.cells) | {"x_axis": x_axis})
    answers = []
    for _, line in with_x(ratios, x_axis).groupby(axes, sort=False):
        largest = line[line["x"] == line["x"].max()]
        bound = records(largest.sort_values("ratio").tail(1))[0]
        launches = line[(line["machine"] == bound["machine"]) & (line["contender"] == LAUNCH)]
        answers.append(
            {
                "kind": "bound",
                "machine": bound["machine"],
                "series": name_by(bound, several),
                "status": "measured",
                "value": bound["ratio"],
                "low": bound["ratio_low"],
                "high": bound["ratio_high"],
                "unit": unit,
                "bracket_low": bound["x"],
                "reach": launches["x"].max() if len(launches) else None,
                "winner": machine_side(bound["device"], bound["machine"]),
                "loser": machine_side(bound["baseline"], bound["baseline_machine"]),
                **trials_columns(bound["trials"]),
            }
        )
    return answers
