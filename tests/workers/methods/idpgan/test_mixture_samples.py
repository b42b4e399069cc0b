"""Networks that are trained on free samples of a measured mixture first: what is charged, what is read, how a run goes on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from service.base.errors import InvalidOrder
from service.domain.shapes import ImageShape
from service.methods.catalogue import method_of, parse_order, parse_resolved_order
from service.methods.idpgan.order import IdpganOrder
from service.methods.idpgan.work import MOST_FREE_SAMPLES, free_samples
from service.methods.mixture.price import CELL_MOMENTS, CLASS_MEANS, LEANINGS
from service.privacy.events import GaussianEvent, SampledStepEvent
from service.privacy.filters import open_budget
from tests.orders import facts_of, price_order, resolve_order
from tests.runs import train_images
from tests.tiny_images import make_set
from workers.checkpoints import Checkpoint
from workers.encoding.images import EncodedImages
from workers.hooks import Hooks, TrainingStopped
from workers.mechanism.image_moments import NO_CELL
from workers.mechanism.secure_random import SecureRandom
from workers.methods.idpgan import mixture_samples
from workers.methods.idpgan.image_start import START
from workers.methods.idpgan.mixture_samples import SampledImageIdpgan
from workers.methods.interface import run_class
from workers.plan import Plan, StepNotOnPlan
from workers.sources import GivenImages

SHAPE = (8, 7, 1)
COUNT = 300
BUDGET = open_budget(8.0, 1e-5)


@pytest.fixture(autouse=True)
def _few_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mixture_samples, "free_samples", lambda _pixels: 600)


def make_order(classes: int = 3, **start: Any) -> IdpganOrder:
    ordered = {
        "method": "idpgan",
        "epsilon": 4.0,
        "sampling_probability": 0.1,
        "steps": 4,
        "warm_start": {"kind": "mixture", "generator": "trained", "free_steps": 6, "cells": 2, **start},
    }
    order = resolve_order(parse_order(ordered), units=COUNT, shape=ImageShape(*SHAPE, max(1, classes)), budget=BUDGET)
    assert isinstance(order, IdpganOrder)
    return order


def make_run(order: IdpganOrder, images: EncodedImages, *, seed: int = 1) -> Any:
    torch.manual_seed(seed)
    plan = Plan(price_order(order, units=COUNT, budget=BUDGET).events)
    return run_class(order)(order, plan, GivenImages(images), SecureRandom.from_test_seed(seed), torch.device("cpu"))


def weights(run: Any) -> torch.Tensor:
    parts = [*run.gan.generator.parameters(), *run.gan.critic.parameters()]
    return torch.cat([part.detach().flatten() for part in parts])


@pytest.mark.parametrize(("upright", "first"), [(None, LEANINGS), (True, CLASS_MEANS), (False, CLASS_MEANS)])
@pytest.mark.parametrize("generator", ["trained", "corrected"])
def test_the_mixture_is_on_the_price_list_with_all_that_it_measures(
    generator: str, upright: bool | None, first: str
) -> None:
    order = make_order(generator=generator, upright=upright)
    price = price_order(order, units=COUNT, budget=BUDGET)
    measured = [event.purpose for event in price.events if isinstance(event, GaussianEvent)]
    assert (measured[0], measured[-1]) == (first, CELL_MOMENTS)
    assert "label_counts" not in measured  # the mixture's own counts say how frequent classes are
    assert 0.99 * 4.0 <= price.pld_epsilon <= 4.0
    steps = [event for event in price.events if isinstance(event, SampledStepEvent)]
    without = price_order(order.model_copy(update={"warm_start": None}), units=COUNT, budget=BUDGET)
    first_steps = [event for event in without.events if isinstance(event, SampledStepEvent)]
    assert steps[0].gradient_noise_multiplier > first_steps[0].gradient_noise_multiplier
    run = make_run(order, make_set(SHAPE, COUNT))
    run.measure()
    run.finish(Hooks())
    assert run.plan.steps_done == run.plan.steps == 4


def test_nothing_is_read_before_the_mixture_is_paid_for() -> None:
    run = make_run(make_order(), make_set(SHAPE, COUNT))
    with pytest.raises(StepNotOnPlan):
        run.gan.critic_step()
    of_another = Plan((GaussianEvent("label_counts", 1.0), SampledStepEvent(0.1, 1.0, 1.0, 4)))
    order = make_order()
    other: Any = run_class(order)(
        order, of_another, GivenImages(make_set(SHAPE, COUNT)), SecureRandom.from_test_seed(1), torch.device("cpu")
    )
    with pytest.raises(StepNotOnPlan):
        other.measure()


def test_networks_are_trained_on_samples_and_no_private_image_is_read() -> None:
    images = make_set(SHAPE, COUNT)
    run = make_run(make_order(), images)
    run.measure()
    measured, position = run.checkpoint().to_bytes(), run.plan.position
    before, begun = weights(run), []
    for grey in (None, 0, 200):
        if grey is not None:  # none of them is what was measured
            images.pixels[:], images.labels[:] = grey, NO_CELL
        again = make_run(make_order(), images)
        again.restore(Checkpoint.from_bytes(measured))
        torch.manual_seed(5)
        again.gan.warm_up(lambda _share: None)
        assert again.plan.position == position
        begun.append(weights(again))
    assert not torch.equal(before, begun[0])
    assert torch.equal(begun[0], begun[1])
    assert torch.equal(begun[0], begun[2])


@pytest.mark.parametrize("classes", [3, 0])
def test_samples_are_of_the_mixture_by_its_counts(classes: int) -> None:
    run = make_run(make_order(classes, generator="trained"), make_set(SHAPE, COUNT, classes))
    run.measure()
    gan = run.gan
    assert isinstance(gan, SampledImageIdpgan)
    samples = gan.samples()
    assert samples.pixels.shape == (600, 56)
    assert (samples.shape, samples.classes, samples.unit_starts) == (SHAPE, classes, None)
    mixture, means = gan.start.build(), []
    for component in range(len(gan.start.component_labels)):
        noise = torch.randn(100, mixture.noise_dimension)
        means.append(mixture(noise, torch.tensor([component])).mean(dim=(0, 1, 2, 3)))
    expected = float(np.dot(torch.stack(means).numpy(), gan.start.component_frequencies))
    assert abs(samples.pixels.mean() / 255.0 - expected) < 0.05
    if classes:
        shares = np.bincount(samples.labels, minlength=3) / 600
        np.testing.assert_allclose(shares, gan.condition_frequencies, atol=0.07)
        assert sum(gan.condition_frequencies) == pytest.approx(1.0)
    else:
        assert gan.condition_frequencies is None
        assert not samples.labels.any()


def test_a_run_goes_on_where_it_was_stopped() -> None:
    order, images = make_order(), make_set(SHAPE, COUNT)
    run = make_run(order, images)
    run.measure()
    run.gan.warm_up(lambda _share: None)
    run.gan.critic_step()
    saved = run.checkpoint()
    assert any(name.startswith(START) for name in saved.tensors)
    other = make_run(order, images, seed=2)
    other.restore(Checkpoint.from_bytes(saved.to_bytes()))
    before = weights(other)
    assert torch.equal(before, weights(run))
    other.gan.warm_up(lambda _share: None)  # past it
    assert torch.equal(before, weights(other))
    again = other.checkpoint()
    assert again.values == saved.values
    assert all(torch.equal(tensor, again.tensors[name]) for name, tensor in saved.tensors.items())
    other.finish(Hooks())


def test_what_is_trained_draws_by_class() -> None:
    order = make_order(upright=None)
    plan = Plan(price_order(order, units=COUNT, budget=BUDGET).events)
    made = train_images(order, plan, make_set(SHAPE, COUNT), SecureRandom.from_test_seed(1))
    assert (made.component_labels, made.one_a_run) == ((0, 1, 2), False)
    assert sum(made.component_frequencies) == pytest.approx(1.0)


def test_networks_are_those_of_a_run_from_nothing_and_free_steps_are_counted_as_work() -> None:
    digits = ImageShape(28, 28, 1, 10)
    start = {"kind": "mixture", "generator": "trained"}
    ordered = {"method": "idpgan", "epsilon": 4.0}
    begun, plain = (
        resolve_order(parse_order({**ordered, **more}), units=60_000, shape=digits, budget=BUDGET)
        for more in ({"warm_start": start}, {})
    )
    assert begun.image_networks == plain.image_networks
    assert (begun.steps, begun.critic_weight_bound) == (plain.steps, plain.critic_weight_bound)
    corrected = resolve_order(
        parse_order({**ordered, "warm_start": {"kind": "mixture"}}), units=60_000, shape=digits, budget=BUDGET
    )
    assert corrected.steps < begun.steps
    facts = facts_of(digits, units=60_000)
    longer = begun.model_copy(update={"warm_start": begun.warm_start.model_copy(update={"free_steps": 20_000})})
    assert method_of(longer).estimate(longer, facts).products > method_of(begun).estimate(begun, facts).products
    assert free_samples(784) == MOST_FREE_SAMPLES
    assert free_samples(3 * 64 * 64) < MOST_FREE_SAMPLES


def test_an_order_stored_without_these_knobs_means_what_it_meant() -> None:
    order = make_order(generator="corrected", free_steps=2_000)
    stored = order.model_dump(mode="json")
    for knob in ("generator", "upright", "free_steps"):
        del stored["warm_start"][knob]
    del stored["augmentation"]
    again = parse_resolved_order(stored)
    assert again == order
    assert again.warm_start.upright is False
    assert price_order(again, units=COUNT, budget=BUDGET).events[0].purpose == CLASS_MEANS


def test_images_in_colour_are_not_asked_whether_they_lean() -> None:
    asked = parse_order({"method": "idpgan", "epsilon": 1.0, "warm_start": {"kind": "mixture", "upright": None}})
    for channels, upright in ((1, None), (3, False)):
        order = resolve_order(asked, units=COUNT, shape=ImageShape(8, 8, channels, 3), budget=BUDGET)
        assert order.warm_start.upright is upright
        assert resolve_order(order, units=COUNT, shape=ImageShape(8, 8, channels, 3), budget=BUDGET) == order


def test_a_run_without_a_start_is_refused() -> None:
    order = make_order().model_copy(update={"warm_start": None})
    with pytest.raises(InvalidOrder, match="begins with no mixture"):
        SampledImageIdpgan(order, Plan(()), make_set(SHAPE, COUNT), SecureRandom.from_test_seed(1), torch.device("cpu"))


def test_who_draws_samples_is_asked_whether_to_stop() -> None:
    run = make_run(make_order(3, generator="trained"), make_set(SHAPE, COUNT, 3))
    run.measure()
    asked: list[float] = []
    hooks = Hooks(on_warm_up=asked.append, should_stop=lambda: len(asked) == 2)
    with pytest.raises(TrainingStopped):
        run.finish(hooks)
    assert asked == [0.0, 0.0]
