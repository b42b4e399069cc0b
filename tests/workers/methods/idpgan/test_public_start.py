"""A run that begins from a public dataset: what it reads, what it costs, when it begins."""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np
import pytest
import torch

from service.base.errors import InvalidOrder
from service.domain.image_schema import parse_schema
from service.domain.shapes import ImageShape
from service.methods.catalogue import check_order, parse_order
from service.privacy.events import GaussianEvent, SampledStepEvent
from tests.orders import BUDGET, price_order, resolve_order
from workers.checkpoints import Checkpoint
from workers.encoding.images import EncodedImages
from workers.hooks import Hooks
from workers.mechanism.secure_random import SecureRandom
from workers.methods.interface import run_class
from workers.plan import Plan
from workers.sources import GivenImages

SHAPE = (8, 8, 1)
ID = str(uuid.UUID(int=7))
METHODS = ["idpgan", "dpgan", "dpacgan"]


def images_of(grey: int, count: int = 60) -> EncodedImages:
    pixels = np.random.default_rng(grey).integers(grey, grey + 10, (count, 64)).astype(np.uint8)
    return EncodedImages(pixels, np.arange(count) % 3, SHAPE, 3)


def order_of(method: str, **knobs: Any) -> Any:
    ordered = {"method": method, "epsilon": 1.0, "sampling_probability": 0.5, "steps": 2, "public_dataset": ID}
    ordered |= {"public_steps": 40, "critic_steps_per_generator_step": 1, **knobs}
    if method == "idpgan":
        ordered |= {"thresholds": {"kind": "fixed"}, "noise_decay": {"kind": "constant"}}
    return resolve_order(parse_order(ordered), units=60, shape=ImageShape(*SHAPE, 3))


def plan() -> Plan:
    return Plan((GaussianEvent("label_counts", 1e6), SampledStepEvent(0.5, 1e6, None, 2)))


def run_of(method: str, private: int, public: int, **knobs: Any) -> Any:
    source = GivenImages(images_of(private), given_public=images_of(public))
    randomness = SecureRandom.from_test_seed(1)
    run = run_class(order_of(method, **knobs))(
        order_of(method, **knobs), plan(), source, randomness, torch.device("cpu")
    )
    run.measure()
    return run


def weights(run: Any) -> torch.Tensor:
    parts = [*run.gan.generator.parameters(), *run.gan.critic.parameters()]
    return torch.cat([part.detach().flatten() for part in parts])


@pytest.mark.parametrize("method", METHODS)
def test_networks_begin_from_the_public_images_and_no_private_one(method: str) -> None:
    begun = {}
    for private, public in ((10, 200), (120, 200), (10, 30)):
        run = run_of(method, private, public)
        before = weights(run)
        run.gan.condition_frequencies = (0.3, 0.3, 0.4)  # bought, on their own event
        run.gan.warm_up(lambda _share: None)
        assert run.gan.images.pixels.max() < private + 10, "the private ones are back in their place"
        begun[private, public] = weights(run)
        assert not torch.equal(before, begun[private, public])
    assert torch.equal(begun[10, 200], begun[120, 200])
    assert not torch.equal(begun[10, 200], begun[10, 30])


@pytest.mark.parametrize("method", METHODS)
def test_it_takes_no_event_and_changes_no_price(method: str) -> None:
    run = run_of(method, 10, 200)
    position = run.plan.position
    run.gan.warm_up(lambda _share: None)
    assert run.plan.position == position
    with_start = price_order(order_of(method), units=60, budget=BUDGET)
    without = price_order(order_of(method, public_dataset=None), units=60, budget=BUDGET)
    assert with_start.events == without.events


@pytest.mark.slow
def test_the_generator_learns_what_public_images_look_like() -> None:
    run = run_of("idpgan", 10, 200, public_steps=300, optimizer={"generator_learning_rate": 3e-3})
    run.gan.warm_up(lambda _share: None)
    assert float(run.gan.preview().float().mean()) > 150.0


def test_a_run_that_goes_on_after_private_steps_does_not_begin_again() -> None:
    run = run_of("idpgan", 10, 200)
    run.gan.warm_up(lambda _share: None)
    run.gan.critic_step()
    saved = Checkpoint.from_bytes(run.checkpoint().to_bytes())
    source = GivenImages(images_of(10), given_public=images_of(200))
    order = order_of("idpgan")
    resumed: Any = run_class(order)(order, plan(), source, SecureRandom.from_test_seed(2), torch.device("cpu"))
    resumed.restore(saved)
    before = weights(resumed)
    resumed.gan.warm_up(lambda _share: None)
    assert torch.equal(before, weights(resumed))
    resumed.finish(Hooks())


def test_without_public_images_nothing_runs() -> None:
    order = order_of("idpgan")
    with pytest.raises(TypeError, match="no public images"):
        run_class(order)(order, plan(), GivenImages(images_of(10)), SecureRandom(), torch.device("cpu"))


@pytest.mark.parametrize(
    ("holds", "knobs", "sentence"),
    [
        ("table", {"warm_start": {"kind": "tables"}}, "or near tables"),
        ("image", {"warm_start": {"kind": "mixture"}}, "or from a mixture"),
    ],
)
def test_where_nothing_can_begin_from_it_the_knob_is_refused(holds: str, knobs: Any, sentence: str) -> None:
    image = {"type": "image", "height": 8, "width": 8, "channels": 1, "classes": 3}
    table = {"fields": [{"name": "a", "type": "boolean", "constraints": {"required": True}}]}
    order = parse_order({"method": "idpgan", "epsilon": 1.0, "public_dataset": ID, **knobs})
    with pytest.raises(InvalidOrder, match=sentence):
        check_order(order, parse_schema(image if holds == "image" else table))
