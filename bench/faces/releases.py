"""What is released of all images: by the published forms, and by `method: image_release` itself."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
import torch

from bench.audit import faces
from bench.faces.images import EACH, GREY, PEOPLE, Floats, each, public_faces
from bench.orders import budget_of_one_release
from service.domain.image_schema import parse_schema
from service.methods.catalogue import parse_order
from service.methods.facts import Facts
from service.methods.image_release.price import COEFFICIENTS
from service.methods.pricing import price_order, resolve_order
from service.privacy.filters import NANO, Shares
from workers.encoding.images import EncodedImages
from workers.mechanism.secure_random import SecureRandom
from workers.plan import Plan
from workers.sources import GivenImages
from workers.training import make_release

DELTA = 1e-5
PUBLISHED = (0.1, 0.5, 0.9, 1.3)
"""The ε of the paper."""
ENDS = (0.1, 1.3)
"""Of what takes long."""
LARGER = (2.0, 4.0, 8.0, 16.0)
SOME = (0.1, 1.3, 8.0)
HEIGHT = 112

SRA, K3, K8 = "SRA, r = 5", "image_release, k = 3", "image_release, k = 8"
PIXELS = "MM, single pixels (LAP with a public sensitivity)"
LRM = "LRM, boxes of 8, rank 16"
BROKEN = ("LAP", "LRA", SRA, "ESRA")
"""Published forms that have no finite ε."""

Make = Callable[[Floats, float, int], Floats]


@dataclass(frozen=True)
class Release:
    """before: accuracies in single runs of another program, at the first so many ε."""

    epsilons: tuple[float, ...]
    make: Make
    before: tuple[float, ...] = ()
    one_seed: bool = False

    def accuracy_before(self, epsilon: float) -> float | None:
        known = dict(zip(self.epsilons, self.before, strict=False))
        return known.get(epsilon)


CLEAN_BEFORE, LOW_PASS_BEFORE = 87.5, 84.5
ENTROPY_BEFORE = {"real images": "7.27", "LAP": "1.0 to 1.1", SRA: "1.3 to 4.7", "ESRA": "1.5 to 4.8"}


def ours(images: Floats, epsilon: float, seed: int, *, unit: str = "column", **knobs: object) -> Floats:
    """What `method: image_release` publishes of all images in one release, by its own code; with a test seed."""
    shape = (*images.shape[2:], 1)
    count = len(images) * images.shape[1]
    order, events = _resolved(shape, count, epsilon, unit, json.dumps(knobs))
    flat = np.floor(images).reshape(count, -1).astype(np.uint8)
    source = GivenImages(EncodedImages(flat, np.zeros(count, np.int64), shape, 0))
    released = make_release(order, Plan(events), source, SecureRandom.from_test_seed(seed))
    with torch.no_grad():
        drawn = released.generator(torch.zeros(count, 1), torch.arange(count))  # type: ignore[attr-defined]
    return np.asarray(drawn.numpy() * 255.0, dtype=np.float64).reshape(images.shape)


@lru_cache(maxsize=64)
def _resolved(shape: tuple[int, ...], count: int, epsilon: float, unit: str, knobs: str) -> tuple[Any, Any]:
    whole = {"type": "image", "height": shape[0], "width": shape[1], "channels": 1}
    schema = parse_schema(whole | ({} if unit == "image" else {"pixel_unit": unit}))
    budget = budget_of_one_release(epsilon, DELTA)
    facts = Facts.of_schema(schema, units=count, most_per_unit=1, budget=budget)
    order = parse_order({"method": "image_release", "epsilon": epsilon, **json.loads(knobs)})
    resolved = resolve_order(order, facts, Shares(NANO, NANO), schema)
    return resolved, price_order(resolved, budget).events


def one_by_one(images: Floats, epsilon: float, seed: int, **knobs: object) -> Floats:
    """Every image a dataset of its own, with an order of its own: what the mechanism chooses, it chooses for each."""
    people, number = images.shape[:2]
    made = [
        ours(images[person : person + 1, at : at + 1], epsilon, seed * 10_000 + person * number + at, **knobs)  # type: ignore[arg-type]
        for person in range(people)
        for at in range(number)
    ]
    return np.concatenate(made).reshape(images.shape)


def by_public_faces(images: Floats, epsilon: float, seed: int, *, kept: int) -> Floats:
    """Coefficients of public faces' first principal directions, which are no product of two bases; not orderable."""
    height, width = images.shape[2:]
    public = public_faces(height, width)
    directions = np.linalg.svd((public - GREY).reshape(len(public), -1), full_matrices=False)[2][:kept].T
    events = _resolved((height, width, 1), PEOPLE * EACH, epsilon, "column", json.dumps({"coefficients": 3}))[1]
    noise_std = Plan(events).upcoming_gaussian(COEFFICIENTS) * moved_by_a_column(directions, height)
    rng = np.random.default_rng(seed)
    measured = (images - GREY).reshape(*images.shape[:2], -1) @ directions
    noisy = measured + rng.normal(0.0, noise_std, measured.shape)
    return np.asarray(noisy @ directions.T + GREY).reshape(images.shape)


