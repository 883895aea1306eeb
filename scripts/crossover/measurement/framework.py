"""One core's speed at what a host does to launch a step: running Python, and torch's dispatch of operators."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from typing import Any

import torch

from crossover.measurement.clock.timing import Step, Stopwatch, time_block
from crossover.measurement.step.conditions import on_threads

BLOCK_S = 0.01
BLOCKS = 7
"""Number of blocks, of which the median counts: unlike a peak rate, this is the speed that steps usually find."""
LAYERS, WIDTH = 4, 4
LOOK_UPS = 1000


def framework_rows(watch: Stopwatch) -> Iterator[dict[str, Any]]:
    """Rows of table `roofs`: seconds of a tiny network's training step, and of an attribute look-up, on one core."""
    with on_threads(1), torch.enable_grad():
        for roof, step, count in (("framework", _training_step(), 1), ("interpreter", _look_up, LOOK_UPS)):
            step()
            steps = max(1, math.ceil(BLOCK_S / max(time_block(step, 1, watch).wall_s, 1e-9)))
            times_s = [time_block(step, steps, watch).wall_s / steps / count for _ in range(BLOCKS)]
            value = statistics.median(times_s)
            yield {"roof": roof, "value": value, "lowest": min(times_s), "highest": max(times_s), "unit": "s"}


def _training_step() -> Step:
    """Forward and backward pass of a network whose arithmetic takes no time, without an optimizer."""
    layers = [layer for _ in range(LAYERS) for layer in (torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU())]
    network, inputs = torch.nn.Sequential(*layers), torch.ones(WIDTH, WIDTH)

    def step() -> None:
        network.zero_grad()
        network(inputs).sum().backward()

    return step


class _Node:
    def __init__(self) -> None:
        self.node = self


def _look_up() -> None:
    node = _Node()
    for _ in range(LOOK_UPS // 2):
        node = node.node.node
