"""A study's claims: published statements in testable form, checked against the study's grid."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from crossover.config.studies import LATENCY_STEPS_MIN, Study
from crossover.config.words import AXES, BASELINE, DEVICES
from crossover.errors import UserError, allowed_names

FORMS = ("crossover_between", "speedup_between", "ratio_between", "ratio_below", "same_quality")
"""The forms of a claim; each claim has exactly one of them as a key."""

DERIVED_METRICS = ("samples_per_s", "run_time_s")
"""Metrics computed from a trial's columns: samples per second, and step time × steps of the published run."""

MISTAKES = tuple(f"latencies_{mistake}_s" for mistake in ("cold", "unsynchronised", "transfer"))
"""Metrics measured only with `latency_mistakes`."""

OURS = "ours"
"""The `source` of our own statements."""

PINNABLE = tuple(axis for axis in AXES if axis not in ("study", "workload", "machine"))
"""The axes that a claim may pin. Study and workload are excluded, since a claim has one of each, and so is the machine,
since each is tested separately."""

ON_GRID = tuple(axis for axis in PINNABLE if axis not in ("size", "device"))
"""Axes that a claim may pin only to values in its study. Sizes and devices are free, since users may remove some."""


@dataclass(frozen=True)
class Side:
    """One cell, and the metric read from its trials."""

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
    """The ratio of one side to another lies in [low, high]; without a low end, below high."""

    of: Side
    over: Side
    low: float | None
    high: float


@dataclass(frozen=True)
class SameQuality:
    """On every device and in every precision, a metric of the trained model differs by at most `within` from the CPU's
    in fp32."""

    metric: str
    within: float
    where: Mapping[str, Any]
    study: str | None = None
    """The study that trains the models; None: the claim's own."""


@dataclass(frozen=True)
class Claim:
    """A statement, its source, and its test."""

    study: str
    statement: str
    source: str | None
    published: str
    """The value that the source gives, and the tested value where it differs."""
    form_name: str
    """The form's key, one of FORMS."""
    form: CrossoverBetween | RatioWithin | SameQuality


def read_claim(values: Mapping[str, Any], study: str, key: str) -> Claim:
    """A claim from the keys of a study's file; a UserError starts with `key`, the file and key."""
    named = [name for name in FORMS if values.get(name)]
    if len(named) != 1:
        raise UserError(f"{key}: {', '.join(named) or 'none'} given; allowed: exactly one of {', '.join(FORMS)}")
    form = _read_form(named[0], values[named[0]], f"{key}.{named[0]}")
    published = values.get("published")
    if values.get("source") == OURS:
        if published is not None:
            raise UserError(f"{key}.published: {published} is not allowed; allowed: null, as the source is {OURS}")
        shown = f"tested: {_claimed(form)}"
    else:
        text = published if isinstance(published, str | None) else short_number(published)
        shown = _claimed(form) if text is None else f"{text} (tested: {_claimed(form)})"
    return Claim(study, values["statement"], values.get("source"), shown, named[0], form)


def _claimed(form: CrossoverBetween | RatioWithin | SameQuality) -> str:
    """The claimed value in words."""
    if isinstance(form, SameQuality):
        return f"within ±{short_number(form.within)}"
    if form.low is None:
        return f"below {short_number(form.high)}"
    return f"{short_number(form.low)} to {short_number(form.high)}"


