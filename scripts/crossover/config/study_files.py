"""Read a study's file, complete it with defaults, and check it before any job starts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path
from typing import Any

from crossover.config.claim_checks import check_claims_of, off_grid
from crossover.config.config_keys import ConfigKeys, Datasets
from crossover.config.layers import Layer, Locator, check, read_mapping
from crossover.config.models import (
    DEFAULT_BATCH_SIZE,
    DEFAULT_BATCH_SIZES,
    DEFAULT_SIZES,
    Model,
    declared_sizes,
    find_file,
    read_model,
)
from crossover.config.published_rows import read_published_rows
from crossover.config.signatures import BATCH_NAMES, DEVICE, FUNCTION_ARGUMENTS, FUNCTION_SIGNATURE, WITHOUT_BATCH
from crossover.config.studies import LATENCY_STEPS_MIN
from crossover.config.study import LEAST_OF_MAP, Published, PublishedRows, Study, StudyFile, cells_of_candidates
from crossover.config.table_files import read_table
from crossover.config.words import (
    AS_WRITTEN,
    BASELINE,
    COLD,
    COPYING,
    CPU_THREADS,
    DEVICES,
    EXECUTIONS,
    HALF,
    PLAIN,
    PRECISIONS,
    PROTOCOLS,
)
from crossover.config.workloads import (
    OWN,
    Traits,
    check_offered,
    known_workloads,
    memory_mb,
    trains,
    workload_module,
    workload_traits,
)
from crossover.errors import UserError, allowed_names, shown_path, shown_value
from crossover.text import listed
from crossover.thresholds import RESERVED

LISTS = (list, tuple)

OWN_STUDIES = Path("config", "studies")
"""Studies in the working directory, for example in a deployed copy of the config; they come before the workflow's."""

DIGITS_ROWS = 1797
"""Rows of dataset `digits`, which the config cannot change."""

OF_MODEL = ("mode", "data", "check")
"""Keys of a study that describe its `model`; they become fields of Model instead of Study."""


OF_ONE_STUDY = ("mode", "sizes", "batch_sizes", "axes", "protocols", "steps_per_run", "x_axis", "data")
"""Keys of a config that replace those of `model`, or of the only study."""


def read_study(name: str, folder: Path, keys: ConfigKeys, locate: Locator) -> Study:
    """Read and check a study of a config, given by name (below the config folder) or by path; raises UserError."""
    names = study_names(folder)
    if name not in names and not name.endswith(".yaml"):
        raise UserError(
            f"{locate(('studies',))}: studies: '{name}' is unknown; {allowed_names(name, names)}, or the path of a file"
        )
    file = study_file(name, folder)
    layers = _layers_of_file(file, [*_overrides(name, keys, locate), *_of_one_study(keys, locate)])
    study = _complete(file.stem, layers, file.parent)
    _check(study, Locator(layers), keys.datasets)
    if study.published and study.published.results:
        study = _with_results(study, study.published, [file.parent, folder / "published"], shown_path(file))
    try:
        check_claims_of(study, shown_path(file), names, lambda other: _read(study_file(other, folder)))
    except UserError as error:
        if not layers[1:]:
            raise
        raise UserError(f"{error}; to measure without the claims, overrides={{{name}: {{claims: []}}}}") from None
    return study


def _overrides(name: str, keys: ConfigKeys, locate: Locator) -> list[Layer]:
    values = keys.overrides.get(name)
    return [(f"{locate(('overrides', name))}: overrides.{name}", values)] if values else []


def _of_one_study(keys: ConfigKeys, locate: Locator) -> list[Layer]:
    """The keys in OF_ONE_STUDY that the config gives, each with the layer that sets it."""
    given = {key: getattr(keys, key) for key in OF_ONE_STUDY}
    return [(locate((key,)), {key: value}) for key, value in given.items() if value is not None]


def _error(problem: str, locate: Locator) -> UserError:
    """The error for a problem that begins with its key."""
    return UserError(f"{locate(problem.partition(':')[0].split('.'))}: {problem}")


def study_names(folder: Path) -> list[str]:
    """Names of the studies in the working directory's config folder and in `folder`, the workflow's."""
    return sorted({path.stem for studies in (OWN_STUDIES, folder / "studies") for path in studies.glob("*.yaml")})


