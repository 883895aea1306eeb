"""The rows of the batch that a builder makes, read without running it."""

from __future__ import annotations

import ast

import pytest

from crossover.config.own_batches import own_batch


def batch_of(text: str) -> int | None:
    file = ast.parse(text)
    (function,) = (node for node in file.body if isinstance(node, ast.FunctionDef))
    return own_batch(function, file)


def returning(values: str, *lines: str, head: str = "") -> str:
    return "\n    ".join([f"{head}\ndef build(size):", *lines, f"return {values}"])


@pytest.mark.parametrize(
    "text",
    [
        returning("nn.Linear(8, size), torch.randn(20, 8)"),
        returning("nn.Linear(8, size), torch.randn((20, 8), dtype=torch.float64)"),
        returning("nn.Linear(8, size), torch.randn(20, size), torch.randint(10, (20,))"),
        returning("nn.Linear(8, size), x, y", "x = torch.rand(20, 8)", "y = torch.zeros(20, dtype=torch.long)"),
        returning("nn.Tanh(), torch.rand(20)", "if size > 64:", "    return nn.Linear(8, size), torch.rand(20, 8)"),
    ],
)
def test_rows_that_are_given_in_the_file_are_known(text: str) -> None:
    assert batch_of(text) == 20


@pytest.mark.parametrize(
    "text",
    [
        returning("nn.Linear(8, size), torch.randn(size, 8)"),
        returning("nn.Linear(8, size), torch.randn(20, 8), torch.randn(10, 8)"),
        returning("nn.Linear(8, size), TensorDataset(torch.randn(20, 8))"),
        returning("nn.Linear(8, size), DataLoader(rows)", "rows = torch.randn(20, 8)"),
        returning("nn.LSTM(8, size), torch.randn(20, 32, 8)"),
        returning("nn.Linear(8, size), torch.randn(*shape)", "shape = (20, 8)"),
        returning("nn.Linear(8, size), torch.randn(20, 8).repeat(size, 1)"),
        returning("nn.Linear(8, size), x", "x = torch.randn(20, 8)", "x = x.repeat(size, 1)"),
        returning("nn.Linear(8, size), x", "x = torch.randn(20, 8)", "if size > 64:", "    x = torch.randn(10, 8)"),
        returning("nn.Linear(8, size), torch.randn(rows, 8)", "for rows in [20]:", "    pass", head="rows = 10"),
        returning("nn.Linear(8, size), torch.randn(size, 8)", head="size = 20"),
        returning("nn.Linear(8, size), torch.rand(20)", "if size > 64:", "    return nn.Tanh(), torch.rand(10)"),
        returning("nn.Linear(8, size), (torch.rand(20, 3), torch.rand(40, 4))"),
        returning("nn.Linear(8, size), torch.randint(20, size)"),
        returning("Step(model=nn.Linear(8, size), inputs=torch.rand(20, 8))"),
        returning("make(size)"),
        returning("nn.Linear(8, size)"),
        returning("[nn.Linear(8, size), torch.rand(20, 8)]"),
    ],
)
def test_rows_that_may_differ_are_not_assumed(text: str) -> None:
    assert batch_of(text) is None
