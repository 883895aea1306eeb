"""Names of devices, sides, machines, cells and metrics, for figures and reports."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from crossover.config.words import CPU_THREADS, HALF, HERE, X_AXES, is_cpu, ranks_of_side, threads_of_side
from crossover.tables.columns import Measurement
from crossover.tables.registry import CELLS, METHODS, QUALITY_METRICS
from crossover.text import cores_text, place_text, spaced, with_unit

DEVICE_WORDS = {"cpu": "CPU", "cuda": "GPU", "mps": "GPU", "xpu": "GPU"}
PROTOCOL_WORDS = {
    "as_published": "as in the published source",
    "resident": "data already on the device",
    "loaded": "batches loaded in each step",
    "from_host": "batch copied from pinned host memory and results back",
    "from_pageable": "batch copied from pageable host memory and results back",
    "each": "a resident batch for each GPU",
    "cold": "single calls after idling, caches cold",
}

NAMED_AXES = ("machine", "size", "variant", "protocol", "batch_size", "precision", "execution")
"""The axes in a cell's name, in this order. The device is left out, since a figure shows it in another way."""


def side_word(device: str, threads: float | None = None) -> str:
    """A device's short name, for a CPU with its number of cores if known: 'GPU', 'CPU on 8 cores'."""
    word = DEVICE_WORDS[device.partition("-")[0]]
    if (ranks := ranks_of_side(device)) > 1:
        return f"{ranks} {word} processes" if is_cpu(device) else f"{ranks} {word}s"
    requested = threads_of_side(device)
    if not is_cpu(device) or (requested is None and threads is None):
        return word
    if threads is not None:
        return f"{word} on {cores_text(threads)}" + " (half)" * (requested == HALF)
    return f"{word} on {cores_text(requested) if isinstance(requested, int) else 'half of its cores'}"


def device_label(device: str, device_name: str | None, machine: str = HERE) -> str:
    """A device with its product name, and its machine if that has a name: 'GPU (NVIDIA H200) of node7'."""
    word = f"{side_word(device)} ({short_name(device_name)})" if device_name else side_word(device)
    return word + machine_words("of", machine)


def short_name(device_name: str) -> str:
    """A product name without trade marks, clocks and core counts: 'AMD EPYC 9D24', 'Intel Xeon Gold 6248'."""
    for noise in (r"\((R|TM|C)\)", r"@.*", r"\b\d+-Core\b", r"\b(CPU|Processor)\b"):
        device_name = re.sub(noise, " ", device_name)
    return " ".join(device_name.split())


NO_PRODUCT = r"NVIDIA|AMD|Tesla|GeForce|\d+GB|HBM\w*|SXM\d*|PCIe|NVL"
"""Words of an accelerator's name that do not tell its product: vendor, memory and connector."""


def product_family(device_name: str) -> str:
    """An accelerator's product without vendor, memory and connector: 'H100', 'RTX 4090', 'A100 MIG 1g.10gb'."""
    words = re.split(r"[\s-]+", short_name(device_name))
    return " ".join([word for word in words if not re.fullmatch(NO_PRODUCT, word)] or words)


def with_article(product: str) -> str:
    """A product with its article: 'an H100', 'a T4', 'an RTX 4090'; names such as H100 are spelled out."""
    is_spelled = re.match(r"[A-Z]([A-Z0-9]|$)", product)
    return f"{'an' if product[0] in ('AEFHILMNORSX' if is_spelled else 'AEIOU') else 'a'} {product}"


def machine_words(preposition: str, machine: str) -> str:
    """' of h200' or ' on h200'; empty for a machine without a name."""
    return "" if machine == HERE else f" {preposition} {machine}"


def machine_side(device: str, machine: str) -> str:
    """Name of a device among those of several machines: 'this CPU', 'GPU of h200'."""
    this = "this" if ranks_of_side(device) == 1 else "these"
    return f"{this} {side_word(device)}" if machine == HERE else f"{side_word(device)} of {machine}"


def varying(table: pd.DataFrame, axes: Iterable[str] = NAMED_AXES) -> list[str]:
    """The axes on which a table's rows differ."""
    return [axis for axis in axes if axis in table and table[axis].nunique() > 1]


def name_by(row: Mapping[str, Any], axes: Iterable[str]) -> str:
    """A row's values on the given axes: 'channels last, batch 8, amp-fp16'; missing values are omitted."""
    return ", ".join(_value_words(row, axis) for axis in axes if axis in row and not pd.isna(row[axis]))


def _value_words(row: Mapping[str, Any], axis: str) -> str:
    value = row[axis]
    if axis == "size":
        if row.get("size_label"):
            return str(row["size_label"])
        return with_unit(f"{value:,}", str(row.get("size_name") or "")).strip()
    if axis == "batch_size":
        return batch_words(f"{value:,}", row)
    return str(value) if axis == "machine" else spaced(str(value))


AXIS_WORDS = {"parameters": "parameters", "batch_size": "samples per batch", CPU_THREADS: "CPU cores"}


def axis_label(row: Mapping[str, Any]) -> str:
    """Unit of a crossover's x axis: 'parameters', 'samples per batch', 'CPU cores', or the name of the size."""
    batch_name = _batch_name(row) if row["x_axis"] == "batch_size" else None
    return batch_name or AXIS_WORDS.get(row["x_axis"]) or str(row["size_name"])


def batch_words(text: str, row: Mapping[str, Any]) -> str:
    """Batch sizes with what they count: 'batch 8 and 64', or 'k = 8' for a second size of a function."""
    return with_unit(text, _batch_name(row) or AXIS_WORDS["batch_size"])


def size_titles(cells: pd.DataFrame) -> dict[str, str]:
    """The titles of the columns `size` and `batch_size`: a function's own names if all cells have these two."""
    axes = ("size", "batch_size")
    names = cells[["size_name", "batch_name"]].drop_duplicates()
    is_named = len(names) == 1 and bool(names.notna().all(axis=None))
    return dict(zip(axes, names.iloc[0] if is_named else [CELLS[axis].title_of(axis) for axis in axes], strict=True))


def _batch_name(row: Mapping[str, Any]) -> str | None:
    name = row.get("batch_name")
    return None if pd.isna(name) else str(name)


def place_on(row: Mapping[str, Any], x_axis: str) -> str:
    """A cell's place on an x axis, in the unit of that axis: '703 k parameters', 'batch 8', '64 neurons'."""
    if x_axis == "parameters":
        return with_unit(place_text(row[x_axis], x_axis), x_axis)
    return name_by(row, [X_AXES[x_axis]])


METRIC_TITLES = {
    **QUALITY_METRICS,
    **{method: f"mean latency ({words})" for method, words in METHODS.items()},
    "latency_p50_s": "median latency",
    "latency_p95_s": "95th percentile of the latency",
    "latency_p99_s": "99th percentile of the latency",
    "run_time_s": "time of a run",
    "payback_steps": "steps until it is ahead, start-up included",
    "first_step_s": "time of the first step",
    "device_time_s": "time per step on the device",
}
"""Titles of metrics that are not columns of table `cells`."""


def metric_title(metric: str) -> str:
    """A metric's title on the page, or else the start of the description of its column."""
    if metric in METRIC_TITLES:
        return METRIC_TITLES[metric]
    if metric in CELLS:
        return CELLS[metric].title_of(metric)
    docs = {field.name: field.metadata["doc"] for field in dataclasses.fields(Measurement)}
    return str(docs[metric]).partition(";")[0]