def study_file(name: str, folder: Path) -> Path:
    """The file of a study, given by path or by name: in the working directory's config folder, or else in `folder`."""
    if name.endswith(".yaml"):
        return Path(name)
    own = OWN_STUDIES / f"{name}.yaml"
    return own if own.is_file() else folder / "studies" / f"{name}.yaml"


def study_of_model(keys: ConfigKeys, locate: Locator) -> Study:
    """The study described by the config's `model` and related keys; raises UserError."""
    where = locate(("model",))
    axes = _axes_of({"model": keys.model, "axes": keys.axes}, locate)
    model = read_model(str(keys.model), Path(), f"{where}: model", tuple(axes))
    layers = [(where, {"model": keys.model}), *_of_one_study(keys, locate)]
    layers += _overrides(model.title, keys, locate)
    study = _complete(model.title, layers, Path())
    _check(study, Locator(layers), keys.datasets)
    return study


def _check(study: Study, locate: Locator, datasets: Datasets) -> None:
    if study.user_model is None and study.workload in known_workloads():
        constants = Locator([(f"{shown_path(workload_module(study.workload))}: constants", {})])
        check(asdict(workload_traits(study.workload)), Traits, constants)
    for problem in _problems(study, datasets):
        raise _error(problem, locate)
    axes = ("size", "batch_size", "protocol", "variant")
    keys = {axis: f"{locate((f'{axis}s',))}: {axis}s" for axis in axes}
    for point in product(study.sizes, study.batch_sizes, study.protocols, study.variants):
        check_offered(study.workload, dict(zip(keys, point, strict=True)), keys)
    for size in study.sizes:
        memory_mb(study.workload, size)


def _read(file: Path) -> Study:
    return _complete(file.stem, _layers_of_file(file), file.parent)


def _layers_of_file(file: Path, changes: Sequence[Layer] = ()) -> list[Layer]:
    """The layers of a study: its file, without candidates outside of a changed grid, and the changes."""
    values = read_mapping(file)
    changed = {key: value for _, layer in changes for key, value in layer.items()}
    if isinstance(values.get("candidates"), Mapping) and "candidates" not in changed:
        values["candidates"] = _candidates_within(values["candidates"], changed)
    return [(shown_path(file), values), *changes]


def _candidates_within(candidates: Mapping[str, Any], changed: Mapping[str, Any]) -> dict[str, Any]:
    """The candidates at those of their points that a changed grid still has; at all points if too few are left."""
    kept = dict(candidates)
    for key, least in (("sizes", 2), ("batch_sizes", 1), ("protocols", 1)):
        if isinstance(points := kept.get(key), LISTS) and isinstance(changed.get(key), LISTS):
            kept[key] = [point for point in points if point in changed[key]]
            if len(kept[key]) < least:
                del kept[key]
    return kept


def _complete(name: str, layers: Sequence[Layer], folder: Path) -> Study:
    model, locate = None, Locator(layers)
    given: Mapping[str, Any] = {key: value for _, layer in layers for key, value in layer.items()}
    axes = _axes_of(given, locate)
    values = given = {**given, **dict(zip(("sizes", "batch_sizes"), axes.values(), strict=False))}
    if isinstance(given.get("model"), str):
        model = read_model(given["model"], folder, f"{locate(('model',))}: model", tuple(axes))
        declared = declared_sizes(model)
        model = replace(model, may_refuse=declared is None and "sizes" not in given)
        values = {**_defaults_for(model, declared or DEFAULT_SIZES, given), **given}
    file = check(values, StudyFile, locate)
    for problem in _unused(model, given, file):
        raise _error(problem, locate)
    grid: dict[str, Any] = {"sizes": file.sizes, "batch_sizes": tuple(sorted(file.batch_sizes))}
    if model is not None:
        names = tuple(size for size in file.sizes if isinstance(size, str))
        if names and len(names) < len(file.sizes):
            shown = locate(("sizes",))
            raise UserError(
                f"{shown}: sizes: {[*file.sizes]} mixes numbers and names; allowed: either numbers or names"
            )
        table = None if file.data is None else read_table(asdict(file.data), folder, f"{locate(('data',))}: data")
        mode = model.mode if model.is_function else file.mode
        model = replace(model, mode=mode, names=names, checked=file.check, table=table)
        if names:
            x_axis = "parameters" if file.x_axis == "size" else file.x_axis
            grid |= {"sizes": range(1, len(names) + 1), "x_axis": x_axis}
    elif any(isinstance(size, str) for size in file.sizes):
        shown = locate(("sizes",))
        raise UserError(f"{shown}: sizes: {[*file.sizes]} are names, which need a study with `model`; allowed: numbers")
    grid["sizes"] = tuple(sorted(grid["sizes"]))
    published = file.published and PublishedRows(**vars(file.published))
    return Study(**{**vars(file), **grid, "name": name, "published": published, "user_model": model})


