"""The passes after a trial's timing: none of them takes the time with it where memory or the time limit ends it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from crossover.machine.trust import host_flags, may_pass, why_invalid
from crossover.measurement.step.endings import early_end

Columns = dict[str, Any]


@dataclass
class Passes:
    """A trial whose time is known: its columns so far, and what is known of their worth."""

    facts: Columns
    """Columns that were known before anything was measured."""
    columns: Columns
    flags: list[str]
    """Those of the timing."""
    wrong: str | None
    """Why another step was timed than the one asked for, or its answer is wrong, if so."""
    keep: Callable[[Columns], None]
    """Takes the row as it would be if the pass that begins were not to end."""
    checked: bool = False
    """Whether the step's answer was compared."""
    notes: list[str] = field(default_factory=list)
    """Why the answer is unchecked although the check ended, if so."""
    undone: list[str] = field(default_factory=list)
    """The passes that ended early, each with the reason."""

    def run(self, passes: Mapping[str, Callable[[], Columns]]) -> None:
        """Run passes, by name, and add their columns; one that memory ends is left out, and the row says so."""
        pending = list(passes)
        for name, measure in passes.items():
            row = self.row()
            self.keep({"passing": pending, "row": row, "transient": may_pass(row)})
            try:
                self.columns |= measure()
            except Exception as error:
                end = early_end(error)
                if end is None or end[0] == "invalid":
                    raise
                self.undone.append(f"{name}: {end[1]}")
            pending = pending[1:]

    def row(self) -> Columns:
        """The columns with flags, status and reason, by what is known so far."""
        reason = self.wrong or why_invalid(self.columns)
        more = {"unchecked": not self.checked, "incomplete": bool(self.undone)}
        return {
            **self.columns,
            "flags": [*self.flags, *host_flags({**self.facts, **self.columns}), *(flag for flag in more if more[flag])],
            "status": "invalid" if reason else "ok",
            "reason": reason or "; ".join([*self.notes, *self.undone]) or None,
        }
