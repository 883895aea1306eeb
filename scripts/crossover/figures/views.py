"""What a figure shows of one study: its rows, and the published figures beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from crossover.config.studies import steps_of_run
from crossover.config.words import DEVICES, HALF, threads_of_side
from crossover.statistics.comparisons import headline_rows
from crossover.statistics.largest_batches import SEARCH_AXES
from crossover.tables.frames import LINE_AXES, first_row, of_study, on_all_cores, records, rows_with, with_ok_times
from crossover.tables.published import on_line, read_published


@dataclass(frozen=True)
class StudyView:
    """What a figure shows of one study."""

    title: str
    measurements: pd.DataFrame
    cells: pd.DataFrame
    crossovers: pd.DataFrame
    x_axis: str
    steps_per_run: int | Mapping[str, int] | None = None
    published_crossover: tuple[float, float] | None = None
    published_results: pd.DataFrame | None = None
    """What `read_published` gives."""
    searches: pd.DataFrame | None = None
    """What `collect_searches` gives; None where the study asks for no search of its largest batches."""
    cost_models: pd.DataFrame | None = None
    """What `model_lines` gives."""
    price_per_hour: Mapping[str, float] | None = None
    """Of the machine that holds each device."""
    currency: str | None = None

    def run_steps(self, batch_size: int) -> int | None:
        """Steps of a published run at a batch size; None where the study's figures show the time of a step."""
        return steps_of_run(self.steps_per_run, batch_size)

    @property
    def epochs(self) -> int | None:
        """Epochs of a published run that has several, so that one is worth a number of its own; else None."""
        epochs = self.steps_per_run["epochs"] if isinstance(self.steps_per_run, Mapping) else 1
        return epochs if epochs > 1 else None

    def time_label(self) -> str:
        """What a figure's times are: of a run where the study has one, else of a step."""
        run = self.steps_per_run
        if run is None:
            return "time per step"
        count, unit = (run["epochs"], "epoch") if isinstance(run, Mapping) else (run, "step")
        return f"time for {count:,} {unit}{'' if count == 1 else 's'} in s\n(measured step time × steps)"

    def lines(self) -> list[dict[str, Any]]:
        """One crossover row for each line, in the order of the study's grid."""
        return records(self.crossovers.drop_duplicates(LINE_AXES))

    @property
    def has_fewer_cores(self) -> bool:
        """Whether the CPU was also timed on fewer than all cores."""
        return len(on_all_cores(self.cells)) < len(self.cells)

    @property
    def has_machines(self) -> bool:
        """Whether several machines measured."""
        return self.cells["machine"].nunique() > 1

    def on_all_cores(self) -> StudyView:
        """The same without the CPU on fewer cores, for a figure that has no place for it."""
        return replace(self, measurements=on_all_cores(self.measurements), cells=on_all_cores(self.cells))

    def rows(self, line: dict[str, Any], table: pd.DataFrame) -> pd.DataFrame:
        """The rows of a table that belong to a line."""
        return rows_with(table, LINE_AXES, line)

    def cells_of(self, line: dict[str, Any]) -> pd.DataFrame:
        """The cells of a line, in the order of column `x`: the size, or the parameters."""
        return self.with_x(self.rows(line, self.cells)).sort_values("x")

    def trials_of(self, line: dict[str, Any]) -> pd.DataFrame:
        """The trials of a line, with column `x` as `cells_of` has it."""
        return self.with_x(self.rows(line, self.measurements))

    def refined(self, line: dict[str, Any]) -> set[float]:
        """The values of `x` at which refinement added cells to a line."""
        cells = self.cells_of(line)
        return set(cells.loc[cells["refined"].astype(bool), "x"])

    def published_runs(self, line: dict[str, Any]) -> pd.DataFrame:
        """The published run times beside a line; hardware that the source does not name is an empty text."""
        if self.published_results is None:
            return pd.DataFrame(columns=["size", "device", "hardware", "run_time_s"])
        timed = on_line(self.published_results, line).dropna(subset=["size", "device", "run_time_s"])
        return timed.fillna({"hardware": ""})

    def search_of(self, line: dict[str, Any]) -> dict[str, Any] | None:
        """The search for the largest batch on a line's device; None where there was none."""
        if self.searches is None:
            return None
        own = rows_with(self.searches, SEARCH_AXES, line)
        return first_row(own) if len(own) else None

    def with_x(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The rows with column `x`: the size, or the parameters."""
        return rows.assign(x=rows[self.x_axis].astype(float))


def study_view(
    measurements: pd.DataFrame,
    cells: pd.DataFrame,
    crossovers: pd.DataFrame,
    spec: Mapping[str, Any],
    path_to_published: Path | None,
    *,
    searches: pd.DataFrame | None = None,
    cost_models: pd.DataFrame | None = None,
    price_per_hour: Mapping[str, float] | None = None,
    currency: str | None = None,
) -> StudyView:
    """Cut one study out of the tables; `spec` is the study's file, completed with defaults."""
    name, published = spec["name"], spec["published"] or {}
    return StudyView(
        spec["title"],
        with_ok_times(of_study(measurements, name)),
        in_grid_order(of_study(cells, name), spec),
        in_grid_order(headline_rows(of_study(crossovers, name)), spec),
        spec["x_axis"],
        spec["steps_per_run"],
        tuple(published["crossover"]) if published.get("crossover") else None,
        read_published(path_to_published) if path_to_published else None,
        searches=searches,
        cost_models=cost_models,
        price_per_hour=price_per_hour,
        currency=currency,
    )


GRID_KEYS = {
    "variant": "variants",
    "protocol": "protocols",
    "batch_size": "batch_sizes",
    "precision": "precisions",
    "execution": "executions",
}


def in_grid_order(rows: pd.DataFrame, spec: Mapping[str, Any]) -> pd.DataFrame:
    """The rows in the order in which the study's file lists its variants, precisions and so on; the CPU comes first."""
    devices = sorted(rows["device"].dropna().unique(), key=_device_place) if "device" in rows else ()
    listed = {axis: spec.get(key, ()) for axis, key in GRID_KEYS.items()} | {"device": devices}
    places = {axis: {value: place for place, value in enumerate(values)} for axis, values in listed.items()}
    axes = [axis for axis in ("size", *listed) if axis in rows]
    return rows.sort_values(
        axes,
        key=lambda column: column.map(places[str(column.name)]).astype(float) if column.name in places else column,
    )


def _device_place(device: str) -> tuple[int, float]:
    """The CPU on all cores, on half, on ever fewer; then the accelerators."""
    threads = threads_of_side(device)
    fewer = 2 - 1 / threads if isinstance(threads, int) else 0.5 * (threads == HALF)
    return DEVICES.index(device.partition("-")[0]), fewer
