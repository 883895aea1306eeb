"""The tables that the report is made of."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd


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

    @property
    def measured(self) -> list[pd.DataFrame]:
        """The tables of what ran: trials, and trainings where there are any."""
        return [self.measurements] if self.quality is None else [self.measurements, self.quality]

    @property
    def by_work(self) -> dict[str, pd.DataFrame | None]:
        """The rows of what a run's jobs did, by what it is."""
        return {"trial": self.measurements, "training": self.quality, "search": self.searches}
