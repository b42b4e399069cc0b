"""Augmentation of images: what a copy is, that all copies are one unit, and that they cost nothing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from service.base.errors import InvalidOrder
from service.domain.image_schema import parse_schema
from service.domain.shapes import ImageShape
from service.methods.catalogue import check_order, method_of, parse_order
from service.methods.idpgan.order import IdpganOrder
from service.privacy.events import GaussianEvent, SampledStepEvent
from tests.orders import BUDGET, facts_of, price_order, resolve_order
from workers.encoding.images import EncodedImages
from workers.mechanism.secure_random import SecureRandom
from workers.methods.idpgan.images import ImageIdpgan
from workers.plan import Plan

SHAPE = (7, 6, 1)
PIXELS = math.prod(SHAPE)
COPIES = 8


def make_order(units: int = 20, per_unit: int = 1, **knobs: Any) -> IdpganOrder:
    ordered = {"method": "idpgan", "epsilon": 1.0, "sampling_probability": 0.5, "steps": 2, **knobs}
    shape = ImageShape(*SHAPE, 3, max_images_per_unit=per_unit)
    order = resolve_order(parse_order(ordered), units=units, shape=shape)
    assert isinstance(order, IdpganOrder)
    return order


def make_method(images: EncodedImages, **knobs: Any) -> ImageIdpgan:
    torch.manual_seed(1)
    order = make_order(images.units, images.max_images_per_unit, **knobs)
    plan = Plan((GaussianEvent("label_counts", 1e-9), SampledStepEvent(0.5, 1.0, 1.0, 2)))
    method = ImageIdpgan(order, plan, images, SecureRandom.from_test_seed(1), torch.device("cpu"))
    method.measure()
    return method


def one_bright_pixel(count: int = 20, **units: Any) -> EncodedImages:
    """In the middle, so that its place says how far an image was moved."""
    pixels = np.zeros((count, *SHAPE), dtype=np.uint8)
    pixels[:, 3, 2] = 255
    return EncodedImages(pixels.reshape(count, -1), np.arange(count) % 3, SHAPE, 3, **units)


def places(records: torch.Tensor) -> torch.Tensor:
    """Where every record's bright pixel is (R, 2)."""
    grid = records[:, :PIXELS].view(-1, *SHAPE[:2])
    assert ((grid > 0.99).sum(dim=(1, 2)) == 1).all()
    return (grid > 0.99).nonzero()[:, 1:]


def test_copies_lie_beside_their_image_and_are_moved_by_coins_of_their_own() -> None:
    method = make_method(one_bright_pixel(), augmentation={"copies": COPIES, "shift": 2})
    batch = method._critic_batch(np.array([4, 8, 9]))
    assert (batch.rows_per_unit, batch.units) == (COPIES, 3)
    assert batch.real[:, PIXELS:].argmax(dim=1).tolist() == [1] * COPIES + [2] * COPIES + [0] * COPIES
    many = places(torch.cat([method._critic_batch(np.arange(20)).real for _ in range(10)]))
    moved = many - torch.tensor([3, 2])
    assert set(moved[:, 0].tolist()) == set(moved[:, 1].tolist()) == {-2, -1, 0, 1, 2}
    shares = torch.bincount((moved[:, 0] + 2) * 5 + moved[:, 1] + 2, minlength=25) / len(moved)
    torch.testing.assert_close(shares, torch.full((25,), 1 / 25), atol=0.03, rtol=0.0)


def test_what_is_left_empty_is_filled_from_the_edge() -> None:
    images = one_bright_pixel()
    images.pixels[:] = np.tile(np.arange(SHAPE[1], dtype=np.uint8) * 51, SHAPE[0])  # columns grow lighter
    method = make_method(images, augmentation={"copies": 2, "shift": 1})
    real, _, _ = method._rows_to_clip(np.arange(20))
    rows = ((real[:, :PIXELS].view(-1, *SHAPE[:2]) + 1.0) / 2.0 * 5.0).round().long()
    seen = {tuple(row) for row in rows[:, 0].tolist()}
    assert seen == {(0, 1, 2, 3, 4, 5), (0, 0, 1, 2, 3, 4), (1, 2, 3, 4, 5, 5)}
    assert (rows == rows[:, :1]).all()


