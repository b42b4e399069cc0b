"""A person with several images, gone: what every release of images moves by, in exact fractions.

Neighbours are D and D with all images of one person zeroed out, and D with fewer images than places besides: how many a
person has is private. Sums come from the images anew, with the same coins. Declared is declared.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from bench.audit.worlds import listening
from service.domain.shapes import ImageShape
from service.methods.catalogue import parse_order
from service.methods.mixture.order import MixtureOrder
from service.methods.mixture.price import CELL_MEANS, CELL_MOMENTS, CLASS_MEANS, LEANINGS, SHARED_MOMENTS, TONES
from service.privacy.events import Events, GaussianEvent, SampledStepEvent
from tests.exact_changes import assert_bounded
from tests.orders import resolve_order
from workers.encoding.images import EncodedImages, cosine_basis
from workers.encoding.slant import deskewed, slant_codes
from workers.mechanism.image_moments import (
    EXACT,
    NO_CELL,
    Coefficients,
    Units,
    first_moments,
    leaning_counts,
    nearest_cells,
    scale_for,
    second_moments,
    shared_moments,
    tone_counts,
)
from workers.mechanism.secure_random import SecureRandom
from workers.methods.idpgan.image_start import StartedImageIdpgan
from workers.methods.idpgan.images import ImageIdpgan
from workers.methods.mixture.measuring import ImageMixture
from workers.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from workers.mechanism import PrivateSum

SHAPE = (6, 5, 1)
PIXELS = math.prod(SHAPE)
CELLS = 3

pytestmark = pytest.mark.usefixtures("one_thread")


def make_people(sizes: list[int], most: int, *, kind: str = "random", classes: int = CELLS) -> EncodedImages:
    rng = np.random.default_rng(3)
    count = sum(sizes)
    pixels = rng.integers(0, 256, (count, PIXELS), dtype=np.uint8)
    labels = rng.integers(0, max(1, classes), count)
    starts = np.append(0, np.cumsum(sizes)).astype(np.int64)
    if kind == "one person has one image many times":
        pixels[starts[1] : starts[2]], labels[starts[1] : starts[2]] = pixels[starts[1]], 1
    if kind == "white":
        pixels[:], labels[:] = 255, 0
    return EncodedImages(pixels, labels, SHAPE, classes, starts, most)


def nulled(images: EncodedImages, person: int) -> EncodedImages:
    """All images of a person zeroed out, in their places."""
    assert images.unit_starts is not None
    theirs = slice(images.unit_starts[person], images.unit_starts[person + 1])
    pixels, labels = images.pixels.copy(), images.labels.copy()
    pixels[theirs], labels[theirs] = 0, NO_CELL
    return replace(images, pixels=pixels, labels=labels)


def removed(images: EncodedImages, person: int) -> EncodedImages:
    """The person has no image at all, and everybody else's move up; the number of units is the same."""
    starts = images.unit_starts
    assert starts is not None
    kept = np.ones(len(images.pixels), dtype=bool)
    kept[starts[person] : starts[person + 1]] = False
    gone = starts[person + 1] - starts[person]
    moved = starts - np.where(np.arange(len(starts)) > person, gone, 0)
    return replace(images, pixels=images.pixels[kept], labels=images.labels[kept], unit_starts=moved)


# -- every sum of a mixture -------------------------------------------------------------------------------------------


def sums_of(images: EncodedImages, centres: np.ndarray, radius: int, most_coefficients: int) -> list[PrivateSum]:
    assert images.unit_starts is not None
    units = Units(images.unit_starts, images.max_images_per_unit)
    basis = cosine_basis(SHAPE, most_coefficients)
    scale = scale_for(images.units, radius / 64.0, most=images.max_images_per_unit)
    records = Coefficients(images.pixels, basis, scale)
    bounds = {"centres": centres, "radius": radius, "units": units}
    places = nearest_cells(records, images.labels, centres=centres, centre_labels=np.arange(CELLS) % 2)
    stood = slant_codes(deskewed(images.pixels, SHAPE))
    return [
        first_moments(records, images.labels, **bounds),
        second_moments(records, images.labels, **bounds),
        shared_moments(records, images.labels, **bounds),
        first_moments(records, places, **bounds),
        second_moments(records, places, **bounds),
        tone_counts(images.pixels, images.labels, bins=16, units=units),
        leaning_counts(stood, images.labels, classes=CELLS, bins=9, units=units),
    ]


