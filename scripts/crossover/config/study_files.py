"""A study's file: read, completed with defaults, and checked before any job starts."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

from crossover.config.claim_forms import check_claims_of
from crossover.config.published_rows import read_published_rows
from crossover.config.studies import Study
from crossover.config.validation import Locator, check, read_mapping
from crossover.config.workloads import NULL, check_offered, known_workloads, memory_mb, trains, workload_traits
from crossover.errors import UserError, allowed_names, shown_path


def study_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a study, whose `effort` and `refinement` take the numbers of the run's effort."""
    study: dict[str, Any] = schema["$defs"]["study"]
    _, numbers = schema["properties"]["effort"]["anyOf"]
    own = {key: rule for key, rule in numbers["properties"].items() if key != "preset"}
    refinement = own.pop("refinement")["properties"]
    partial = {
        key: {**study["properties"][key], "additionalProperties": False, "properties": keys}
        for key, keys in (("effort", own), ("refinement", refinement))
    }
    return {**study, "properties": {**study["properties"], **partial}}


def read_study(
    name: str,
    folder: Path,
    schema: Mapping[str, Any],
    datasets: Mapping[str, Any],
    locate: Locator,
    metrics: Mapping[str, bool] | None = None,
) -> Study:
    """The study of that name, read from its file below the config folder `folder`.

    `schema` is what `study_schema` gives, `datasets` the config's; `locate` finds the file that names the study;
    `metrics` holds the columns that a claim may name, None: any. Raises UserError naming file, key and value.
    """
    known = sorted(path.stem for path in (folder / "studies").glob("*.yaml"))
    if name not in known:
        raise UserError(f"{locate(('studies',))}: studies: '{name}' is unknown; {allowed_names(name, known)}")
    shown = shown_path(folder / "studies" / f"{name}.yaml")
    complete = _read_keys(name, folder, schema)
    workloads = known_workloads()
    if complete["workload"] not in workloads:
        raise UserError(
            f"{shown}: workload: '{complete['workload']}' is unknown; {allowed_names(complete['workload'], workloads)}"
        )
    if (complete["latency_mistakes"] or "latency" in complete["figures"]) and not complete["latency_steps"]:
        raise UserError(f"{shown}: latency_steps: latency needs steps to time; allowed: at least 300")
    if complete["largest_batch"] and not complete["timed"]:
        raise UserError(f"{shown}: largest_batch: true, but the study times nothing; allowed: false, or timed: true")
    published = complete["published"]
    if published and published["crossover"] and published["crossover"] != sorted(published["crossover"]):
        raise UserError(f"{shown}: published.crossover: {published['crossover']} is reversed; allowed: lowest, highest")
    if published and published["results"]:
        _check_results(folder / "published" / published["results"], complete["steps_per_run"], shown)
    _check_quality(complete, shown)
    if complete["largest_batch"] and complete["workload"] == NULL:
        raise UserError(f"{shown}: largest_batch: true, but every batch of workload '{NULL}' fits; allowed: false")
    study = _study(name, complete)
    keys = {axis: f"{shown}: {axis}s" for axis in ("size", "batch_size", "protocol", "variant")}
    for point in product(study.sizes, study.batch_sizes, study.protocols, study.variants):
        check_offered(study.workload, dict(zip(keys, point, strict=True)), keys)
    for size in study.sizes:
        memory_mb(study.workload, size)
    _check_batches(study, datasets, shown)
    check_claims_of(study, shown, known, lambda other: _study(other, _read_keys(other, folder, schema)), metrics)
    return study


def _read_keys(name: str, folder: Path, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a study's file with their defaults, each by itself as the schema allows."""
    file = folder / "studies" / f"{name}.yaml"
    values = read_mapping(file)
    if values.get("workload", "") is None:
        raise UserError(
            f"{shown_path(file)}: workload: nothing, as YAML reads it; allowed: the name of a workload, in quotes if "
            f'it is "{NULL}"'
        )
    return check(values, schema, Locator([(shown_path(file), values)]))


def _study(name: str, complete: Mapping[str, Any]) -> Study:
    fields: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in complete.items()
    }
    return Study(name=name, **{**fields, "sizes": tuple(sorted(complete["sizes"]))})


def _check_results(file: Path, steps_per_run: object, shown: str) -> None:
    """Read the published results as the figures will, so that a mistake shows before any job starts."""
    try:
        _, rows = read_published_rows(file)
    except UserError as error:
        raise UserError(f"{shown}: published.results: {error}") from None
    if steps_per_run is None and any("run_time_s" in row for row in rows):
        raise UserError(f"{shown}: steps_per_run: needed to compare with the run times of published.results")


def _check_quality(study: Mapping[str, Any], shown: str) -> None:
    """Raise UserError where a study could not train models, or would do nothing at all."""
    if study["quality"] is None:
        if not study["timed"]:
            raise UserError(f"{shown}: timed: false, and quality is null: nothing is left to do; set one of them")
        return
    if not trains(study["workload"]):
        raise UserError(
            f"{shown}: quality: workload '{study['workload']}' does not train on resident data with labels; "
            "allowed: null, or a workload that does, such as higgs_mlp"
        )
    if "resident" not in study["protocols"]:
        raise UserError(
            f"{shown}: protocols: {study['protocols']} lacks resident, the only one that quality trains by; add it"
        )
    if "fp32" not in study["precisions"]:
        raise UserError(f"{shown}: precisions: {study['precisions']} lacks fp32, which quality compares with; add it")
    names, classes = study["quality"].get("classes"), workload_traits(study["workload"]).classes
    if names and classes is None:
        raise UserError(
            f"{shown}: quality.classes: workload '{study['workload']}' does not say how many classes it has; "
            "add CLASSES to its module, or take null"
        )
    if names and len(names) != classes:
        raise UserError(
            f"{shown}: quality.classes: {len(names)} names, but workload '{study['workload']}' has {classes} classes; "
            "name each one, or take null"
        )


def _check_batches(study: Study, datasets: Mapping[str, Any], shown: str) -> None:
    """A batch must fit into its dataset, where the config says how many rows that has."""
    dataset = workload_traits(study.workload).dataset
    if dataset is None:
        return
    if dataset not in datasets:
        raise UserError(
            f"{shown}: workload: DATASET of '{study.workload}' is '{dataset}', which `datasets` of the config lacks; "
            f"{allowed_names(dataset, sorted(datasets))}"
        )
    options = datasets[dataset]
    rows = None if options.get("csv") or options.get("folder") else options.get("points", options.get("rows"))
    for batch_size in study.batch_sizes:
        if isinstance(rows, int) and batch_size > rows:
            raise UserError(
                f"{shown}: batch_sizes: {batch_size} is more than dataset '{dataset}' has; "
                f"allowed: at most its {rows} rows"
            )
