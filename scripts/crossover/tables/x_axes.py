"""What the crossovers, figures and chart of a study are drawn over: the parameters, or the size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from crossover.tables.frames import of_study
from crossover.tables.registry import LINE_AXES


def x_axes_of(requested: Mapping[str, str], rows: pd.DataFrame) -> dict[str, str]:
    """The x axis of each study: the requested one, or the size where parameters do not tell the sizes apart.

    They do not where a model has none that are trainable, or as many at two sizes (pixels, tokens). `rows` are trials
    or cells.
    """
    return {study: _x_axis(axis, of_study(rows, study)) for study, axis in requested.items()}


def with_x_axes(studies: Mapping[str, Mapping[str, Any]], rows: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """The files of studies with the x axis that their rows allow."""
    axes = x_axes_of({name: study["x_axis"] for name, study in studies.items()}, rows)
    return {name: {**study, "x_axis": axes[name]} for name, study in studies.items()}


def _x_axis(requested: str, rows: pd.DataFrame) -> str:
    counted = rows.dropna(subset="parameters")
    if requested != "parameters" or counted.empty:
        return requested
    values = counted.groupby(LINE_AXES)[["size", "parameters"]].nunique()
    distinct = (counted["parameters"] > 0).all() and (values["size"] == values["parameters"]).all()
    return "parameters" if distinct else "size"
