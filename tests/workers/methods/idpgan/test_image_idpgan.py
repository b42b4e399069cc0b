"""The private step on images: one image moves it by its clip norm at most, labels are bought, knobs do what they say."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from service.base.errors import InvalidOrder
from service.domain.shapes import ImageShape
from service.methods.catalogue import parse_order
from service.methods.idpgan.images import DEFAULTS, LABEL, WEIGHT_BOUND, WEIGHT_BOUND_IN_NOISE
from service.methods.idpgan.knobs import Optimizer
from service.methods.idpgan.order import IdpganOrder
from service.privacy.events import Events, GaussianEvent, SampledStepEvent
from service.privacy.filters import open_budget
from tests.orders import price_order, resolve_order
from tests.tiny_images import make_set
from workers.checkpoints import Checkpoint
from workers.encoding.images import EncodedImages
from workers.mechanism.image_moments import NO_CELL
from workers.mechanism.secure_random import SecureRandom
from workers.methods.idpgan.images import PREVIEWED, ImageIdpgan
from workers.networks.enlarged import Enlarged, shrunk, shrunk_sides
from workers.networks.image_generator import ImageGenerator
from workers.networks.image_perceptron import PerceptronImageGenerator
from workers.plan import Plan

SHAPE = (6, 5, 3)
COUNT = 24
CLASSES = 3
TINY_NOISE = 1e-9
SIZES = {"noise_dimension": 4, "generator_channels": [6, 4], "critic_channels": [4, 5]}


def without(images: EncodedImages, unit: int) -> EncodedImages:
    """The zero-out neighbour."""
    pixels, labels = images.pixels.copy(), images.labels.copy()
    pixels[unit], labels[unit] = 0, NO_CELL
    return EncodedImages(pixels, labels, images.shape, images.classes)


def make_method(images: EncodedImages, *, noise: float = TINY_NOISE, steps: int = 10, **knobs: Any) -> ImageIdpgan:
    ordered = {"method": "idpgan", "epsilon": 1.0, "sampling_probability": 0.5, "steps": steps, "image_networks": SIZES}
    order = resolve_order(
        parse_order({**ordered, **knobs}), units=len(images.pixels), shape=ImageShape(*SHAPE, max(1, images.classes))
    )
    assert isinstance(order, IdpganOrder)
    step = SampledStepEvent(0.5, noise, noise if order.thresholds.kind == "adaptive" else None, steps)
    events: Events = (step,) if order.condition_on is None else (GaussianEvent("label_counts", TINY_NOISE), step)
    torch.manual_seed(1)
    method = ImageIdpgan(order, Plan(events), images, SecureRandom.from_test_seed(1), torch.device("cpu"))
    method.measure()
    return method


def released(method: ImageIdpgan) -> list[torch.Tensor]:
    return [tensor.grad.double() * method.expected_units for tensor in method.tensors]


VARIANTS = [
    {},
    {"critic_loss": "separate"},
    {"critic_loss": "separate", "gradient_penalty_at": "generated"},
    {"gradient_penalty_at": "generated"},
    {"thresholds": {"kind": "adaptive"}, "clusters": {"kind": "dbscan"}},
    {"critic_weight_bound": 0.05},
    {"image_networks": {"noise_dimension": 4, "generator_channels": [6], "critic_channels": [4], "shrink": 2}},
    {"image_networks": {"layers": "perceptrons", "noise_dimension": 4, "shrink": 2}},
    {"augmentation": {"copies": 4}},
    {"augmentation": {"copies": 8, "shift": 2}, "image_networks": {"layers": "perceptrons", "noise_dimension": 4}},
]


@pytest.mark.parametrize("knobs", VARIANTS)
def test_zeroing_out_an_image_moves_the_step_by_at_most_its_sensitivity(knobs: dict[str, Any]) -> None:
    images = make_set(SHAPE, COUNT)
    moved = 0.0
    for unit in range(0, 24, 4):
        methods = [make_method(of, **knobs) for of in (images, without(images, unit))]
        for method in methods:
            method.condition_frequencies = methods[0].condition_frequencies  # bought, on their own event
            groups = method.clip_groups
            method.critic_step()
        first, second = (released(method) for method in methods)
        for group, clip_norm in zip(groups.groups, groups.clip_norms, strict=True):
            change = math.sqrt(sum(float((first[t] - second[t]).square().sum()) for t in group))
            assert change <= clip_norm * (1 + 1e-5) + 1e-5
            moved += change
    assert moved > 0.0


def test_frequencies_are_bought_and_fakes_follow_them() -> None:
    images = make_set(SHAPE, 30)
    images.labels[:] = np.repeat([0, 1, 2], (6, 9, 15))
    method = make_method(images)
    np.testing.assert_allclose(method.condition_frequencies, [0.2, 0.3, 0.5], atol=0.15)
    batch = method._critic_batch(np.array([0, 29]))
    assert batch.real.shape == (2, math.prod(SHAPE) + CLASSES)
    assert batch.real[:, -CLASSES:].tolist() == batch.fake[:, -CLASSES:].tolist() == [[1, 0, 0], [0, 0, 1]]
    assert float(batch.real[:, :-CLASSES].min()) >= -1.0
    np.testing.assert_array_equal(
        ((batch.real[:, :-CLASSES] + 1) / 2 * 255).round().numpy(), images.pixels[[0, 29]].astype(np.float32)
    )


@pytest.mark.parametrize("classes", [0, 1])
def test_images_of_one_kind_buy_no_frequencies(classes: int) -> None:
    method = make_method(make_set(SHAPE, COUNT, classes))
    assert method.order.condition_on is None
    method.critic_step()
    method.generator_step()
    assert method.condition_frequencies is None
    assert method.critic.labels is None


def test_a_penalty_at_generated_images_reads_no_row_where_the_loss_is_separate() -> None:
    method = make_method(make_set(SHAPE, COUNT), critic_loss="separate", gradient_penalty_at="generated")
    assert method.loss.gradient_penalty == 0.0
    del method.images
    with_penalty = method._gradient_of_fakes()
    method.penalty_of_fakes = 0.0
    without_penalty = method._gradient_of_fakes()
    assert any(not torch.allclose(a, b) for a, b in zip(with_penalty, without_penalty, strict=True))
    paired = make_method(make_set(SHAPE, COUNT), gradient_penalty_at="generated")
    assert not paired._critic_batch(np.arange(4)).mix.any()


def test_a_bounded_critic_stays_within_its_bound_and_its_releases_are_the_same() -> None:
    far = {"optimizer": {"critic_learning_rate": 0.5}}
    free, bounded = (make_method(make_set(SHAPE, COUNT), **far, **more) for more in ({}, {"critic_weight_bound": 0.05}))
    for method in (free, bounded):
        method.critic_step()
    for one, other in zip(released(free), released(bounded), strict=True):
        assert torch.equal(one, other)
    largest, kept = (max(float(t.detach().abs().max()) for t in method.tensors) for method in (free, bounded))
    assert largest > 0.4
    assert kept == pytest.approx(0.05)


def test_critic_steps_climb_as_the_critic_falls_behind() -> None:
    method = make_method(make_set(SHAPE, COUNT), adaptive_critic_steps={"threshold": 0.9, "average_decay": 0.0})
    seen = []
    for accuracy in (0.95, 0.5, 0.95, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0):
        method._climb(method.order.adaptive_critic_steps, accuracy)
        seen.append(method.critic_steps)
    assert seen == [1, 2, 2, 5, 10, 20, 50, 100, 200, 200]
    method = make_method(make_set(SHAPE, COUNT), adaptive_critic_steps={"average_decay": 0.99})
    method.critic_steps = 2
    due = []
    for _ in range(4):
        method.critic_step()
        due.append(method.generator_is_due())
        if due[-1]:
            method.generator_step()
    assert due == [False, True, False, True]


def test_a_checkpoint_restores_everything() -> None:
    method = make_method(make_set(SHAPE, COUNT), noise=1.0, adaptive_critic_steps={"threshold": 0.9})
    for _ in range(3):
        method.critic_step()
        method.generator_step()
    other = make_method(make_set(SHAPE, COUNT), noise=1.0, adaptive_critic_steps={"threshold": 0.9})
    other.plan = Plan(method.plan._events)
    other.restore(Checkpoint.from_bytes(method.checkpoint().to_bytes()))
    assert other.checkpoint().values == method.checkpoint().values
    wanted = method.checkpoint().tensors
    assert all(torch.equal(tensor, wanted[name]) for name, tensor in other.checkpoint().tensors.items())


@pytest.mark.parametrize("shape", [(28, 28, 1), (14, 14, 1), (7, 9, 3), (33, 64, 3)])
def test_the_generator_makes_the_declared_size_and_mixes_no_images(shape: tuple[int, int, int]) -> None:
    torch.manual_seed(0)
    generator = ImageGenerator(shape, noise_dimension=4, channels=(5, 4), classes=2)
    noise, condition = torch.randn(6, 4), torch.tensor([0, 1, 0, 1, 0, 1])
    images = generator(noise, condition).detach()
    assert images.shape == (6, *shape)
    assert 0.0 <= float(images.min()) < float(images.max()) <= 1.0
    torch.testing.assert_close(generator(noise[2:4], condition[2:4]), images[2:4])


@pytest.mark.parametrize("shape", [(28, 28, 1), (7, 9, 3)])
@pytest.mark.parametrize("shrink", [2, 3])
def test_small_images_are_enlarged_each_by_itself(shape: tuple[int, int, int], shrink: int) -> None:
    torch.manual_seed(0)
    small = shrunk_sides(shape, shrink)
    for generator in (
        ImageGenerator(small, noise_dimension=4, channels=(5,), classes=2),
        PerceptronImageGenerator(small, noise_dimension=4, hidden=(6,), classes=2),
    ):
        enlarged = Enlarged(generator, shape)
        noise, condition = torch.randn(6, 4), torch.tensor([0, 1, 0, 1, 0, 1])
        images = enlarged(noise, condition).detach()
        assert images.shape == (6, *shape)
        assert shrunk(images, shrink).shape == generator(noise, condition).shape == (6, *small)
        assert 0.0 <= float(images.min()) < float(images.max()) <= 1.0
        torch.testing.assert_close(enlarged(noise[2:4], condition[2:4]), images[2:4])


def test_a_shrunk_pixel_is_the_mean_of_those_it_stands_for() -> None:
    """At the far edges of the ones there are; an image of one grey keeps it."""
    images = torch.rand(2, 7, 9, 3)
    small = shrunk(images, 2)
    torch.testing.assert_close(small[:, 1, 2], images[:, 2:4, 4:6].mean(dim=(1, 2)))
    torch.testing.assert_close(small[:, 3, 4], images[:, 6, 8])
    torch.testing.assert_close(shrunk(torch.full((1, 7, 9, 3), 0.3), 2), torch.full((1, 4, 5, 3), 0.3))
    assert shrunk(images, 1) is images


def test_the_critic_sees_shrunk_images_and_samples_are_whole_ones() -> None:
    method = make_method(
        make_set(SHAPE, COUNT), image_networks={"layers": "perceptrons", "noise_dimension": 4, "shrink": 2}
    )
    records, present, _ = method._rows(np.arange(4))
    assert bool(present.all())
    assert records.shape == (4, 3 * 3 * 3 + CLASSES)
    wanted = torch.from_numpy(method.images.pixels[:4]).view(4, *SHAPE).float() / 255.0
    torch.testing.assert_close(records[:, :27], 2.0 * shrunk(wanted, 2).flatten(1) - 1.0)
    assert method.preview().shape == (CLASSES, PREVIEWED, *SHAPE)


# -- the order --------------------------------------------------------------------------------------------------------


def test_what_is_not_ordered_is_what_suits_images_and_resolving_again_changes_nothing() -> None:
    order, budget = parse_order({"method": "idpgan", "epsilon": 1, "steps": 7}), open_budget(3.0, 1e-5)
    resolved = resolve_order(order, units=60_000, shape=ImageShape(28, 28, 1, 10), budget=budget)
    assert isinstance(resolved, IdpganOrder)
    assert (resolved.steps, resolved.condition_on, resolved.optimizer) == (7, LABEL, Optimizer())
    assert (resolved.thresholds.kind, resolved.clusters.kind) == ("adaptive", "dbscan")
    assert resolved.image_networks is not None
    assert (resolved.image_networks.layers, resolved.image_networks.shrink) == ("perceptrons", 2)
    small = resolve_order(order, units=60_000, shape=ImageShape(14, 14, 1, 10), budget=budget)
    near = parse_order({"method": "idpgan", "epsilon": 1, "warm_start": {"kind": "mixture"}})
    near = resolve_order(near, units=60_000, shape=ImageShape(28, 28, 1, 10), budget=budget)
    assert (small.image_networks.shrink, near.image_networks.shrink) == (1, 1)
    large = resolve_order(order, units=60_000, shape=ImageShape(64, 64, 3, 10), budget=budget)
    assert large.critic_weight_bound is None
    assert (large.optimizer, large.image_networks.layers) == (DEFAULTS["optimizer"], "convolutions")
    assert len(large.image_networks.critic_channels) == 3
    stored = parse_order(resolved.model_dump(mode="json"))
    assert resolve_order(stored, units=60_000, shape=ImageShape(28, 28, 1, 10), budget=budget) == resolved
    price = price_order(resolved, units=60_000, budget=budget)
    assert isinstance(price.events[0], GaussianEvent)
    assert sum(event.count for event in price.events[1:]) == 7


@pytest.mark.parametrize(
    ("epsilon", "units", "bound"),
    [(1, 60_000, WEIGHT_BOUND_IN_NOISE), (10, 60_000, WEIGHT_BOUND), (10, 1_000, WEIGHT_BOUND_IN_NOISE)],
)
def test_the_critic_is_bounded_more_narrowly_in_more_noise(epsilon: float, units: int, bound: float) -> None:
    shape, budget = ImageShape(14, 14, 1, 10), open_budget(20.0, 2e-5)

    def resolved(**knobs: Any) -> IdpganOrder:
        order = parse_order({"method": "idpgan", "epsilon": epsilon, **knobs})
        return resolve_order(order, units=units, shape=shape, budget=budget)  # type: ignore[return-value]

    assert resolved().critic_weight_bound == bound
    assert resolved(critic_weight_bound=3.0).critic_weight_bound == 3.0
    assert resolved(critic_weight_bound=None).critic_weight_bound is None
    near = resolved(warm_start={"kind": "mixture"})
    assert (near.critic_weight_bound, near.steps, near.clusters.kind) == (None, 600, "none")


@pytest.mark.parametrize(
    ("shape", "knobs", "where"),
    [
        ((28, 28, 1), {"image_networks": {"critic_channels": [2, 2, 2, 2, 2]}}, "image_networks.critic_channels"),
        ((4, 28, 1), {"image_networks": {"generator_channels": [2, 2, 2]}}, "image_networks.generator_channels"),
        ((1, 28, 1), {}, "method"),
        ((4, 28, 1), {"image_networks": {"shrink": 4}}, "method"),
        ((8, 8, 1), {"image_networks": {"shrink": 2, "critic_channels": [2, 2, 2]}}, "image_networks.critic_channels"),
        ((256, 256, 3), {}, "method"),
        ((28, 28, 1, 101), {}, "method"),
    ],
)
def test_sizes_that_the_images_do_not_allow_are_refused(
    shape: tuple[int, ...], knobs: dict[str, Any], where: str
) -> None:
    order = parse_order({"method": "idpgan", "epsilon": 1, **knobs})
    with pytest.raises(InvalidOrder) as refused:
        resolve_order(order, units=1_000, shape=ImageShape(*shape[:3], 10, *shape[3:]))
    assert refused.value.values["where"] == where
