"""What each kind of figure shows, in one line that is computed from the data and never beyond them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from crossover.answers.takeaways_of_cells import of_comparison, of_latency, of_throughput, of_trade_off
from crossover.answers.takeaways_of_devices import of_energy, of_host_share, of_memory, of_utilisation
from crossover.answers.takeaways_over_size import of_precisions, of_speedups, of_times
from crossover.figures.views import StudyView

TAKEAWAYS: Mapping[str, Callable[[StudyView], str]] = {
    "times": of_times,
    "speedups": of_speedups,
    "precisions": of_precisions,
    "comparison": of_comparison,
    "latency": of_latency,
    "throughput": of_throughput,
    "utilisation": of_utilisation,
    "host_share": of_host_share,
    "memory": of_memory,
    "trade_off": of_trade_off,
    "energy": of_energy,
}
"""What says it of each kind of figure."""


def takeaway(kind: str, view: StudyView) -> str:
    """One line for a kind of figure; empty where the data hold nothing to say."""
    return "" if view.cells.empty else TAKEAWAYS[kind](view)
