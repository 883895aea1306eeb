from __future__ import annotations

import torch
from torch.nn import functional

from crossover.measurement.workloads.digits_mlp import build_model
from tiny_tasks import cell_of, same_weights, task_of

RANDOM = torch.Generator().manual_seed(1)
DATA = {  # three full batches of 32, and one of four rows
    "features": torch.rand(100, 64, generator=RANDOM),
    "labels": torch.randint(0, 10, (100,), generator=RANDOM),
}


def test_it_trains_on_full_batches_in_order() -> None:
    ours = task_of(cell_of("digits_mlp", 8, 32), DATA)
    for _ in range(5):
        ours.step()

    torch.manual_seed(0)
    model = build_model(8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for first in (0, 32, 64, 0, 32):
        rows = slice(first, first + 32)
        loss = functional.cross_entropy(model(DATA["features"][rows]), DATA["labels"][rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert same_weights(ours.model, model)
