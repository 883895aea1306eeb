from __future__ import annotations

import pytest

from crossover.plan.classes import cpu_partition


@pytest.mark.parametrize(
    ("text", "partition"),
    [
        (None, None),
        ("cpu", "cpu"),
        ("'small' if wildcards.get('device', 'cpu').startswith('cpu') else 'gpu'", "small"),
        ("'small' if wildcards.device == 'cpu' else 'gpu'", "small"),
        ("wildcards.size", "wildcards.size"),
    ],
)
def test_the_partition_of_cpu_cells_is_read_from_a_name_or_an_expression(text: str | None, partition: str) -> None:
    assert cpu_partition(text) == partition
