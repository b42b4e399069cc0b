"""One run of one method: priced by its events, trained, drawn from, scored."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from bench.image_data import Digits
from bench.image_scores import (
    Classifier,
    accuracy,
    features,
    frechet_distance,
    inception_score,
    told_apart,
    train_classifier,
)
from bench.images import draw, measure
from bench.orders import budget_of_one_release, resolve_order
from bench.paper.methods import ABLATION, METHODS
from service.domain.shapes import ImageShape
from service.methods.catalogue import parse_order
from service.methods.idpgan.price import TrainedOrder
from service.methods.pricing import price_order
from service.privacy.events import GaussianEvent, SampledStepEvent
from workers.encoding.images import EncodedImages
from workers.mechanism.secure_random import SecureRandom
from workers.methods.idpgan.images import ImageIdpgan
from workers.methods.interface import run_class
from workers.plan import Plan
from workers.sources import GivenImages

if TYPE_CHECKING:
    from workers.methods.idpgan.training import Idpgan

DELTA = 1e-5
ORDERS = {**METHODS, **ABLATION}
NO_NOISE = 1e-12
MIXTURE = "measured mixture"
"""No method of the paper, and not trained: the bar."""
LOOKS = 12
"""Times that the critic's distance is looked at."""
_LOOKED_AT = 500


@dataclass(frozen=True)
class Sizes:
    """What is the same for all methods."""

    steps: int
    expected_batch: int
    critic_steps: int
    count: int
    epochs: int


class Look(NamedTuple):
    """The critic's estimate of the Wasserstein distance. Read from private rows, so for this bench only."""

    step: int
    seconds: float
    """Processor time of training so far, without the looks."""
    distance: float
    """mean D(x) - mean D(G(z))."""


@dataclass(frozen=True)
class Result:
    """What one seed gave."""

    method: str
    epsilon: float | None
    scores: dict[str, float]
    distances: list[Look]
    images: np.ndarray
    labels: np.ndarray


def run(
    method: str,
    epsilon: float | None,
    data: Digits,
    judge: Classifier,
    sizes: Sizes,
    seed: int,
    *,
    public: Digits | None = None,
    **more: Any,
) -> Result:
    """Train and score; without ε there is neither noise nor a price. public: what the run begins from, if the order names a public dataset."""
    began, processor = time.monotonic(), time.process_time()
    distances: list[Look] = []
    if method == MIXTURE:
        measured, _ = measure(data.train, data.labels, epsilon or 1.0, seed, {})
        drawn, labels = draw(measured, sizes.count, seed)
    else:
        trained = begin(ORDERS[method], epsilon, data, sizes, seed, more, public)
        trained.measure()
        trained.warm_up(lambda _share: None)
        distances = train(trained, sizes.steps)
        drawn, labels = drawn_images(trained, sizes.count, seed)
    processor, seconds = time.process_time() - processor, time.monotonic() - began
    network = train_classifier(drawn, labels, epochs=sizes.epochs, seed=seed)
    told = told_apart(data.test, drawn, seed=seed)
    scores = {
        "accuracy": 100.0 * accuracy(network, data.test, data.test_labels),
        "inception": inception_score(judge, drawn),
        "fid": frechet_distance(features(judge, data.test), features(judge, drawn)),
        "js": told.js_bound,
        "from_half": told.from_half,
        "processor": processor,
        "seconds": seconds,
    }
    return Result(method, epsilon, scores, distances, drawn, labels)


def begin(
    knobs: dict[str, Any],
    epsilon: float | None,
    data: Digits,
    sizes: Sizes,
    seed: int,
    more: dict[str, Any],
    public: Digits | None = None,
) -> ImageIdpgan:
    """A run before its first event."""
    units, side = len(data.train), data.train.shape[1]
    named = {
        "epsilon": epsilon or 1.0,
        "steps": sizes.steps,
        "sampling_probability": sizes.expected_batch / units,
        "critic_steps_per_generator_step": sizes.critic_steps,
    }
    budget = budget_of_one_release(epsilon or 1.0, DELTA)
    shape = ImageShape(side, side, 1, classes=10)
    order = resolve_order(parse_order({**knobs, **named, **more}), units=units, shape=shape, budget=budget)
    images = _encoded(data)
    randomness = SecureRandom.from_test_seed(seed)  # repeatable, and so never releasable
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    source = GivenImages(images, given_public=None if public is None else _encoded(public))
    begun: Any = run_class(order)(order, plan_of(order, epsilon), source, randomness, device)
    run_of_one: ImageIdpgan = begun.gan
    return run_of_one


def _encoded(data: Digits) -> EncodedImages:
    units, side = data.train.shape[:2]
    return EncodedImages(data.train.reshape(units, -1), data.labels, (side, side, 1), 10)


def plan_of(order: TrainedOrder, epsilon: float | None) -> Plan:
    """What the order costs at this ε and δ; without ε, steps without noise, which are never released."""
    if epsilon is None:
        q = order.sampling_probability or 0.0
        return Plan((GaussianEvent("label_counts", NO_NOISE), SampledStepEvent(q, NO_NOISE, None, order.steps)))
    return Plan(price_order(order, budget_of_one_release(epsilon, DELTA)).events)


def train(trained: Idpgan, steps: int) -> list[Look]:
    """All private steps, and `LOOKS` looks at what the service never shows."""
    looks, seconds, began = [], 0.0, time.process_time()
    while trained.plan.steps_done < steps:
        trained.critic_step()
        if trained.generator_is_due():
            trained.generator_step()
        step = trained.plan.steps_done
        if step % max(1, steps // LOOKS) == 0:
            seconds += time.process_time() - began
            batch = trained._critic_batch(np.arange(min(trained.units, _LOOKED_AT)))  # noqa: SLF001
            with torch.no_grad():
                distance = float(trained.critic(batch.real).mean() - trained.critic(batch.fake).mean())
            looks.append(Look(step, seconds, distance))
            began = time.process_time()
    return looks


def drawn_images(trained: ImageIdpgan, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Images drawn as the service draws them: components by noisy frequencies, images by the averaged generator."""
    rng = np.random.default_rng(seed)
    shares = np.array(trained.component_frequencies)
    components = rng.choice(len(shares), size=count, p=shares / shares.sum())
    images = np.empty((count, *trained.images.shape[:2]), dtype=np.uint8)
    with torch.no_grad():
        for one in np.unique(components):
            rows = np.flatnonzero(components == one)
            noise = torch.from_numpy(rng.standard_normal((len(rows), trained.noise_dimension), dtype=np.float32))
            made = trained.averaged_generator(noise.to(trained.device), torch.tensor([one], device=trained.device))
            images[rows] = (made[..., 0] * 255.0).round().to(torch.uint8).cpu().numpy()
    return images, np.array(trained.component_labels)[components]
