"""Batches of a user's model: their number of samples, loaders, and tensors that stay in host memory."""

from __future__ import annotations

from collections import namedtuple
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_sequence
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from crossover import Step
from crossover.errors import UserError
from crossover.measurement.user.batches import batches_of, host_reader, sample_counter

Point = namedtuple("Point", "where when")


def rows(*shape: int) -> torch.Tensor:
    return torch.zeros(shape)


def step(inputs: Any, **more: Any) -> Step:
    return Step(model=more.pop("model", nn.Identity()), inputs=inputs, **more)


def count_of(batch: Any, **more: Any) -> int:
    return sample_counter(step(batch[0], **more), batch, 4, "net.py:build", True)(*batch)


class TestSamples:
    @pytest.mark.parametrize(
        "batch",
        [
            (rows(4, 3), rows(4)),
            (rows(9, 3), rows(4)),  # nodes of graphs, and a target for each graph
            ((rows(9, 3), rows(2, 30).long(), rows(4)), None),
            ([rows(3, 5, 6)] * 4, None),  # images of three colours
            (pack_sequence([rows(5), rows(3), rows(3), rows(1)]), None),
            (torch.nested.nested_tensor([rows(length) for length in (5, 1, 2, 3)], layout=torch.jagged), None),
            (SimpleNamespace(num_graphs=4, to=None), rows(9)),
        ],
    )
    def test_are_counted_in_the_part_with_batch_size_rows(self, batch: Any) -> None:
        assert count_of(batch) == 4

    @pytest.mark.parametrize(
        ("batch", "shown"),
        [
            ((rows(9, 4), None), "its batch has 9 rows, but the batch size is 4"),  # as many columns
            ((torch.tensor(4.0), 4), "its batch has no rows"),
        ],
    )
    def test_are_not_guessed_from_another_dimension(self, batch: Any, shown: str) -> None:
        with pytest.raises(UserError) as raised:
            count_of(batch)
        assert shown in str(raised.value)
        assert "give the number of samples in a step: Step(samples=...)" in str(raised.value)

    def test_are_the_second_dimension_only_for_time_first_layers(self) -> None:
        batch = (rows(7, 4, 3), None)
        assert count_of(batch, model=nn.LSTM(3, 2)) == 4
        with pytest.raises(UserError, match="its batch has 7 rows"):
            count_of(batch, model=nn.LSTM(3, 2, batch_first=True))

    def test_are_those_of_the_step(self) -> None:
        assert count_of((rows(9, 4), None), samples=9) == 9
        assert count_of((rows(9, 4), rows(5)), samples=lambda inputs, targets: len(inputs) - len(targets)) == 4

    @pytest.mark.parametrize(
        ("first", "short"),
        [
            ((rows(4, 3), rows(4)), (rows(1, 3), rows(1))),
            ((pack_sequence([rows(2)] * 4), None), (pack_sequence([rows(2)]), None)),
        ],
    )
    def test_are_fewer_in_a_shorter_batch(self, first: Any, short: Any) -> None:
        count = sample_counter(step(first[0]), first, 4, "net.py:build", True)
        assert (count(*first), count(*short)) == (4, 1)


class Stream(IterableDataset[Any]):
    def __init__(self, count: int) -> None:
        self.rows = iter(range(count))

    def __iter__(self) -> Any:
        return self.rows


class TestLoaders:
    def test_data_that_can_be_read_only_once_are_one_line(self) -> None:
        batches = batches_of(step(Stream(9)), 4, "here")
        assert [next(batches)[0].tolist() for _ in range(2)] == [[0, 1, 2, 3], [4, 5, 6, 7]]
        with pytest.raises(UserError, match="here: its data gave no batch in epoch 2: it can be read only"):
            next(batches)

    @pytest.mark.parametrize(
        "loader", [Stream(3), DataLoader(TensorDataset(rows(3)), batch_size=4, drop_last=True), DataLoader(Stream(0))]
    )
    def test_a_first_epoch_without_a_batch_is_one_line(self, loader: Any) -> None:
        with pytest.raises(UserError, match="its data gave no batch of 4: it has fewer rows"):
            next(batches_of(step(loader), 4, "net.py:build"))

    def test_inputs_that_are_a_tuple_are_several_arguments(self) -> None:
        items = [((torch.zeros(2), torch.ones(3)), 7)] * 4
        inputs, targets = next(batches_of(step(DataLoader(items, batch_size=4)), 4, "here"))
        assert type(inputs) is tuple
        assert [part.shape for part in inputs] == [(4, 2), (4, 3)]
        assert targets.tolist() == [7] * 4


class Reader(nn.Module):
    def forward(self, words: torch.Tensor, lengths: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        return words * lengths * scale


WORDS, LENGTHS = rows(4, 7), torch.tensor([7, 6, 2, 1])


class TestHost:
    @pytest.mark.parametrize(
        ("inputs", "names"),
        [
            ((WORDS, LENGTHS), "lengths"),
            ({"words": WORDS, "lengths": LENGTHS}, ["lengths"]),
            (Point(WORDS, LENGTHS), ("when",)),
            (SimpleNamespace(words=WORDS, lengths=LENGTHS), ["lengths"]),
        ],
    )
    def test_tensors_are_selected_by_name(self, inputs: Any, names: Any) -> None:
        (tensor,) = host_reader(step(inputs, model=Reader(), host=names), (inputs, None), "net.py:build")(inputs)
        assert tensor is LENGTHS

    def test_an_unknown_name_is_one_line(self) -> None:
        inputs = (WORDS, LENGTHS)
        made = step(inputs, model=Reader(), host=["length"])
        with pytest.raises(UserError, match="here: host: no input is called 'length'; allowed: words, lengths"):
            host_reader(made, (inputs, None), "here")
