from __future__ import annotations

import pytest

from crossover.config.words import HALF, is_cpu, threads_of_side
from crossover.tables.columns import arrow_schema


def test_columns_state_their_units() -> None:
    for field in arrow_schema():
        metadata = field.metadata
        assert metadata[b"doc"]
        for suffix, unit in (("_s", b"s"), ("_bytes", b"B"), ("_j", b"J"), ("_w", b"W"), ("_mhz", b"MHz")):
            if field.name.endswith(suffix):
                assert metadata[b"unit"] == unit, field.name


@pytest.mark.parametrize(
    ("device", "on_cpu", "threads"),
    [("cpu", True, None), ("cpu-1", True, 1), ("cpu-16", True, 16), ("cpu-half", True, HALF), ("cuda", False, None)],
)
def test_a_cpu_side_is_a_cpu_with_threads_of_its_own(device: str, on_cpu: bool, threads: int | str | None) -> None:
    assert is_cpu(device) is on_cpu
    assert threads_of_side(device) == threads
