"""The mixture of images: what it measures, that it runs by its plan, and what becomes of it."""

from __future__ import annotations

import io
import json
import math
import zipfile

import numpy as np
import pytest
import torch

from service.base.errors import InvalidOrder
from service.domain.image_schema import ImageSchema
from service.methods.mixture.order import MixtureOrder
from service.methods.mixture.price import CELL_MEANS, CELL_MOMENTS, CLASS_MEANS, LEANINGS, SHARED_MOMENTS, TONES
from service.privacy.events import GaussianEvent
from service.samples.samplers import sampler_from_bundle
from tests.bundles import build_image_bundle
from workers.checkpoints import Checkpoint
from workers.encoding.images import EncodedImages, encode_images
from workers.encoding.slant import MOST_SLANT, SLANT_PIXELS, deskewed
from workers.generators.errors import UnusableGeneratorError
from workers.mechanism.secure_random import SecureRandom
from workers.methods.mixture.measuring import JITTER_DEGREES, JITTER_SHIFT, ImageMixture
from workers.methods.mixture.tones import TONE_BINS, tone_curve
from workers.networks.gaussian_mixture import GaussianMixture, Movement
from workers.plan import Plan, StepNotOnPlan

SHAPE = (8, 6, 1)
SCHEMA = ImageSchema(type="image", height=8, width=6, channels=1, classes=3)

pytestmark = pytest.mark.usefixtures("one_thread")


