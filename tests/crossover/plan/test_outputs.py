from __future__ import annotations

from dataclasses import replace

import pytest

from crossover.config.studies import Effort, Study
from crossover.plan.outputs import TABLES, figure_file, figures_among, figures_of
from crossover.tables.run_tables import DERIVED
from plans import configured, planned

KINDS = ("times", "speedups", "precisions", "host_share", "memory", "energy")
BOTH = ("cpu", "cuda")


def study(**changes: object) -> Study:
    return replace(configured().studies[0], figures=KINDS, **changes)


@pytest.mark.parametrize(
    ("changes", "devices", "priced", "timed_s", "missing"),
    [
        ({}, ("cpu",), False, 2, {"speedups", "precisions", "host_share", "energy"}),
        ({}, BOTH, False, 2, {"precisions", "energy"}),
        ({"precisions": ("fp32", "bf16")}, ("cpu",), False, 2, {"speedups", "host_share", "energy"}),
        ({}, BOTH, True, 2, {"precisions"}),
        ({}, BOTH, False, 10, {"precisions"}),
    ],
)
def test_figures_are_those_that_have_something_to_show(
    changes: dict[str, object], devices: tuple[str, ...], priced: bool, timed_s: float, missing: set[str]
) -> None:
    found = figures_among(study(**changes), devices, Effort(timed_min_s=timed_s), priced=priced)
    assert found == [kind for kind in KINDS if kind not in missing]


def test_a_study_that_is_not_timed_has_no_figures() -> None:
    config = configured(studies=["disc_depth", "quality"], prices={"cpu": 1})
    plan = planned(config)
    kinds = dict.fromkeys(name for name, _ in figures_of(plan, config))
    assert list(kinds) == ["disc_depth"]
    assert figure_file("results", "disc_depth", "times", "svg") == "results/figures/disc_depth/times.svg"


def test_the_rules_know_every_table_of_a_run() -> None:
    assert TABLES == DERIVED
