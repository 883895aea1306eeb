from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from crossover.measurement.step.seeds import seed_all


def drawn() -> tuple[float, ...]:
    return random.random(), float(np.random.rand()), float(torch.rand(1))


@pytest.mark.parametrize("seed", [0, 7, 2**32, 2**40 + 1])
def test_every_generator_draws_the_same_after_the_same_seed(seed: int) -> None:
    seed_all(seed)
    first = drawn()
    second = drawn()
    seed_all(seed)
    assert drawn() == first
    seed_all(seed + 1)
    assert not set(drawn()) & {*first, *second}
