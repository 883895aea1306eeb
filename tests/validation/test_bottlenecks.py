"""The planted steps of check_bottlenecks.py, and the bottlenecks that they cause."""

from __future__ import annotations

import pytest
import torch
from check_bottlenecks import VARIANTS, planted
from planted_steps import VARIANTS as OFFERED
from planted_steps import Parts

from crossover.tables.registry import SPLIT


@pytest.mark.parametrize("device", VARIANTS)
def test_planted_steps_are_variants_with_known_bottlenecks(device: str) -> None:
    assert set(VARIANTS[device]) <= set(OFFERED)
    assert all(planted(variant, device) <= set(SPLIT) for variant in VARIANTS[device])


def test_parts_cause_bottlenecks() -> None:
    assert planted("act_compute", "cuda") == {"host", "compute"}
    assert planted("host_launch", "cpu") == {"host", "overhead"}


def test_host_work_does_not_change_the_batch() -> None:
    parts, batch = Parts(8), torch.randn(4, 8)
    before = batch.clone()
    assert parts.host(batch) is batch
    assert torch.allclose(parts.act(batch), batch[:1].tanh())
    assert torch.equal(batch, before)
