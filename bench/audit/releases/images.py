"""Shadow membership against `method: mixture`, whose releases are images: handwritten digits of 8 x 8 pixels, which scikit-learn ships.

Features: the mean image of every class, how much it is like the target, and how frequent the class is. The target is the negative of a
digit: unlike all others.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.datasets import load_digits

from bench.audit.bounds import claimed_epsilon, scaled
from bench.audit.releases.making import ALMOST_NONE, DELTA, NoNoise
from bench.audit.releases.shadow import cross_fitted
from bench.audit.releases.verdicts import Finding, Price, finding_of
from bench.orders import budget_of_one_release
from service.domain.image_schema import parse_schema
from service.methods.catalogue import parse_order
from service.methods.facts import Facts
from service.methods.pricing import price_order, resolve_order
from service.privacy.filters import NANO, Shares
from workers.encoding.images import EncodedImages
from workers.generators.released import ImageRelease
from workers.mechanism.image_moments import NO_CELL
from workers.mechanism.secure_random import SecureRandom
from workers.plan import Plan
from workers.sources import GivenImages
from workers.training import make_release

if TYPE_CHECKING:
    from service.methods.knobs import Order
    from service.privacy.events import Events

SCHEMA: dict[str, Any] = {"type": "image", "height": 8, "width": 8, "channels": 1, "classes": 10}
UNITS = 400
DRAWN = 40
"""Images of each component of a release."""
TARGET_LABEL = 3


@functools.cache
def priced(epsilon: float) -> tuple[Order, Events]:
    """The order as the service would resolve it, and its price."""
    budget, schema = budget_of_one_release(100.0, DELTA), parse_schema(SCHEMA)
    facts = Facts.of_schema(schema, units=UNITS, most_per_unit=1, budget=budget)
    order = parse_order({"method": "mixture", "epsilon": epsilon, "device": "cpu"})
    resolved = resolve_order(order, facts, Shares(NANO, NANO), schema)
    return resolved, price_order(resolved, budget).events


def images(*, with_target: bool) -> EncodedImages:
    """The last one is the target, or a null record."""
    digits = load_digits()
    pixels = np.rint(digits.data[:UNITS] * 255 / 16).astype(np.uint8)
    labels = digits.target[:UNITS].astype(np.int64)
    if with_target:
        pixels[-1], labels[-1] = 255 - pixels[labels == TARGET_LABEL][0], TARGET_LABEL
    else:
        pixels[-1], labels[-1] = 0, NO_CELL
    return EncodedImages(pixels, labels, (8, 8, 1), 10)


def features_of(epsilon: float, seed: int, *, with_target: bool, is_control: bool) -> np.ndarray:
    """(features,) of the images of a release."""
    order, events = priced(epsilon)
    torch.manual_seed(seed)
    kind, plan = (NoNoise, Plan(scaled(events, ALMOST_NONE))) if is_control else (SecureRandom, Plan(events))
    made = make_release(order, plan, GivenImages(images(with_target=with_target)), kind.from_test_seed(seed))
    if not isinstance(made, ImageRelease):
        raise TypeError("no images")
    random = torch.Generator().manual_seed(seed)
    labels, means = np.array(made.component_labels), []
    with torch.no_grad():
        for component in range(len(labels)):
            noise = torch.randn(DRAWN, made.noise_dimension, generator=random)
            drawn = (
                made.generator(noise, torch.full((1 if made.one_a_run else DRAWN,), component))
                .reshape(DRAWN, -1)
                .numpy()
            )
            means.append(drawn.mean(axis=0))
    own = np.stack(means)
    by_class = np.stack([own[labels == label].mean(axis=0) for label in range(10)])
    target = images(with_target=True).pixels[-1] / 255.0
    weights = np.array([np.sum(np.array(made.component_frequencies)[labels == label]) for label in range(10)])
    return np.concatenate([by_class.reshape(-1), by_class @ target, weights, by_class.std(axis=1)])


def attack(epsilon: float, runs: int, *, is_control: bool = False) -> Finding:
    """Attack so many releases without the target, and as many with it."""
    sides = [
        np.stack(
            [
                features_of(epsilon, 10**6 * side + run, with_target=bool(side), is_control=is_control)
                for run in range(runs)
            ]
        )
        for side in (0, 1)
    ]
    price = Price(claimed_epsilon(priced(epsilon)[1], DELTA), DELTA)
    name = "mixture of images without noise" if is_control else f"mixture of images, ε = {epsilon:g}"
    return finding_of(
        ("shadow membership", "an image unlike all others"),
        (name, is_control),
        price,
        cross_fitted(*sides, price.whole_delta),
    )
