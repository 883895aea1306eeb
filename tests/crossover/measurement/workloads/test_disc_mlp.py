from __future__ import annotations

from typing import Any

import torch
from torch import nn

from crossover.measurement.workloads.disc_mlp import build_model
from tiny_tasks import cell_of, same_weights, task_of

RANDOM = torch.Generator().manual_seed(1)
DATA = {
    "features": torch.randn(1000, 2, generator=RANDOM),
    "labels": torch.randint(0, 2, (1000,), generator=RANDOM),
}


def test_the_model_with_eight_layers_is_that_of_the_source() -> None:
    widths = [(2, 4), (4, 8), (8, 16), (16, 32), (32, 64), (64, 128), (128, 256), (256, 2)]
    layers = list(build_model(8))
    assert [(layer.in_features, layer.out_features) for layer in layers if isinstance(layer, nn.Linear)] == widths
    assert [type(layer) for layer in layers[1::2]] == [nn.ReLU] * 7


def test_two_epochs_train_as_the_source_does() -> None:
    """The source's loop gives the same weights and the same text."""
    task: Any = task_of(cell_of("disc_mlp", 4, 100), DATA)
    assert task.cycle_steps == 10
    progress = []
    for step in range(20):
        task.step()
        if step % 10 == 9:
            progress.append(task.progress)
            assert not task.accumulated_loss.requires_grad  # autograd's graph of an epoch is freed at its end

    torch.manual_seed(0)
    model = build_model(4)
    criterion, optimizer = nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), lr=0.1)
    printed = []
    for _ in range(2):
        total, wrong = 0.0, 0
        for first in range(0, 1000, 100):
            labels = DATA["labels"][first : first + 100]
            output = model(DATA["features"][first : first + 100])
            loss = criterion(output, labels)
            total, wrong = total + loss.item(), wrong + int((output.argmax(dim=1) != labels).sum())
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        printed.append(f"Train Loss {total:6.2f}, Train Error {wrong / 1000:5.2%}")
    assert progress == printed
    assert printed[0] != printed[1]
    assert same_weights(task.model, model)