def moved_by_a_column(directions: Floats, height: int) -> float:
    """At least ‖Eᵀδ‖ for one column δ of pixels: ‖E_j‖·‖δ‖, E_j the rows of (pixels, kept) that belong to column j."""
    of_columns = directions.reshape(height, -1, directions.shape[1]).transpose(1, 0, 2)
    return GREY * math.sqrt(height) * max(float(np.linalg.norm(rows, 2)) for rows in of_columns)


def _by(release: Callable[..., Floats], **knobs: object) -> Make:
    return lambda images, epsilon, seed: each(
        images, partial(release, epsilon=epsilon, rng=np.random.default_rng(seed), **knobs)
    )


def _ours(**knobs: object) -> Make:
    return lambda images, epsilon, seed: ours(images, epsilon, seed, **knobs)  # type: ignore[arg-type]


def releases() -> dict[str, Release]:
    """Name -> the ε it is tried at, and what it makes of all images; MM and LRM are of images of 112 rows."""
    return {
        "LAP": Release(PUBLISHED, _by(faces.lap), (1.5, 2.5, 4.5, 4.5)),
        "LRA": Release(ENDS, _by(faces.lra), one_seed=True),
        SRA: Release(PUBLISHED, _by(faces.sra, r=5), (8.0, 14.0, 10.0, 15.0)),
        "ESRA": Release(PUBLISHED, _by(faces.esra), (15.5, 15.5, 25.0, 26.0)),
        PIXELS: Release(PUBLISHED, _by(faces.by_strategy, strategy=np.eye(HEIGHT)), (3.0, 2.5, 5.0, 4.0)),
        "MM, tree": Release(PUBLISHED, _by(faces.by_strategy, strategy=faces.tree(HEIGHT))),
        "MM, Haar": Release(PUBLISHED, _by(faces.by_strategy, strategy=faces.haar(HEIGHT))),
        LRM: Release(PUBLISHED, _by(faces.by_low_rank, workload=faces.boxes(HEIGHT), rank=16)),
        K3: Release((*PUBLISHED, *LARGER), _ours(coefficients=3), (3.0, 5.5, 15.0, 16.0, 26.0, 46.0, 71.0, 79.0)),
        K8: Release((1.3, 8.0, 16.0, 0.1), _ours(coefficients=8), (5.5, 53.5, 81.0)),
        "image_release, k chosen for all": Release((*SOME, 16.0), _ours()),
        "image_release, k chosen, one image at a time": Release((*SOME, 16.0), one_by_one),
        "image_release, k = 3, Laplace": Release(SOME, _ours(coefficients=3, noise="laplace")),
        "image_release, k = 8, Laplace": Release(SOME, _ours(coefficients=8, noise="laplace")),
        "image_release, k = 3, singular values": Release(SOME, _ours(coefficients=3, singular_values_share=0.2)),
        "image_release, k = 8, singular values": Release(SOME, _ours(coefficients=8, singular_values_share=0.2)),
        "image_release, k = 3, unit: image": Release((*SOME, 100.0), _ours(coefficients=3, unit="image")),
        "image_release, k chosen, unit: image": Release((*SOME, 100.0), _ours(unit="image")),
        "9 directions of public faces": Release(SOME, partial(by_public_faces, kept=9)),
        "64 directions of public faces": Release(SOME, partial(by_public_faces, kept=64)),
    }
