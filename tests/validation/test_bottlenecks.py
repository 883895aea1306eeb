"""The workload offers the planted steps of check_bottlenecks.py, and their causes have names."""

from __future__ import annotations

import pytest
import torch
from check_bottlenecks import VARIANTS, planted
from planted_steps import VARIANTS as OFFERED
from planted_steps import Parts

from crossover.tables.registry import SPLIT


@pytest.mark.parametrize("device", VARIANTS)
def test_planted_steps_are_offered_and_their_causes_have_words(device: str) -> None:
    assert set(VARIANTS[device]) <= set(OFFERED)
    assert all(planted(variant, device) <= set(SPLIT) for variant in VARIANTS[device])


def test_host_work_is_the_right_answer_of_its_parts() -> None:
    assert planted("act_compute", "cuda") == {"host", "compute"}
    assert planted("host_launch", "cpu") == {"host", "overhead"}


def test_the_parts_that_are_host_work_leave_the_batch_alone() -> None:
    parts, batch = Parts(8), torch.randn(4, 8)
    before = batch.clone()
    assert parts.host(batch) is batch
    assert torch.allclose(parts.act(batch), batch[:1].tanh())
    assert torch.equal(batch, before)
