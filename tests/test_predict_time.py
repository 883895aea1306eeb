"""The command that a user runs, on folders of made-up results."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from crossover.errors import UserError
from crossover.statistics.cost_models import model_lines
from crossover.statistics.summary import summarise
from predict_time import main
from trials import ROOT, run_script

Row = Callable[..., dict[str, Any]]
Ask = Callable[..., str]
SCRIPT = ROOT / "scripts" / "predict_time.py"
SIZES = (100, 200, 400, 800, 1600)


@pytest.fixture
def rows(row: Row) -> list[dict[str, Any]]:
    """A CPU of 1 us a neuron and a GPU of 0.5 ms, three trials 1 % apart; parameters are 10 times the neurons."""
    return [
        row(
            size=n,
            parameters=10 * n,
            size_name="neurons",
            device=device,
            trial=trial,
            step_time_s=(n * 1e-6 if device == "cpu" else 5e-4) * 1.01 ** (trial - 2),
        )
        for n in SIZES
        for device in ("cpu", "cuda")
        for trial in (1, 2, 3)
    ]


def results(folder: Path, rows: Sequence[dict[str, Any]], steps_per_run: int | None = 10_000) -> Path:
    """A folder with the tables of a run."""
    folder.mkdir(exist_ok=True)
    table = pd.DataFrame(rows)
    summarise(table).to_parquet(folder / "cells.parquet")
    model_lines(table, {"disc_depth": steps_per_run}).to_parquet(folder / "cost_models.parquet")
    return folder


def options(folder: Path, size: object, study: str) -> list[str]:
    return [f"--study={study}", f"--size={size}", f"--results={folder}"]


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    """Gives what the command prints."""

    def run(folder: Path, size: object, study: str = "disc_depth") -> str:
        main(options(folder, size, study))
        return capsys.readouterr().out

    return run


def told_off(folder: Path, size: object, study: str = "disc_depth") -> str:
    """The text of the error that the command ends with."""
    with pytest.raises(UserError) as raised:
        main(options(folder, size, study))
    (line,) = str(raised.value).splitlines()
    return line


def test_the_command_answers_or_ends_in_one_line(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    folder = results(tmp_path / "r", rows)
    answered = run_script(options(folder, 1000, "disc_depth"), script=SCRIPT)
    assert (answered.returncode, answered.stderr) == (0, "")
    assert "probably ahead: GPU" in answered.stdout
    failed = run_script(options(folder, 1000, "other"), script=SCRIPT)
    assert (failed.returncode, failed.stdout) == (1, "")
    (line,) = failed.stderr.splitlines()
    assert line.startswith("error: --study: 'other'")


def test_a_size_between_is_expected_by_the_model(rows: list[dict[str, Any]], tmp_path: Path, ask: Ask) -> None:
    text = ask(results(tmp_path / "r", rows), 1000)
    assert "1,000 neurons, about 10 k parameters (interpolated)" in text
    # The trials' standard deviation is ln(1.01); the model misses nothing.
    assert re.search(
        r"CPU \(Brand C1\): 1\.00 ms a step \(±1\.0 %\), 10\.0 s for 10,000 steps; by the cost model of 5 sizes", text
    )
    assert re.search(r"GPU \(Brand G1\): 500 µs a step \(±1\.0 %\), 5\.0\d? s for 10,000 steps; by the cost", text)
    assert "probably ahead: GPU (Brand G1), 2.00 times as fast as CPU (Brand C1)" in text
    assert "warning" not in text


def test_a_measured_size_has_its_own_time(rows: list[dict[str, Any]], tmp_path: Path, ask: Ask) -> None:
    """The cell at 400 neurons took three times what the model of the others expects."""
    for one in rows:
        if one["size"] == 400 and one["device"] == "cpu":
            one["step_time_s"] *= 3
    text = ask(results(tmp_path / "r", rows, steps_per_run=None), 400)
    # Three trials with a standard deviation of ln(1.01): t = 4.303, so exp(±4.303 ln(1.01) / sqrt(3)) = 1 ± 2.5 %.
    assert "CPU (Brand C1): 1.20 ms a step (±1.0 %); measured, 95 % interval 1.17 ms to 1.23 ms over 3 trials" in text
    assert "400 neurons, 4,000 parameters. " in text
    assert "for 10,000 steps" not in text
    rough = ask(tmp_path / "r", 500)
    assert re.search(
        r"warning for CPU \(Brand C1\): the model is rough: it misses measured sizes by up to \d{3} %", rough
    )
    assert "rough" not in text


def test_near_the_crossover_nobody_is_named(rows: list[dict[str, Any]], tmp_path: Path, ask: Ask) -> None:
    text = ask(results(tmp_path / "r", rows), 505)
    assert "ahead: open; GPU (Brand G1), 1.01 times as fast as CPU (Brand C1), no more than the spread" in text
    assert "probably" not in text


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (6400, "size 6,400 lies above the largest (1,600) that was measured, by a factor of 4"),
        (20, "size 20 lies below the smallest (100) that was measured, by a factor of 5"),
    ],
)
def test_a_size_outside_is_answered_with_a_warning(
    rows: list[dict[str, Any]], tmp_path: Path, ask: Ask, size: int, words: str
) -> None:
    text = ask(results(tmp_path / "r", rows), size)
    assert f"warning for CPU (Brand C1) and GPU (Brand G1): {words}\n" in text
    assert "±1" not in text
    assert "probably" not in text
    assert "parameters" not in text
    floor = "warning for GPU (Brand G1): the time hardly grows over the sizes measured"
    assert (floor in text) == (size == 6400)


def grown(rows: list[dict[str, Any]], cpu_s: Callable[[int], float], gpu_s: float) -> list[dict[str, Any]]:
    """The same trials at 2 to 12 layers, one trial each, with other times."""
    first = {one["device"]: one for one in rows}
    return [
        one | {"size": n, "size_name": "layers", "step_time_s": cpu_s(n) if device == "cpu" else gpu_s}
        for n in range(2, 13)
        for device, one in first.items()
    ]


def test_where_times_grow_steeply_a_little_outside_is_far(rows: list[dict[str, Any]], tmp_path: Path, ask: Ask) -> None:
    """The fourth power of the layers: (17 / 12)^4 = 4.03, (16 / 12)^4 = 3.16."""
    folder = results(tmp_path / "r", grown(rows, lambda n: 1e-6 * n**4, 1e-3))
    assert "perhaps ahead: GPU" in ask(folder, 16)
    text = ask(folder, 17)
    assert "ahead: not told more than 4 times outside of the sizes measured, or of the times at their ends" in text
    assert (
        "warning for CPU (Brand C1): from size 12 to 17 the model's time changes by a factor of 4.03, "
        "which no measurement bears out" in text
    )
    assert "times as fast" not in text


def test_an_exponent_at_its_limit_tells_nobody_ahead(rows: list[dict[str, Any]], tmp_path: Path, ask: Ask) -> None:
    """Times that triple with each layer grow faster than any power that is allowed; a constant one is no such case."""
    folder = results(tmp_path / "r", grown(rows, lambda n: 1e-6 * 3**n, 1e-3))
    text = ask(folder, 13)
    assert "ahead: not told outside of the sizes measured, with the exponent of CPU (Brand C1) at a limit" in text
    assert "warning for CPU (Brand C1): the model's exponent is held at a limit (6.00), so the times do not" in text
    assert "times as fast" not in text


def test_a_larger_size_never_takes_less_than_the_largest_measured(
    rows: list[dict[str, Any]], tmp_path: Path, ask: Ask
) -> None:
    """The last of eleven times is five times what the others lead to: the line goes on from there, not from the model.

    n^2 from 12 to 13 layers: 5 * 144 us * (13 / 12)^2 = 845 us, where the model of the others alone has 169 us.
    """
    folder = results(tmp_path / "r", grown(rows, lambda n: 1e-6 * n**2 * (5 if n == 12 else 1), 1e-3))
    assert "CPU (Brand C1): 720 µs a step" in ask(folder, 12)
    (words,) = re.findall(
        r"CPU \(Brand C1\): (\d+) µs a step, .* carried on from the time measured at 12\n", ask(folder, 13)
    )
    assert int(words) == pytest.approx(845, rel=0.03)
    assert "carried on from the time measured at 2\n" in ask(folder, 1)


def test_a_smaller_size_never_takes_more_than_the_smallest_measured(
    rows: list[dict[str, Any]], tmp_path: Path, ask: Ask
) -> None:
    """The smallest took a fifth of what the model says: 0.8 us at 2 layers, where n^2 has 4."""
    folder = results(tmp_path / "r", grown(rows, lambda n: 1e-6 * n**2 / (5 if n == 2 else 1), 1e-3))
    (words,) = re.findall(r"CPU \(Brand C1\): (\d\.\d+) µs a step", ask(folder, 2))
    assert float(words) == pytest.approx(0.8)
    (words,) = re.findall(r"CPU \(Brand C1\): (0\.\d+) µs a step", ask(folder, 1))
    assert 0 < float(words) < 0.8


def test_too_far_outside_no_number_is_given(rows: list[dict[str, Any]], tmp_path: Path, ask: Ask) -> None:
    """100 times the size, or 100 times the time: 12 layers' fourth power is 100 times as much at 37.9 layers."""
    folder = results(tmp_path / "r", grown(rows, lambda n: 1e-6 * n**4, 1e-3))
    refused = "CPU (Brand C1): no time: too far outside of what was measured (2 to 12 layers) to say\n"
    assert refused not in ask(folder, 37)
    text = ask(folder, 38)
    assert refused in text
    assert "GPU (Brand G1): 1.00 ms a step" in text
    assert "ahead" not in text
    assert text.count("no time") == 1
    # Which time, a line that does not grow cannot say: it depends on the processor's rounding.
    assert re.search(r"GPU \(Brand G1\): \S+ ms a step", ask(folder, 1200))
    for size in (1201, 10**30, 10**400):
        nothing = ask(folder, size)
        assert nothing.count("too far outside of what was measured (2 to 12 layers) to say") == 2
        assert "a step" not in nothing
        assert "warning" not in nothing


