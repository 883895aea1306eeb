"""Work on which rules of thumb decide: what a library sends to a GPU, compiles or quantises from a constant on."""

import numpy as np
import torch
from torch import nn

from crossover import Step

VOCABULARY, TOKENS = 30522, 128


def offload(rows, batch_size, device):
    """Eight layers whose weights are kept in host memory, 0.5 GB with 4096 rows, more than caches hold.

    For a GPU, each layer's weights are copied in each step.
    """
    first = torch.randn(rows, rows) / rows**0.5
    layers = [first.roll(number, 0) for number in range(8)]  # faster than further random numbers
    batch = torch.randn(rows, batch_size)
    if device != "cpu":
        layers = [weights.pin_memory() for weights in layers]

    def run():
        state = batch.to(device)
        for weights in layers:
            state = weights.to(device, non_blocking=True) @ state
        return state.cpu()

    return Step(run=run, samples=batch_size)


def policy(neurons, batch_size, device):
    """A step of pendulums on the CPU, one for each sample, and of their policy network with two hidden layers.

    The pendulums are those of Gymnasium's Pendulum-v1: 1 m and 1 kg, in steps of 0.05 s. Each step begins with the
    same angles and speeds, which takes as long as going on from the last ones.
    """
    layers = nn.Linear(3, neurons), nn.Tanh(), nn.Linear(neurons, neurons), nn.Tanh(), nn.Linear(neurons, 1)
    model = nn.Sequential(*layers).to(device)
    angle, speed = np.random.default_rng(0).uniform(-1, 1, (2, batch_size)).astype(np.float32)

    @torch.inference_mode()
    def advance():
        observations = torch.from_numpy(np.stack([np.cos(angle), np.sin(angle), speed], 1))
        torque = model(observations.to(device)).cpu().numpy()[:, 0].clip(-2, 2)
        faster = (speed + (15 * np.sin(angle) + 3 * torque) * 0.05).clip(-8, 8)
        return np.stack([angle + faster * 0.05, faster])

    return Step(run=advance, samples=batch_size, unit="actions")


def cholesky(rows, device):
    """The Cholesky decomposition of a matrix in host memory, in double precision, there and back."""
    noise = np.random.default_rng(0).standard_normal((rows, rows))
    matrix = torch.from_numpy(noise @ noise.T + rows * np.eye(rows))
    return lambda: torch.linalg.cholesky(matrix.to(device)).cpu()


def product_in_host_memory(rows, device, variant="square"):
    """A product of a square matrix and another one, or one of eight columns, in double precision, there and back."""
    first = torch.randn(rows, rows, dtype=torch.float64)
    second = torch.randn(rows, rows if variant == "square" else 8, dtype=torch.float64)
    return lambda: (first.to(device) @ second.to(device)).cpu()


def triangular(rows, device):
    """The inverse of a lower triangular matrix in host memory, in double precision, there and back."""
    matrix = torch.randn(rows, rows, dtype=torch.float64).tril(-1) / rows + torch.eye(rows, dtype=torch.float64)

    def invert():
        there = matrix.to(device)
        return torch.linalg.solve_triangular(
            there, torch.eye(rows, dtype=there.dtype, device=device), upper=False
        ).cpu()

    return invert


def product(rows, device):
    """A product of two square matrices on the device."""
    first, second = (torch.randn(rows, rows).to(device) for _ in range(2))
    return lambda: first @ second


class Encoder(nn.Module):
    """A sentence encoder of BERT's form, without dropout, which scores each sentence of a batch against the others."""

    def __init__(self, layers, width):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, width)
        layer = nn.TransformerEncoderLayer(width, width // 64, 4 * width, 0.0, "gelu", batch_first=True)
        self.encode = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, tokens):
        sentences = nn.functional.normalize(self.encode(self.embed(tokens)).mean(1), dim=-1)
        return 20 * sentences @ sentences.T


def encoder(width, batch_size):
    """22, 109 and 334 million parameters at widths of 384, 768 and 1024; a step of several batches of two sentences."""
    layers = {384: 6, 768: 12, 1024: 24}.get(width, 2)
    tokens = torch.randint(VOCABULARY, (batch_size, TOKENS))
    model, matches = Encoder(layers, width), torch.arange(batch_size) % 2
    return Step(model=model, inputs=tokens, targets=matches, run=accumulated)


def accumulated(model, tokens, targets, optimizer):
    optimizer.zero_grad()
    for sentences, matches in zip(tokens.split(2), targets.split(2), strict=True):
        nn.functional.cross_entropy(model(sentences), matches).backward()
    optimizer.step()


def int8(features, batch_size, device, variant="fp16"):
    """A linear layer in fp16 or bf16, with weights in int8 that each step converts to fp16, or products in int8.

    `int8_packed` is torch's own product with weights in int8, with the batch in bf16.
    """
    weights, batch = torch.randn(features, features), torch.randn(batch_size, features)
    weights, batch = weights.to(device, torch.float16), batch.to(device, torch.float16)
    scale = weights.abs().amax(1) / 127
    quantised = (weights / scale[:, None]).round().to(torch.int8)
    rows = max(32, -(-batch_size // 32) * 32)  # CUDA multiplies int8 in blocks of rows, at least 17
    padding = torch.zeros(rows - batch_size, features, dtype=torch.int8, device=device)

    def weight_only():
        return batch @ (quantised.to(torch.float16) * scale[:, None]).T

    def dynamic():
        scales = batch.abs().amax(1, keepdim=True) / 127
        rounded = (batch / scales).round().to(torch.int8)
        padded = torch.cat([rounded, padding]) if len(padding) else rounded
        return (torch._int_mm(padded, quantised.T)[:batch_size] * scales.float() * scale.float()).half()

    in_bf16, scale_in_bf16 = batch.bfloat16(), scale.bfloat16()

    def packed():
        return torch._weight_int8pack_mm(in_bf16, quantised, scale_in_bf16)

    def plain(dtype):
        first, second = batch.to(dtype), weights.to(dtype)
        return lambda: first @ second.T

    plain_types = {"fp16": torch.float16, "bf16": torch.bfloat16}
    quantised_steps = {"int8_weights": weight_only, "int8_dynamic": dynamic, "int8_packed": packed}
    run = plain(plain_types[variant]) if variant in plain_types else quantised_steps[variant]
    return Step(run=run, samples=batch_size)
