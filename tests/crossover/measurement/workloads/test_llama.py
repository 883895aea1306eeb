from __future__ import annotations

import pytest
import torch

from crossover.measurement.workloads import _llama, llama_answer
from crossover.measurement.workloads._llama import Llama
from crossover.measurement.workloads.llama_answer import Answering
from tiny_tasks import answer_of, cell_of, task_of

LAYERS, PROMPT, VOCABULARY = 2, 20, 100
SMALL = {"num_hidden_layers": LAYERS, "intermediate_size": 64, "vocab_size": VOCABULARY}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two layers instead of eight, short prompts and few words."""
    monkeypatch.setattr(_llama, "SHAPE", _llama.SHAPE | SMALL)
    for module in (_llama, llama_answer):
        monkeypatch.setattr(module, "LAYERS", LAYERS)
        monkeypatch.setattr(module, "VOCABULARY", VOCABULARY)
    monkeypatch.setattr(llama_answer, "PROMPT", PROMPT)


@pytest.fixture
def tokens() -> torch.Tensor:
    return torch.randint(VOCABULARY, (3, 12), generator=torch.Generator().manual_seed(0))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("batch_size", [1, 3])
def test_a_prompt_gives_the_logits_of_the_plain_model(batch_size: int, tokens: torch.Tensor) -> None:
    """A cache of one sequence, as in the numerical check, also serves a larger batch."""
    prefill = Llama(0, 12, batch_size)
    with torch.no_grad():
        plain = prefill.model(tokens).logits[:, -1]
        assert torch.allclose(prefill(tokens), plain, atol=1e-5)


@pytest.mark.usefixtures("small")
def test_decoding_after_a_cached_context_gives_the_logits_of_the_whole_prompt(tokens: torch.Tensor) -> None:
    prefill, decode = Llama(0, 12, 3), Llama(11, 1, 3)
    decode.load_state_dict(prefill.state_dict())
    with torch.no_grad():
        whole = prefill(tokens)
        for mine, theirs in ((decode.keys, prefill.keys), (decode.values, prefill.values)):
            mine[:, :, :, :11] = theirs[:, :, :, :11]
        for _ in range(2):  # the second step is the same as the first
            assert torch.allclose(decode(tokens[:, 11:]), whole, atol=1e-5)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("rows", [1, 3])
def test_the_last_token_of_an_answer_has_the_logits_of_the_plain_model(rows: int) -> None:
    """An answer does not depend on a longer one before it."""
    answering = Answering()
    tokens = torch.randint(VOCABULARY, (rows, PROMPT + 3))
    with torch.no_grad():
        for length in (PROMPT + 3, PROMPT):
            plain = answering.model(tokens[:, :length]).logits[:, -1]
            assert torch.allclose(answering(tokens[:, :length]), plain, atol=1e-5)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("workload", "size", "counted"),
    [("llama_prefill", 12, 2 * 12), ("llama_decode", 12, 2), ("llama_answer", 3, 2 * 3)],
)
def test_tokens_are_counted(workload: str, size: int, counted: int) -> None:
    cell = cell_of(workload, size)
    task = task_of(cell)
    task.step()
    assert task.sample_name == "tokens"
    assert (cell.batch_size if task.samples_taken is None else task.samples_taken) == counted


def test_the_size_of_the_cache() -> None:
    """Keys and values are 2 x 8 layers x 8 heads x 64 numbers per token."""
    with torch.device("meta"):
        model = Llama(9, 1, 4)
    assert model.keys.nbytes + model.values.nbytes == 2 * 8 * 8 * 64 * 10 * 4 * 4
    model.bfloat16()
    assert model.keys.nbytes + model.values.nbytes == 2 * 8 * 8 * 64 * 10 * 4 * 2


@pytest.mark.usefixtures("small")
def test_angles_are_computed_in_single_precision() -> None:
    rotary = Llama(1, 1).bfloat16().model.model.rotary_emb
    positions = torch.tensor([[0, 3000]])
    angles = positions[0, :, None].double() * 10000.0 ** (-torch.arange(0, 64, 2) / 64)
    cosines, sines = rotary(torch.ones(1, dtype=torch.float64), positions)
    assert torch.allclose(cosines[0, :, :32], angles.cos(), atol=1e-3)
    assert torch.allclose(sines[0, :, 32:], angles.sin(), atol=1e-3)
    assert rotary(torch.ones(1, dtype=torch.bfloat16), positions)[0].dtype is torch.bfloat16


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("workload", ["llama_prefill", "llama_decode", "llama_answer"])
@pytest.mark.parametrize(("precision", "largest"), [("fp32", 1e-5), ("bf16", 0.05)])
def test_a_step_passes_the_numerical_check(workload: str, precision: str, largest: float) -> None:
    cell = cell_of(workload, 8, precision=precision)
    answer = answer_of(cell, task_of(cell))
    assert answer.wrong is answer.unchecked is None
    assert answer.errors["result"] < largest
