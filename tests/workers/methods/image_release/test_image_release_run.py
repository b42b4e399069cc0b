"""A run of single images: what is published without noise to speak of is the image, and nothing of it bypasses the noise."""

from __future__ import annotations

import io
import json
import zipfile
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from service.domain.image_schema import parse_schema
from service.methods.catalogue import parse_order
from service.methods.facts import Facts
from service.methods.pricing import price_order, resolve_order
from service.privacy.filters import NANO, Shares, open_budget
from service.samples.samplers import sampler_from_bundle
from workers.encoding.images import EncodedImages
from workers.generators.archive import pack
from workers.mechanism.secure_random import SecureRandom
from workers.methods.image_release import run
from workers.methods.image_release.repair import falling, with_values
from workers.plan import Plan
from workers.sources import GivenImages
from workers.training import make_release

BUDGET = open_budget(1_000.0, 1e-5)
SHAPE = (12, 10, 1)


def smooth(count: int = 2, shape: tuple[int, int, int] = SHAPE) -> np.ndarray:
    """Images of few cosines."""
    rng = np.random.default_rng(3)
    down, across = (np.cos(np.pi * (np.arange(side) + 0.5) / side) for side in shape[:2])
    waves = rng.uniform(-60, 60, (count, 1, 1, shape[2])) * down[:, None, None] + 40.0 * across[:, None]
    return np.clip(127.5 + waves, 0, 255).astype(np.uint8)


def source_of(images: np.ndarray) -> GivenImages:
    none = np.zeros(len(images), np.int64)
    return GivenImages(EncodedImages(images.reshape(len(images), -1), none, images.shape[1:], 0))


def resolved_order(images: np.ndarray, *, epsilon: float, schema: dict[str, Any] | None = None, **knobs: Any) -> Any:
    shape = images.shape[1:]
    declared = parse_schema(
        {"type": "image", "height": shape[0], "width": shape[1], "channels": shape[2], **(schema or {})}
    )
    facts = Facts.of_schema(declared, units=len(images), most_per_unit=1, budget=BUDGET)
    order = parse_order({"method": "image_release", "epsilon": epsilon, **knobs})
    return resolve_order(order, facts, Shares(NANO, NANO), declared)


def released(images: np.ndarray, *, seed: int = 1, **knobs: Any) -> tuple[Any, dict[str, bytes]]:
    shape, schema = images.shape[1:], knobs.get("schema", {})
    declared = parse_schema({"type": "image", "height": shape[0], "width": shape[1], "channels": shape[2], **schema})
    order = resolved_order(images, **knobs)
    randomness = SecureRandom.from_test_seed(seed)
    made = make_release(order, Plan(price_order(order, BUDGET).events), source_of(images), randomness)
    return made, made.files(schema=declared, certificate={}, order=order.model_dump(mode="json"))


def drawn(made: Any) -> np.ndarray:
    """Each image once, by its number."""
    count = len(made.component_labels)
    with torch.no_grad():
        found = made.generator(torch.randn(count, 1), torch.arange(count)).numpy()
    return np.asarray(found * 255.0)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("knobs", [{"coefficients": 4}, {"coefficients": 4, "singular_values_share": 0.3}, {}])
def test_at_a_large_epsilon_the_image_comes_back(noise: str, knobs: dict[str, Any]) -> None:
    images = smooth()
    errors = []
    for seed in range(3):
        made, _ = released(images, epsilon=400.0, schema={"pixel_unit": "column"}, noise=noise, seed=seed, **knobs)
        errors.append(np.abs(drawn(made) - images).mean())
    # Without `coefficients`, how many are kept is chosen with noise: one in some hundred releases keeps too few.
    assert (max(errors) if "coefficients" in knobs else np.median(errors)) < 14.0


def test_at_a_small_one_it_does_not() -> None:
    images = smooth()
    made, _ = released(images, epsilon=0.05, coefficients=4)
    assert np.abs(drawn(made) - images).mean() > 30.0


