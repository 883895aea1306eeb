"""Answers on several GPUs from made-up trials, and their wording."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from crossover.config.study import Study
from crossover.tables.run_tables import table_of
from crossover.topics.answers import read_answers
from report_pages import study, tables_of

MS = 1e-3
BATCHES = (64, 1024, 16384)


@pytest.fixture
def over_batch() -> Study:
    return replace(study(), batch_sizes=BATCHES, sizes=(4,), x_axis="batch_size")


@pytest.fixture
def rows(row: Callable[..., dict[str, Any]]) -> list[dict[str, Any]]:
    """One GPU takes 1 us for each sample; two take half as long, and 1 ms more to communicate."""
    made = []
    for batch in BATCHES:
        for device, time_s, alone_s in (
            ("cuda", batch * 1e-6, None),
            ("cuda-2", batch * 0.5e-6 + MS, batch * 0.5e-6),
        ):
            for trial in (1, 2, 3):
                factor = 1.001 ** (trial - 2)
                measured = {} if alone_s is None else {"split_step_s": time_s * factor, "unsynced_s": alone_s * factor}
                made.append(
                    row(
                        batch_size=batch,
                        device=device,
                        trial=trial,
                        step_time_s=time_s * factor,
                        averaged_bytes=2**20 if trial == 1 else None,
                        **measured,
                    )
                )
    return made


def answers(rows: list[dict[str, Any]], spec: Study, **more: Any) -> list[Any]:
    return read_answers(tables_of(pd.DataFrame(rows), {"disc_depth": spec}, **more).answers)


def test_two_gpus_are_faster_above_a_batch(rows: list[dict[str, Any]], over_batch: Study) -> None:
    (answer,) = [answer for answer in answers(rows, over_batch) if answer.kind == "crossover"]
    assert answer.main
    assert (answer.winner, answer.loser) == ("2 GPUs", "1 GPU")
    assert answer.sentence().startswith("2 GPUs faster than 1 GPU above batch ")
    assert 1024 < answer.crossover_low <= answer.crossover <= answer.crossover_high < 16384


def test_the_share_of_communication_is_told_at_both_ends(rows: list[dict[str, Any]], over_batch: Study) -> None:
    """1 ms of 1.032 ms, and 1 ms of 9.192 ms."""
    (answer,) = [answer for answer in answers(rows, over_batch) if answer.kind == "communication"]
    assert (answer.share, answer.at_the_end) == (pytest.approx(1 / 1.032), pytest.approx(1 / 9.192))
    assert answer.sentence() == ("communication takes 97 % of a step on 2 GPUs at batch 64 and 11 % at batch 16,384")
    assert answer.gain == pytest.approx(1.032 / 0.032)
    assert answer.links_s is None
    assert "without it, 32.2x faster" in answer.details()


def test_communication_is_why_unless_a_cpu_is_asked_about(rows: list[dict[str, Any]], over_batch: Study) -> None:
    (of_gpus,) = [answer for answer in answers(rows, over_batch) if answer.kind == "communication"]
    beside = [row | {"device": "cpu", "step_time_s": 1.0} for row in rows if row["device"] == "cuda"]
    (with_cpu,) = [answer for answer in answers(rows + beside, over_batch) if answer.kind == "communication"]
    assert (of_gpus.main, with_cpu.main) == (True, False)


def test_at_a_single_batch_there_is_no_other_end(rows: list[dict[str, Any]], over_batch: Study) -> None:
    single = [row for row in rows if row["batch_size"] == BATCHES[0]]
    (answer,) = [answer for answer in answers(single, over_batch) if answer.kind == "communication"]
    assert answer.sentence() == "communication takes 97 % of a step on 2 GPUs at batch 64"


def test_the_time_of_the_links_is_interpolated_between_probed_sizes(
    rows: list[dict[str, Any]], over_batch: Study
) -> None:
    """Gradients of 2^20 bytes lie halfway between 2^18 and 2^22 bytes, at 4 and 16 GB/s: 8 GB/s."""
    probed = {"machine": "here", "device": "cuda-2", "roof": "all_reduce", "unit": "B/s"}
    sizes = {2**18: 4e9, 2**22: 16e9}
    roofs = table_of("roofs", [{**probed, "working_set_bytes": size, "value": rate} for size, rate in sizes.items()])
    (first,) = [answer for answer in answers(rows, over_batch, roofs=roofs) if answer.kind == "communication"]
    assert first.links_s == pytest.approx(2**20 / 8e9)
    assert "the links alone need 131 µs" in first.details()


def test_steps_of_one_gpu_have_no_communication(rows: list[dict[str, Any]], over_batch: Study) -> None:
    alone = [row for row in rows if row["device"] == "cuda"]
    assert not [answer for answer in answers(alone, over_batch) if answer.kind == "communication"]
