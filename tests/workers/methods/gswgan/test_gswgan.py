"""`gswgan`: what a unit changes, what is drawn, and what may depend on it. The contract of every method is tested elsewhere."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from scipy import stats

from service.base.errors import InvalidOrder
from service.domain.shapes import ImageShape
from service.methods.catalogue import parse_order
from service.methods.gswgan.order import SMALLEST_CLIP_NORM
from service.methods.gswgan.price import events
from service.privacy.events import DrawnPartEvent, Events, GaussianEvent
from tests.exact_changes import squared_change
from tests.orders import resolve_order
from workers.encoding.images import EncodedImages
from workers.hooks import Hooks
from workers.mechanism.image_moments import NO_CELL
from workers.mechanism.joint_clipping import clip_jointly
from workers.mechanism.sampling import draw_part
from workers.mechanism.secure_random import SecureRandom
from workers.methods.gswgan import run as gswgan
from workers.methods.gswgan.run import Run, split_images
from workers.plan import Plan, StepNotOnPlan
from workers.sources import GivenImages

if TYPE_CHECKING:
    from workers.mechanism import PrivateSum

SHAPE, CLASSES, UNITS, PARTS = (6, 5, 1), 3, 24, 4


def images_of(sizes: list[int] | None = None) -> EncodedImages:
    rng = np.random.default_rng(0)
    count = UNITS if sizes is None else sum(sizes)
    pixels = rng.integers(0, 256, (count, 30)).astype(np.uint8)
    starts = None if sizes is None else np.append(0, np.cumsum(sizes)).astype(np.int64)
    return EncodedImages(pixels, np.arange(count) % CLASSES, SHAPE, CLASSES, starts, 1 if sizes is None else max(sizes))


def order_of(units: int = UNITS, **knobs: Any) -> Any:
    ordered = {"method": "gswgan", "epsilon": 1.0, "steps": 4, "discriminators": PARTS, "start_steps": 3, "batch": 5}
    return resolve_order(parse_order({**ordered, **knobs}), units=units, shape=ImageShape(*SHAPE, CLASSES))


def run_of(images: EncodedImages, price: Events | None = None, **knobs: Any) -> Run:
    order = order_of(images.units, **knobs)
    listed = price or (GaussianEvent("label_counts", 2.0), DrawnPartEvent(1.0 / PARTS, 2.0, order.steps))
    device = torch.device("cpu")
    return Run(order, Plan(listed), GivenImages(images), SecureRandom.from_test_seed(1), device)


def sums_of(monkeypatch: pytest.MonkeyPatch, images: EncodedImages, drawn: int, **knobs: Any) -> list[PrivateSum]:
    """What the steps hand over for noise; what comes back is the same in all worlds, and so is what is drawn."""
    heard: list[PrivateSum] = []

    def listen(private: PrivateSum, **_noise: Any) -> tuple[torch.Tensor, ...]:
        heard.append(private)
        given = torch.Generator().manual_seed(len(heard))
        return tuple(torch.randn(value.shape, generator=given, dtype=torch.float64) for value in private.values)

    monkeypatch.setattr(gswgan, "release", listen)
    monkeypatch.setattr(gswgan, "draw_part", lambda **_of: drawn)
    run = run_of(images, label_precision_share=0.0, price=(DrawnPartEvent(1.0 / PARTS, 2.0, 4),), **knobs)
    run.measure()
    run.finish(Hooks())
    return heard


def nulled(images: EncodedImages, unit: int) -> EncodedImages:
    starts = images.unit_starts
    theirs = slice(unit, unit + 1) if starts is None else slice(starts[unit], starts[unit + 1])
    pixels, labels = images.pixels.copy(), images.labels.copy()
    pixels[theirs], labels[theirs] = 0, NO_CELL
    return replace(images, pixels=pixels, labels=labels)


# -- what a unit changes


@pytest.mark.slow
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e200])
def test_two_clipped_matrices_are_never_further_apart_than_the_sensitivity(size: float) -> None:
    rng = np.random.default_rng(0)
    matrices = [torch.from_numpy(size * rng.normal(size=(32, 196))) for _ in range(4)]
    matrices += [-matrices[0], torch.full((32, 196), torch.inf), torch.full((32, 196), torch.nan), torch.zeros(32, 196)]
    clipped = [clip_jointly(matrix, clip_norm=0.7) for matrix in matrices]
    largest = 0.0
    for one in clipped:
        for other in clipped:
            (change,) = squared_change(one, other)
            assert change <= Fraction(one.sensitivities[0]) ** 2
            largest = max(largest, float(change) ** 0.5)
    if size >= 1.0:
        assert largest > 1.39, "the bound is reached: a discriminator may turn round without a unit"


def test_a_clip_norm_that_floats_cannot_divide_is_refused_and_the_smallest_gets_its_noise() -> None:
    """The smallest doubles have no 128 points of a grid between them: what came out was no number, or infinite where a slope stood alone."""
    for clip_norm in (5e-324, 1e-300, 0.999 * SMALLEST_CLIP_NORM):
        with pytest.raises(InvalidOrder, match="clip_norm"):
            run_of(images_of(), clip_norm=clip_norm)
    run = run_of(images_of(), clip_norm=SMALLEST_CLIP_NORM)
    run.measure()
    outputs: list[torch.Tensor] = []
    real = gswgan.release

    def release(private: PrivateSum, **noise: Any) -> tuple[torch.Tensor, ...]:
        assert private.sensitivities[0] >= 2e-9
        outputs.extend(real(private, **noise))
        return tuple(outputs[-1:])

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(gswgan, "release", release)
        run.private_step()
    (noisy,) = outputs
    assert bool(noisy.isfinite().all())
    assert len(noisy.unique()) > noisy.numel() / 2


def test_short_matrices_are_left_as_they_are() -> None:
    matrix = torch.full((2, 3), 0.01)
    assert torch.equal(clip_jointly(matrix, clip_norm=1.0).values[0], matrix.double())


@pytest.mark.parametrize("sizes", [None, [1, 3, 2, 4] * 6])
def test_a_unit_moves_the_slopes_of_its_own_part_alone(
    monkeypatch: pytest.MonkeyPatch, sizes: list[int] | None
) -> None:
    images = images_of(sizes)
    probe = run_of(images)
    unit = 5
    first = unit if images.unit_starts is None else int(images.unit_starts[unit])
    (part,) = [k for k, places in enumerate(probe.images_of_part) if first in places]
    knobs = {"clip_norm": 1e-3, "trained_a_step": PARTS}
    for drawn in range(PARTS):
        pairs = zip(
            sums_of(monkeypatch, images, drawn, **knobs),
            sums_of(monkeypatch, nulled(images, unit), drawn, **knobs),
            strict=True,
        )
        changes = [change for one, other in pairs for change in squared_change(one, other)]
        assert len(changes) == 4
        assert all(change <= Fraction(2e-3) ** 2 for change in changes)
        assert any(changes) == (drawn == part)


def test_all_images_of_a_unit_are_in_one_part_and_every_unit_is_in_one() -> None:
    images = images_of([1, 3, 2, 4, 1, 1, 5])
    parts = split_images(images, 4, np.array([6, 2, 0, 5, 1, 4, 3]))
    assert sorted(np.concatenate(parts).tolist()) == list(range(17))
    assert images.unit_starts is not None
    owner = np.searchsorted(images.unit_starts, np.arange(17), side="right") - 1
    of_unit = [{k for k, places in enumerate(parts) if (owner[places] == unit).any()} for unit in range(7)]
    assert all(len(found) == 1 for found in of_unit)


# -- what is drawn


def test_one_part_is_drawn_and_each_as_often() -> None:
    randomness = SecureRandom.from_test_seed(3)
    drawn = np.array([draw_part(parts=7, randomness=randomness) for _ in range(7_000)])
    counts = np.bincount(drawn, minlength=7)
    assert len(counts) == 7
    assert stats.chisquare(counts).pvalue > 1e-3
    pairs = np.bincount(7 * drawn[:-1] + drawn[1:], minlength=49)
    assert stats.chisquare(pairs).pvalue > 1e-3, "draws do not depend on the one before"


def test_a_step_asks_one_discriminator_and_pays_once(monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_of(
        images_of(), price=(GaussianEvent("label_counts", 2.0), DrawnPartEvent(1.0 / PARTS, 2.0, 120)), steps=120
    )
    run.measure()
    asked: list[int] = []
    slope = run.discriminators.slope

    def ask(which: int, records: torch.Tensor) -> torch.Tensor:
        asked.append(which)
        return slope(which, records)

    monkeypatch.setattr(run.discriminators, "slope", ask)
    for step in range(120):
        run.private_step()
        assert (len(asked), run.plan.steps_done) == (step + 1, step + 1)
    assert stats.chisquare(np.bincount(asked, minlength=PARTS)).pvalue > 1e-3
    with pytest.raises(StepNotOnPlan):
        run.private_step()


def test_who_is_trained_on_does_not_depend_on_what_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    trained = []
    for drawn in (0, 3):
        monkeypatch.setattr(gswgan, "draw_part", lambda drawn=drawn, **_of: drawn)
        run = run_of(images_of())
        run.measure()
        seen: list[list[int]] = []
        step = run.discriminators.step

        def note(which: torch.Tensor, *batch: Any, step: Any = step, seen: Any = seen, **knobs: Any) -> None:
            seen.append(which.tolist())
            step(which, *batch, **knobs)

        monkeypatch.setattr(run.discriminators, "step", note)
        run.finish(Hooks())
        trained.append(seen)
    assert trained[0] == trained[1]
    assert {each for which in trained[0][3:] for each in which} == set(range(PARTS))


def test_discriminators_are_in_no_checkpoint() -> None:
    run = run_of(images_of())
    run.measure()
    run.private_step()
    run.train_next()
    tensors = run.checkpoint().tensors
    assert {name.split(".")[0] for name in tensors} == {"generator", "averaged_generator", "adam"}
    kept = {tuple(tensor.shape) for tensor in tensors.values()}
    assert not kept & {tuple(tensor.shape) for tensor in run.discriminators.tensors}


# -- the price


def test_the_list_is_one_event_of_all_steps_whatever_the_batch() -> None:
    for batch in (1, 32):
        order = order_of(batch=batch, steps=300)
        labels, steps = events(order, 1.0, 1e-6)(1.7)
        assert isinstance(labels, GaussianEvent)
        assert steps == DrawnPartEvent(1.0 / PARTS, 1.7, 300)
    order = order_of(label_precision_share=0.0)
    assert order.condition_on is None
    assert events(order, 1.0, 1e-6)(1.7) == (DrawnPartEvent(1.0 / PARTS, 1.7, 4),)


def test_as_many_discriminators_as_the_paper_has_and_never_more_than_units() -> None:
    shape = ImageShape(*SHAPE, CLASSES)
    plain = parse_order({"method": "gswgan", "epsilon": 1.0})
    counts = [resolve_order(plain, units=units, shape=shape).discriminators for units in (60_000, 6_000, 2)]
    assert counts == [1_000, 100, 2]
    with pytest.raises(InvalidOrder, match="order fewer"):
        order_of(units=3)


def test_all_discriminators_follow_the_generator_unless_fewer_are_ordered() -> None:
    for ordered, trained in ((None, PARTS), (2, 2), (9, PARTS)):
        assert order_of(trained_a_step=ordered).trained_a_step == trained


@pytest.mark.slow
def test_without_noise_each_class_is_learnt() -> None:
    """Bright on the left or on the right; the mean of both would not do."""
    units, steps = 120, 400
    patterns = np.zeros((2, *SHAPE), dtype=np.uint8)
    patterns[0, :, :2], patterns[1, :, 3:] = 220, 220
    labels = np.arange(units) % 2
    noise = np.random.default_rng(0).integers(0, 30, (units, 30))
    images = EncodedImages((patterns[labels].reshape(units, -1) + noise).astype(np.uint8), labels, SHAPE, 2, None, 1)
    order = resolve_order(
        parse_order({"method": "gswgan", "epsilon": 1.0, "steps": steps, "discriminators": 12, "start_steps": 20}),
        units=units,
        shape=ImageShape(*SHAPE, 2),
    )
    plan = Plan((GaussianEvent("label_counts", 1e-12), DrawnPartEvent(1.0 / 12, 1e-12, steps)))
    run = Run(order, plan, GivenImages(images), SecureRandom.from_test_seed(1), torch.device("cpu"))
    run.measure()
    run.finish(Hooks())
    drawn = torch.arange(400) % 2
    with torch.no_grad():
        made = run.averaged_generator(torch.randn(400, 10), drawn)
    left, right = made[:, :, :2].mean(dim=(1, 2, 3)), made[:, :, 3:].mean(dim=(1, 2, 3))
    assert float(((right > left).long() == drawn).float().mean()) > 0.95
    assert float((right - left).abs().mean()) > 0.4


@pytest.mark.slow
def test_discriminators_learn_their_parts() -> None:
    """Without noise to speak of the generator follows them: its images become as dark as the real ones."""
    images = images_of()
    images.pixels[:] = 20
    price = (GaussianEvent("label_counts", 1e-3), DrawnPartEvent(1.0 / PARTS, 1e-4, 300))
    run = run_of(images, price=price, steps=300, start_steps=50, optimizer={"generator_learning_rate": 0.01})
    run.measure()
    run.finish(Hooks())
    with torch.no_grad():
        made = run.averaged_generator(torch.randn(200, 10), torch.arange(200) % CLASSES)
    assert float(made.mean()) < 0.3
