"""Simulate pairs of runs, equal or with one slower cell, for the rate of each outcome of the gate."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from simulation import simulate_cases, simulation_options

from crossover.compare.intervals import Floats
from crossover.tables.frames import write_csv
from crossover.tables.registry import CELL_AXES
from crossover.topics.gate.gate import EXIT_STATUSES, Gate, gate_of

CELLS, PLANTED = 20, 8
"""Number of cells, and the size of the cell that a slowdown is planted in."""
SLOWDOWN = 1.1
TYPICAL, SHARED, ONE_QUIET = "2 to 5 %", "10 %", "1 % in the slower cell, 10 to 20 % in the others"
SPREADS = {TYPICAL: (0.02, 0.05), SHARED: (0.1, 0.1), ONE_QUIET: (0.1, 0.2)}
"""Range of the standard deviations of a cell's trials, on the log scale."""
QUIET = 0.01


@dataclass(frozen=True)
class GateCase:
    spread: str
    """One of SPREADS."""
    trials: int
    limit: float


def gate_cases() -> list[GateCase]:
    settings = [(4, 0.02), (8, 0.02), (16, 0.02), (16, 0.05), (24, 0.05), (40, 0.05)]
    return [GateCase(spread, *setting) for spread in SPREADS for setting in settings]


def simulate_gates(
    case: GateCase,
    simulations: int,
    seed: int,
    slowdown: float = 1.0,
    between: float = 0.0,
    cells: int = CELLS,
    identical: int = 0,
) -> list[Gate]:
    """Gates on pairs of runs, the second with a slower cell PLANTED; runs differ by `between` (standard deviation).

    `identical` is the number of further equal runs that calibrate each gate.
    """
    random = np.random.default_rng(seed)
    size = np.repeat(np.arange(1, cells + 1), case.trials)
    plain = pd.DataFrame({"size": size, "trial": np.tile(np.arange(1, case.trials + 1), cells)})
    axes = dict.fromkeys(CELL_AXES, "") | {"size": size, "device": "cuda"}
    plain = plain.assign(**axes, status="ok")

    def run(spreads: Floats, slowdown: float = 1.0) -> pd.DataFrame:
        logs = random.normal(0, between, cells)[size - 1] + random.normal(0, spreads[size - 1])
        return plain.assign(step_time_s=1e-3 * np.exp(logs) * np.where(size == PLANTED, slowdown, 1.0))

    gates = []
    for _ in range(simulations):
        spreads = random.uniform(*SPREADS[case.spread], cells)
        if case.spread == ONE_QUIET:
            spreads[PLANTED - 1] = QUIET
        same = {f"same{index}": run(spreads) for index in range(identical)}
        gates.append(gate_of(run(spreads), run(spreads, slowdown), case.limit, same))
    return gates


def gate_rows(case: GateCase, simulations: int, seed: int) -> pd.DataFrame:
    """The share of equal runs with each outcome, of slower ones found, and the median detectable slowdown."""
    equal = simulate_gates(case, simulations, seed)
    slower = simulate_gates(case, simulations, seed + 1, SLOWDOWN)
    row: dict[str, Any] = {outcome: _share(equal, outcome) for outcome in EXIT_STATUSES}
    row["found"] = sum(PLANTED in set(gate.slower["size"]) for gate in slower) / simulations
    row["detectable"] = np.median([gate.cells["detectable"].median() for gate in equal])
    return pd.DataFrame([asdict(case) | row])


def _share(gates: list[Gate], outcome: str) -> float:
    return sum(gate.outcome == outcome for gate in gates) / len(gates)


def main(arguments: list[str]) -> None:
    options = simulation_options(__doc__, arguments, simulations=300, output="results/checks/gate.csv")
    outcomes = simulate_cases(gate_rows, gate_cases(), options)
    write_csv(outcomes, options.output)
    print(outcomes.round(3).to_string(index=False))
