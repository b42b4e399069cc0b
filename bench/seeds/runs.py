"""One run: an order resolved, priced, run and drawn from as the service does it, and scored."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from bench.image_scores import Classifier, accuracy, features, frechet_distance, train_classifier
from bench.images import draw
from bench.orders import budget_of_one_release, resolve_order, scaled
from bench.tables import metrics
from bench.tables.methods import METHODS as TABLE_METHODS
from bench.tables.methods import Ask, ours, priced
from bench.tables.tables import Table, codes_of
from service.domain.shapes import ImageShape
from service.methods.catalogue import parse_order
from service.methods.pricing import Price, price_order
from workers.encoding.images import EncodedImages
from workers.mechanism.secure_random import SecureRandom
from workers.plan import Plan
from workers.sources import GivenImages
from workers.training import make_release

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bench.image_data import Digits
    from bench.seeds.methods import Sizes
    from service.privacy.events import Event
    from workers.generators.released import ImageRelease

DELTA = 1e-5
ALMOST_NO_NOISE = 1e-6
"""The non-private form: the same run by the same list, with this part of its noise. What it makes may never be released."""
RESOLVED_AT = 10.0
"""ε by which the non-private form settles what an order leaves open."""
EPOCHS = 3
DIGITS = 10


@dataclass(frozen=True)
class Made:
    """Scores of a run, and what it paid."""

    scores: dict[str, float]
    cpu_seconds: float
    """From rows to generator, and drawing; scores are not in it."""
    pld_epsilon: float | None = None
    paid_for: tuple[str, ...] = ()


def made_rows(knobs: Mapping[str, Any] | str, epsilon: float | None, table: Table, made: int, seed: int) -> Made:
    """knobs: of an order, or the name of a reference of `bench.tables`."""
    named = {} if isinstance(knobs, str) else {name: value for name, value in knobs.items() if name != "method"}
    noise = 1.0 if epsilon is not None else ALMOST_NO_NOISE
    ask = Ask(table, epsilon or RESOLVED_AT, DELTA, made, seed, named, noise)
    price = None if isinstance(knobs, str) else priced(knobs["method"], ask)[1]
    maker = TABLE_METHODS[knobs] if isinstance(knobs, str) else ours(knobs["method"])
    began = time.process_time()
    frame, _ = maker(ask)
    seconds = time.process_time() - began
    synthetic, real, widths = codes_of(frame, table.domain), table.train_codes, table.domain.widths
    found = metrics.classifier_scores(synthetic, table)
    scores = {"LR": found["LR AUROC"], "GB": found["GB AUROC"]}
    scores |= {f"TV{ways}": metrics.total_variation(synthetic, real, widths, ways) for ways in (1, 2)}
    return _paid(scores, seconds, price, epsilon)


def made_images(
    knobs: Mapping[str, Any] | str, epsilon: float | None, data: Digits, judge: Classifier, made: int, seed: int
) -> Made:
    """knobs: of an order, or "real"."""
    price = None
    began = time.process_time()
    if isinstance(knobs, str):
        chosen = np.random.default_rng(seed).permutation(len(data.train))[:made]
        images, labels = data.train[chosen], data.labels[chosen]
    else:
        units, side = len(data.train), data.train.shape[1]
        budget = budget_of_one_release(epsilon or RESOLVED_AT, DELTA)
        asked = parse_order({**knobs, "epsilon": epsilon or RESOLVED_AT, "device": "cpu"})
        order = resolve_order(asked, units=units, shape=ImageShape(side, side, 1, classes=DIGITS), budget=budget)
        price = price_order(order, budget)
        encoded = EncodedImages(data.train.reshape(units, -1), data.labels, (side, side, 1), DIGITS)
        plan = Plan(price.events if epsilon is not None else scaled(price.events, ALMOST_NO_NOISE))
        release = make_release(order, plan, GivenImages(encoded), SecureRandom.from_test_seed(seed))
        images, labels = draw(cast("ImageRelease", release), made, seed)
    seconds = time.process_time() - began
    network = train_classifier(images, labels, epochs=EPOCHS, seed=seed)
    scores = {
        "accuracy": 100.0 * accuracy(network, data.test, data.test_labels),
        "FID": frechet_distance(features(judge, data.test), features(judge, images)),
    }
    return _paid(scores, seconds, price, epsilon)


def judge_of(data: Digits, sizes: Sizes) -> Classifier:
    """What features FID compares."""
    return train_classifier(data.train[: sizes.made], data.labels[: sizes.made], epochs=EPOCHS, seed=0)


def _paid(scores: dict[str, float], seconds: float, price: Price | None, epsilon: float | None) -> Made:
    if price is None or epsilon is None:
        return Made(scores, seconds)
    return Made(scores, seconds, price.pld_epsilon, tuple(_in_words(event) for event in price.events))


def _in_words(event: Event) -> str:
    values = event.as_json()
    noise = values.get("noise_multiplier", values.get("gradient_noise_multiplier"))
    q = values.get("sampling_probability")
    drawn = "" if q is None or q == 1.0 else f", q = {q:.3g}"
    count = f"{event.count} × " if event.count > 1 else ""
    return f"{count}{event.purpose} (σ = {noise:.3g}{drawn})"
