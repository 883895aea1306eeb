"""The answer about which machine is fastest, or cheapest, at which sizes."""

from __future__ import annotations

import pandas as pd

from crossover.answers.vocabulary import Row, flags_of, trials_columns
from crossover.config.words import BASELINE
from crossover.statistics.machines import first_places, is_ranking, line_axes, sides_of
from crossover.statistics.references import PAIR as REFERENCE
from crossover.tables.frames import records, rows_with
from crossover.tables.labels import axis_label, machine_side, name_by, varying
from crossover.tables.run_tables import RunTables


def ranked_line(tables: RunTables, x_axis: str) -> pd.DataFrame:
    """The rows of table `machines` for the line of a study's first crossover that is a ranking."""
    crossovers = tables.crossovers
    of_devices = crossovers["pair"].isin(["device", REFERENCE]) & (crossovers["baseline"] == BASELINE)
    for crossover in records(crossovers[of_devices]):
        line = rows_with(tables.machines, line_axes(x_axis), crossover)
        if is_ranking(line):
            return line
    return tables.machines.head(0)


def ranking_answers(tables: RunTables, x_axis: str) -> list[Row]:
    """The answer about the fastest or cheapest sides along a study's main series; none if a crossover says as much."""
    rows = ranked_line(tables, x_axis)
    if rows.empty:
        return []
    first = records(rows)[0]
    places = first_places(rows, x_axis)
    decided = rows.loc[rows["behind"].astype(bool), x_axis].nunique() == rows[x_axis].nunique()
    trials = trials_columns(int(rows["trials"].min()))
    if not places:
        status = "undecided"
    elif decided:
        status = "changes" if len(places) > 1 else "throughout"
    else:
        status = "in_part"
    return [
        {
            "kind": "ranking",
            "series": name_by(first, varying(tables.cells, line_axes(x_axis))),
            "status": status,
            "quantity": first["ranked_by"],
            "value": len(sides_of(rows)),
            "unit": axis_label(first | {"x_axis": x_axis}),
            "winner_configurations": [
                " or ".join(machine_side(device, machine) for machine, device in sorted(place.sides))
                for place in places
            ],
            "near": [x for place in places for x in (place.low, place.high)],
            **trials,
            "caveats": trials["caveats"] + flags_of(rows),
        }
    ]