@pytest.mark.parametrize("kind", ["random", "one person has one image many times", "white"])
@pytest.mark.parametrize(("sizes", "most"), [([1, 4, 2, 7, 3, 4], 4), ([3, 6, 1, 2], 6), ([2, 9, 2], 3), ([1] * 6, 1)])
def test_one_person_moves_every_sum_by_at_most_its_sensitivity(kind: str, sizes: list[int], most: int) -> None:
    images = make_people(sizes, most, kind=kind)
    for coefficients in (4, 30):
        radius = 900
        width = cosine_basis(SHAPE, coefficients).shape[1]
        centres = np.rint(np.random.default_rng(1).normal(size=(CELLS, width)) * 300)
        full = sums_of(images, centres, radius, coefficients)
        largest = 0.0
        for private in full:
            assert all(bool((value == value.round()).all()) and value.abs().max() < EXACT for value in private.values)
        for person in range(images.units):
            for neighbour in (nulled(images, person), removed(images, person)):
                others = sums_of(neighbour, centres, radius, coefficients)
                moved = [assert_bounded(*pair) for pair in zip(full, others, strict=True)]
                largest = max(largest, *moved)
        if kind != "random":
            assert largest > 0.99, "the bound is reached: all images of one person are alike"


def test_the_sensitivity_is_that_of_one_image_times_how_many_there_may_be() -> None:
    people = make_people([5, 2, 5], 5)
    alone = replace(people, unit_starts=np.arange(13), max_images_per_unit=1)
    centres = np.zeros((CELLS, 9))
    for one, many in zip(sums_of(alone, centres, 900, 9), sums_of(people, centres, 900, 9), strict=True):
        assert many.sensitivities == tuple(5.0 * sensitivity for sensitivity in one.sensitivities)


def test_images_beyond_the_bound_are_left_out_whatever_the_reader_promised() -> None:
    people = make_people([9, 1, 9, 2], 3)
    assert people.unit_starts is not None
    within = np.concatenate(
        [np.arange(start, min(start + 3, stop)) for start, stop in ((0, 9), (9, 10), (10, 19), (19, 21))]
    )
    kept = replace(
        people, pixels=people.pixels[within], labels=people.labels[within], unit_starts=np.array([0, 3, 4, 7, 9])
    )
    centres = np.zeros((CELLS, 9))
    for first, second in zip(sums_of(people, centres, 900, 9), sums_of(kept, centres, 900, 9), strict=True):
        assert all(torch.equal(a, b) for a, b in zip(first.values, second.values, strict=True))


def test_cells_do_not_depend_on_whose_images_lie_beside() -> None:
    """However far noise carried the centres: a rounded product could depend on a record's place."""
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (5_000, PIXELS), dtype=np.uint8)
    labels = np.zeros(5_000, dtype=np.int64)
    basis, scale = cosine_basis(SHAPE, 30), 2.0**12
    for size in (1e3, 1e9, 1e14, 1e18):
        centres = np.rint(rng.normal(size=(200, 30)) * size)
        found = nearest_cells(
            Coefficients(pixels, basis, scale), labels, centres=centres, centre_labels=np.zeros(200, dtype=np.int64)
        )
        for start in (1, 7, 333):
            part = nearest_cells(
                Coefficients(pixels[start:], basis, scale),
                labels[start:],
                centres=centres,
                centre_labels=np.zeros(200, dtype=np.int64),
            )
            assert (part == found[start:]).all()


# -- the whole measurement, as the method makes it --------------------------------------------------------------------


