"""`dpgan`, `ganobfuscator` and `dpacgan`: what sets each apart from `idpgan`. The contract of every method is tested elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from service.base.errors import InvalidOrder
from service.domain.image_schema import ImageSchema
from service.domain.shapes import ImageShape, TableShape
from service.methods.catalogue import check_order, parse_order
from service.privacy.events import GaussianEvent, SampledStepEvent
from tests.orders import resolve_order
from tests.tiny_generators import MIXED, domain_of
from workers.checkpoints import Checkpoint
from workers.encoding.images import EncodedImages
from workers.encoding.places import codes_in_places
from workers.encoding.table import EncodedTable
from workers.mechanism.secure_random import SecureRandom
from workers.methods.ganobfuscator.public import made_up_images, made_up_table
from workers.methods.interface import run_class
from workers.plan import Plan
from workers.sources import GivenImages, GivenTable

SHAPE = (12, 12, 1)
DOMAIN = domain_of(MIXED)


def images_of(count: int = 100) -> EncodedImages:
    rng = np.random.default_rng(0)
    return EncodedImages(rng.integers(0, 256, (count, 144)).astype(np.uint8), np.arange(count) % 10, SHAPE, 10)


def run_of(method: str, images: EncodedImages | None = None, **knobs: Any) -> Any:
    """A run of images after its measurement, with next to no noise."""
    images = images or images_of()
    ordered = {"method": method, "epsilon": 1.0, "sampling_probability": 0.5, "steps": 2, **knobs}
    order = resolve_order(parse_order(ordered), units=100, shape=ImageShape(*SHAPE, 10))
    plan = Plan((GaussianEvent("label_counts", 1e-12), SampledStepEvent(0.5, 1e-12, None, 2)))
    run: Any = run_class(order)(order, plan, GivenImages(images), SecureRandom.from_test_seed(1), torch.device("cpu"))
    run.measure()
    return run.gan


def test_weights_of_dpgan_stay_within_their_bound() -> None:
    run = run_of("dpgan", optimizer={"critic_learning_rate": 1.0})
    run.critic_step()
    assert max(float(tensor.detach().abs().max()) for tensor in run.tensors) == pytest.approx(0.05)
    assert run.order.gradient_penalty == 0.0


@pytest.mark.parametrize(
    ("named", "kind", "moments"),
    [({}, "adam", 3), ({"published_as": "dpgan"}, "rmsprop", 1), ({"published_as": "ppgan"}, "sgd", 0)],
)
def test_papers_differ_in_their_optimizer_alone_and_clip_every_unit(
    named: dict[str, str], kind: str, moments: int
) -> None:
    plain, run = run_of("dpgan"), run_of("dpgan", **named)
    assert run.order.optimizer.kind == kind
    same = {"optimizer": run.order.optimizer, "published_as": run.order.published_as}
    assert run.order == plain.order.model_copy(update=same)
    assert (run.order.gradient_penalty, run.order.critic_weight_bound) == (0.0, 0.05)
    assert len(run.critic_adam.state) == moments
    before = [tensor.detach().clone() for tensor in run.tensors]
    run.critic_step()
    run.generator_step()
    assert run.clip_groups.clip_norms == pytest.approx((1.0,))
    assert any(not torch.equal(old, new) for old, new in zip(before, run.tensors, strict=True))
    resumed = run_of("dpgan", **named)
    resumed.plan = Plan((GaussianEvent("label_counts", 1e-12), SampledStepEvent(0.5, 1e-12, None, 2)))
    resumed.restore(Checkpoint.from_bytes(run.checkpoint().to_bytes()))
    for one, other in zip(run.checkpoint().tensors.values(), resumed.checkpoint().tensors.values(), strict=True):
        assert torch.equal(one, other)


def test_an_optimizer_that_is_ordered_stands() -> None:
    order = run_of("dpgan", published_as="ppgan", optimizer={"kind": "rmsprop"}).order
    assert order.optimizer.kind == "rmsprop"
    slower = run_of("dpgan", published_as="ppgan", optimizer={"critic_learning_rate": 0.02}).order.optimizer
    assert (slower.kind, slower.critic_learning_rate, slower.generator_learning_rate) == (
        "sgd",
        0.02,
        0.1,
    )  # it was Adam


@pytest.mark.parametrize("method", ["ganobfuscator", "dpacgan"])
def test_clip_norms_come_from_public_images_alone(method: str) -> None:
    inverted = images_of()
    inverted.pixels[:] = 255 - inverted.pixels
    norms = []
    for run in (run_of(method), run_of(method, inverted)):
        torch.manual_seed(3)
        run.critic_step()
        norms.append(run.clip_groups.clip_norms)
    assert norms[0] == norms[1]
    assert norms[0][0] > 0.0


def test_clip_norms_of_tables_come_from_public_rows_alone() -> None:
    norms = []
    for fill in (0, 1):
        codes = np.full((100, len(DOMAIN.columns)), fill, dtype=np.uint16)
        ordered = {"method": "ganobfuscator", "epsilon": 1.0, "sampling_probability": 0.5, "steps": 1}
        shape = TableShape({column.name: column.size for column in DOMAIN.columns})
        order = resolve_order(parse_order(ordered), units=100, shape=shape)
        source = GivenTable(EncodedTable(codes, 100, None, 1), DOMAIN)
        plan, randomness = Plan((SampledStepEvent(0.5, 1e-12, None, 1),)), SecureRandom.from_test_seed(1)
        run: Any = run_class(order)(order, plan, source, randomness, torch.device("cpu"))
        torch.manual_seed(3)
        run.gan.critic_step()
        norms.append(run.gan.clip_groups.clip_norms)
    assert norms[0] == norms[1]


@pytest.mark.parametrize("places", [1, 3])
def test_public_records_are_of_the_declaration_alone_and_always_the_same(places: int) -> None:
    first, second = made_up_table(DOMAIN, 50, places=places), made_up_table(DOMAIN, 50, places=places)
    assert np.array_equal(first.codes, second.codes)
    assert (first.units, first.max_rows_per_unit) == (50, places)
    assert all(first.codes[:, c].max() < width for c, width in enumerate(DOMAIN.widths))
    assert codes_in_places(first, np.arange(50)).shape == (50 * places, len(DOMAIN.columns))
    made = [made_up_images(SHAPE, 40, 10, places=places) for _ in range(2)]
    assert np.array_equal(made[0].pixels, made[1].pixels)
    assert np.array_equal(made[0].labels, made[1].labels)
    assert made[0].pixels.std() > 20.0  # not blank
    assert (made[0].units, made[0].max_images_per_unit) == (40, places)


@pytest.mark.parametrize("method", ["ganobfuscator", "dpacgan"])
def test_while_public_records_are_looked_at_the_run_holds_its_private_ones(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_of(method)
    private, held = run.images, []
    original = run._batch_of

    def batch_of(*records: Any) -> Any:
        held.append(run.images)
        return original(*records)

    monkeypatch.setattr(run, "_batch_of", batch_of)
    run.critic_step()
    assert len(held) > 1
    assert all(images is private for images in held)


def test_the_second_head_of_dpacgan_learns_classes_from_real_images_alone() -> None:
    run = run_of("dpacgan")
    assert run.engine == "vmap"
    batch = run._critic_batch(np.arange(6))
    assert not batch.fake[:, -10:].any()
    assert ((batch.real[:, -10:] > 0).sum(dim=1) == 1).all()
    before = run.critic.classify.weight.clone()
    run.critic_step()
    assert not torch.equal(before, run.critic.classify.weight)


def test_dpacgan_needs_classes_to_name() -> None:
    schema = ImageSchema.model_validate({"type": "image", "height": 12, "width": 12, "channels": 1})
    with pytest.raises(InvalidOrder, match="two declared classes"):
        check_order(parse_order({"method": "dpacgan", "epsilon": 1.0}), schema)
