"""A few words of answer for a study that does not ask where two sides cross."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from crossover.answers.naming import name_by, varying
from crossover.answers.wording import INDICATIVE, Answer
from crossover.config.words import BASELINE, DEVICES
from crossover.config.words import PLAIN as PLAIN_VARIANT
from crossover.figures.style import number_text, rate_text, seconds_text, side_word
from crossover.plan.stages import PLAIN_SIDES
from crossover.statistics.latency_rows import latency_rows, worst_words
from crossover.statistics.loading import short_loading
from crossover.statistics.summary import Ratio, ratio_over_trials
from crossover.tables.frames import CELL_AXES, first_row, on_all_cores, rows_with

AXES = [axis for axis in CELL_AXES if axis not in ("study", "workload", "device")]
"""The axes that set the cells of one device apart."""

PLAIN = {**PLAIN_SIDES, "variant": PLAIN_VARIANT}
"""The settings with nothing switched on."""


def comparison_answers(trials: pd.DataFrame, spec: Mapping[str, Any]) -> list[tuple[str, Answer]]:
    """Answers with what they are of, by what the study's figures show; none where no trial ended ok.

    `trials` are a study's, as `with_ok_times` leaves them. Each of several machines answers for itself.
    """
    return _of_each_machine(trials, lambda timed: _asked(timed, spec) or _general(timed))


def asked_answers(trials: pd.DataFrame, spec: Mapping[str, Any]) -> list[tuple[str, Answer]]:
    """Those of them that no sentence gives at length: all but what loading takes, and two devices at one size."""
    return _of_each_machine(trials, lambda timed: _asked(timed, spec))


def _of_each_machine(trials: pd.DataFrame, answers: Callable[[pd.DataFrame], list[Answer]]) -> list[tuple[str, Answer]]:
    machines = trials["machine"].unique()
    timed = on_all_cores(trials).dropna(subset=["step_time_s"])
    return [
        (machine if len(machines) > 1 else "", text)
        for machine in machines
        for text in answers(timed[timed["machine"] == machine])
    ]


def _asked(timed: pd.DataFrame, spec: Mapping[str, Any]) -> list[Answer]:
    """What the figures ask: how wrong a latency is, the best throughput; else which setting is fastest."""
    devices = _by_device(timed)
    if "latency" in spec["figures"]:
        accelerated = [(device, own) for device, own in devices if device != BASELINE] or devices
        return [text for device, own in accelerated if (text := _mistake(device, own, timed))]
    if "throughput" in spec["figures"]:
        return [_best_rate(device, own) for device, own in devices]
    return [] if _general(timed) else [_fastest(device, own) for device, own in devices]


def _general(timed: pd.DataFrame) -> list[Answer]:
    """What loading takes, or how two devices compare at one size."""
    return short_loading(timed) or _ratios(_by_device(timed))


def _by_device(timed: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    return [(device, own) for device in DEVICES if len(own := timed[timed["device"] == device])]


def _mistake(device: str, trials: pd.DataFrame, timed: pd.DataFrame) -> Answer | None:
    """The mistake in measuring the latency that is furthest off; None of several cells, or where none was made."""
    if len(trials.drop_duplicates(CELL_AXES)) > 1:
        return None
    words = worst_words(latency_rows(timed, first_row(trials)))
    notes = [*words.notes, *_caution([trials["step_time_s"].tolist()])]
    return Answer(f"On the {side_word(device)} {words.said}", notes) if words else None


def _best_rate(device: str, trials: pd.DataFrame) -> Answer:
    """The most samples a second, and where: by the geometric mean over a cell's trials."""
    seconds = _seconds(trials)
    key, own = max(seconds.items(), key=lambda item: _axis(item[0], "batch_size") / _mean(item[1]))
    rest = [axis for axis in varying(trials, AXES) if axis != "batch_size"]
    batch = _axis(key, "batch_size")
    others = name_by(first_row(rows_with(trials, AXES, dict(zip(AXES, key, strict=True)))), rest)
    place = f"batch {batch:,}{f', {others}' if others else ''}"
    return Answer(f"{side_word(device)} at best {rate_text(batch / _mean(own))}, at {place}", _caution([own]))


