"""Images of handwritten digits: scikit-learn's, of 8 x 8 pixels, and MNIST's training set, of 28 x 28.

`digits` (Alpaydin and Kaynak, UCI, 1998) has 1,797 rows, more than any other classification dataset that comes with
scikit-learn. With half of them held out, an accuracy of 97 % has a 95 % CI of +-1.1 percentage points.

If the config names no folder with MNIST's files, images of the same shape and type are generated from scikit-learn's
digits. Pixel values hardly affect run time.
"""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossover.errors import UserError

SIDE = 28
DIGIT_SIDE = 20
"""Side in pixels of the box that contains the digit, as in MNIST."""
CLASSES = 10
UNSIGNED_BYTES = 8
"""Type code of unsigned bytes in an IDX file."""

LARGEST_VALUE = 16
"""Largest pixel value of scikit-learn's digits."""
LARGEST_ANGLE = 12.0
"""In degrees, in each direction."""
LARGEST_SHIFT = 2.0
"""In pixels, in each direction."""
SMALLEST_SCALE = 0.9
CHUNK = 4096
"""Number of images computed at once, to limit memory."""


def make_digits(options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """scikit-learn's digits, shuffled with `seed`; `features` are float32 of shape (1797, 64), from 0 to 1."""
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(options["seed"]).permutation(len(labels))
    features = (pixels[order] / LARGEST_VALUE).astype(np.float32)
    return {"features": features, "labels": labels[order].astype(np.int64)}


def make_mnist(options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """MNIST's training set from the files in `folder`; without a folder, `rows` images generated with `seed`.

    `features` are uint8 of shape (rows, 28, 28). Raises UserError for a missing or malformed file.
    """
    if options["folder"]:
        return _read(Path(options["folder"]))
    return _generate(options["rows"], options["seed"])


def _generate(rows: int, seed: int) -> dict[str, NDArray[Any]]:
    """Generate images by slightly rotating, shifting and scaling scikit-learn's digits, each about equally often."""
    from sklearn.datasets import load_digits

    digits, labels = load_digits(return_X_y=True)
    random = np.random.default_rng(seed)
    source = random.permutation(np.arange(rows) % len(digits))
    enlarged = _enlarge(digits.reshape(-1, 8, 8) / LARGEST_VALUE)
    features = np.empty((rows, SIDE, SIDE), np.uint8)
    for first in range(0, rows, CHUNK):
        chosen = source[first : first + CHUNK]
        features[first : first + CHUNK] = _augment(enlarged, chosen, random)
    return {"features": features, "labels": labels[source].astype(np.int64)}


def _enlarge(digits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Enlarge images from (digits, 8, 8) to (digits, 28, 28), with an empty margin around a box of 20 x 20 pixels."""
    from scipy import ndimage

    zoom = DIGIT_SIDE / digits.shape[-1]
    margin = (SIDE - DIGIT_SIDE) // 2
    boxes = np.stack([ndimage.zoom(digit, zoom, order=3, mode="grid-constant", grid_mode=True) for digit in digits])
    return np.pad(boxes, ((0, 0), (margin, margin), (margin, margin))).clip(0, 1)


def _augment(images: NDArray[np.float64], chosen: NDArray[np.int64], random: np.random.Generator) -> NDArray[np.uint8]:
    """Rotate, scale and shift the chosen images at random.

    All are interpolated in one call, from one tall stack of images. Pixels beyond an image come from its edge, which is
    empty.
    """
    from scipy import ndimage

    def draw(low: float, high: float) -> NDArray[np.float64]:
        return random.uniform(low, high, size=(len(chosen), 1, 1))

    angle = np.radians(draw(-LARGEST_ANGLE, LARGEST_ANGLE))
    scale = draw(SMALLEST_SCALE, 1 / SMALLEST_SCALE)
    centre = (SIDE - 1) / 2
    grid = np.arange(SIDE) - centre
    rows = (grid[None, :, None] - draw(-LARGEST_SHIFT, LARGEST_SHIFT)) / scale
    columns = (grid[None, None, :] - draw(-LARGEST_SHIFT, LARGEST_SHIFT)) / scale
    from_row = (np.cos(angle) * rows - np.sin(angle) * columns + centre).clip(0, SIDE - 1)
    from_column = (np.sin(angle) * rows + np.cos(angle) * columns + centre).clip(0, SIDE - 1)
    from_row += SIDE * chosen[:, None, None]
    values = ndimage.map_coordinates(images.reshape(-1, SIDE), [from_row, from_column], order=1)
    return np.rint(255 * values).astype(np.uint8)


def _read(folder: Path) -> dict[str, NDArray[Any]]:
    images_path = _find(folder, "train-images-idx3-ubyte")
    labels_path = _find(folder, "train-labels-idx1-ubyte")
    images, labels = read_idx(images_path, dimensions=3), read_idx(labels_path, dimensions=1)
    if images.shape[1:] != (SIDE, SIDE):
        size = " x ".join(map(str, images.shape[1:]))
        raise UserError(f"{images_path}: images of {size} pixels; allowed: {SIDE} x {SIDE}")
    if not 0 < len(images) == len(labels):
        raise UserError(f"{labels_path}: {len(labels)} labels for {len(images)} images; allowed: one each")
    if (largest := labels.max()) >= CLASSES:
        raise UserError(f"{labels_path}: label {largest} is not allowed; allowed: 0 to {CLASSES - 1}")
    return {"features": images, "labels": labels.astype(np.int64)}


def _find(folder: Path, name: str) -> Path:
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    raise UserError(
        f"{folder}: contains neither {name} nor {name}.gz; fix the path in datasets.mnist.folder of the config"
    )


def read_idx(path: Path, dimensions: int) -> NDArray[np.uint8]:
    """Read unsigned bytes from an IDX file, gzipped if its name ends in .gz; raises UserError for other content.

    MNIST's format: two zero bytes, a type code, the number of dimensions, the size of each dimension in four bytes
    (big-endian), then the values.
    """
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        kind = "gzip file" if path.suffix == ".gz" else "file"
        raise UserError(f"{path}: not a readable {kind}: {error}; copy the file again") from None
    header = 4 + 4 * dimensions
    if content[:4] != bytes([0, 0, UNSIGNED_BYTES, dimensions]) or len(content) < header:
        raise UserError(f"{path}: begins with 0x{content[:4].hex()}; allowed: IDX bytes of {dimensions} dimensions")
    sizes = struct.unpack(f">{dimensions}I", content[4:header])
    if len(content) != header + math.prod(sizes):
        shape = " x ".join(map(str, sizes))
        raise UserError(f"{path}: has {len(content) - header} values, but its header says {shape}; copy it again")
    return np.frombuffer(content, np.uint8, offset=header).reshape(sizes)
