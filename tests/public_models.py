"""Small models in the forms that people publish, each of another kind; none was written with this workflow in mind."""

from __future__ import annotations

import math
from collections import namedtuple
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


# A network that solves Burgers' equation: boundary and inner points, derivatives by autograd within the loss.
class Burgers(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.net = mlp(2, width, width, 1)

    def forward(self, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        x.requires_grad_(True)
        t.requires_grad_(True)
        u = self.net(torch.cat([x, t], dim=1))
        u_x, u_t = torch.autograd.grad(u.sum(), (x, t), create_graph=True)
        (u_xx,) = torch.autograd.grad(u_x.sum(), x, create_graph=True)
        return u_t + u * u_x - 0.01 / math.pi * u_xx


def pinn(width: int, batch_size: int) -> Any:
    points = (torch.rand(batch_size, 1) * 2 - 1, torch.rand(batch_size, 1))
    return Step(model=Burgers(width), inputs=points, loss=lambda residual: residual.square().mean())


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


# Message passing by index, as graph libraries do inside.
class Messages(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.edge, self.node = nn.Linear(2 * 8, width), nn.Linear(8 + width, 1)

    def forward(self, nodes: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        sources, targets = edges
        messages = torch.relu(self.edge(torch.cat([nodes[sources], nodes[targets]], dim=1)))
        gathered = torch.zeros(len(nodes), messages.shape[1], device=nodes.device, dtype=messages.dtype)
        return self.node(torch.cat([nodes, gathered.index_add(0, targets, messages)], dim=1)).squeeze(1)


def message_passing(width: int, batch_size: int) -> Any:
    edges = torch.randint(batch_size, (2, 4 * batch_size))
    return Messages(width), (torch.randn(batch_size, 8), edges), torch.randn(batch_size)


# A Fourier neural operator with complex weights.
class Spectral(nn.Module):
    def __init__(self, channels: int, modes: int) -> None:
        super().__init__()
        self.modes = modes
        self.weight = nn.Parameter(torch.randn(channels, channels, modes, modes, dtype=torch.cfloat) / channels**2)

    def forward(self, field: torch.Tensor) -> torch.Tensor:
        spectrum = torch.fft.rfft2(field)
        kept = torch.zeros_like(spectrum)
        low = spectrum[..., : self.modes, : self.modes]
        kept[..., : self.modes, : self.modes] = torch.einsum("bixy,ioxy->boxy", low, self.weight)
        return torch.fft.irfft2(kept, s=field.shape[-2:])


class Operator(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.lift, self.project = nn.Conv2d(3, channels, 1), nn.Conv2d(channels, 1, 1)
        self.spectral = nn.ModuleList(Spectral(channels, 6) for _ in range(2))
        self.local = nn.ModuleList(nn.Conv2d(channels, channels, 1) for _ in range(2))

    def forward(self, field: torch.Tensor) -> torch.Tensor:
        hidden = self.lift(field)
        for spectral, local in zip(self.spectral, self.local, strict=True):
            hidden = functional.gelu(spectral(hidden) + local(hidden))
        return self.project(hidden)


def neural_operator(channels: int, batch_size: int) -> Any:
    return Operator(channels), torch.randn(batch_size, 3, 24, 24), torch.randn(batch_size, 1, 24, 24)


# A detector: images of unlike sizes, targets as dicts, a dict of losses in training and a list of dicts else.
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


# A recommender with sparse gradients and the optimizer that takes them.
class Recommender(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.users = nn.Embedding(1000, width, sparse=True)
        self.items = nn.Embedding(5000, width, sparse=True)

    def forward(self, users: torch.Tensor, items: torch.Tensor) -> torch.Tensor:
        return (self.users(users) * self.items(items)).sum(dim=1)


def recommender(width: int, batch_size: int) -> Any:
    return Step(
        model=Recommender(width),
        inputs=(torch.randint(1000, (batch_size,)), torch.randint(5000, (batch_size,))),
        targets=torch.rand(batch_size),
        optimizer=torch.optim.SparseAdam,
    )


# Bags of categories with offsets, as in DLRM.
class Bags(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.bag, self.top = nn.EmbeddingBag(2000, width), mlp(width + 13, 32, 1)

    def forward(self, dense: torch.Tensor, indices: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        return self.top(torch.cat([dense, self.bag(indices, offsets)], dim=1)).squeeze(1)


def bags(width: int, batch_size: int) -> Any:
    dense, indices = torch.randn(batch_size, 13), torch.randint(2000, (5 * batch_size,))
    return Step(
        model=Bags(width),
        inputs=(dense, indices, torch.arange(0, 5 * batch_size, 5)),
        targets=torch.randint(2, (batch_size,)).float(),
        loss=nn.BCEWithLogitsLoss(),
    )


# Sequence to sequence with attention and teacher forcing.
class Translator(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.source, self.target = nn.Embedding(50, width), nn.Embedding(60, width)
        self.encoder, self.decoder = nn.GRU(width, width, batch_first=True), nn.GRUCell(2 * width, width)
        self.scores = nn.Linear(width, 60)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        keys, state = self.encoder(self.source(source))
        state, outputs = state[0], []
        for word in self.target(target).unbind(dim=1):
            weights = torch.softmax((keys @ state[:, :, None]).squeeze(2), dim=1)
            state = self.decoder(torch.cat([word, (weights[:, :, None] * keys).sum(dim=1)], dim=1), state)
            outputs.append(self.scores(state))
        return torch.stack(outputs, dim=1)


def seq2seq(width: int, batch_size: int) -> Any:
    source, target = torch.randint(50, (batch_size, 9)), torch.randint(60, (batch_size, 7))
    return Translator(width), (source, target), target


# Dynamic quantisation: weights in int8, inference on a CPU alone.
def quantised(width: int, batch_size: int) -> Any:
    model = torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(32, width), nn.ReLU(), nn.Linear(width, 10)))
    return model, torch.randn(batch_size, 32)


# A critic whose loss penalises its own gradient (WGAN-GP): double backward in a step of one's own.
def gradient_penalty(width: int, batch_size: int) -> Any:
    def run(critic: nn.Module, real: torch.Tensor, _targets: Any, optimizer: torch.optim.Optimizer) -> torch.Tensor:
        fake = torch.randn_like(real)
        mixed = (real + torch.rand(len(real), 1, device=real.device, dtype=real.dtype) * (fake - real)).requires_grad_()
        (slope,) = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)
        loss = critic(fake).mean() - critic(real).mean() + 10 * (slope.norm(dim=1) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return Step(model=mlp(8, width, 1), inputs=torch.randn(batch_size, 8), run=run, optimizer=torch.optim.Adam)


# Texts of several lengths, packed: the lengths must stay on the host.
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


class Texts(Dataset):  # type: ignore[type-arg]
    def __len__(self) -> int:
        return 256

    def __getitem__(self, number: int) -> tuple[torch.Tensor, int]:
        return torch.full((3 + number % 9,), number % 100), number % 2


def padded(rows: list[tuple[torch.Tensor, int]]) -> Any:
    texts, labels = zip(*rows, strict=True)
    return pad_sequence(texts, batch_first=True), torch.tensor([len(text) for text in texts]), torch.tensor(labels)


def variable_lengths(width: int, batch_size: int) -> Any:
    return Packed(width), DataLoader(Texts(), batch_size=batch_size, collate_fn=padded, drop_last=True)


# A variational autoencoder: random numbers in the forward pass, a loss of a tuple.
class Autoencoder(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.encoder, self.decoder = mlp(64, width, 16), mlp(8, width, 64)

    def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        mean, log_variance = self.encoder(images).chunk(2, dim=1)
        sample = mean + torch.exp(log_variance / 2) * torch.randn_like(mean)
        return self.decoder(sample), mean, log_variance


def autoencoder(width: int, batch_size: int) -> Any:
    images = torch.rand(batch_size, 64)

    def loss(output: Any, targets: torch.Tensor) -> torch.Tensor:
        drawn, mean, log_variance = output
        divergence = -0.5 * (1 + log_variance - mean.square() - log_variance.exp()).mean()
        return functional.binary_cross_entropy_with_logits(drawn, targets) + divergence

    return Step(model=Autoencoder(width), inputs=images, targets=images.clone(), loss=loss, optimizer=torch.optim.Adam)


# Two networks and two optimizers in one step.
class Pair(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.generator, self.critic = mlp(8, width, 16), mlp(16, width, 1)
        self.optimizers: list[torch.optim.Optimizer] = []


def adversarial(width: int, batch_size: int) -> Any:
    def run(pair: Pair, real: torch.Tensor, _targets: Any, _optimizer: Any) -> None:
        if not pair.optimizers:
            pair.optimizers = [
                torch.optim.Adam(pair.critic.parameters()),
                torch.optim.Adam(pair.generator.parameters()),
            ]
        of_critic, of_generator = pair.optimizers
        fake = pair.generator(torch.randn(len(real), 8, device=real.device, dtype=real.dtype))
        of_critic.zero_grad()
        (pair.critic(fake.detach()).mean() - pair.critic(real).mean()).backward()
        of_critic.step()
        of_generator.zero_grad()
        (-pair.critic(fake).mean()).backward()
        of_generator.step()

    return Step(model=Pair(width), inputs=torch.randn(batch_size, 16), run=run)


# Speech with a CTC loss: lengths of inputs and targets are plain tensors.
class Speech(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.body, self.scores = nn.GRU(13, width, batch_first=True, bidirectional=True), nn.Linear(2 * width, 28)

    def forward(self, sounds: torch.Tensor) -> torch.Tensor:
        return functional.log_softmax(self.scores(self.body(sounds)[0]), dim=2)


def speech(width: int, batch_size: int) -> Any:
    def loss(scores: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        frames = torch.full((len(words),), scores.shape[1])
        return functional.ctc_loss(
            scores.transpose(0, 1).float(), words, frames, torch.full((len(words),), words.shape[1])
        )

    return Step(
        model=Speech(width),
        inputs=torch.randn(batch_size, 40, 13),
        targets=torch.randint(1, 28, (batch_size, 6)),
        loss=loss,
    )


# Segmentation with a U-Net and a Dice loss.
class UNet(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.down, self.deep = nn.Conv2d(1, channels, 3, padding=1), nn.Conv2d(channels, 2 * channels, 3, padding=1)
        self.norm = nn.BatchNorm2d(2 * channels)
        self.up, self.out = nn.ConvTranspose2d(2 * channels, channels, 2, 2), nn.Conv2d(2 * channels, 1, 1)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        first = torch.relu(self.down(image))
        deep = torch.relu(self.norm(self.deep(functional.max_pool2d(first, 2))))
        return self.out(torch.cat([first, self.up(deep)], dim=1))


def segmentation(channels: int, batch_size: int) -> Any:
    def dice(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        shares = torch.sigmoid(scores)
        return 1 - 2 * (shares * mask).sum() / (shares.sum() + mask.sum() + 1)

    mask = (torch.rand(batch_size, 1, 32, 32) > 0.5).float()
    return Step(model=UNet(channels), inputs=torch.randn(batch_size, 1, 32, 32), targets=mask, loss=dice)


# Diffusion: a random time for each sample, noise as the target.
class Denoiser(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.net = mlp(17, width, width, 16)
        self.register_buffer("kept", torch.linspace(0.99, 0.01, 100))

    def forward(self, clean: torch.Tensor) -> torch.Tensor:
        moment = torch.randint(100, (len(clean), 1), device=clean.device)
        kept, noise = self.kept[moment], torch.randn_like(clean)  # type: ignore[index]
        noisy = kept.sqrt() * clean + (1 - kept).sqrt() * noise
        return (self.net(torch.cat([noisy, moment / 100], dim=1)) - noise).square().mean()


def diffusion(width: int, batch_size: int) -> Any:
    return Step(
        model=Denoiser(width), inputs=torch.randn(batch_size, 16), loss=lambda error: error, optimizer=torch.optim.AdamW
    )


# A neural differential equation, solved by fixed steps of Runge and Kutta.
class Flow(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.field = mlp(4, width, 4)

    def forward(self, state: torch.Tensor) -> torch.Tensor:
        for _ in range(5):
            middle = state + 0.1 * self.field(state)
            state = state + 0.2 * self.field(middle)
        return state


def differential_equation(width: int, batch_size: int) -> Any:
    return Flow(width), torch.randn(batch_size, 4), torch.randn(batch_size, 4)


# Experts that the data choose among: shapes inside depend on values.
class Experts(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.gate, self.experts = nn.Linear(16, 4), nn.ModuleList(mlp(16, width, 16) for _ in range(4))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        share, chosen = torch.softmax(self.gate(tokens), dim=1).max(dim=1)
        output = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):
            rows = (chosen == number).nonzero().squeeze(1)
            output = output.index_copy(0, rows, (expert(tokens[rows]) * share[rows, None]).to(output.dtype))
        return output


def experts(width: int, batch_size: int) -> Any:
    return Experts(width), torch.randn(batch_size, 16), torch.randn(batch_size, 16)


# A language model that writes token by token with a cache of keys and values.
class Writer(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.embedding, self.mixed, self.scores = (
            nn.Embedding(64, width),
            nn.Linear(width, 3 * width),
            nn.Linear(width, 64),
        )

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        keys, values, written = [], [], [tokens]
        for _ in range(6):
            query, key, value = self.mixed(self.embedding(written[-1])).chunk(3, dim=-1)
            keys.append(key)
            values.append(value)
            seen = functional.scaled_dot_product_attention(query, torch.cat(keys, dim=1), torch.cat(values, dim=1))
            scores = self.scores(seen)
            written.append(scores[:, -1:].argmax(dim=2))
        return scores.squeeze(1)


def writer(width: int, batch_size: int) -> Any:
    return Writer(width), torch.randint(64, (batch_size, 1))


# Meta-learning: an inner step on functional weights, then the outer gradient through it.
def meta_learning(width: int, batch_size: int) -> Any:
    def run(model: nn.Module, inputs: torch.Tensor, targets: torch.Tensor, optimizer: torch.optim.Optimizer) -> None:
        weights = dict(model.named_parameters())
        inner = functional.mse_loss(torch.func.functional_call(model, weights, (inputs,)), targets)
        slopes = torch.autograd.grad(inner, list(weights.values()), create_graph=True)
        moved = {name: value - 0.1 * slope for (name, value), slope in zip(weights.items(), slopes, strict=True)}
        optimizer.zero_grad()
        functional.mse_loss(torch.func.functional_call(model, moved, (inputs,)), targets).backward()
        optimizer.step()

    points = torch.randn(batch_size, 1)
    return Step(model=mlp(1, width, 1), inputs=points, targets=points.sin(), run=run, optimizer=torch.optim.Adam)


# A Siamese network on pairs in a named tuple, with a contrastive loss.
Views = namedtuple("Views", "left right")


class Siamese(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.utils.parametrizations.weight_norm(nn.Linear(32, width)), nn.ReLU(), nn.Linear(width, 8)
        )

    def forward(self, views: Views) -> torch.Tensor:
        left, right = (functional.normalize(self.body(view), dim=1) for view in views)
        return left @ right.T / 0.1


def contrastive(width: int, batch_size: int) -> Any:
    views = Views(torch.randn(batch_size, 32), torch.randn(batch_size, 32))
    return Step(
        model=Siamese(width),
        inputs=(views,),
        loss=lambda scores: functional.cross_entropy(scores, torch.arange(len(scores), device=scores.device)),
    )


# A spiking network that keeps its state in Python and resets it in each pass.
class Spikes(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.into, self.out = nn.Linear(10, width), nn.Linear(width, 2)

    def forward(self, currents: torch.Tensor) -> torch.Tensor:
        potential = torch.zeros(len(currents), self.into.out_features, device=currents.device, dtype=currents.dtype)
        total = torch.zeros((), device=currents.device, dtype=currents.dtype)
        for _ in range(5):
            potential = 0.8 * potential + self.into(currents)
            spikes = torch.sigmoid(10 * (potential - 1))
            potential = potential * (1 - spikes)
            total = total + self.out(spikes)
        return total / 5


def spiking(width: int, batch_size: int) -> Any:
    return Spikes(width), torch.randn(batch_size, 10), torch.randint(2, (batch_size,))


# Hamiltonian dynamics: the forward pass is a gradient of the network by its inputs, at inference too.
class Hamiltonian(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.energy = mlp(2, width, 1)

    def forward(self, state: torch.Tensor) -> torch.Tensor:
        with torch.enable_grad():
            state = state.detach().requires_grad_(True)
            (slope,) = torch.autograd.grad(self.energy(state).sum(), state, create_graph=True)
        return torch.stack([slope[:, 1], -slope[:, 0]], dim=1)


def hamiltonian(width: int, batch_size: int) -> Any:
    return Hamiltonian(width), torch.randn(batch_size, 2), torch.randn(batch_size, 2)


# A transformer of texts with a mask, keywords and an output object.
class Output(dict):  # type: ignore[type-arg]
    def __getattr__(self, name: str) -> Any:
        return self[name]


class Reader(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(100, width)
        self.layers = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(width, 2, 2 * width, batch_first=True), 2, enable_nested_tensor=False
        )
        self.scores = nn.Linear(width, 3)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, labels: torch.Tensor) -> Output:
        hidden = self.layers(self.embedding(input_ids), src_key_padding_mask=attention_mask == 0)
        scores = self.scores(hidden[:, 0])
        return Output(loss=functional.cross_entropy(scores, labels), logits=scores)


def reader(width: int, batch_size: int) -> Any:
    mask = torch.ones(batch_size, 12, dtype=torch.long)
    mask[: batch_size // 2, 8:] = 0
    labels = torch.randint(3, (batch_size,))
    return Reader(width), {"input_ids": torch.randint(100, (batch_size, 12)), "attention_mask": mask, "labels": labels}
