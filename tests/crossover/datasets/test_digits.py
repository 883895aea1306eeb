from __future__ import annotations

import gzip
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

from crossover.datasets.digits import make_digits, make_mnist
from user_errors import error_line

GENERATED = {"folder": None, "rows": 3700, "seed": 0}

IMAGES, LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"


@pytest.fixture(scope="module")
def generated() -> dict[str, np.ndarray[Any, Any]]:
    return make_mnist(GENERATED)


def test_generated_rows_have_the_shape_and_type_of_mnist(generated: dict[str, np.ndarray[Any, Any]]) -> None:
    features, labels = generated["features"], generated["labels"]
    assert (features.shape, features.dtype) == ((3700, 28, 28), np.uint8)
    assert (labels.shape, labels.dtype) == ((3700,), np.int64)
    assert features.max() > 240
    assert features[:, (0, 0, -1, -1), (0, -1, 0, -1)].max() == 0  # the background is empty
    assert 0.1 < features.mean() / 255 < 0.2  # MNIST: 0.13


def test_an_image_shows_the_digit_of_its_label(generated: dict[str, np.ndarray[Any, Any]]) -> None:
    """Most images have the label of the nearest mean image of the source's digits, which are enlarged to 20 x 20."""
    digits = load_digits()
    enlarged = np.kron(digits.images, np.ones((1, 5, 5))).reshape(-1, 20, 2, 20, 2).mean(axis=(2, 4))
    means = np.stack([enlarged[digits.target == label].mean(axis=0) for label in range(10)])

    def unit(images: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        rows = images.reshape(len(images), -1)
        centred = rows - rows.mean(axis=1, keepdims=True)
        return centred / np.linalg.norm(centred, axis=1, keepdims=True)

    nearest = (unit(generated["features"][:, 4:24, 4:24]) @ unit(means).T).argmax(axis=1)
    assert (nearest == generated["labels"]).mean() > 0.6  # by chance: 0.1


def idx(values: np.ndarray[Any, Any]) -> bytes:
    return bytes([0, 0, 8, values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape) + values.tobytes()


PIXELS = np.random.default_rng(0).integers(0, 256, size=(5, 28, 28), dtype=np.uint8)
DIGITS = np.array([5, 0, 4, 1, 9], dtype=np.uint8)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / IMAGES).write_bytes(idx(PIXELS))
    (tmp_path / f"{LABELS}.gz").write_bytes(gzip.compress(idx(DIGITS)))
    return tmp_path


def read(folder: Path) -> dict[str, np.ndarray[Any, Any]]:
    return make_mnist({**GENERATED, "folder": str(folder)})


def test_real_files_are_read_compressed_or_not(folder: Path) -> None:
    data = read(folder)
    assert np.array_equal(data["features"], PIXELS)
    assert data["features"].dtype == np.uint8
    assert data["labels"].tolist() == [5, 0, 4, 1, 9]
    assert data["labels"].dtype == np.int64


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (idx(PIXELS)[:-1], "has 3919 values, but its header says 5 x 28 x 28"),
        (idx(PIXELS[:4]), "5 labels for 4 images"),
        (None, f"contains neither {IMAGES} nor {IMAGES}.gz; fix the path in datasets.mnist.folder"),
    ],
)
def test_missing_and_malformed_images_are_one_line(folder: Path, content: bytes | None, message: str) -> None:
    (folder / IMAGES).unlink()
    if content is not None:
        (folder / IMAGES).write_bytes(content)
    assert message in error_line(read, folder)


def test_each_image_of_scikit_learn_occurs_once() -> None:
    data = make_digits({"seed": 0})
    assert (data["features"].shape, data["features"].dtype) == ((1797, 64), np.float32)
    assert data["labels"].dtype == np.int64
    pixels, labels = load_digits(return_X_y=True)
    rows = sorted([*map(int, row), label] for row, label in zip(data["features"] * 16, data["labels"], strict=True))
    assert rows == sorted([*map(int, row), label] for row, label in zip(pixels, labels, strict=True))


def test_the_seed_sets_a_random_order() -> None:
    """In scikit-learn's order, labels repeat as 0, 1, 2, ..."""
    first, again, other = (make_digits({"seed": seed})["labels"] for seed in (1, 1, 2))
    assert (first == again).all()
    assert 0.05 < (first == other).mean() < 0.15
    assert 0.05 < (first == load_digits().target).mean() < 0.15