def _axes_of(given: Mapping[str, Any], locate: Locator) -> Mapping[str, Any]:
    """The two sizes of a study with `axes`, by argument; empty without. Raises UserError unless they are two names."""
    axes = given.get("axes")
    if axes is None:
        return {}
    problem = None
    if not isinstance(axes, Mapping) or len(axes) != 2 or not all(isinstance(name, str) for name in axes):
        named = listed([*map(str, axes)]) if isinstance(axes, Mapping) else shown_value(axes)
        problem = f"given: {named or 'nothing'}; allowed: two sizes, such as {{m: [64, 256], k: [1, 8]}}"
    elif any(given.get(key) is not None for key in ("sizes", "batch_sizes")):
        problem = "given together with sizes or batch sizes; allowed: one of them"
    elif not isinstance(given.get("model"), str):
        problem = "given, but only a function as `model` has arguments; allowed: sizes and batch_sizes"
    elif no_sizes := sorted({*axes} & {*FUNCTION_ARGUMENTS[1:], *RESERVED} | {next(iter(axes))} & {*BATCH_NAMES}):
        problem = f"{listed(no_sizes)} cannot be a size; allowed: other arguments, and a batch size as the second one"
    if problem:
        raise UserError(f"{locate(('axes',))}: axes: {problem}")
    return axes


def _unused(model: Model | None, given: Mapping[str, Any], file: StudyFile) -> Iterator[str]:
    """Given keys that would have no effect on the study's model, or on a study without one."""
    if model is None:
        for key in (key for key in OF_MODEL if given.get(key) is not None):
            yield f"{key}: given, but the study measures workload '{file.workload}'; only a `model` has a {key}"
        return
    if (axes := given.get("axes")) and not model.is_function:
        yield f"axes: {listed([*axes])}, but {model.shown} has no argument {DEVICE}; allowed: sizes and batch_sizes"
    if model.makes_only_model and given.get("data") is None:
        yield f"model: {model.shown} {WITHOUT_BATCH}"
    if model.is_function and "mode" in given:
        yield f"mode: {given['mode']}, but {model.signature} returns the step itself; remove mode"
    names_one = len(file.sizes) == 1 and isinstance(file.sizes[0], str)
    if not model.is_sized and "sizes" in given and not names_one:
        instead = "give batch_sizes instead" if model.takes_batch_size else "add one, or remove sizes"
        yield f"sizes: {[*file.sizes]}, but {model.signature} has no argument for a size; {instead}"
    if not model.is_sized and given.get("x_axis") in ("size", "parameters"):
        allowed = "batch_size, cpu_threads" if model.takes_batch_size else "cpu_threads"
        yield f"x_axis: {given['x_axis']}, but {model.signature} has no argument for a size; allowed: {allowed}"
    if not model.uses_size and axes:
        yield f"axes: {listed([*axes])}, but {model.signature} never reads one of them; use both"
    elif not model.uses_size and len(file.sizes) > 1:
        yield f"sizes: {[*file.sizes]}, but {model.signature} never reads its size; use it, or give one size"
    own_batch = _own_batch(model, given)
    if others := [rows for rows in file.batch_sizes if own_batch not in (None, rows)]:
        instead = "read its batch size" if model.takes_batch_size else "add an argument batch_size"
        yield (
            f"batch_sizes: {others}, but {model.signature} builds batches of {own_batch} rows; allowed: [{own_batch}]; "
            f"for others, {instead}"
        )


def _own_batch(model: Model, given: Mapping[str, Any]) -> int | None:
    """The rows of the batch that a model comes with; None if they are not known, or its data come from a table."""
    return None if model.is_function or given.get("data") is not None else model.own_batch


QUESTIONS = {
    "size": "At which size does the GPU overtake the CPU",
    "parameters": "At how many parameters does the GPU overtake the CPU",
    "batch_size": "At which batch size does the GPU overtake the CPU",
    CPU_THREADS: "How many CPU cores is the GPU worth",
}


