"""Read the claims of a study, and check them against the study's grid."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from crossover.config.studies import LATENCY_STEPS_MIN, Study
from crossover.config.words import AXES, BASELINE, DEVICES
from crossover.errors import UserError, allowed_names

FORMS = ("crossover_between", "speedup_between", "ratio_between", "ratio_below", "same_quality")
"""Keys of a claim's form; each claim has exactly one of them."""

DERIVED_METRICS = ("samples_per_s", "run_time_s")
"""Metrics computed from a trial's columns: samples per second, and the step time × the steps of the published run."""

MISTAKES = tuple(f"latencies_{mistake}_s" for mistake in ("cold", "unsynchronised", "transfer"))
"""Metrics measured only in a study with `latency_mistakes`."""

OURS = "ours"
"""The `source` of our own statements."""

TESTED = "tested: "

PINNABLE = tuple(axis for axis in AXES if axis not in ("study", "workload", "machine"))
"""The axes that a claim may pin. Its study and workload are given, and it is tested on each machine separately."""

ON_GRID = tuple(axis for axis in PINNABLE if axis not in ("size", "device"))
"""Axes whose pinned values must be in the study. A size or device may be missing, since users may remove some."""


@dataclass(frozen=True)
class Side:
    """One side of a ratio: the values of axes that select a cell, and a metric."""

    axes: Mapping[str, Any]
    metric: str


@dataclass(frozen=True)
class CrossoverBetween:
    """The crossover lies in [low, high] on the study's x axis."""

    low: float
    high: float
    where: Mapping[str, Any]


@dataclass(frozen=True)
class RatioWithin:
    """The ratio `of` / `over` lies in [low, high]; if `low` is None, below `high`."""

    of: Side
    over: Side
    low: float | None
    high: float


@dataclass(frozen=True)
class SameQuality:
    """For each cell that `where` selects, a metric differs by at most `within` from that of the CPU in fp32."""

    metric: str
    within: float
    where: Mapping[str, Any]
    study: str | None = None
    """The study that trains the models; None for the study of the claim."""


Form = CrossoverBetween | RatioWithin | SameQuality


@dataclass(frozen=True)
class Claim:
    """A statement with its source and the form in which it is tested."""

    study: str
    statement: str
    source: str | None
    published: str
    """Text with the published value, if the claim has one, and the tested range; it starts with TESTED if not."""
    form_name: str
    form: Form


def read_claim(values: Mapping[str, Any], study: str, key: str) -> Claim:
    """Read a claim of a study's file; raises UserError, whose message begins with `key`."""
    names = [name for name in FORMS if values.get(name)]
    if len(names) != 1:
        raise UserError(f"{key}: {', '.join(names) or 'none'} given; allowed: exactly one of {', '.join(FORMS)}")
    form = _read_form(names[0], values[names[0]], f"{key}.{names[0]}")
    published = values.get("published")
    if values.get("source") == OURS and published is not None:
        raise UserError(f"{key}.published: {published} is not allowed; allowed: null, as the source is {OURS}")
    tested = f"{TESTED}{_claimed(form)}"
    text = published if isinstance(published, str | None) else short_number(published)
    shown = tested if text is None else f"{text} ({tested})"
    return Claim(study, values["statement"], values.get("source"), shown, names[0], form)


def _claimed(form: Form) -> str:
    if isinstance(form, SameQuality):
        return f"within ±{short_number(form.within)}"
    if form.low is None:
        return f"below {short_number(form.high)}"
    return f"{short_number(form.low)} to {short_number(form.high)}"


