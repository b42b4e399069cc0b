"""MNIST and Fashion-MNIST from a folder: IDX files, or the training images of the latter in parts as NPZ."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import NamedTuple

import numpy as np

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared" / "data"


class Digits(NamedTuple):
    """Pixels (n, side, side) uint8 and labels (n,) int64."""

    train: np.ndarray
    labels: np.ndarray
    test: np.ndarray
    test_labels: np.ndarray


def load(folder: Path, side: int) -> Digits:
    """28×28 as it is, 14×14 as the mean of 2×2 pixels."""
    train, test = (_shrunk(_pixels(folder, part), side) for part in ("train", "t10k"))
    labels, test_labels = (
        _idx(folder / f"{part}-labels-idx1-ubyte.gz", 8).astype(np.int64) for part in ("train", "t10k")
    )
    return Digits(train, labels, test, test_labels)


def held_out(data: Digits, share: int = 6, seed: int = 123) -> Digits:
    """The data with one in `share` of the *training* images as the test: for every choice of a setting."""
    order = np.random.default_rng(seed).permutation(len(data.train))
    test, train = order[: len(order) // share], order[len(order) // share :]
    return Digits(data.train[train], data.labels[train], data.train[test], data.labels[test])


def _pixels(folder: Path, part: str) -> np.ndarray:
    file = folder / f"{part}-images-idx3-ubyte.gz"
    if file.exists():
        return _idx(file, 16).reshape(-1, 28, 28)
    parts = []
    for path in sorted(folder.glob(f"{part}-images-part*.npz")):
        with np.load(path) as arrays:
            parts.append(arrays[arrays.files[0]].reshape(-1, 28, 28))
    if not parts:
        raise FileNotFoundError(
            f"{file} is not there, nor {part}-images-part*.npz beside it: name the folder with --data"
        )
    return np.concatenate(parts)


def _shrunk(pixels: np.ndarray, side: int) -> np.ndarray:
    if side == 28:
        return pixels
    return np.rint(pixels.reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4))).astype(np.uint8)


def _idx(path: Path, header: int) -> np.ndarray:
    return np.frombuffer(gzip.decompress(path.read_bytes()), dtype=np.uint8)[header:]
