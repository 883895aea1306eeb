"""What the compared trainings say, in words and as the report's table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from sklearn.metrics import classification_report

from crossover.answers.wording import Answer, machine_words
from crossover.figures.style import DEVICE_WORDS
from crossover.statistics.quality import METRICS, Comparison, compare_quality
from crossover.statistics.quality_pairs import MODEL_AXES, Difference, is_baseline
from crossover.tables.frames import CELL_AXES

NEGLIGIBLE = 0.005
"""Half a percentage point: a model that is better or worse by less is the same for whoever uses it."""

NO_BASELINE = "Nothing can be said of the models' quality: no training on the CPU in fp32 ended ok."

ONLY_CPU = "Whether using a GPU improves the model is not testable here: only CPU trainings ended ok."


def quality_answer(table: pd.DataFrame) -> str:
    """A study's verdict in a few sentences, never beyond what the intervals over seeds hold."""
    baseline = table[is_baseline(table)]
    if not (baseline["status"] == "ok").any():
        return NO_BASELINE
    comparisons = compare_quality(table)
    accelerated = [comparison for comparison in comparisons if comparison.accelerated]
    if accelerated:
        text = f"{_verdict(accelerated)} {_largest(accelerated)}"
    else:
        text = ONLY_CPU
        text += f" {_largest(comparisons)}" if comparisons else ""
    return text + _spread(baseline) + _too_little(baseline)


def short_quality(table: pd.DataFrame) -> Answer:
    """The verdict alone, with the warning where the models have learnt too little."""
    baseline = table[is_baseline(table)]
    if not (baseline["status"] == "ok").any():
        return Answer(NO_BASELINE)
    accelerated = [comparison for comparison in compare_quality(table) if comparison.accelerated]
    text = _verdict(accelerated) if accelerated else ONLY_CPU
    return Answer(text + _too_little(baseline))


def _verdict(comparisons: Sequence[Comparison]) -> str:
    """Judged on the intervals of all metrics, devices and precisions."""
    found = [difference for comparison in comparisons for difference in comparison.metrics.values()]
    if any(difference.low is None for difference in found):
        return "Whether using a GPU improves the model takes two seeds or more to tell: one gives no interval."
    better = [c for c in comparisons if any((d.low or 0) > NEGLIGIBLE for d in c.metrics.values())]
    worse = [c for c in comparisons if any((d.high or 0) < -NEGLIGIBLE for d in c.metrics.values())]
    undecided = [c for c in comparisons if any((d.high or 0) > NEGLIGIBLE for d in c.metrics.values())]
    worse_words = f"makes it worse ({_names(worse)})"
    if better:
        text = f"Using a GPU changes the model for the better ({_names(better)})"
        return f"{text}, and {worse_words}." if worse else f"{text}."
    if undecided:
        text = f"Whether using a GPU improves the model is not decided, so much do seeds differ ({_names(undecided)})"
        return f"{text}; it surely {worse_words}." if worse else f"{text}."
    if worse:
        return f"Using a GPU does not improve the model, but {worse_words}."
    return f"Using a GPU does not improve the model: in every precision each metric gains less than {NEGLIGIBLE}."


def _largest(comparisons: Sequence[Comparison]) -> str:
    """The largest mean difference with its interval, and the largest of a single seed."""
    every = [(name, found, one) for one in comparisons for name, found in one.metrics.items()]
    name, found, one = max(every, key=lambda item: abs(item[1].mean))
    single = max((item[1].largest for item in every), key=abs)
    seeds = f"{found.seeds} seed{'' if found.seeds == 1 else 's'}"
    return (
        f"The largest difference from the CPU in fp32, same seed, is {difference_text(found)} in {METRICS[name]} "
        f"({_names([one])}; mean over {seeds}); the largest of a single seed is {single:+.5f}."
    )


def difference_text(found: Difference) -> str:
    """'+0.00012 (95 % interval -0.00003 to +0.00027)'."""
    if found.low is None or found.high is None:
        return f"{found.mean:+.5f}"
    return f"{found.mean:+.5f} (95 % interval {found.low:+.5f} to {found.high:+.5f})"


def _names(comparisons: Sequence[Comparison]) -> str:
    several = len({comparison.axes["size"] for comparison in comparisons}) > 1
    return ", ".join(
        f"{DEVICE_WORDS[one.axes['device']]} in {one.axes['precision']}"
        + machine_words("on", one.axes["machine"])
        + (f" at size {one.axes['size']}" if several else "")
        for one in comparisons
    )


def _spread(baseline: pd.DataFrame) -> str:
    """What another seed changes, to compare with."""
    ok = baseline[baseline["status"] == "ok"]
    spread = ok.groupby(MODEL_AXES)["accuracy"].std(ddof=1).max()
    if pd.isna(spread):
        return ""
    return f" For comparison: from seed to seed the CPU's accuracy has a standard deviation of {spread:.5f}."


def _too_little(baseline: pd.DataFrame) -> str:
    """A warning where models that have learnt nothing are compared."""
    ok = baseline[baseline["status"] == "ok"]
    if (ok["predicted_classes"] > 1).any():
        return ""
    return " But no model predicts more than one class: they have learnt too little to compare; raise quality.epochs."


def quality_view(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The report's table: one row a cell, means over seeds and differences from the CPU in fp32 as text."""
    compared = {tuple(one.axes.values()): one for one in compare_quality(table)}
    rows = []
    for key, own in table.groupby(CELL_AXES, sort=False):
        ok = own[own["status"] == "ok"]
        one = compared.get(key)
        failed = own[own["status"] != "ok"]
        rows.append(
            dict(zip(CELL_AXES, key, strict=True))
            | {
                "seeds": len(ok),
                "means": {words: _mean(ok[name]) for name, words in METRICS.items()},
                "loss": _mean(ok["loss"]),
                "differing": "" if one is None else f"{100 * ok['differing_share'].mean():.3f} %",
                "difference": "" if one is None else difference_text(one.metrics["accuracy"]),
                "note": "" if failed.empty else f"{failed.iloc[0]['status']}: {failed.iloc[0]['reason']}",
            }
        )
    return rows


def _mean(values: pd.Series) -> str:
    return "" if values.empty else f"{values.mean():.5f}"


def reports_text(trainings: pd.DataFrame, table: pd.DataFrame) -> str:
    """Every training's classification report as scikit-learn prints it, and each study's verdict at the end."""
    parts = []
    for row, found in zip(trainings.to_dict("records"), table.to_dict("records"), strict=True):
        parts.append(", ".join(f"{axis} {row[axis]}" for axis in (*CELL_AXES, "seed")))
        if row["status"] != "ok":
            parts.append(f"{row['status']}: {row['reason']}\n")
            continue
        names = list(found["class_names"])
        parts.append(
            classification_report(
                row["labels"],
                row["predictions"],
                labels=range(len(names)),
                target_names=names,
                digits=4,
                zero_division=0,
            )
        )
    parts += [f"{study}: {quality_answer(own)}" for study, own in table.groupby("study", sort=False)]
    return "\n".join(parts) + "\n"
