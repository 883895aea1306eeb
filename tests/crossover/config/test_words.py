from __future__ import annotations

import re

import pytest

from crossover.config.words import DEVICES, SEVERAL, is_cpu, ranks_of_side, threads_of_side, unit_of_side


@pytest.mark.parametrize(
    ("side", "ranks", "unit", "threads"),
    [
        ("cpu", 1, "cpu", None),
        ("cpu-4", 1, "cpu-4", 4),
        ("cpu-half", 1, "cpu-half", "half"),
        ("cuda", 1, "cuda", None),
        ("cuda-2", 2, "cuda", None),
        ("cuda-16", 16, "cuda", None),
        ("cpu-2x1", 2, "cpu-1", 1),
        ("cpu-4x12", 4, "cpu-12", 12),
    ],
)
def test_a_side_has_a_number_of_processes_and_of_threads(
    side: str, ranks: int, unit: str, threads: int | str | None
) -> None:
    assert (ranks_of_side(side), unit_of_side(side), threads_of_side(side)) == (ranks, unit, threads)
    assert is_cpu(side) == side.startswith("cpu")
    assert bool(re.fullmatch(SEVERAL, side)) == (ranks > 1)


@pytest.mark.parametrize("side", ["cuda-1", "cuda-0", "cpu-1x2", "cpu-2x0", "cpu-2", "mps-2", *DEVICES])
def test_only_several_processes_have_names_of_several(side: str) -> None:
    assert not re.fullmatch(SEVERAL, side)
