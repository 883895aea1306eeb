"""Transverse momenta of two leptons in Higgs signal and background (HSF Training, "Machine Learning on GPU").

The lesson reads ATLAS open data of the H->ZZ->4l selection. If the config names no such files, rows are generated
instead, by default as many and with the same class balance. Their values hardly affect run time.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossover.errors import UserError, shown_text

COLUMNS = ("lep_pt_1", "lep_pt_2")
"""The columns of the lesson's files that are the features."""
TEST_SHARE = 0.33
"""Share of the lesson's rows that it holds out from training."""
POSITIVE_SHARE = 0.24
"""Share of signal rows among the lesson's, and so among generated rows."""


def make_higgs(options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Return the training set in random order: two standardised features, and label 1 for signal.

    Raises UserError if a CSV file is missing or malformed.
    """
    if options["csv"]:
        features, labels = _read(options["csv"], options["seed"])
    else:
        features, labels = _generate(options["rows"], options["seed"])
    values = features.astype(np.float64)
    return {"features": ((values - values.mean(axis=0)) / values.std(axis=0)).astype(np.float32), "labels": labels}


def _generate(rows: int, seed: int) -> tuple[NDArray[np.float32], NDArray[Any]]:
    """Two momenta in GeV for each row, the larger first."""
    random = np.random.default_rng(seed)
    positives = round(rows * POSITIVE_SHARE)
    labels = np.zeros(rows, dtype=np.int64)
    labels[:positives] = 1
    random.shuffle(labels)
    mean_pt = np.where(labels == 1, 35.0, 28.0)
    momenta = 7.0 + random.gamma(shape=2.0, scale=mean_pt[:, None] / 2, size=(rows, 2))
    return np.sort(momenta, axis=1)[:, ::-1].astype(np.float32), labels


def _read(csv: Mapping[str, Any], seed: int) -> tuple[NDArray[np.float32], NDArray[Any]]:
    signal, background = (_read_columns(Path(csv[role])) for role in ("signal", "background"))
    from sklearn.model_selection import train_test_split  # slow to import, and not needed for generated rows

    features = np.concatenate([signal, background])
    labels = np.concatenate([np.ones(len(signal), np.int64), np.zeros(len(background), np.int64)])
    train_features, _, train_labels, _ = train_test_split(features, labels, test_size=TEST_SHARE, random_state=seed)
    return train_features, train_labels


def _read_columns(path: Path) -> NDArray[np.float32]:
    """Read COLUMNS of a CSV file in blocks, since the whole file may not fit into memory."""
    from pyarrow import ArrowException, ArrowMemoryError, float64
    from pyarrow import csv as arrow_csv

    numbers = arrow_csv.ConvertOptions(include_columns=COLUMNS, column_types=dict.fromkeys(COLUMNS, float64()))
    try:
        with arrow_csv.open_csv(path, convert_options=numbers) as file:
            blocks = [
                np.column_stack([block.column(name).to_numpy(zero_copy_only=False) for name in COLUMNS])
                for block in file
            ]
    except ArrowMemoryError:
        raise
    except (ArrowException, OSError, ValueError) as error:
        why = shown_text(" ".join(str(error).split()))
        raise UserError(f"{path}: not a readable CSV file with numbers in {', '.join(COLUMNS)}: {why}") from None
    values = np.concatenate([np.empty((0, len(COLUMNS))), *blocks]).astype(np.float32)
    if len(values) == 0 or not np.isfinite(values).all():
        raise UserError(f"{path}: columns {', '.join(COLUMNS)} must have finite numbers, in at least one row")
    return values
