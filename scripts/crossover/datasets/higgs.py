"""Two lepton transverse momenta of Higgs signal and background (HSF Training, "Machine Learning on GPU").

The lesson reads ATLAS open data of the H->ZZ->4l selection. Where the config does not name those files, rows of the
same shape, number and class balance are generated: run time depends on these, not on the physics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from crossover.datasets.checksums import check_file
from crossover.errors import UserError

Floats = np.ndarray[Any, np.dtype[np.float32]]


def make_higgs(options: Mapping[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
    """The training part: two features standardised on it, label 1 for signal, rows in random order.

    Raises UserError for a missing, altered or malformed CSV file.
    """
    if options["csv"]:
        features, labels = _read(options["csv"], options["seed"])
    else:
        features, labels = _generate(options["rows"], options["positive_share"], options["seed"])
    return {"features": StandardScaler().fit_transform(features).astype(np.float32), "labels": labels}


def _generate(rows: int, positive_share: float, seed: int) -> tuple[Floats, np.ndarray[Any, Any]]:
    """Falling momentum spectra above a threshold, in GeV, the leading lepton first; the signal's is harder."""
    random = np.random.default_rng(seed)
    positives = round(rows * positive_share)
    labels = np.zeros(rows, dtype=np.int64)
    labels[:positives] = 1
    random.shuffle(labels)
    mean_pt = np.where(labels == 1, 35.0, 28.0)
    momenta = 7.0 + random.gamma(shape=2.0, scale=mean_pt[:, None] / 2, size=(rows, 2))
    return np.sort(momenta, axis=1)[:, ::-1].astype(np.float32), labels


def _read(csv: Mapping[str, Any], seed: int) -> tuple[Floats, np.ndarray[Any, Any]]:
    columns = csv["columns"]
    signal = _read_columns(Path(csv["signal"]), columns, csv["signal_sha256"])
    background = _read_columns(Path(csv["background"]), columns, csv["background_sha256"])
    features = np.concatenate([signal, background])
    labels = np.concatenate([np.ones(len(signal), np.int64), np.zeros(len(background), np.int64)])
    train_features, _, train_labels, _ = train_test_split(
        features, labels, test_size=csv["test_share"], random_state=seed
    )
    return train_features, train_labels


def _read_columns(path: Path, columns: Sequence[str], sha256: str | None) -> Floats:
    from pyarrow import ArrowInvalid
    from pyarrow import csv as arrow_csv

    check_file(path, sha256, "datasets.higgs.csv")
    try:
        table = arrow_csv.read_csv(path)
    except ArrowInvalid as error:
        raise UserError(f"{path}: not a readable CSV file: {' '.join(str(error).split())}") from None
    missing = [column for column in columns if column not in table.column_names]
    if missing:
        raise UserError(
            f"{path}: no column '{missing[0]}'; found: {', '.join(table.column_names)}; "
            "name the two columns in datasets.higgs.csv.columns"
        )
    try:
        values = np.column_stack([table[column].to_numpy().astype(np.float32) for column in columns])
    except (TypeError, ValueError):
        raise UserError(f"{path}: columns {', '.join(columns)} must hold numbers only") from None
    if len(values) == 0 or not np.isfinite(values).all():
        raise UserError(f"{path}: columns {', '.join(columns)} must hold finite numbers in at least one row")
    return values