def measured_sums(images: EncodedImages, released: list[tuple[np.ndarray, ...]] | None) -> tuple[list[PrivateSum], Any]:
    """What a run hands over for noise. With `released`, what comes back is that, whatever was handed over."""
    order = MixtureOrder(method="mixture", epsilon=1.0, cells=2, sorting_rounds=2, record_norm=0.9, centred_norm=0.3)
    purposes = [LEANINGS, CLASS_MEANS, TONES, SHARED_MOMENTS, CELL_MEANS, CELL_MEANS, CELL_MOMENTS]
    plan = Plan(tuple(GaussianEvent(purpose, 0.3) for purpose in purposes))
    method = ImageMixture(order, plan, images, SecureRandom.from_test_seed(1))
    heard: list[PrivateSum] = []
    answers: list[tuple[np.ndarray, ...]] = []
    release = method._release

    def listen(purpose: str, sums: Callable[[], PrivateSum], shares: tuple[float, ...]) -> tuple[np.ndarray, ...]:
        def handed_over() -> PrivateSum:
            heard.append(sums())
            return heard[-1]

        noisy = release(purpose, handed_over, shares)
        answers.append(noisy if released is None else released[len(answers)])
        return answers[-1]

    method._release = listen  # type: ignore[method-assign]
    method.measure()
    return heard, answers


@pytest.mark.parametrize("most", [1, 4])
def test_every_release_of_a_mixture_moves_by_its_sensitivity_when_a_person_is_nulled(most: int) -> None:
    images = make_people([3, 4, 1, 4, 2, 5, 4, 4], most, kind="one person has one image many times")
    full, answers = measured_sums(images, None)
    assert len(full) == 7
    for person in range(images.units):
        for neighbour in (nulled(images, person), removed(images, person)):
            others, _ = measured_sums(neighbour, answers)
            for first, second in zip(full, others, strict=True):
                assert_bounded(first, second)


# -- the clipped sum of a step ----------------------------------------------------------------------------------------

NETWORKS = [
    pytest.param({"noise_dimension": 4, "generator_channels": [5], "critic_channels": [4]}, id="convolutions"),
    pytest.param({"layers": "perceptrons", "noise_dimension": 4}, id="perceptrons"),
    pytest.param({"layers": "perceptrons", "noise_dimension": 4, "shrink": 2}, id="shrunk"),
]


def make_idpgan(images: EncodedImages, **knobs: Any) -> ImageIdpgan:
    ordered = {"method": "idpgan", "epsilon": 1.0, "sampling_probability": 0.6, "steps": 3, "device": "cpu"}
    shape = ImageShape(*SHAPE, max(1, images.classes), images.max_images_per_unit)
    order: Any = resolve_order(parse_order({**ordered, **knobs}), units=images.units, shape=shape)
    step = SampledStepEvent(0.6, 1.0, 1.0 if order.thresholds.kind == "adaptive" else None, 3)
    events: Events = (GaussianEvent("label_counts", 1e6), step) if order.condition_on else (step,)
    kind = ImageIdpgan
    if order.mixture_first is not None:
        kind = StartedImageIdpgan
        purposes = [CLASS_MEANS, TONES, SHARED_MOMENTS, CELL_MOMENTS]
        events = (*(GaussianEvent(purpose, 0.3) for purpose in purposes), step)
    torch.manual_seed(1)
    return kind(order, Plan(events), images, SecureRandom.from_test_seed(1), torch.device("cpu"))


def step_sums(images: EncodedImages, **knobs: Any) -> list[PrivateSum]:
    method = make_idpgan(images, **knobs)
    with listening() as heard:
        method.measure()
        if method.condition_frequencies is not None:
            method.condition_frequencies = (0.2, 0.3, 0.5)  # bought, on their own event
        method.critic_step()
    return heard.sums


@pytest.mark.slow
@pytest.mark.parametrize("networks", NETWORKS)
@pytest.mark.parametrize("most", [1, 4, 70])
@pytest.mark.parametrize("thresholds", [{"kind": "fixed", "clip_norm": 0.5}, {"kind": "adaptive"}])
def test_every_private_sum_of_a_step_when_a_person_is_nulled(
    networks: dict[str, Any], most: int, thresholds: dict[str, Any]
) -> None:
    images = make_people([min(size, most) for size in (4, 1, 3, 4, 2, 4, 70, 2)], most)
    knobs = {"image_networks": networks, "thresholds": thresholds}
    full = step_sums(images, **knobs)
    assert len(full) == (3 if thresholds["kind"] == "adaptive" else 2)
    moved = 0.0
    for person in (0, 1, 5, 6):
        for neighbour in (nulled(images, person), removed(images, person)):
            others = step_sums(neighbour, **knobs)
            for first, second in zip(full, others, strict=True):
                moved = max(moved, assert_bounded(first, second))
    assert moved > 0.5


