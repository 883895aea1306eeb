"""Small models in the forms in which people publish them, each of another kind, with no changes for this workflow."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset

from crossover import Step


def mlp(*widths: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.Tanh()]
    return nn.Sequential(*layers[:-1])


# A graph network over a sparse adjacency matrix; the batch is the nodes.
class GraphConvolution(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(16, width), nn.Linear(width, 7)

    def forward(self, features: torch.Tensor, adjacency: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(torch.sparse.mm(adjacency, self.first(features)))
        return torch.sparse.mm(adjacency, self.second(hidden))


def graph(width: int, batch_size: int) -> Any:
    edges = torch.randint(batch_size, (2, 8 * batch_size))
    values = torch.full((8 * batch_size,), 1 / 8)
    adjacency = torch.sparse_coo_tensor(edges, values, (batch_size, batch_size)).coalesce()
    return GraphConvolution(width), (torch.randn(batch_size, 16), adjacency), torch.randint(7, (batch_size,))


# A detector: images of different sizes, targets as dicts, a dict of losses in training and a list of dicts otherwise.
class Detector(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, channels, 3, 2), nn.ReLU(), nn.Conv2d(channels, channels, 3, 2), nn.ReLU()
        )
        self.boxes, self.classes = nn.Linear(channels, 4), nn.Linear(channels, 3)

    def forward(self, images: list[torch.Tensor], targets: list[dict[str, torch.Tensor]] | None = None) -> Any:
        features = torch.stack([self.body(image[None]).mean(dim=(2, 3))[0] for image in images])
        boxes, scores = self.boxes(features), self.classes(features)
        if targets is None:
            return [{"boxes": box[None], "scores": score} for box, score in zip(boxes, scores, strict=True)]
        wanted = torch.stack([target["boxes"].mean(dim=0) for target in targets]).to(boxes.dtype)
        labels = torch.stack([target["labels"][0] for target in targets])
        return {"box": functional.l1_loss(boxes, wanted), "class": functional.cross_entropy(scores, labels)}


def detector(channels: int, batch_size: int) -> Any:
    images = [torch.rand(3, 40 + number % 5, 40) for number in range(batch_size)]
    targets = [{"boxes": torch.rand(1 + n % 3, 4), "labels": torch.randint(3, (1 + n % 3,))} for n in range(batch_size)]
    return Detector(channels), (images, targets)


# A policy that plays an episode on the host, then learns by REINFORCE.
def policy(width: int, batch_size: int) -> Any:
    places = np.random.default_rng(0).normal(size=(batch_size, 4)).astype(np.float32)

    def run(model: nn.Module, _inputs: Any, _targets: Any, optimizer: torch.optim.Optimizer) -> None:
        device, state, logs, rewards = next(model.parameters()).device, places.copy(), [], []
        for _ in range(8):
            chosen = torch.distributions.Categorical(logits=model(torch.from_numpy(state).to(device)))
            action = chosen.sample()
            logs.append(chosen.log_prob(action))
            state = state * 0.9 + 0.1 * (action.cpu().numpy()[:, None] - 0.5)
            rewards.append(-float(np.abs(state).mean()))
            state = state.astype(np.float32)
        optimizer.zero_grad()
        (-torch.stack(logs).mean(dim=1) * torch.tensor(rewards, device=device)).sum().backward()
        optimizer.step()

    return Step(model=mlp(4, width, 2), inputs=torch.zeros(batch_size, 4), run=run, optimizer=torch.optim.Adam)


# Dynamic quantisation: weights in int8, inference on the CPU only.
def quantised(width: int, batch_size: int) -> Any:
    model = torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(32, width), nn.ReLU(), nn.Linear(width, 10)))
    return model, torch.randn(batch_size, 32)


# Packed texts of several lengths, which must stay on the host.
class Packed(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.embedding, self.lstm, self.scores = (
            nn.Embedding(100, width),
            nn.LSTM(width, width, batch_first=True),
            nn.Linear(width, 2),
        )

    def forward(self, texts: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        packed = pack_padded_sequence(self.embedding(texts), lengths.cpu(), batch_first=True, enforce_sorted=False)
        _, (state, _) = self.lstm(packed)
        return self.scores(state[-1])


class Texts(Dataset):
    def __len__(self) -> int:
        return 256

    def __getitem__(self, number: int) -> tuple[torch.Tensor, int]:
        return torch.full((3 + number % 9,), number % 100), number % 2


def padded(rows: list[tuple[torch.Tensor, int]]) -> Any:
    texts, labels = zip(*rows, strict=True)
    return pad_sequence(texts, batch_first=True), torch.tensor([len(text) for text in texts]), torch.tensor(labels)


def variable_lengths(width: int, batch_size: int) -> Any:
    return Packed(width), DataLoader(Texts(), batch_size=batch_size, collate_fn=padded, drop_last=True)