def test_a_lead_within_the_misses_is_open(rows: list[dict[str, Any]], tmp_path: Path, ask: Ask) -> None:
    """At 2,000 neurons the CPU takes 2 ms, the GPU 1.2; but at 400 the CPU's model is off by a factor of 3."""
    for one in rows:
        one["step_time_s"] *= 2.4 if one["device"] == "cuda" else 3 if one["size"] == 400 else 1
    text = ask(results(tmp_path / "r", rows), 2000)
    assert re.search(
        r"ahead: open; GPU \(Brand G1\), 1\.\d\d times as fast as CPU \(Brand C1\), no more than the models miss", text
    )


def test_a_long_run_is_told_in_hours_and_days(rows: list[dict[str, Any]], tmp_path: Path, ask: Ask) -> None:
    """10 million steps of 1 ms and of 0.5 ms take 10,000 s and 5,000 s; of 40 ms, 4.63 days."""
    folder = results(tmp_path / "r", rows, steps_per_run=10_000_000)
    assert "2.78 h for 10,000,000 steps" in ask(folder, 1000)
    assert "4.63 days for 10,000,000 steps" in ask(folder, 40_000)


def test_a_cell_without_a_time_is_never_filled_in(rows: list[dict[str, Any]], tmp_path: Path, ask: Ask) -> None:
    for one in rows:
        if one["size"] == 1600 and one["device"] == "cuda":
            one |= {"status": "oom", "reason": "8 GB wanted", "step_time_s": None}
    folder = results(tmp_path / "r", rows)
    there = ask(folder, 1600)
    assert "GPU (Brand G1): no time: measured, oom, 8 GB wanted" in there
    assert "ahead" not in there
    assert "warning for GPU (Brand G1): size 1,600 ended oom, so this one may have no time at all" in ask(folder, 2000)