def claims_of(
    study: str, published: Mapping[str, Any] | None, claims: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """A study's claims, each with its study and its source, by default `published.source`."""
    source = (published or {}).get("source")
    return [{**claim, "study": study, "source": claim.get("source") or source} for claim in claims]


def selects(axes: Mapping[str, Any], cell: Mapping[str, Any]) -> bool:
    """Whether a cell has these values of its axes."""
    return all(cell[axis] == value for axis, value in axes.items())


def axes_words(axes: Mapping[str, Any]) -> str:
    """Pinned axes in words: "device cuda, size 2000"."""
    return ", ".join(f"{axis} {value}" for axis, value in axes.items())


def several_cells(axes: Mapping[str, Any], loose: Sequence[str]) -> str:
    """The message for a selection that matches several cells."""
    pinned = axes_words(axes) or "no axis pinned"
    return f"the selection ({pinned}) leaves cells that differ in {', '.join(loose)}; pin {', '.join(loose)} in 'where'"


def short_number(value: float) -> str:
    """Format a number with up to three significant digits or, if large, as a whole number: 0.00123, 4.77, 703,142."""
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"


def _read_form(name: str, values: Mapping[str, Any], key: str) -> Form:
    where = dict(values.get("where") or {})
    if name == "same_quality":
        return SameQuality(values["metric"], values["within"], where, values.get("study"))
    if name == "crossover_between":
        for axis, value in where.items():
            if axis == "size" or (axis == "device" and value == BASELINE):
                raise UserError(
                    f"{key}.where.{axis}: {value!r} is not allowed; a crossover is between the {BASELINE} and an "
                    "accelerator, over the sizes; allowed: other axes, or an accelerator"
                )
        low, high = values["range"]
        return CrossoverBetween(low, high, where)
    sides, metric = ("of", "over"), values.get("metric")
    if name == "speedup_between":
        sides, metric = ("slow", "fast"), "step_time_s"
    of, over = (_read_side(values[side], metric, where, f"{key}.{side}") for side in sides)
    low, high = (None, values["limit"]) if name == "ratio_below" else values["range"]
    return RatioWithin(of, over, low, high)


def _read_side(values: Mapping[str, Any], shared_metric: str | None, where: Mapping[str, Any], key: str) -> Side:
    axes = dict(values)
    metric = axes.pop("metric", None)
    if (metric is None) == (shared_metric is None):
        raise UserError(f"{key}: give one metric, either for each side or for both")
    if repeated := sorted(axes.keys() & where.keys()):
        raise UserError(f"{key}: {', '.join(repeated)} pinned in 'where' as well; pin each once")
    return Side({**where, **axes}, str(metric or shared_metric))


def check_claims_of(study: Study, file: str, studies: Sequence[str], read: Callable[[str], Study]) -> None:
    """Raise UserError for a claim that is malformed or that its study cannot test; the message names the key."""
    for number, values in enumerate(claims_of(study.name, study.published, study.claims)):
        key = f"{file}: claims.{number}"
        if values["source"] is None:
            raise UserError(f"{key}.source: missing; allowed: author, title and date, or '{OURS}'")
        claim = read_claim(values, study.name, key)
        if isinstance(claim.form, SameQuality):
            problems = _quality_problems(claim.form, values["same_quality"], study, studies, read)
        else:
            problems = _problems(claim.form, values[claim.form_name], study)
        for problem in problems:
            raise UserError(f"{key}.{claim.form_name}{problem}")


def _problems(form: CrossoverBetween | RatioWithin, values: Mapping[str, Any], study: Study) -> Iterator[str]:
    """Yield the problems of a claim about cells, each as the end of a message that begins with the claim's key."""
    if not study.timed:
        yield ": the study times nothing; allowed: same_quality, or timed: true"
    yield from off_grid(values, study)
    cells = _cells(study)
    if isinstance(form, CrossoverBetween):
        yield from _several(form.where, cells, ON_GRID)
        return
    for side in (form.of, form.over):
        yield from _several(side.axes, cells, PINNABLE)
        if side.metric == "run_time_s" and study.steps_per_run is None:
            yield ": run_time_s needs the steps of the published run; set steps_per_run"
        if side.metric.startswith("latenc") and not study.latency_steps:
            yield f": {side.metric} needs latency_steps, which is 0; allowed: at least {LATENCY_STEPS_MIN}"
        if side.metric in MISTAKES and not study.latency_mistakes:
            yield f": {side.metric} needs latency_mistakes, which is false; set it to true"
    of, over = ([cell for cell in cells if selects(side.axes, cell)] for side in (form.of, form.over))
    if form.of.metric == form.over.metric and (form.of.axes == form.over.axes or (of and of == over)):
        pinned = axes_words(form.of.axes) or "the only one"
        yield f": both sides are the same cell ({pinned}); let them differ in an axis"


def _quality_problems(
    form: SameQuality, values: Mapping[str, Any], study: Study, studies: Sequence[str], read: Callable[[str], Study]
) -> Iterator[str]:
    if form.study is not None and form.study not in studies:
        yield f".study: '{form.study}' is unknown; {allowed_names(form.study, studies)}"
    trained = study if form.study in (None, study.name) else read(form.study or "")
    if trained.quality is None:
        yield f".study: '{trained.name}' trains no models; allowed: a study with quality"
    yield from off_grid(values, trained)
    selected = [cell for cell in _cells(replace(trained, timed=True)) if selects(form.where, cell)]
    if selected and all((cell["device"], cell["precision"]) == (BASELINE, "fp32") for cell in selected):
        yield (
            ".where: selects only the CPU in fp32, the baseline of the comparison; allowed: another device, or "
            f"another precision of {', '.join(trained.precisions)}"
        )


def off_grid(values: Mapping[str, Any], study: Study) -> Iterator[str]:
    """Yield a problem for each value of an axis in ON_GRID that is pinned but not measured by the study."""
    for part in ("where", "slow", "fast", "of", "over"):
        for axis, value in (values.get(part) or {}).items():
            if axis in ON_GRID and value not in (measured := getattr(study, f"{axis}s")):
                allowed = ", ".join(map(str, measured))
                yield f".{part}.{axis}: {value!r} is not measured by study '{study.name}'; allowed: {allowed}"


def _several(pinned: Mapping[str, Any], cells: Sequence[Mapping[str, Any]], axes: Sequence[str]) -> Iterator[str]:
    selected = [cell for cell in cells if selects(pinned, cell)]
    loose = [axis for axis in axes if len({cell[axis] for cell in selected}) > 1]
    if loose:
        yield f": {several_cells(pinned, loose)}"


def _cells(study: Study) -> list[dict[str, Any]]:
    return [{axis: getattr(cell, axis) for axis in PINNABLE} for cell in replace(study, cpu_threads=()).cells(DEVICES)]
