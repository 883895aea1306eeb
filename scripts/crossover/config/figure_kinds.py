"""The kinds of figures that a study may name. Trials import no such list, so that a new kind makes none stale."""

from __future__ import annotations

from collections.abc import Collection

FIGURE_KINDS = {
    "comparison": "comparison",
    "energy": "over_axis",
    "host_share": "over_axis",
    "latency": "latency",
    "machines": "over_axis",
    "map": "speedup_map",
    "memory": "bars",
    "precisions": "over_axis",
    "roofline": "scatter",
    "speedups": "over_axis",
    "throughput": "over_axis",
    "time_split": "bars",
    "times": "over_axis",
    "trade_off": "scatter",
    "utilisation": "over_axis",
}
"""The module of `crossover.figures` that defines each kind, as a `Kind` of its name in capitals."""

CROSSOVER_FIGURES = {"times", "speedups"}


def asks_for_crossovers(figures: Collection[str]) -> bool:
    """Whether a study with these figures looks for crossovers between devices, which are then narrowed down."""
    return not CROSSOVER_FIGURES.isdisjoint(figures)