def test_single_trials_say_nothing_of_the_spread(rows: list[dict[str, Any]], tmp_path: Path, ask: Ask) -> None:
    folder = results(tmp_path / "r", [one for one in rows if one["trial"] == 1])
    assert "measured, one trial\n" in ask(folder, 800)
    assert "perhaps ahead: GPU" in ask(folder, 800)
    assert "by the cost model of 5 sizes, one trial each" in ask(folder, 1000)


def test_every_line_is_told_apart(rows: list[dict[str, Any]], tmp_path: Path, ask: Ask) -> None:
    both = rows + [{**one, "precision": "tf32"} for one in rows if one["device"] == "cuda"]
    text = ask(results(tmp_path / "r", both), 1000)
    assert [line for line in text.splitlines() if line.startswith("data resident")] == [
        "data resident on the device, batch 100, fp32",
        "data resident on the device, batch 100, tf32",
    ]
    assert text.count("ahead") == 1


def test_mistakes_are_told_in_one_line(rows: list[dict[str, Any]], tmp_path: Path, ask: Ask) -> None:
    folder = results(tmp_path / "r", rows)
    assert "'other' is not among the studies of these results; allowed: disc_depth" in told_off(folder, 10, "other")
    assert "--size: 0 is no size" in told_off(folder, 0)
    assert "--size: -3 is no size" in told_off(folder, -3)
    assert "cells.parquet is not there" in told_off(tmp_path / "nowhere", 10)
    few = results(tmp_path / "few", [one for one in rows if one["size"] <= 400])
    assert "no model to expect one by (a model takes 4 sizes with a time or more, not 3)" in told_off(few, 300)
    assert "measured" in ask(few, 200)
