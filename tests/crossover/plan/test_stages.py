from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from crossover.config.studies import Cell, Refinement
from crossover.config.study import Study, study_of
from crossover.plan.stages import (
    planned_trials,
    refinement_on,
    stages_of,
    trials_of_stages,
    write_stage,
)

STUDY = Study(
    name="mine",
    title="A title",
    question="A question?",
    workload="linear_stack",
    sizes=(10, 20),
    batch_sizes=(1,),
    protocols=("resident",),
    precisions=("fp32",),
    executions=("eager",),
)
RUN = Refinement(bisections=2, target_width=0.1, extra_trials=3, first_trials=4)
ALL = replace(RUN, pairs=("device", "precision", "execution"))
BOTH = ("cpu", "cuda")
CELL = Cell("mine", "linear_stack", "resident", 1, "fp32", "eager", 14, "cuda", "plain")


def test_stages_are_bisections_and_increments_of_trials() -> None:
    assert stages_of(refinement_on(STUDY, BOTH, RUN), 8) == 4
    assert stages_of(refinement_on(STUDY, BOTH, RUN), 4) == 3  # all of them at first
    assert stages_of(refinement_on(STUDY, BOTH, replace(RUN, extra_trials=0)), 8) == 3
    assert stages_of(refinement_on(STUDY, BOTH, replace(RUN, bisections=0)), 8) == 2
    assert stages_of(refinement_on(STUDY, BOTH, replace(RUN, bisections=0, extra_trials=0)), 3) == 0


def test_doublings_are_further_stages() -> None:
    doubling = replace(RUN, doublings=2)
    assert stages_of(refinement_on(STUDY, BOTH, doubling), 8) == 4 + 2
    assert doubling.trials_at_crossover(8) == (8, 11, 22, 44)
    assert replace(doubling, extra_trials=0).trials_at_crossover(4) == (8, 16)  # all of the trials come first


@pytest.mark.parametrize(("last", "trials"), [(None, [1, 2, 3]), (2, [1, 2])])
def test_stages_end_with_the_last_one_even_if_an_earlier_run_had_more(
    tmp_path: Path, last: int | None, trials: list[int]
) -> None:
    for stage in (1, 2, 3):
        write_stage(tmp_path / f"{stage}.json", stage, {CELL: [stage]}, [], is_last=stage == last)
    planned = trials_of_stages(lambda stage: tmp_path / f"{stage}.json" if stage <= 3 else None)
    assert [*planned] == [(CELL, trial) for trial in trials]


@pytest.mark.parametrize(
    "study",
    [
        replace(STUDY, figures=("comparison", "utilisation")),
        replace(STUDY, devices=("cuda",)),
        replace(STUDY, timed=False),
        replace(STUDY, refinement=None),
        replace(STUDY, sizes=(10,), precisions=("fp32", "tf32")),
    ],
)
def test_there_are_no_stages_without_a_crossover_to_refine(study: Study) -> None:
    assert stages_of(refinement_on(study, BOTH, replace(ALL, pairs=("device", "execution"))), 8) == 0
    assert [stages_of(refinement_on(study, (device,), RUN), 8) for device in BOTH] == [0, 0]


CLAIM = {
    "statement": "A statement",
    "published": 1,
    "ratio_below": {"metric": "step_time_s", "of": {"device": "cuda"}, "over": {"precision": "fp32"}, "limit": 1},
}


@pytest.mark.parametrize(("devices", "stages"), [(BOTH, 2), (("cuda",), 2), (("cpu",), 0)])
def test_without_a_pair_the_cells_of_a_claim_about_measured_sides_are_refined(
    devices: tuple[str, ...], stages: int
) -> None:
    claims = study_of({**asdict(STUDY), "claims": [CLAIM]}).claims
    refined = refinement_on(replace(STUDY, sizes=(10,), claims=claims), devices, RUN)
    assert stages_of(refined, 8) == stages
    assert refined is None or (refined.pairs, refined.trials_of_stages(8)) == ((), (8, 11))


@pytest.mark.parametrize(
    ("changes", "devices", "pairs"),
    [
        ({}, BOTH, ("device",)),
        ({"precisions": ("tf32", "fp32")}, BOTH, ("device", "precision")),
        ({"precisions": ("tf32", "fp32")}, ("cuda",), ("precision",)),
        (
            {"precisions": ("tf32", "bf16"), "executions": ("compile", "cuda-graph")},
            ("cpu",),
            ("precision", "execution"),
        ),
        # Precisions are refined without a figure of their crossovers, which are in the table for every study.
        ({"precisions": ("tf32", "fp32"), "figures": ("comparison",)}, BOTH, ("precision",)),
    ],
)
def test_only_pairs_that_the_study_has_are_refined(
    changes: dict[str, Any], devices: tuple[str, ...], pairs: tuple[str, ...]
) -> None:
    study = replace(STUDY, **changes)
    assert refinement_on(study, devices, ALL) == replace(RUN, pairs=pairs)
    assert stages_of(refinement_on(study, devices, ALL), 4) == 3
    refined = replace(study, refinement={"pairs": list(pairs)})
    assert refinement_on(refined, devices, RUN) == replace(RUN, pairs=pairs)


@pytest.mark.parametrize(
    ("changes", "devices", "is_refined"),
    [
        ({}, ("cpu", "cpu-2"), True),
        ({}, BOTH, False),
        ({}, ("cuda",), False),
        ({"figures": ("comparison",)}, ("cpu",), False),
        ({"x_axis": "cpu_threads", "cpu_threads": (1, 2)}, ("cpu",), False),
        ({"refinement": {"pairs": ["precision"]}}, ("cpu",), False),
    ],
)
def test_without_an_accelerator_crossovers_with_references_are_refined(
    changes: dict[str, Any], devices: tuple[str, ...], is_refined: bool
) -> None:
    study = replace(STUDY, **changes)
    refined = refinement_on(study, devices, RUN, has_references=True)
    assert ("reference" in refined.pairs if refined else False) == is_refined
    without = refinement_on(study, devices, RUN)
    assert without is None or "reference" not in without.pairs


def test_a_plan_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "stage-1.json"
    write_stage(path, 1, {CELL: [1, 2], replace(CELL, size=10): [4]}, [{"decision": "measure"}])
    assert planned_trials(path) == [(CELL, 1), (CELL, 2), (replace(CELL, size=10), 4)]
    assert '"decision": "measure"' in path.read_text()