def test_a_person_is_one_row_of_the_clipped_sum_with_all_images_in_it() -> None:
    people = make_people([3, 3, 2, 1], 3)
    method = make_idpgan(people, image_networks=NETWORKS[1].values[0])
    assert (method.units, method.bounds.rows_per_unit, method.expected_units) == (4, 3, pytest.approx(2.4))
    batch = method._critic_batch(np.array([0, 3]))
    assert (batch.units, len(batch.real)) == (2, 6)
    assert batch.present.tolist() == [True, True, True, True, False, False]
    assert not batch.real[4:].any()
    shown = ((batch.real[:4, :PIXELS] + 1.0) / 2.0 * 255.0).round().to(torch.uint8).numpy()
    assert (shown == people.pixels[[0, 1, 2, 8]]).all()


def test_labels_are_counted_once_a_person_bound() -> None:
    people = make_people([5, 1, 1, 1], 5, kind="one person has one image many times")
    private = make_idpgan(people, image_networks=NETWORKS[1].values[0])._label_counts()
    assert private.sensitivities == (5.0,)


def test_a_generator_that_begins_with_a_mixture_measures_it_of_units() -> None:
    people = make_people([4, 1, 3, 4, 2, 4, 4, 2], 4)
    method = make_idpgan(people, warm_start={"kind": "mixture", "cells": 1, "hidden": [8]})
    assert isinstance(method, StartedImageIdpgan)
    assert method.start.units is not None
    method.measure()
    method.critic_step()
    assert method.rows_per_unit == pytest.approx(3.0, abs=1.5)


# -- what may depend on how many images there are: nothing that is public ----------------------------------------------


def test_nothing_public_depends_on_how_many_images_people_have() -> None:
    """What is computed from what was released is the same, down to the directions."""
    order = MixtureOrder(method="mixture", epsilon=1.0, cells=1, upright=False, record_norm=0.9, centred_norm=0.3)
    events = tuple(GaussianEvent(purpose, 0.3) for purpose in (CLASS_MEANS, TONES, SHARED_MOMENTS, CELL_MOMENTS))
    few, many = (
        AlwaysTheSame(order, Plan(events), make_people(sizes, 9), SecureRandom.from_test_seed(1))
        for sizes in ([1] * 200, [9] * 200)
    )
    for method in (few, many):
        method.measure()
    for name, value in few.checkpoint().tensors.items():
        assert torch.equal(value, many.checkpoint().tensors[name]), name
    assert few.rows_per_unit == many.rows_per_unit


def test_how_finely_images_are_measured_follows_from_units() -> None:
    def crowd(images: int) -> EncodedImages:
        pixels = np.broadcast_to(np.zeros((1, PIXELS), dtype=np.uint8), (images, PIXELS))
        labels, starts = np.broadcast_to(np.int64(0), images), np.array([0, images // 2, images])
        return EncodedImages(pixels, labels, SHAPE, CELLS, starts, 1_000)

    order = MixtureOrder(method="mixture", epsilon=1.0, cells=1, upright=False)
    few, many = (ImageMixture(order, Plan(()), crowd(n), SecureRandom.from_test_seed(1)) for n in (2, 10**9))
    assert few.scale == many.scale


class AlwaysTheSame(ImageMixture):
    """What comes back from a release is the same, whatever was handed over."""

    def _release(
        self, purpose: str, sums: Callable[[], PrivateSum], shares: tuple[float, ...]
    ) -> tuple[np.ndarray, ...]:
        noisy = super()._release(purpose, sums, shares)
        given = np.random.default_rng(len(purpose))
        return tuple(
            np.abs(given.normal(size=value.shape)) * std for value, std in zip(noisy, self._last_noise, strict=True)
        )


@pytest.mark.parametrize(("units", "most", "radius"), [(2, 1_000, 0.1), (60_000, 10, 5.6), (10**6, 1_000, 30.0)])
def test_sums_of_units_stay_exact_and_their_noise_fits(units: int, most: int, radius: float) -> None:
    scale = scale_for(units, radius, most=most)
    assert units * most * (scale * radius) ** 2 < EXACT
    assert most * scale**2 <= 2.0**24, "as large as of one image: noise above 2^48 is refused"
