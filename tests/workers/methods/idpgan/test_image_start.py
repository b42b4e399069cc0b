"""A generator that begins with a measured mixture: it pays for it first, changes nothing at first, and resumes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from service.base.errors import InvalidOrder
from service.domain.image_schema import ImageSchema
from service.domain.shapes import ImageShape
from service.methods.catalogue import parse_order
from service.methods.idpgan.order import IdpganOrder
from service.methods.mixture.price import CELL_MOMENTS, CLASS_MEANS
from service.privacy.events import GaussianEvent, SampledStepEvent
from service.privacy.filters import open_budget
from service.samples.samplers import sampler_from_bundle
from tests.bundles import build_image_bundle
from tests.orders import largest_epsilon, price_order, resolve_order
from tests.runs import train_images
from tests.tiny_images import make_set
from workers.checkpoints import Checkpoint
from workers.encoding.images import EncodedImages
from workers.mechanism.secure_random import SecureRandom
from workers.methods.idpgan.image_start import START, StartedImageIdpgan
from workers.plan import Plan, StepNotOnPlan

SHAPE = (6, 5, 1)
COUNT = 300
BUDGET = open_budget(8.0, 1e-5)


def make_order(classes: int = 3, **knobs: Any) -> IdpganOrder:
    ordered = {
        "method": "idpgan",
        "epsilon": 4.0,
        "sampling_probability": 0.1,
        "steps": 6,
        "warm_start": {"kind": "mixture"},
    }
    shape = ImageShape(*SHAPE, max(1, classes))
    order = resolve_order(parse_order({**ordered, **knobs}), units=COUNT, shape=shape, budget=BUDGET)
    assert isinstance(order, IdpganOrder)
    return order


def make_method(order: IdpganOrder, images: EncodedImages, *, seed: int = 1) -> StartedImageIdpgan:
    torch.manual_seed(seed)
    plan = Plan(price_order(order, units=COUNT, budget=BUDGET).events)
    return StartedImageIdpgan(order, plan, images, SecureRandom.from_test_seed(seed), torch.device("cpu"))


def test_the_price_has_the_measurement_first_and_steps_from_what_is_left() -> None:
    order = make_order(warm_start={"kind": "mixture", "precision_share": 0.5, "cells": 8})
    price = price_order(order, units=COUNT, budget=BUDGET)
    *measured, steps = price.events
    assert [event.purpose for event in measured if isinstance(event, GaussianEvent)][:1] == [CLASS_MEANS]
    assert measured[-1].purpose == CELL_MOMENTS
    assert isinstance(steps, SampledStepEvent)
    assert 0.99 * 4.0 <= price.pld_epsilon <= 4.0
    without = price_order(order.model_copy(update={"warm_start": None}), units=COUNT, budget=BUDGET)
    assert steps.gradient_noise_multiplier > without.events[-1].gradient_noise_multiplier
    more = price_order(
        make_order(warm_start={"kind": "mixture", "precision_share": 0.9, "cells": 8}), units=COUNT, budget=BUDGET
    )
    assert more.events[-1].gradient_noise_multiplier > steps.gradient_noise_multiplier
    assert more.events[0].noise_multiplier < measured[0].noise_multiplier
    assert 0.0 < largest_epsilon(order, units=COUNT, budget=BUDGET, simple_left=10**8, renyi_left=10**8) <= 8.0


def test_resolving_fills_in_the_cells_and_changes_nothing_again() -> None:
    order = parse_order({"method": "idpgan", "epsilon": 8.0, "warm_start": {"kind": "mixture"}})
    digits = ImageShape(28, 28, 1, 10)
    resolved = resolve_order(order, units=600_000, shape=digits, budget=BUDGET)
    assert resolved.mixture_first.cells == 24
    assert resolve_order(resolved, units=600_000, shape=digits, budget=BUDGET) == resolved
    few = resolve_order(order, units=600, shape=digits, budget=BUDGET)
    assert few.mixture_first.cells == 1


@pytest.mark.parametrize("classes", [3, 0])
def test_before_its_first_step_it_draws_what_the_mixture_draws(classes: int) -> None:
    method = make_method(
        make_order(classes, warm_start={"kind": "mixture", "cells": 2}), make_set(SHAPE, COUNT, classes)
    )
    method.measure()
    assert len(method.component_labels) == 2 * max(1, classes)
    mixture = method.start.build()
    noise = torch.randn(5, method.noise_dimension)
    for component in (0, 1):
        place = torch.tensor([component])
        torch.testing.assert_close(method.averaged_generator(noise, place), mixture(noise, place))
        # All at once, as training draws them.
        mixed = mixture.mixed(noise, torch.full((5,), component))
        torch.testing.assert_close(mixed, mixture(noise, place), atol=1e-5, rtol=1e-5)
    if classes:
        assert sum(method.condition_frequencies) == pytest.approx(1.0)
    else:
        assert method.condition_frequencies is None


def test_fakes_are_of_their_own_class_and_all_that_it_has() -> None:
    method = make_method(make_order(warm_start={"kind": "mixture", "cells": 2}), make_set(SHAPE, COUNT))
    method.measure()
    seen = []
    method.generator.drawn = lambda _noise, components: seen.append(components) or torch.zeros(len(components), 30)
    labels = torch.arange(3).repeat(200)
    method._fakes(method.generator, labels)
    assert torch.equal(torch.tensor(method.component_labels)[seen[0]], labels)
    frequent = np.array(method.component_frequencies) > 0.02
    assert set(np.flatnonzero(frequent)) <= set(seen[0].tolist())


def test_it_trains_by_its_plan_and_only_the_correction_moves() -> None:
    images = make_set(SHAPE, COUNT)
    method = make_method(make_order(), images)
    with pytest.raises(StepNotOnPlan):
        method.critic_step()
    method.measure()
    means = method.corrected.mixture.means.clone()
    for _ in range(6):
        method.critic_step()
        method.generator_step()
    assert float(method.corrected.output.weight.detach().abs().max()) > 0.0
    assert torch.equal(method.corrected.mixture.means, means)
    with pytest.raises(StepNotOnPlan):
        method.critic_step()
    bundle = build_image_bundle(
        method.averaged_generator,
        ImageSchema(type="image", height=6, width=5, channels=1, classes=3),
        noise_dimension=method.noise_dimension,
        component_labels=method.component_labels,
        component_frequencies=method.component_frequencies,
        one_a_run=True,
        certificate={},
        order={},
    )
    images, labels = next(sampler_from_bundle(bundle).draws(50, seed=1))
    assert images.reshape(-1, *SHAPE).shape == (50, *SHAPE)
    assert set(labels.tolist()) <= {0, 1, 2}


def test_a_checkpoint_restores_the_mixture_and_the_networks() -> None:
    order, images = make_order(warm_start={"kind": "mixture", "cells": 2}), make_set(SHAPE, COUNT)
    method, other = make_method(order, images), make_method(order, images, seed=2)
    method.measure()
    for _ in range(3):
        method.critic_step()
        method.generator_step()
    saved = method.checkpoint()
    assert any(name.startswith(START) for name in saved.tensors)
    other.restore(Checkpoint.from_bytes(saved.to_bytes()))
    assert other.checkpoint().values == saved.values
    again = other.checkpoint().tensors
    assert all(torch.equal(tensor, again[name]) for name, tensor in saved.tensors.items())
    other.critic_step()


def test_what_is_trained_says_which_components_it_has() -> None:
    order, images = make_order(warm_start={"kind": "mixture", "cells": 2}), make_set(SHAPE, COUNT)
    plan = Plan(price_order(order, units=COUNT, budget=BUDGET).events)
    made = train_images(order, plan, images, SecureRandom.from_test_seed(1))
    assert made.component_labels == (0, 0, 1, 1, 2, 2)
    assert len(made.component_frequencies) == 6
    assert not made.is_private
    assert made.noise_dimension == made.generator.noise_dimension


def test_a_method_without_a_start_is_refused() -> None:
    order = make_order()
    plan = Plan(price_order(order, units=COUNT, budget=BUDGET).events)
    with pytest.raises(InvalidOrder):
        StartedImageIdpgan(
            order.model_copy(update={"warm_start": None}),
            plan,
            make_set(SHAPE, COUNT),
            SecureRandom.from_test_seed(1),
            torch.device("cpu"),
        )