def _ratios(devices: Sequence[tuple[str, pd.DataFrame]]) -> list[Answer]:
    """How many times as fast the accelerator is, where each device has one cell; none otherwise."""
    times = dict(devices)
    if BASELINE not in times or any(len(own.drop_duplicates(CELL_AXES)) > 1 for own in times.values()):
        return []
    cpu_s = times[BASELINE]["step_time_s"].tolist()
    found = []
    for device, own in devices:
        if device != BASELINE:
            gpu_s = own["step_time_s"].tolist()
            over = ratio_over_trials(gpu_s, cpu_s)
            ahead, behind = side_word(device), side_word(BASELINE)
            if over.ratio < 1:
                ahead, behind, over = behind, ahead, ratio_over_trials(cpu_s, gpu_s)
            text = f"{ahead} {_times(over)} times as fast as the {behind}"
            found.append(Answer(text, _caution([gpu_s, cpu_s], over)))
    return found


def _fastest(device: str, trials: pd.DataFrame) -> Answer:
    """Of the largest size the cell of the least time a sample, beside the plain one, or the slowest where none is."""
    own = trials[trials["size"] == trials["size"].max()]
    place = f" at {own['size'].iloc[0]:,} {own['size_name'].iloc[0]}" if trials["size"].nunique() > 1 else ""
    seconds = _seconds(own)
    named = varying(own, AXES)
    cells = {key: first_row(rows_with(own, AXES, dict(zip(AXES, key, strict=True)))) for key in seconds}
    per_sample = {key: _mean(times) / _axis(key, "batch_size") for key, times in seconds.items()}
    best, worst = min(per_sample, key=per_sample.__getitem__), max(per_sample, key=per_sample.__getitem__)
    if best == worst:
        text = f"{side_word(device)}: {seconds_text(_mean(seconds[best]))} a step{place}"
        return Answer(text, _caution([seconds[best]]))
    plain = [key for key in cells if key != best and all(cells[key][axis] == side for axis, side in PLAIN.items())]
    other = max(plain, key=per_sample.__getitem__, default=worst)
    scale = _axis(best, "batch_size") / _axis(other, "batch_size")
    over = ratio_over_trials(seconds[best], [value * scale for value in seconds[other]])
    first, second = name_by(cells[best], named), name_by(cells[other], named)
    if over.low is not None and over.low <= 1:
        return Answer(f"{side_word(device)}: {first} and {second} not told apart{place}", _caution([], over))
    text = f"{side_word(device)} fastest with {first}{place}: {_times(over)} times as fast as {second}"
    return Answer(text, _caution([seconds[best], seconds[other]], over))


def _seconds(trials: pd.DataFrame) -> dict[tuple[Any, ...], list[float]]:
    """The times of each cell's trials, by its values on AXES."""
    return {tuple(key): own["step_time_s"].tolist() for key, own in trials.groupby(AXES, sort=False)}


def _axis(key: tuple[Any, ...], axis: str) -> int:
    return int(key[AXES.index(axis)])


def _mean(seconds: Sequence[float]) -> float:
    return ratio_over_trials([1.0], seconds).ratio


def _times(ratio: Ratio) -> str:
    return number_text(ratio.ratio)


def _caution(cells: Sequence[Sequence[float]], over: Ratio | None = None) -> list[str]:
    """The interval where there is one, or what one trial is worth."""
    if over and over.low is not None and over.high is not None:
        return [f"95 %: {number_text(over.low)} to {number_text(over.high)}"]
    return [INDICATIVE] if any(len(own) == 1 for own in cells) else []