def test_the_size_follows_epsilon() -> None:
    """Noise decides: few cosines at a small ε, more at a large one."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 2, (30, 16, 16, 1)).astype(np.uint8) * 255
    sizes = []
    for epsilon in (0.1, 400.0):
        made, _ = released(images, epsilon=epsilon, schema={"pixel_unit": {"rows": 1, "columns": 1}})
        sizes.append(made.generator.down.shape[1])
    assert sizes[0] <= 6  # it is chosen with noise: mostly 2 or 3
    assert sizes[1] >= 12


def test_the_choice_has_the_epsilon_of_its_event(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[float] = []

    def choose(_losses: Any, *, epsilon: float, randomness: Any) -> int:
        assert randomness is not None
        heard.append(epsilon)
        return 1

    monkeypatch.setattr(run, "choose", choose)
    order = resolved_order(smooth(), epsilon=2.0, schema={"pixel_unit": "column"}, sizes=[2, 3, 5])
    events = price_order(order, BUDGET).events
    made = make_release(order, Plan(events), source_of(smooth()), SecureRandom())
    assert heard == [events[0].epsilon]  # type: ignore[attr-defined]
    assert made.generator.down.shape[1] == 3  # type: ignore[attr-defined]


def test_colours_are_measured_each() -> None:
    images = smooth(3, (12, 10, 3))
    made, _ = released(images, epsilon=900.0, schema={"pixel_unit": "column"}, coefficients=4)
    assert np.abs(drawn(made) - images).mean() < 8.0


def test_the_bundle_draws_the_released_images_and_names_no_class() -> None:
    images = smooth(5)
    made, files = released(images, epsilon=50.0, coefficients=3, schema={"classes": 2})
    config = json.loads(files["config.json"])
    assert config["classes"] == []
    assert "classes" not in config["schema"]
    bundle = pack(files, {})
    sampler = sampler_from_bundle(bundle)
    pixels = np.concatenate([each for each, _ in sampler.draws(64, seed=1)])
    known = {np.rint(each).astype(np.uint8).tobytes() for each in drawn(made)}
    near = [
        min(np.abs(np.frombuffer(k, np.uint8).astype(int) - one.reshape(-1)).max() for k in known) for one in pixels
    ]
    assert max(near) <= 1
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        card = archive.read("MODEL_CARD.md").decode()
    assert "noisy copies of single private images" in card
    assert "the private images are not in it" not in card


def test_a_null_image_is_grey_and_keeps_its_place() -> None:
    images = smooth(3)
    order = parse_order({"method": "image_release", "epsilon": 900.0, "coefficients": 4})
    declared = parse_schema({"type": "image", "height": 12, "width": 10, "channels": 1})
    facts = Facts.of_schema(declared, units=3, most_per_unit=1, budget=BUDGET)
    resolved = resolve_order(order, facts, Shares(NANO, NANO), declared)
    nulled = EncodedImages(
        images[[0, 2]].reshape(2, -1), np.zeros(2, np.int64), SHAPE, 0, unit_starts=np.array([0, 1, 1, 2])
    )
    made = make_release(
        resolved, Plan(price_order(resolved, BUDGET).events), GivenImages(nulled), SecureRandom.from_test_seed(1)
    )
    found = drawn(made)
    assert len(found) == 3
    assert np.abs(found[1] - 127.5).mean() < 12.0
    assert np.abs(found[2] - images[2]).mean() < 25.0


def test_a_person_has_as_many_places_as_images_are_allowed() -> None:
    """How many a person has is private: what is not there is noise, and one image too many is left out."""
    images = smooth(5)
    people = EncodedImages(
        images.reshape(5, -1),
        np.zeros(5, np.int64),
        SHAPE,
        0,
        unit_starts=np.array([0, 1, 1, 5]),
        max_images_per_unit=3,
    )
    declared = parse_schema({"type": "image", "height": 12, "width": 10, "channels": 1})
    facts = Facts.of_schema(declared, units=3, most_per_unit=3, budget=BUDGET)
    order = parse_order({"method": "image_release", "epsilon": 900.0, "coefficients": 4})
    resolved = resolve_order(order, facts, Shares(NANO, NANO), declared)
    events = price_order(resolved, BUDGET).events
    found = run.Run(resolved, Plan(events), GivenImages(people), SecureRandom(), torch.device("cpu"))
    assert found.present.tolist() == [True, False, False, False, False, False, True, True, True]
    assert (found.pixels[6:] == images[1:4]).all()
    assert found.unit.squared_norm == 3 * 255**2 * 120
    made = make_release(resolved, Plan(events), GivenImages(people), SecureRandom())
    assert len(drawn(made)) == 9


def test_theorem_6_repairs_the_example_of_the_paper() -> None:
    assert falling(np.array([10.0, 14.0, 9.0])).tolist() == [12.0, 12.0, 9.0]
    assert falling(np.array([])).tolist() == []


def test_the_repair_is_the_formula_of_isotonic_regression() -> None:
    rng = np.random.default_rng(5)
    for length in (1, 2, 5, 9):
        values = rng.integers(-20, 20, length)
        exact = [Fraction(int(value)) for value in values]

        def mean(first: int, last: int, exact: list[Fraction] = exact) -> Fraction:
            return sum(exact[first : last + 1]) / (last - first + 1)  # type: ignore[return-value]

        wanted = [max(min(mean(i, j) for i in range(t + 1)) for j in range(t, length)) for t in range(length)]
        assert falling(values.astype(float)) == pytest.approx([float(each) for each in wanted])


def test_singular_values_replace_those_of_the_noisy_coefficients() -> None:
    rng = np.random.default_rng(6)
    noisy = rng.normal(size=(3, 3))
    found = with_values(noisy, np.array([10.0, 14.0, -9.0]))
    assert np.linalg.svd(found, compute_uv=False) == pytest.approx([12.0, 12.0, 0.0], abs=1e-9)
