from __future__ import annotations

import pytest

from crossover.config.studies import Effort, Study, effort_of

QUICK = Effort(warmup_min_s=0.2, warmup_max_s=3.0, timed_min_s=1.0, timed_max_s=2.0)


def study(**effort: float) -> Study:
    return Study("mine", "", "", "disc_mlp", (2,), (100,), ("resident",), ("fp32",), ("eager",), effort=effort)


@pytest.mark.parametrize(
    ("own", "run", "counts"),
    [
        ({"warmup_max_s": 5.0}, Effort(), Effort(warmup_max_s=5.0)),
        ({"warmup_max_s": 5.0}, QUICK, QUICK),
        ({"timed_max_s": 20}, QUICK, QUICK),
        ({"timed_max_s": 2.5}, Effort(), Effort(timed_max_s=2.5)),
        ({"blocks_min": 50, "warmup_min_s": 2.0}, Effort(), Effort(blocks_min=50, warmup_min_s=2.0)),
        ({"blocks_min": 3, "warmup_min_s": 0.5}, Effort(), Effort(blocks_min=3, warmup_min_s=0.5)),
        ({}, QUICK, QUICK),
    ],
)
def test_of_a_studys_and_the_runs_caps_the_smaller_counts_else_the_studys_own(
    own: dict[str, float], run: Effort, counts: Effort
) -> None:
    assert effort_of(study(**own), run) == counts


def test_seconds_are_numbers_with_a_point_however_the_file_writes_them() -> None:
    """A command line is made of them, and another spelling would measure everything again."""
    assert repr(effort_of(study(timed_max_s=2), Effort()).timed_max_s) == "2.0"
