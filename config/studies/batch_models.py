"""Models of the studies over batch sizes."""

import torch
from torch import nn


def mlp(neurons, batch_size):
    """Three linear layers on images of 28 x 28 pixels."""
    layers = nn.Linear(784, neurons), nn.ReLU(), nn.Linear(neurons, neurons), nn.ReLU(), nn.Linear(neurons, 10)
    return nn.Sequential(*layers), torch.randn(batch_size, 784), torch.randint(10, (batch_size,))


class Sequence(nn.Module):
    """An LSTM whose last state is classified."""

    def __init__(self, neurons):
        super().__init__()
        self.lstm = nn.LSTM(32, neurons, batch_first=True)
        self.classify = nn.Linear(neurons, 10)

    def forward(self, steps):
        return self.classify(self.lstm(steps)[0][:, -1])


def lstm(neurons, batch_size):
    """An LSTM over 50 steps of 32 numbers."""
    return Sequence(neurons), torch.randn(batch_size, 50, 32), torch.randint(10, (batch_size,))
