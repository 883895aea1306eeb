"""The kinds of figures that a study may name. Trials import no such list, so that a new kind makes none stale."""

from __future__ import annotations

from collections.abc import Collection

FIGURE_KINDS = {
    "comparison": "topics.claims.figures",
    "energy": "report.figures.over_axis",
    "host_share": "topics.bottlenecks.figures",
    "latency": "topics.latency.figures",
    "machines": "topics.ranking.figures",
    "map": "report.figures.speedup_map",
    "memory": "topics.memory.figures",
    "precisions": "report.figures.over_axis",
    "roofline": "topics.bottlenecks.figures",
    "speedups": "report.figures.over_axis",
    "throughput": "report.figures.over_axis",
    "time_split": "topics.bottlenecks.figures",
    "times": "report.figures.over_axis",
    "trade_off": "report.figures.trade_off",
    "utilisation": "report.figures.over_axis",
}
"""The module of `crossover` that defines each kind, as a `Kind` of its name in capitals."""

CROSSOVER_FIGURES = {"times", "speedups"}


def asks_for_crossovers(figures: Collection[str]) -> bool:
    """Whether a study with these figures looks for crossovers between devices, which are then narrowed down."""
    return not CROSSOVER_FIGURES.isdisjoint(figures)