def claims_of(
    study: str, published: Mapping[str, Any] | None, claims: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """A study's claims, each with the study and its source, by default that of the published result."""
    source = (published or {}).get("source")
    return [{**claim, "study": study, "source": claim.get("source") or source} for claim in claims]


def selects(axes: Mapping[str, Any], cell: Mapping[str, Any]) -> bool:
    """Whether a cell has the pinned values."""
    return all(cell[axis] == value for axis, value in axes.items())


def axes_words(axes: Mapping[str, Any]) -> str:
    """Pinned axes in words: 'device cuda, size 2000'."""
    return ", ".join(f"{axis} {value}" for axis, value in axes.items()) or "the only cell"


def several_cells(axes: Mapping[str, Any], loose: Sequence[str]) -> str:
    """The message for a selection that matches several cells."""
    chosen = axes_words(axes) if axes else "no axis pinned"
    return f"the selection ({chosen}) leaves cells that differ in {', '.join(loose)}; pin {', '.join(loose)} in 'where'"


def short_number(value: float) -> str:
    """A number with three significant digits, but with all digits before the decimal point: 0.00123, 4.77, 703,142."""
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"


def _read_form(name: str, values: Mapping[str, Any], key: str) -> CrossoverBetween | RatioWithin | SameQuality:
    where = dict(values.get("where") or {})
    if name == "same_quality":
        return SameQuality(values["metric"], values["within"], where, values.get("study"))
    if name == "crossover_between":
        for axis, value in where.items():
            if axis == "size" or (axis == "device" and value == BASELINE):
                raise UserError(
                    f"{key}.where.{axis}: {value!r} is not allowed; a crossover is read over the sizes and "
                    f"compares with the {BASELINE}; allowed: other axes, or an accelerator"
                )
        low, high = values["range"]
        return CrossoverBetween(low, high, where)
    sides = ("slow", "fast") if name == "speedup_between" else ("of", "over")
    shared = "step_time_s" if name == "speedup_between" else values.get("metric")
    of, over = (_read_side(values[side], shared, where, f"{key}.{side}") for side in sides)
    low, high = (None, values["limit"]) if name == "ratio_below" else values["range"]
    return RatioWithin(of, over, low, high)


def _read_side(side: Mapping[str, Any], shared: str | None, where: Mapping[str, Any], key: str) -> Side:
    metric = side.get("metric")
    axes = {axis: value for axis, value in side.items() if axis != "metric"}
    if (metric is None) == (shared is None):
        raise UserError(f"{key}: give one metric, either for each side or for both")
    twice = sorted(axes.keys() & where.keys())
    if twice:
        raise UserError(f"{key}: {', '.join(twice)} pinned in 'where' as well; pin each once")
    return Side({**where, **axes}, str(metric or shared))


def check_claims_of(study: Study, file: str, studies: Sequence[str], read: Callable[[str], Study]) -> None:
    """Raise UserError naming the key if a claim of a study could not be tested by any measurement.

    `file` is the study's, as messages name it, `studies` are the names of all studies, and `read` reads another one.
    """
    for number, values in enumerate(claims_of(study.name, study.published, study.claims)):
        here = f"{file}: claims.{number}"
        source = values["source"]
        if source is None or (source != OURS and source.strip().lower() == OURS):
            inherited = source and not study.claims[number].get("source")
            where = f"{file}: published.source" if inherited else f"{here}.source"
            problem = "missing" if source is None else f"{source!r} is not allowed"
            raise UserError(f"{where}: {problem}; allowed: author, title and date, or '{OURS}'")
        claim = read_claim(values, study.name, here)
        if isinstance(claim.form, SameQuality):
            problems = _quality_problems(claim.form, values["same_quality"], study, studies, read)
        else:
            problems = _problems(claim.form, values[claim.form_name], study)
        for problem in problems:
            raise UserError(f"{here}.{claim.form_name}{problem}")


def _problems(form: CrossoverBetween | RatioWithin, values: Mapping[str, Any], study: Study) -> Iterator[str]:
    """Yield the problems of a claim about times; the caller puts the claim's key before each."""
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
        yield f": both sides are the same cell ({axes_words(form.of.axes)}); let them differ in an axis"


def _quality_problems(
    form: SameQuality, values: Mapping[str, Any], study: Study, studies: Sequence[str], read: Callable[[str], Study]
) -> Iterator[str]:
    """Yield the problems of a claim about trained models; the caller puts the claim's key before each."""
    if form.study is not None and form.study not in studies:
        yield f".study: '{form.study}' is unknown; {allowed_names(form.study, studies)}"
    trained = study if form.study in (None, study.name) else read(form.study or "")
    if trained.quality is None:
        yield f".study: '{trained.name}' trains no models; allowed: a study with quality"
    yield from off_grid(values, trained)
    chosen = [cell for cell in _cells(replace(trained, timed=True)) if selects(form.where, cell)]
    if chosen and all((cell["device"], cell["precision"]) == (BASELINE, "fp32") for cell in chosen):
        yield (
            ".where: it leaves only the CPU in fp32, which the others are compared with; allowed: another device, or "
            f"another precision of {', '.join(trained.precisions)}"
        )


def off_grid(values: Mapping[str, Any], study: Study) -> Iterator[str]:
    """Yield a problem for each pinned value that the study does not measure."""
    for part in ("where", "slow", "fast", "of", "over"):
        for axis, value in (values.get(part) or {}).items():
            if axis in ON_GRID and value not in (measured := getattr(study, f"{axis}s")):
                allowed = ", ".join(map(str, measured))
                yield f".{part}.{axis}: {value!r} is not measured by study '{study.name}'; allowed: {allowed}"


def _several(axes: Mapping[str, Any], cells: Sequence[Mapping[str, Any]], free: Sequence[str]) -> Iterator[str]:
    """Yield a problem if a selection leaves several values of an axis in `free`."""
    chosen = [cell for cell in cells if selects(axes, cell)]
    loose = [axis for axis in free if len({cell[axis] for cell in chosen}) > 1]
    if loose:
        yield f": {several_cells(axes, loose)}"


def _cells(study: Study) -> list[dict[str, Any]]:
    """The study's grid on every device, with the CPU on all cores: the cells that claims refer to."""
    return [{axis: getattr(cell, axis) for axis in PINNABLE} for cell in replace(study, cpu_threads=()).cells(DEVICES)]