def make_faces(count=6_000, seed=0):
    """Three classes: flat grey of class brightness, and each image a stripe of its own strength."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, count)
    stripe = np.zeros(SHAPE[:2])
    stripe[2:4] = 1.0
    strength = rng.uniform(-0.3, 0.3, count)
    images = 0.2 + 0.25 * labels[:, None, None] + strength[:, None, None] * stripe + rng.normal(0, 0.01, (count, 8, 6))
    pixels = np.rint(np.clip(images, 0, 1) * 255).astype(np.uint8).reshape(count, -1)
    return EncodedImages(pixels, labels, SHAPE, 3)


def order_of(**knobs):
    defaults = {"cells": 1, "record_norm": 0.9, "centred_norm": 0.3, "upright": False}
    return MixtureOrder(method="mixture", epsilon=1.0, **{**defaults, **knobs})


def plan_of(order, noise=0.5):
    rounds = order.sorting_rounds if order.cells > 1 else 0
    first = [LEANINGS] if order.upright is None else []
    purposes = [*first, CLASS_MEANS, TONES, SHARED_MOMENTS, *[CELL_MEANS] * rounds, CELL_MOMENTS]
    return Plan(tuple(GaussianEvent(purpose, noise) for purpose in purposes))


def measured(images=None, *, noise=0.5, seed=1, **knobs):
    order = order_of(**knobs)
    method = ImageMixture(order, plan_of(order, noise), images or make_faces(), SecureRandom.from_test_seed(seed))
    method.measure()
    return method


def draw(method, count=3_000):
    """Images and labels in proportion."""
    generator, rng = method.build(), np.random.default_rng(0)
    component = rng.choice(len(method.component_labels), size=count, p=method.component_frequencies)
    images = np.empty((count, *SHAPE))
    with torch.no_grad():
        for one in np.unique(component):
            noise = torch.randn(int((component == one).sum()), generator.noise_dimension)
            images[component == one] = generator(noise, torch.tensor([one])).numpy()
    return images.reshape(count, -1), np.array(method.component_labels)[component]


@pytest.mark.parametrize("cells", [1, 3])
def test_drawn_images_have_the_means_and_spread_of_the_real_ones(cells):
    real = make_faces()
    images, labels = draw(measured(real, cells=cells))
    assert np.allclose(np.bincount(labels) / len(labels), 1 / 3, atol=0.05)
    for label in range(3):
        theirs, ours = real.pixels[real.labels == label] / 255.0, images[labels == label]
        assert np.abs(theirs.mean(0) - ours.mean(0)).max() < 0.04
        stripe = slice(2 * 6, 4 * 6)
        assert ours[:, stripe].mean(1).std() == pytest.approx(theirs[:, stripe].mean(1).std(), rel=0.2)


def test_noise_alone_leaves_no_directions():
    flat = EncodedImages(np.full((3_000, 48), 128, dtype=np.uint8), np.arange(3_000) % 3, SHAPE, 3)
    method = measured(flat, noise=5.0)
    assert np.square(method.measured.factors).sum() < 0.05


def test_the_events_are_the_plan_and_nothing_more():
    order = order_of(cells=2)
    events = plan_of(order)
    method = ImageMixture(order, events, make_faces(300), SecureRandom.from_test_seed(0))
    method.measure()
    assert events.position == 6
    with pytest.raises(StepNotOnPlan):
        method.measure()
    short = Plan((GaussianEvent(CLASS_MEANS, 1.0),))
    with pytest.raises(StepNotOnPlan):
        ImageMixture(order, short, make_faces(300), SecureRandom.from_test_seed(0)).measure()


def test_noise_is_as_wide_as_charged():
    """Counts and sums of no record at all are the noise itself."""
    no_images = EncodedImages(np.zeros((4_000, 48), dtype=np.uint8), np.full(4_000, -1), SHAPE, 3)
    order = order_of(count_share=0.3, mean_share=0.1)
    spreads = {"counts": [], "sums": [], "products": []}
    for seed in range(12):
        method = ImageMixture(order, plan_of(order, 7.0), no_images, SecureRandom.from_test_seed(seed))
        seen = {}
        release = method._release

        def listen(purpose, sums, shares, release=release, seen=seen):
            seen[purpose] = release(purpose, sums, shares)
            return seen[purpose]

        method._release = listen
        method.measure()
        radius = method._whole(method.centred_norm)
        for name, value, sensitivity, share in zip(
            spreads, seen[CELL_MOMENTS], (1, radius, radius**2), (0.3, 0.1, 0.6), strict=True
        ):
            spreads[name].append(value.ravel() / (7.0 * sensitivity / math.sqrt(share)))
    for name, values in spreads.items():
        found = np.concatenate(values)
        assert found.std() == pytest.approx(1.0, rel=4 / math.sqrt(2 * len(found)) + 0.02), name
        assert abs(found.mean()) < 4 / math.sqrt(len(found))


def test_a_checkpoint_is_the_whole_measurement():
    images, order = make_faces(600), order_of(cells=2)
    first = ImageMixture(order, plan_of(order), images, SecureRandom.from_test_seed(0))
    first.measure()
    saved = Checkpoint.from_bytes(first.checkpoint().to_bytes())
    again = ImageMixture(order, plan_of(order), images, SecureRandom())
    again.restore(saved)
    assert again.plan.position == 6
    assert not again.is_private, "what was measured with test noise stays unpublishable"
    for ours, theirs in zip(first.build().state_dict().values(), again.build().state_dict().values(), strict=True):
        assert torch.equal(ours, theirs)
    other = order_of(cells=2)
    with pytest.raises(StepNotOnPlan, match="another price list"):
        ImageMixture(other, plan_of(other, 0.7), images, SecureRandom()).restore(saved)


def test_an_unresolved_order_is_refused():
    with pytest.raises(InvalidOrder):
        ImageMixture(order_of(cells=None), Plan(()), make_faces(10), SecureRandom())


def test_without_classes_there_is_one():
    faces = make_faces(900)
    method = measured(EncodedImages(faces.pixels, np.zeros(900, dtype=np.int64), SHAPE, 0))
    assert method.component_labels == (0,)
    assert method.component_frequencies == (1.0,)


def test_colour_and_more_pixels_than_coefficients():
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (200, 20 * 20 * 3), dtype=np.uint8)
    images = EncodedImages(pixels, np.arange(200) % 2, (20, 20, 3), 2)
    generator = measured(images, coefficients=75, rank=5).build()
    assert generator(torch.zeros(2, generator.noise_dimension), torch.tensor([1])).shape == (2, 20, 20, 3)
    assert generator.noise_dimension <= 5
    assert generator.basis.shape[1] == 1_200
    assert generator.basis.shape[0] <= 5 + 2


def leaning(count=600, seed=0, most=0.5):
    """A bright bar in the middle of each image, leaning by up to `most` columns a row."""
    rng = np.random.default_rng(seed)
    slants = rng.uniform(-most, most, count)
    down, across = np.arange(12)[:, None] - 5.5, np.arange(14)[None, :] - 6.5
    distance = np.abs(across - slants[:, None, None] * down)
    pixels = np.rint(255 * np.clip(2.0 - distance, 0.0, 1.0)).astype(np.uint8)
    return pixels.reshape(count, -1), slants


def test_deskewed_images_stand_and_say_how_much_they_leant():
    pixels, slants = leaning()
    stood = deskewed(pixels, (12, 14, 1))
    assert stood.shape == (600, 12 * 14 + SLANT_PIXELS)
    assert (stood[:, 12 * 14 :] == stood[:, -1:]).all()
    found = (stood[:, -1] / 127.5 - 1.0) * MOST_SLANT
    assert np.corrcoef(found, slants)[0, 1] > 0.98
    assert stood[:, : 12 * 14].std(axis=0).mean() < 0.5 * pixels.std(axis=0).mean()
    # Every record for itself.
    assert np.array_equal(deskewed(pixels[5:6], (12, 14, 1)), stood[5:6])
    assert deskewed(np.zeros((2, 12 * 14), np.uint8), (12, 14, 1))[:, 0].tolist() == [0, 0]
    assert deskewed(pixels[:0], (12, 14, 1)).shape == (0, 12 * 14 + SLANT_PIXELS)


def test_what_leant_leans_again_when_it_is_drawn():
    pixels, slants = leaning(6_000)
    images = EncodedImages(pixels, np.zeros(6_000, dtype=np.int64), (12, 14, 1), 0)
    method = measured(images, noise=0.05, upright=True, centred_norm=0.5)
    generator = method.build()
    noise, here = torch.randn(3_000, generator.noise_dimension), torch.tensor([0])
    lean = (2.0 * generator.numbers(noise, here)[:, 12 * 14 :].mean(dim=1) - 1.0) * MOST_SLANT
    assert float(lean.std()) == pytest.approx(slants.std(), rel=0.1)
    with torch.no_grad():
        drawn = generator(noise, here)[..., 0]
    assert drawn.shape == (3_000, 12, 14)
    assert np.abs(drawn.flatten(1).numpy().mean(0) - pixels.mean(0) / 255).max() < 0.1
    # Above the middle the bar is to the right where below it is to the left.
    across = torch.arange(14.0)
    places = (drawn * across).sum(dim=2) / drawn.sum(dim=2)  # (n, 12)
    assert float(torch.corrcoef(torch.stack((places[:, 10] - places[:, 1], lean)))[0, 1]) > 0.6


@pytest.mark.parametrize("noise", [0.05, 20.0])
def test_images_that_lean_differently_are_deskewed_and_moved_unless_ordered_otherwise(noise):
    leant, straight = leaning(6_000)[0], leaning(6_000, most=0.1)[0]
    here = {"noise": noise, "upright": None, "centred_norm": 0.5}

    def method_of(pixels, **knobs):
        labels = np.arange(6_000) % 3
        return measured(EncodedImages(pixels, labels, (12, 14, 1), 3), **here, **knobs)

    found = method_of(leant)
    assert found.upright
    assert found.build().movement == Movement(MOST_SLANT, JITTER_SHIFT * 12, JITTER_DEGREES)
    assert method_of(leant, jitter_shift=0.0, jitter_degrees=0.0).build().movement == Movement(MOST_SLANT)
    kept = method_of(straight)
    assert not kept.upright
    assert kept.build().movement == Movement()
    # Two classes of three decide.
    mixed = np.where((np.arange(6_000) % 3 == 0)[:, None], straight, leant)
    assert method_of(mixed).upright
    mixed = np.where((np.arange(6_000) % 3 == 0)[:, None], leant, straight)
    assert not method_of(mixed).upright


def test_too_little_is_known_of_a_few_images_to_stand_them_up():
    pixels, _ = leaning(60)
    images = EncodedImages(pixels, np.arange(60) % 3, (12, 14, 1), 3)
    assert not measured(images, noise=30.0, upright=None, seed=2).upright


def test_noisy_counts_decide_what_is_deskewed_not_exact_ones():
    pixels, _ = leaning(600)
    images = EncodedImages(pixels, np.zeros(600, dtype=np.int64), (12, 14, 1), 0)
    assert {measured(images, noise=28.0, seed=seed, upright=None).upright for seed in range(20)} == {True, False}


def test_whether_images_were_deskewed_is_in_the_checkpoint():
    pixels, _ = leaning(3_000)
    images = EncodedImages(pixels, np.zeros(3_000, dtype=np.int64), (12, 14, 1), 0)
    method = measured(images, noise=0.05, upright=None, centred_norm=0.5)
    again = ImageMixture(method.order, plan_of(method.order, 0.05), images, SecureRandom.from_test_seed(2))
    again.restore(method.checkpoint())
    assert again.upright
    noise = torch.randn(5, again.build().noise_dimension)
    assert torch.equal(again.build()(noise, torch.tensor([0])), method.build()(noise, torch.tensor([0])))


def test_moved_images_are_as_black_and_white_as_real_ones():
    """They are moved first: interpolation between pixels makes grey, which the curve takes out again."""
    pixels, _ = leaning(6_000)
    images = EncodedImages(pixels, np.zeros(6_000, dtype=np.int64), (12, 14, 1), 0)
    moved = {"upright": True, "jitter_shift": 0.05, "jitter_degrees": 5.0}
    generator = measured(images, noise=0.05, centred_norm=0.5, **moved).build()
    with torch.no_grad():
        drawn = generator(torch.randn(3_000, generator.noise_dimension), torch.tensor([0])).numpy()
    for part, real in ((drawn < 0.05, pixels < 13), (drawn > 0.95, pixels > 242)):
        assert part.mean() == pytest.approx(real.mean(), abs=0.02)


def test_drawn_images_are_shifted_and_turned_as_ordered():
    bar = torch.zeros(1, 11 * 11)
    bar.view(11, 11)[2:9, 5] = 1.0
    parts = (bar, torch.zeros(1, 1, 11 * 11), torch.eye(11 * 11), (11, 11, 1))
    here = torch.tensor([0])
    still = GaussianMixture(*parts)(torch.zeros(2, 1), here)
    assert torch.equal(still[1].flatten(), bar[0])
    moving = GaussianMixture(*parts, movement=Movement(shift=1.0, degrees=90.0))
    assert moving.noise_dimension == 4
    noise = torch.tensor([[0.0, 0.0, 2.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    shifted, turned, same = moving(noise, here)[..., 0]
    torch.testing.assert_close(shifted[:, 3], still[0, :, 5, 0])
    torch.testing.assert_close(turned[5], still[0, :, 5, 0], atol=1e-5, rtol=0)
    torch.testing.assert_close(same, still[0, ..., 0])
    torch.testing.assert_close(moving.mixed(noise, torch.zeros(3, dtype=torch.int64)), moving(noise, here))
    white = GaussianMixture(torch.ones(1, 11 * 11), *parts[1:], movement=moving.movement)
    assert float(white(noise, here).min()) > 0.999  # no black corners


def test_the_bundle_of_moved_images_draws_what_the_generator_does():
    method = measured(make_faces(900), upright=True, jitter_shift=0.05, jitter_degrees=5.0)
    bundle, generator = bundle_of(method), method.build()
    assert generator.noise_dimension > 3
    pixels, _ = next(sampler_from_bundle(bundle).draws(2_000, seed=1))
    images, _ = draw(method, 2_000)
    assert np.abs(pixels.reshape(-1, 48).mean(0) / 255 - images.mean(0)).max() < 0.05


# -- the bundle -------------------------------------------------------------------------------------------------------


def bundle_of(method, schema=SCHEMA):
    generator = method.build()
    return build_image_bundle(
        generator,
        schema,
        noise_dimension=generator.noise_dimension,
        component_labels=method.component_labels,
        one_a_run=True,
        component_frequencies=method.component_frequencies,
        certificate={"unit": "one image", "epsilon": 1.0, "delta": 1e-6},
        order={"method": "mixture", "epsilon": 1.0},
    )


def test_the_bundle_draws_what_the_generator_does():
    method = measured(cells=3)
    bundle = bundle_of(method)
    assert bundle == bundle_of(method)
    pixels, labels = next(sampler_from_bundle(bundle).draws(3_000, seed=1))
    images, drawn_labels = draw(method)
    for label in range(3):
        theirs, ours = pixels[labels == label].reshape(-1, 48) / 255, images[drawn_labels == label]
        assert np.abs(theirs.mean(0) - ours.mean(0)).max() < 0.04
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        assert set(archive.namelist()) == {
            "generator.onnx",
            "generator.safetensors",
            "config.json",
            "certificate.json",
            "MODEL_CARD.md",
            "sample.py",
        }
        config = json.loads(archive.read("config.json"))
        assert config["condition"]["labels"] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
        card = archive.read("MODEL_CARD.md").decode()
    assert "8 × 6 pixels, grey, of 3 classes" in card
    assert "None" not in card


def test_numbers_that_are_not_finite_are_no_generator():
    method = measured()
    method.measured.means[1, 1] = math.nan
    with pytest.raises(UnusableGeneratorError):
        bundle_of(method)


def test_the_canonical_file_is_read_back():
    pixels = np.arange(4 * 48, dtype=np.uint8).reshape(4, 48)
    labels = np.array([2, 0, 1, 1])
    content = b"".join(
        row.tobytes() + int(label).to_bytes(2, "little") for row, label in zip(pixels, labels, strict=True)
    )
    images = encode_images([content[:77], content[77:]], SCHEMA, units=4)
    assert np.array_equal(images.pixels, pixels)
    assert np.array_equal(images.labels, labels)
    assert (images.shape, images.classes) == (SHAPE, 3)


# -- tones ------------------------------------------------------------------------------------------------------------


def test_the_curve_gives_drawn_numbers_the_brightness_of_real_ones():
    rng = np.random.default_rng(0)
    drawn = rng.normal(0.4, 0.2, 50_000)
    counts = np.zeros(TONE_BINS)
    counts[[0, -1]] = 800, 200  # black and white only
    places, values = tone_curve(drawn, counts)
    toned = np.interp(drawn, places, values)
    assert (toned < 0.1).mean() == pytest.approx(0.8, abs=0.1)
    assert list(values) == sorted(values)
    assert (values[0], values[-1]) == (0.0, 1.0)
    plain = GaussianMixture(torch.zeros(1, 1), torch.eye(1)[None], torch.ones(1, 48), SHAPE, (places, values))
    noise = torch.linspace(-0.6, 1.6, 200)[:, None]
    expected = np.interp(noise.double().numpy()[:, 0], places, values)
    assert np.allclose(plain(noise, torch.tensor([0]))[:, 0, 0, 0].numpy(), expected, atol=1e-5)


def test_without_a_single_count_nothing_is_toned():
    assert tone_curve(np.linspace(0, 1, 50), np.full(TONE_BINS, -3.0)) == ((0.0, 1.0), (0.0, 1.0))
