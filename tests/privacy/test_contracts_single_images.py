"""What one unit moves in the coefficients of its image, in exact fractions: by no more than is declared, and at times by nearly as much."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from workers.encoding.images import cosines
from workers.mechanism import image_coefficients as exact
from workers.mechanism.image_coefficients import UnitPixels, WholeBasis

SHAPES = [(6, 5, 1), (12, 9, 3), (16, 16, 1)]
UNITS = {
    "column": lambda h, _w: (h, 1),
    "image": lambda h, w: (h, w),
    "block": lambda _h, _w: (3, 2),
    "pixel": lambda _h, _w: (1, 1),
}


def bases_of(shape: tuple[int, int, int], kept: int) -> tuple[WholeBasis, WholeBasis]:
    down, across = (WholeBasis.of(cosines(side, kept)) for side in shape[:2])
    return down, across


def moved(
    before: np.ndarray, top: int, left: int, unit: UnitPixels, bases: tuple[WholeBasis, WholeBasis]
) -> np.ndarray:
    """The coefficients' change where the block turns grey, in whole numbers and in Python's integers."""
    change = np.zeros(before.shape, dtype=object)
    block = before[top : top + unit.rows, left : left + unit.columns].astype(int)
    change[top : top + unit.rows, left : left + unit.columns] = 2 * block - exact.WHITE
    down, across = (each.numbers.astype(object) for each in bases)
    return np.stack([down.T @ change[:, :, channel] @ across for channel in range(before.shape[2])], axis=2)


def worst_images(shape: tuple[int, int, int], bases: tuple[WholeBasis, WholeBasis]) -> list[np.ndarray]:
    """Random ones, black, white, and those whose pixels have the signs of a product of two cosines: they move a coefficient most."""
    rng = np.random.default_rng(0)
    found = [rng.integers(0, 256, shape), rng.integers(0, 2, shape) * 255, np.zeros(shape, int), np.full(shape, 255)]
    for a, b in product(range(bases[0].kept), range(bases[1].kept)):
        signs = np.outer(bases[0].numbers[:, a], bases[1].numbers[:, b]) >= 0
        found.append(np.repeat(signs[:, :, None] * 255, shape[2], axis=2))
    return found


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", UNITS)
@pytest.mark.parametrize("kept", [1, 3, 5])
def test_a_unit_moves_coefficients_by_no_more_than_is_declared(
    shape: tuple[int, int, int], kind: str, kept: int
) -> None:
    bases, unit = bases_of(shape, kept), UnitPixels(*UNITS[kind](*shape[:2]), shape[2])
    squared, absolute = exact.squared_l2(*bases, unit), exact.l1(*bases, unit)
    nearest = Fraction(0), Fraction(0)
    for image in worst_images(shape, bases):
        for top in range(shape[0] - unit.rows + 1):
            for left in range(shape[1] - unit.columns + 1):
                change = moved(image, top, left, unit, bases)
                of_l2 = Fraction(int((change * change).sum()), squared)
                of_l1 = Fraction(int(abs(change).sum()), absolute)
                assert of_l2 <= 1
                assert of_l1 <= 1
                nearest = max(nearest[0], of_l2), max(nearest[1], of_l1)
    assert nearest[0] > Fraction(1, 8)
    assert nearest[1] > Fraction(1, 5)


@pytest.mark.parametrize("kept", [1, 3])
def test_all_images_of_a_unit_together_move_by_no_more_than_is_declared(kept: int) -> None:
    """Four alike: in L2 twice as far as one, in L1 four times."""
    shape = (6, 5, 1)
    bases, unit, one = bases_of(shape, kept), UnitPixels(6, 5, 1, 4), UnitPixels(6, 5, 1)
    for image in worst_images(shape, bases):
        change = moved(image, 0, 0, one, bases)
        assert 4 * int((change * change).sum()) <= exact.squared_l2(*bases, unit)
        assert 4 * int(abs(change).sum()) <= exact.l1(*bases, unit)
    assert exact.squared_l2(*bases, unit) == 4 * exact.squared_l2(*bases, one)
    assert exact.values_l1(*bases, unit) > 1.9 * exact.values_l1(*bases, one)


def test_a_white_column_moves_by_just_what_is_declared() -> None:
    """One cosine, the constant one: the bound of a column is met but for the rounding of the basis."""
    bases, unit = bases_of((16, 8, 1), 1), UnitPixels(16, 1, 1)
    change = moved(np.full((16, 8, 1), 255), 0, 3, unit, bases)
    assert int((change * change).sum()) == exact.squared_l2(*bases, unit)
    assert int(abs(change).sum()) == exact.l1(*bases, unit)


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_computed_in_floats_is_exact(shape: tuple[int, int, int]) -> None:
    rng, bases = np.random.default_rng(1), bases_of(shape, 4)
    images = rng.integers(0, 256, (3, *shape)).astype(np.uint8)
    present = np.array([True, False, True])
    found = exact.coefficients_of(images, present, *bases)
    whole = UnitPixels(*shape)
    assert (found[0] == moved(images[0], 0, 0, whole, bases)).all()
    assert (found[1] == 0).all()
    assert (found[2] == moved(images[2], 0, 0, whole, bases)).all()


def grey(image: np.ndarray, top: int, left: int, unit: UnitPixels) -> np.ndarray:
    """In numbers 2a - 255, which bytes do not reach: the block is 0."""
    half = 2.0 * image - exact.WHITE
    half[top : top + unit.rows, left : left + unit.columns] = 0.0
    return half


@pytest.mark.parametrize("kind", UNITS)
def test_a_unit_moves_singular_values_and_losses_by_no_more_than_is_declared(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape, kept = (12, 9, 3), 4
    bases, unit = bases_of(shape, kept), UnitPixels(*UNITS[kind](*shape[:2]), shape[2])
    candidates = [(cosines(12, size), cosines(9, size)) for size in (1, 4, 9)]
    present = np.ones(1, dtype=bool)
    left, right = (each.numbers.astype(float) for each in bases)

    def both(half: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        coefficients = np.moveaxis(left.T @ np.moveaxis(half[None], 3, 1) @ right, 1, 3)
        values = exact.singular_values(coefficients.astype(np.int64))
        monkeypatch.setattr(exact, "centred", lambda _pixels, _present: iter([half[None]]))
        losses = exact.size_losses(np.zeros((1, *shape), np.uint8), present, candidates, [5.0, 50.0, 500.0], unit)
        return values, losses.values, losses.sensitivity

    for image in worst_images(shape, bases)[:10]:
        for top, column in ((0, 0), (shape[0] - unit.rows, shape[1] - unit.columns)):
            values, losses, sensitivity = both(2.0 * image - exact.WHITE)
            after, losses_after, _ = both(grey(image, top, column, unit))
            change = np.abs(values - after)
            assert math.sqrt(float((change**2).sum())) <= exact.values_l2(*bases, unit)
            assert change.sum() <= exact.values_l1(*bases, unit)
            assert np.abs(losses - losses_after).max() <= sensitivity


def test_a_white_image_moves_a_loss_by_nearly_its_sensitivity() -> None:
    unit = UnitPixels(8, 8, 1)
    signs = ((np.add.outer(np.arange(8), np.arange(8)) % 2) * 255).astype(np.uint8)[None, :, :, None]
    candidates = [(cosines(8, 1), cosines(8, 1))]
    there = exact.size_losses(signs, np.array([True]), candidates, [0.0], unit)
    gone = exact.size_losses(signs, np.array([False]), candidates, [0.0], unit)
    assert abs(int(there.values[0] - gone.values[0])) > 0.99 * there.sensitivity
