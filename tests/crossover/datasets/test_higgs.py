from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crossover.datasets.higgs import make_higgs
from crossover.errors import UserError

GENERATED = {"rows": 469000, "seed": 492, "csv": None}


def test_generated_rows_have_the_published_shape_in_random_order() -> None:
    data, again = make_higgs(GENERATED), make_higgs(GENERATED)
    assert all((data[key] == again[key]).all() for key in data)
    assert (data["features"].shape, data["features"].dtype) == ((469000, 2), np.float32)
    assert int(data["labels"].sum()) == round(0.24 * 469000)
    assert 150 < data["labels"][:1000].sum() < 330  # sorted labels would give 1000 or 0
    assert np.allclose(data["features"].mean(axis=0), 0, atol=1e-4)
    assert np.allclose(data["features"].std(axis=0), 1, atol=1e-4)
    leading = data["features"][:, 0]
    assert leading[data["labels"] == 1].mean() > leading[data["labels"] == 0].mean() + 0.1


@pytest.fixture
def csv(tmp_path: Path) -> dict[str, Any]:
    """Small files in the format of the real ones, with more columns than needed and in another order."""
    random = np.random.default_rng(0)

    def write(name: str, rows: int, shift: float) -> Path:
        path = tmp_path / name
        lines = [f"{i},{shift + random.normal():.4f},{random.normal():.4f},x" for i in range(rows)]
        path.write_text("\n".join(["entry,lep_pt_2,lep_pt_1,channel", *lines]) + "\n")
        return path

    return {
        "signal": str(write("ggH125_ZZ4lep.csv", 30, 5.0)),
        "background": str(write("llll.csv", 70, 0.0)),
    }


def read(csv: dict[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
    return make_higgs({**GENERATED, "csv": csv})


def test_real_files_are_split_and_standardised_on_the_training_part(csv: dict[str, Any]) -> None:
    data = read(csv)
    assert data["features"].shape == (67, 2)
    assert np.allclose(data["features"].mean(axis=0), 0, atol=1e-5)
    assert np.allclose(data["features"].std(axis=0), 1, atol=1e-5)
    assert 10 < data["labels"].sum() < 31
    # The signal rows are shifted in lep_pt_2, the second selected column.
    signal = data["labels"] == 1
    assert data["features"][signal, 1].min() > data["features"][~signal, 1].mean()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lep_pt_1,lep_pt_2\n1,two\n", "with numbers in lep_pt_1, lep_pt_2: .*invalid value 'two'"),
        ("lep_pt_1,lep_pt_2\n1,nan\n", "finite numbers"),
        ("lep_pt_1,lep_pt_2\n", "at least one row"),
        ("lep_pt_1,lep_pt_9\n1,2\n", "Column 'lep_pt_2' in include_columns does not exist"),
    ],
)
def test_a_malformed_file_is_one_line(csv: dict[str, Any], text: str, message: str) -> None:
    Path(csv["signal"]).write_text(text)
    with pytest.raises(UserError, match=message) as caught:
        read(csv)
    assert "\n" not in str(caught.value)


def test_only_the_named_columns_are_read_in_blocks(csv: dict[str, Any]) -> None:
    """Other columns may contain Latin-1 text, and the file a byte order mark."""
    lines = b"\xef\xbb\xbflep_pt_1,lep_pt_2,name\n" + b"1,2,\xe9t\xe9\n3,4,x\n" * 200_000
    Path(csv["signal"]).write_bytes(lines)
    assert int(read(csv)["labels"].sum()) > 260_000
    Path(csv["signal"]).write_bytes(lines + b"five,6,x\n")
    with pytest.raises(UserError, match="invalid value 'five'"):
        read(csv)
