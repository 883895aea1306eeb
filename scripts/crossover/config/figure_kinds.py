"""The kinds of figures that a study may name. Trials import no such list, so that a new kind makes none stale."""

from __future__ import annotations

from collections.abc import Collection

FIGURE_KINDS = (
    *("comparison", "energy", "host_share", "latency", "machines", "map", "memory", "precisions", "roofline"),
    *("speedups", "throughput", "time_split", "times", "trade_off", "utilisation"),
)
"""Kinds of figures that a study may name; `crossover.figures.registry` draws them."""

CROSSOVER_FIGURES = {"times", "speedups"}


def asks_for_crossovers(figures: Collection[str]) -> bool:
    """Whether a study with these figures looks for crossovers between devices, which are then narrowed down."""
    return not CROSSOVER_FIGURES.isdisjoint(figures)
