"""Batches as nested containers: tensors are found in all of them, and other values stay unchanged."""

from __future__ import annotations

from collections import UserDict, namedtuple
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch.nn.utils.rnn import PackedSequence, pack_sequence

from crossover.measurement.step.trees import map_tensors, tensors_of

Pair = namedtuple("Pair", "first second")
ONE = torch.ones(2)


@dataclass(frozen=True)
class Rows:
    values: torch.Tensor
    name: str


class Graph:
    def __init__(self, nodes: torch.Tensor, parts: list[Any]) -> None:
        self.nodes, self.parts = nodes, parts

    def to(self, device: str) -> Graph:
        return Graph(self.nodes.to(device), self.parts)


class Record(dict[str, Any]):
    """A subclass of dict, which torch's pytrees treat as a leaf."""


@pytest.mark.parametrize(
    ("batch", "read"),
    [
        ((ONE, [ONE, 3]), lambda batch: [batch[0], batch[1][0]]),
        ({"a": ONE, "b": {"c": ONE, "d": "text"}}, lambda batch: [batch["a"], batch["b"]["c"]]),
        (Pair(ONE, Pair(ONE, None)), lambda batch: [batch.first, batch.second.first]),
        (Rows(ONE, "name"), lambda batch: [batch.values]),
        ((Record(a=ONE, b=7), UserDict(c=ONE)), lambda batch: [batch[0]["a"], batch[1]["c"]]),
        (Graph(ONE, [ONE, "kept"]), lambda batch: [batch.nodes, batch.parts[0]]),
    ],
)
def test_tensors_are_changed_in_every_container(batch: Any, read: Any) -> None:
    changed = map_tensors(lambda tensor: tensor + 1, batch)
    assert type(changed) is type(batch)
    assert [tensor.tolist() for tensor in read(changed)] == [[2.0, 2.0]] * len(read(batch))
    assert all(tensor is expected for tensor, expected in zip(tensors_of(batch), read(batch), strict=True))
    assert [tensor.tolist() for tensor in read(batch)] == [[1.0, 1.0]] * len(read(batch))  # the batch itself stays


def test_other_values_stay_unchanged() -> None:
    module = torch.nn.Linear(2, 2)
    leaves = (3, "text", None, torch.Size([2]), torch.float32, module)
    assert map_tensors(lambda tensor: tensor + 1, leaves) == leaves
    assert tensors_of(leaves) == []


def test_a_packed_sequence_keeps_its_batch_sizes_in_host_memory() -> None:
    packed = pack_sequence([torch.ones(2), torch.ones(3)], enforce_sorted=False)
    on_meta = map_tensors(lambda tensor: tensor.to("meta"), [packed])[0]
    assert isinstance(on_meta, PackedSequence)
    tensors = [on_meta.data, on_meta.sorted_indices, on_meta.unsorted_indices, on_meta.batch_sizes]
    assert [tensor.device.type for tensor in tensors if tensor is not None] == ["meta", "meta", "meta", "cpu"]
    assert len(tensors_of([packed])) == 3
