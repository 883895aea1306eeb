from __future__ import annotations

import gc

import pytest
import torch

from crossover.measurement.memory.storages import ROLES, Ledger, Observer


def bytes_of(ledger: Ledger, moment: int) -> dict[str, int]:
    """What there is at a moment, without the zeros."""
    return {role: count for role, count in ledger.bytes_at(moment).items() if count}


def test_a_storage_counts_once_however_many_tensors_share_it() -> None:
    ledger = Ledger("cpu")
    whole = torch.empty(100)
    ledger.see([whole, whole.view(10, 10), whole[:3], whole.detach(), "no tensor", None])
    assert bytes_of(ledger, 0) == {"temporary": 400}


def test_a_storage_lives_until_its_last_tensor_goes() -> None:
    ledger = Ledger("cpu")
    whole = torch.empty(100)
    part = whole[:3]
    ledger.see([whole])
    ledger.tick()
    del whole
    ledger.tick()
    del part
    ledger.tick()
    assert [bytes_of(ledger, moment) for moment in range(3)] == [{"temporary": 400}, {"temporary": 400}, {}]


def test_what_a_storage_is_for_may_show_after_the_peak() -> None:
    ledger = Ledger("cpu")
    tensor = torch.empty(100)
    ledger.see([tensor])
    ledger.tick()
    ledger.claim([tensor], "gradient")
    assert bytes_of(ledger, 0) == {"gradient": 400}


@pytest.mark.parametrize("first", ROLES)
@pytest.mark.parametrize("second", ROLES)
def test_of_two_uses_the_one_that_comes_first_counts(first: str, second: str) -> None:
    ledger = Ledger("cpu")
    tensor = torch.empty(1)
    ledger.claim([tensor], first)
    ledger.claim([tensor], second)
    assert bytes_of(ledger, 0) == {min(first, second, key=ROLES.index): 4}


def test_a_resized_storage_ends_one_life_and_begins_another() -> None:
    ledger = Ledger("cpu")
    tensor = torch.empty(100)
    ledger.claim([tensor], "activation")
    ledger.tick()
    tensor.untyped_storage().resize_(40)
    ledger.see([tensor])
    ledger.tick()
    assert [bytes_of(ledger, moment) for moment in range(2)] == [{"activation": 400}, {"activation": 40}]


def test_the_peak_is_where_the_sum_is_largest() -> None:
    ledger = Ledger("cpu")
    kept = []
    for count in (10, 30, -1, 15):
        if count > 0:
            kept.append(torch.empty(count))
            ledger.see(kept)
        else:
            kept.clear()
        ledger.tick()
    assert ledger.peak_moment == 1
    assert bytes_of(ledger, 1) == {"temporary": 160}


def test_the_peak_is_where_the_devices_mark_rose_last() -> None:
    marks = iter([5, 5, 9, 9, 9])
    ledger = Ledger("cpu", lambda: next(marks))
    kept = []
    for _ in range(5):
        kept.append(torch.empty(10))
        ledger.see(kept)
        ledger.tick()
    assert ledger.peak_moment == 2


def test_another_device_and_what_has_no_storage_are_passed_over() -> None:
    ledger = Ledger("cpu")
    ledger.claim([torch.empty(3, device="meta"), torch.eye(3).to_sparse()], "activation")
    assert bytes_of(ledger, 0) == {}


def test_a_gone_ledger_is_not_called_back() -> None:
    tensor = torch.empty(1)
    ledger = Ledger("cpu")
    ledger.see([tensor])
    del ledger
    gc.collect()
    del tensor  # a callback that fails would be an unraisable exception, which is an error in these tests


@pytest.mark.parametrize("grad_mode", [torch.enable_grad, torch.no_grad, torch.inference_mode])
def test_the_observer_shows_every_operation(grad_mode: type[torch.no_grad]) -> None:
    outside = torch.ones(1000)
    ledger = Ledger("cpu")
    with grad_mode(), Observer(ledger):
        made = outside + 1  # 4000 B
        made = made * 2  # 4000 B more, then 4000 B less
        made.add_(1)
    assert ledger.clock == 3
    assert [bytes_of(ledger, moment) for moment in range(3)] == [
        {"outside": 4000, "temporary": 4000},
        {"outside": 4000, "temporary": 8000},
        {"outside": 4000, "temporary": 4000},
    ]


def test_the_observer_follows_the_backward_pass() -> None:
    weight = torch.ones(1000, requires_grad=True)
    with torch.no_grad():
        factor = torch.full((1000,), 3.0)
    ledger = Ledger("cpu")
    loss = (weight * factor).sum()
    with Observer(ledger):
        loss.backward()
    assert weight.grad is not None
    ledger.claim([weight.grad], "gradient")
    assert ledger.bytes_at(ledger.clock)["gradient"] == 4000
    assert ledger.bytes_at(ledger.peak_moment)["temporary"] <= 4  # the gradient of the loss: nothing is copied
