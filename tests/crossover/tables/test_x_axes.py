"""What crossovers are read over where parameters tell sizes apart, and where they do not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from crossover.report.report import Run, write_report
from crossover.tables.x_axes import x_axes_of
from report_pages import TEMPLATES, study, tables_of

Row = Callable[..., dict[str, Any]]
SIZES = (32, 64, 128, 224)
PIXELS = dict.fromkeys(SIZES, 11_689_512)
FROZEN = dict.fromkeys(SIZES, 0)


@pytest.mark.parametrize(
    ("parameters", "requested", "axis"),
    [
        ({size: size**2 for size in SIZES}, "parameters", "parameters"),
        ({size: size**2 for size in SIZES}, "size", "size"),
        (PIXELS, "parameters", "size"),
        (PIXELS | {32: 5}, "parameters", "size"),
        (FROZEN, "parameters", "size"),
        ({size: size - 32 for size in SIZES}, "parameters", "size"),
        (dict.fromkeys(SIZES), "parameters", "parameters"),
    ],
)
def test_parameters_must_tell_the_sizes_apart(row: Row, parameters: dict[int, Any], requested: str, axis: str) -> None:
    rows = pd.DataFrame([row(size=size, parameters=count) for size, count in parameters.items()])
    assert x_axes_of({"disc_depth": requested}, rows) == {"disc_depth": axis}


@pytest.mark.parametrize("parameters", [PIXELS, FROZEN])
def test_a_model_whose_parameters_stay_the_same_crosses_in_its_size(
    row: Row, tmp_path: Path, parameters: dict[int, int]
) -> None:
    """The CPU takes 1 us a pixel, the GPU 100 us: they cross at 100 pixels, whatever the parameters."""
    rows = [
        row(study="resnet", size=size, parameters=count, size_name="pixels", device=device, trial=trial)
        | {"step_time_s": seconds * 1.01 ** (trial - 2)}
        for size, count in parameters.items()
        for device, seconds in (("cpu", 1e-6 * size), ("cuda", 1e-4))
        for trial in (1, 2, 3)
    ]
    studies = {"resnet": study(title="ResNet", x_axis="parameters")}
    tables = tables_of(pd.DataFrame(rows), studies)
    assert tables.crossovers["crossover"].tolist() == [pytest.approx(100)]
    write_report(Run(tables, studies), tmp_path, TEMPLATES)
    assert (tmp_path / "summary.txt").read_text().startswith("ResNet: GPU faster above 100 pixels (95 % CI ")
