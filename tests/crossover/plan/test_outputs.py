from __future__ import annotations

from dataclasses import replace

import pytest

from crossover.plan.outputs import figure_file, figures_of
from plans import configured, planned

KINDS = ("times", "speedups", "precisions", "host_share", "memory", "energy")
BOTH = ("cpu", "cuda")


@pytest.mark.parametrize(
    ("changes", "devices", "values", "missing"),
    [
        ({}, ("cpu",), {}, {"speedups", "precisions", "host_share", "energy"}),
        ({}, BOTH, {}, {"precisions", "energy"}),
        ({"precisions": ("fp32", "bf16")}, ("cpu",), {}, {"speedups", "host_share", "energy"}),
        ({}, BOTH, {"prices": {"cpu": 1}}, {"precisions"}),
        ({}, BOTH, {"effort": {"timed_min_s": 10, "timed_max_s": 10}}, {"precisions"}),
    ],
)
def test_figures_are_those_that_have_something_to_show(
    changes: dict[str, object], devices: tuple[str, ...], values: dict[str, object], missing: set[str]
) -> None:
    config = configured(devices=list(devices), **values)
    study = replace(config.studies[0], figures=KINDS, **changes)
    figures = figures_of(replace(planned(config), studies=(study,)), config)
    assert figures == [(study.name, kind) for kind in KINDS if kind not in missing]


def test_a_study_that_is_not_timed_has_no_figures() -> None:
    config = configured(studies=["disc_depth", "quality"], prices={"cpu": 1})
    plan = planned(config)
    kinds = dict.fromkeys(name for name, _ in figures_of(plan, config))
    assert list(kinds) == ["disc_depth"]
    assert figure_file("results", "disc_depth", "times", "svg") == "results/figures/disc_depth/times.svg"