def test_without_a_shift_copies_are_the_image_and_elsewhere_rows_have_none() -> None:
    method = make_method(one_bright_pixel(), augmentation={"copies": 2, "shift": 0})
    assert set(map(tuple, places(method._rows_to_clip(np.arange(5))[0]).tolist())) == {(3, 2)}
    assert len(method._rows(np.arange(5))[0]) == 5


def test_images_of_one_unit_and_all_copies_are_one_unit() -> None:
    starts = np.array([0, 2, 2, 5], dtype=np.int64)
    images = one_bright_pixel(5, unit_starts=starts, max_images_per_unit=3)
    method = make_method(images, augmentation={"copies": 2})
    batch = method._critic_batch(np.arange(3))
    assert batch.rows_per_unit == 6
    assert batch.present.view(3, 6).tolist() == [[True] * 4 + [False] * 2, [False] * 6, [True] * 6]
    gradients = next(iter(method._per_unit_gradients(np.arange(3))))
    assert gradients.contributes.tolist() == [True, False, True]
    method.critic_step()


def test_a_step_has_the_mean_gradient_of_the_copies() -> None:
    images = one_bright_pixel()
    plain, copied = make_method(images), make_method(images, augmentation={"copies": COPIES, "shift": 0})
    copied.generator.load_state_dict(plain.generator.state_dict())
    copied.critic.load_state_dict(plain.critic.state_dict())
    units = np.arange(20)
    norms = [next(iter(method._per_unit_gradients(units))).tensor_norms.mean(dim=0) for method in (plain, copied)]
    # Fakes and places between differ, so a mean of eight is at most about as long as one, and no eight times.
    assert (norms[1] <= 1.2 * norms[0]).all()
    assert (norms[1] >= 0.3 * norms[0]).all()


def test_the_price_is_that_of_the_order_without_copies_and_the_work_is_not() -> None:
    plain, copied = make_order(), make_order(augmentation={"copies": COPIES})
    prices = [price_order(order, units=20, budget=BUDGET) for order in (plain, copied)]
    assert prices[0].events == prices[1].events
    facts = facts_of(ImageShape(*SHAPE, 3), units=5_000)
    work = [method_of(order).estimate(order, facts) for order in (plain, copied)]
    assert work[1].products > 3.0 * work[0].products


@pytest.mark.parametrize(
    ("knobs", "where"),
    [
        ({"augmentation": {"copies": 3}}, "augmentation"),
        ({"augmentation": {"copies": 4}, "private_step": {"pre_clip_noise": 0.1}}, "augmentation"),
    ],
)
def test_copies_that_have_no_exact_mean_or_no_single_gradient_are_refused(knobs: dict[str, Any], where: str) -> None:
    image = {"type": "image", "height": 8, "width": 8, "channels": 1, "classes": 3}
    with pytest.raises(InvalidOrder, match=where):
        check_order(parse_order({"method": "idpgan", "epsilon": 1.0, **knobs}), parse_schema(image))


def test_a_table_has_no_copies_and_a_unit_of_many_images_few() -> None:
    table = {"fields": [{"name": "a", "type": "boolean", "constraints": {"required": True}}]}
    with pytest.raises(InvalidOrder, match="augmentation: the dataset is a table"):
        check_order(parse_order({"method": "idpgan", "epsilon": 1.0, "augmentation": {}}), parse_schema(table))
    make_order(per_unit=50, augmentation={"copies": 2})
    with pytest.raises(InvalidOrder, match="at most 2 copies"):
        make_order(per_unit=50, augmentation={"copies": 4})
    with pytest.raises(InvalidOrder, match="order no augmentation"):
        make_order(per_unit=60, augmentation={"copies": 2})