def _defaults_for(model: Model, sizes: Sequence[int | str], given: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a study of a model that are not given; `sizes` are those of the model."""
    own_batch = _own_batch(model, given)
    batch_sizes: Sequence[int] = [own_batch or (DEFAULT_BATCH_SIZE if model.batched else 1)]
    if not model.is_sized and model.takes_batch_size and not own_batch:
        batch_sizes = DEFAULT_BATCH_SIZES
    defaults = {"sizes": list(sizes), "batch_sizes": list(batch_sizes), "x_axis": "size"}
    grid = {**defaults, **given}
    lengths = [len(grid[key]) if isinstance(grid[key], LISTS) else 0 for key in ("sizes", "batch_sizes")]
    if lengths[0] == 1 and lengths[1] > 1:
        defaults["x_axis"] = "batch_size"
    x_axis = str(given.get("x_axis") or defaults["x_axis"])
    if x_axis == CPU_THREADS:
        defaults["cpu_threads"] = [1, HALF]
    asked = QUESTIONS.get(x_axis, QUESTIONS["size"])
    if model.axes and x_axis != CPU_THREADS:
        asked = QUESTIONS["size"].replace("size", listed(model.axes))
    return {
        "title": f"{model.title}, a {'function' if model.is_function else 'model'} of your own",
        "question": f"{asked} for {model.title}?",
        "workload": OWN,
        **defaults,
        **({"precisions": [AS_WRITTEN]} if model.is_function else {}),
    }


def _problems(study: Study, datasets: Datasets) -> Iterator[str]:
    workloads = known_workloads()
    if study.workload not in workloads and study.user_model is None:
        yield f"workload: '{study.workload}' is unknown; {allowed_names(study.workload, workloads)}"
    if study.latency_steps and COLD in study.protocols:
        yield f"latency_steps: {study.latency_steps}, but calls with protocol {COLD} are latencies already; allowed: 0"
    if (study.latency_mistakes or "latency" in study.figures) and not study.latency_steps:
        yield f"latency_steps: 0, but the study measures latency; allowed: at least {LATENCY_STEPS_MIN}"
    if study.largest_batch and not study.timed:
        yield "largest_batch: true, but the study times nothing; allowed: false, or timed: true"
    if asks := study.asks:
        yield from (f"asks{problem}" for problem in off_grid(asdict(asks), study))
        if asks.of.keys() != asks.over.keys() or asks.of == asks.over:
            yield f"asks: of {asks.of}, over {asks.over}; allowed: two sides with the same axes and other values"
    yield from _function_problems(study)
    yield from _axis_problems(study)
    yield from _candidate_problems(study)
    yield from _quality_problems(study)
    yield from _batch_problems(study, datasets)


def _function_problems(study: Study) -> Iterator[str]:
    model = study.user_model
    if model is None or not model.is_function:
        yield from _beyond(study, f"only functions are {AS_WRITTEN}, {FUNCTION_SIGNATURE}", precisions=PRECISIONS)
        if model is not None:
            yield from _beyond(study, "a model of your own has no variants", variants=(PLAIN,))
        return
    yield from _beyond(study, "a function runs as written", executions=EXECUTIONS[:1], precisions=(AS_WRITTEN,))
    yield from _beyond(study, "a function makes its own data", protocols=(PROTOCOLS[0], *COPYING, COLD))
    if model.table is not None:
        yield "data: given, but a function makes its own data; allowed: null"
    if study.largest_batch:
        yield "largest_batch: true, but the batch of a function cannot grow; allowed: false"
    varied = {
        "batch_size": ("batch_sizes", [str(number) for number in study.batch_sizes if number > 1]),
        "variant": ("variants", [name for name in study.variants if name != PLAIN]),
        "protocol": ("protocols", [name for name in study.protocols if name not in (PROTOCOLS[0], COLD)]),
    }
    for argument, (key, values) in varied.items():
        if values and argument not in model.takes and not (argument == "batch_size" and model.batch_name):
            yield f"{key}: {listed(values)}, but {model.shown} has no argument {argument}; add it"


def _beyond(study: Study, reason: str, **allowed: Sequence[str]) -> Iterator[str]:
    """The problems of keys with other values than those that are allowed for the study's model."""
    for key, values in allowed.items():
        if others := [value for value in getattr(study, key) if value not in values]:
            yield f"{key}: {listed(others)}, but {reason}; allowed: {', '.join(values)}"


def _axis_problems(study: Study) -> Iterator[str]:
    if study.x_axis == "batch_size" and len(study.batch_sizes) == 1:
        yield f"x_axis: batch_size, but batch_sizes is {list(study.batch_sizes)}; allowed: size, or several batch sizes"
    if study.x_axis == CPU_THREADS and not study.cpu_threads:
        yield "x_axis: cpu_threads, but cpu_threads is empty; allowed: size, or cpu_threads as [1, half]"
    if study.x_axis == CPU_THREADS and study.candidates:
        yield "candidates: not possible with x_axis cpu_threads; allowed: null, or another x_axis"
    pairs = (study.refinement or {}).get("pairs", ())
    for pair in ("precision", "execution", "variant"):
        if pair in pairs and len(values := getattr(study, f"{pair}s")) == 1:
            yield f"refinement.pairs: {pair}, but {pair}s is {list(values)}; allowed: several, or pairs without {pair}"
    if "plane" in pairs and not study.has_plane:
        yield f"refinement.pairs: plane, which needs {LEAST_OF_MAP} sizes and {LEAST_OF_MAP} batch sizes or more"
    if "plane" in pairs and study.devices and not (BASELINE in study.devices and study.may_use_accelerator):
        yield (
            f"refinement.pairs: plane, but devices is {list(study.devices)}; allowed: the CPU and an accelerator, or "
            "pairs without plane"
        )


def _candidate_problems(study: Study) -> Iterator[str]:
    compared = study.compared
    if compared is None:
        return
    if not study.timed:
        yield "candidates: given, but the study times nothing; allowed: null, or timed: true"
    for key in ("sizes", "batch_sizes", "protocols"):
        grid = getattr(study, key)
        if others := [str(value) for value in getattr(compared, key) if value not in grid]:
            allowed = ", ".join(map(str, grid))
            yield f"candidates.{key}: {listed(others)} not in the study's {key}; allowed: {allowed}"
    if study.timed and not cells_of_candidates(study, DEVICES):
        yield (
            "candidates: adds nothing to what the study measures; allowed: null, or other executions, "
            "precisions or threads, in a study of the CPU and another device"
        )


def _quality_problems(study: Study) -> Iterator[str]:
    if study.quality is None:
        if not study.timed:
            yield "timed: false, and quality is null, so that nothing is measured; set one of them"
        return
    workload, names = f"workload '{study.workload}'", study.quality.classes
    classes = workload_traits(study.workload).classes
    if not trains(study.workload):
        yield (
            f"quality: {workload} does not train on resident data with labels; allowed: null, or a workload that "
            "does, such as higgs_mlp"
        )
    if "resident" not in study.protocols:
        yield f"protocols: {list(study.protocols)} lacks resident, with which quality trains; add it"
    if "fp32" not in study.precisions:
        yield f"precisions: {list(study.precisions)} lacks fp32, which quality compares with; add it"
    if names and len(names) != classes:
        yield f"quality.classes: {len(names)} names, but CLASSES of {workload} is {classes}; name each, or use null"


def _batch_problems(study: Study, datasets: Datasets) -> Iterator[str]:
    dataset = workload_traits(study.workload).dataset
    if dataset is None:
        return
    known = asdict(datasets)
    if dataset not in known:
        yield (
            f"workload: DATASET of '{study.workload}' is '{dataset}', which `datasets` of the config lacks; "
            f"{allowed_names(dataset, sorted(known))}"
        )
    options = known[dataset]
    is_real = options.get("csv") or options.get("folder")
    rows = None if is_real else options.get("points", options.get("rows", DIGITS_ROWS))
    for batch_size in study.batch_sizes:
        if isinstance(rows, int) and batch_size > rows:
            yield f"batch_sizes: {batch_size} is more than dataset '{dataset}' has; allowed: at most its {rows} rows"


def _with_results(study: Study, published: Published, folders: Sequence[Path], shown: str) -> Study:
    """The study with the rows of its published results; raises UserError."""
    key = f"{shown}: published.results"
    file = find_file(str(published.results), folders, f"{key}: there is", "a CSV file")
    try:
        rows = read_published_rows(file)
    except UserError as error:
        raise UserError(f"{key}: {error}") from None
    if study.steps_per_run is None and any("run_time_s" in row for row in rows):
        raise UserError(f"{shown}: steps_per_run: needed to compare with the run times of published.results")
    with_rows = PublishedRows(**{**vars(published), "results": os.path.relpath(file), "rows": tuple(rows)})
    return replace(study, published=with_rows)
