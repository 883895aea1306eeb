"""The tables that the report is made of."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import pandas as pd

from crossover.statistics.problems import rows_by_work
from crossover.tables.frames import of_study


@dataclass(frozen=True)
class ReportTables:
    """What a run's stages left; None stands for a table that no study of the run asks for."""

    measurements: pd.DataFrame
    cells: pd.DataFrame
    crossovers: pd.DataFrame
    claims: pd.DataFrame
    cost_models: pd.DataFrame
    """What `model_lines` gives."""
    problems: pd.DataFrame
    """What `list_problems` gives."""
    quality: pd.DataFrame | None = None
    """The quality of trained models."""
    searches: pd.DataFrame | None = None
    """The largest batches that were searched."""
    cores_worth: pd.DataFrame | None = None
    """How many CPU cores an accelerator is worth."""

    def of_study(self, study: str) -> ReportTables:
        """The same of one study; None also where it has no row in a table that not every study asks for."""
        own: dict[str, Any] = {}
        for field in fields(self):
            table = getattr(self, field.name)
            rows = None if table is None else of_study(table, study)
            own[field.name] = None if rows is not None and rows.empty and field.default is None else rows
        return ReportTables(**own)

    @property
    def measured(self) -> list[pd.DataFrame]:
        """The tables of what ran: trials, and trainings where there are any."""
        return [self.measurements] if self.quality is None else [self.measurements, self.quality]

    @property
    def by_work(self) -> dict[str, pd.DataFrame]:
        """The rows of what a run's jobs did, by what it is."""
        return rows_by_work(self.measurements, self.quality, self.searches)
