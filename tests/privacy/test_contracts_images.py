"""The moments of images on neighbouring inputs, in exact arithmetic: declared is declared, to the last bit.

Neighbours are D and D with one record zeroed out: it is in NO_CELL, and what it is made of is gone.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.exact_changes import squared_change
from workers.encoding.images import cosine_basis
from workers.encoding.slant import deskewed, slant_codes
from workers.mechanism.image_moments import (
    EXACT,
    NO_CELL,
    Coefficients,
    clip,
    first_moments,
    leaning_counts,
    nearest_cells,
    scale_for,
    second_moments,
    shared_moments,
    tone_counts,
)

SHAPE = (6, 5, 1)
PIXELS = math.prod(SHAPE)
CELLS = 3


def make_records(kind, count=40):
    rng = np.random.default_rng(5)
    if kind == "black":
        return np.zeros((count, PIXELS), dtype=np.uint8)
    if kind == "white":
        return np.full((count, PIXELS), 255, dtype=np.uint8)
    if kind == "alike":
        return np.repeat(rng.integers(0, 256, (1, PIXELS), dtype=np.uint8), count, axis=0)
    return rng.integers(0, 256, (count, PIXELS), dtype=np.uint8)


def sums_of(pixels, cells, centres, radius, basis, scale):
    records = Coefficients(pixels, basis, scale)
    return (
        first_moments(records, cells, centres=centres, radius=radius),
        second_moments(records, cells, centres=centres, radius=radius),
        shared_moments(records, cells, centres=centres, radius=radius),
        tone_counts(pixels, cells, bins=16),
        leaning_counts(slant_codes(deskewed(pixels, SHAPE)), cells, classes=CELLS, bins=9),
    )


@pytest.mark.parametrize("most", [4, 9, 30])
@pytest.mark.parametrize("radius", [0.05, 0.6, 30.0])
@pytest.mark.parametrize("kind", ["random", "black", "white", "alike"])
def test_one_record_moves_every_sum_by_at_most_its_sensitivity(kind, radius, most):
    pixels = make_records(kind)
    basis, scale = cosine_basis(SHAPE, most), scale_for(len(pixels), radius)
    whole = max(1, math.floor(radius * scale))
    rng = np.random.default_rng(1)
    cells = rng.integers(-1, CELLS, len(pixels))
    centres = np.rint(rng.normal(size=(CELLS, basis.shape[1])) * scale)
    full = sums_of(pixels, cells, centres, whole, basis, scale)
    for private in full:
        for value in private.values:
            assert (value == value.round()).all()
            assert value.abs().max() < EXACT
    for record in range(0, len(pixels), 3):
        gone, others = pixels.copy(), cells.copy()
        gone[record], others[record] = 0, NO_CELL
        neighbour = sums_of(gone, others, centres, whole, basis, scale)
        for first, second in zip(full, neighbour, strict=True):
            for change, sensitivity in zip(squared_change(first, second), first.sensitivities, strict=True):
                assert change <= Fraction(sensitivity) ** 2


@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data())
def test_clipping_is_exact_whatever_the_numbers(data):
    width, radius = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 2**20))
    entries = st.one_of(st.integers(-40, 40), st.integers(-(2**52), 2**52), st.sampled_from([0, radius, -radius]))
    rows = data.draw(st.lists(st.lists(entries, min_size=width, max_size=width), min_size=1, max_size=8))
    clipped = clip(np.array(rows, dtype=np.float64), radius)
    for row, original in zip(clipped.tolist(), rows, strict=True):
        assert all(x == int(x) for x in row)
        assert sum(int(x) ** 2 for x in row) <= radius**2
        if sum(x * x for x in original) <= radius**2:
            assert row == original
        else:
            assert all(x == 0 or (x > 0) == (o > 0) for x, o in zip(row, original, strict=True))


def test_a_long_row_keeps_its_direction_and_nearly_its_norm():
    rows = np.rint(np.random.default_rng(0).normal(size=(200, 50)) * 1e5)
    clipped = clip(rows, 200_000)
    norms = np.linalg.norm(clipped, axis=1)
    assert (norms <= 200_000).all()
    assert (norms > 199_990).all()
    assert np.allclose(clipped / norms[:, None], rows / np.linalg.norm(rows, axis=1, keepdims=True), atol=1e-5)


def test_sums_do_not_depend_on_the_order_or_the_company():
    pixels = make_records("random", 20_000)
    basis, scale = cosine_basis(SHAPE, 9), scale_for(20_000, 0.5)
    rng = np.random.default_rng(2)
    cells, centres = rng.integers(0, CELLS, 20_000), np.zeros((CELLS, 9))
    order = rng.permutation(20_000)
    one = sums_of(pixels, cells, centres, int(0.5 * scale), basis, scale)
    two = sums_of(pixels[order], cells[order], centres, int(0.5 * scale), basis, scale)
    for first, second in zip(one, two, strict=True):
        assert all(bool((a == b).all()) for a, b in zip(first.values, second.values, strict=True))


def test_the_sums_are_what_they_say():
    pixels = make_records("random")
    basis, scale = cosine_basis(SHAPE, 30), scale_for(len(pixels), 100.0)
    cells = np.arange(len(pixels)) % CELLS
    cells[7] = NO_CELL
    centres = np.rint(np.random.default_rng(3).normal(size=(CELLS, 30)) * scale)
    first, second, shared, tones, leanings = sums_of(pixels, cells, centres, int(100 * scale), basis, scale)
    plain = pixels / 255.0 @ basis
    for cell in range(CELLS):
        of = plain[cells == cell]
        d = of - centres[cell] / scale
        assert first.values[0][cell] == second.values[0][cell] == len(of)
        assert np.allclose(first.values[1][cell] / scale, d.sum(0), atol=0.05)
        assert np.allclose(second.values[1][cell] / scale, d.sum(0), atol=0.05)
        assert np.allclose(second.values[2][cell] / scale**2, d.T @ d, atol=0.3)
    assert np.allclose(shared.values[0], second.values[2].sum(0))
    kept = pixels[cells >= 0]
    assert tones.values[0].tolist() == np.histogram(kept, bins=16, range=(0, 256))[0].tolist()
    slants = slant_codes(deskewed(pixels, SHAPE))
    for cell in range(CELLS):
        of = slants[cells == cell]
        assert leanings.values[0][cell].tolist() == np.histogram(of, bins=9, range=(0, 256))[0].tolist()


def test_cells_are_disjoint_and_within_the_label():
    pixels = make_records("random", 300)
    basis, scale = cosine_basis(SHAPE, 9), 2.0**10
    labels = np.arange(300) % 4 - 1  # NO_CELL among them, and label 2 has no centre
    centres = np.rint((pixels[:4] / 255.0 @ basis) * scale)
    centre_labels = np.array([0, 0, 1, 1])
    cells = nearest_cells(Coefficients(pixels, basis, scale), labels, centres=centres, centre_labels=centre_labels)
    plain = pixels / 255.0 @ basis * scale
    for label, cell, vector in zip(labels, cells, plain, strict=True):
        if label not in {0, 1}:
            assert cell == NO_CELL
            continue
        of_label = np.flatnonzero(centre_labels == label)
        distances = np.linalg.norm(vector - centres[of_label], axis=1)
        assert distances[list(of_label).index(cell)] <= distances.min() + 2


@pytest.mark.parametrize(("units", "radius"), [(2, 0.1), (60_000, 5.6), (10**7, 30.0)])
def test_sums_stay_exact(units, radius):
    scale = scale_for(units, radius)
    assert units * (scale * radius) ** 2 < EXACT
    with pytest.raises(ValueError, match="too many"):
        scale_for(10**14, 30.0)


@pytest.mark.parametrize(("shape", "most"), [((28, 28, 1), 256), ((14, 14, 1), 256), ((5, 9, 3), 60), ((3, 40, 1), 50)])
def test_the_basis_is_orthonormal_and_smooth_first(shape, most):
    basis = cosine_basis(shape, most)
    assert basis.shape[0] == math.prod(shape)
    assert shape[2] <= basis.shape[1] <= most
    assert np.allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-12)
    constant = np.full(math.prod(shape), 0.5)
    assert np.allclose(basis @ (basis.T @ constant), constant)
    if math.prod(shape) <= most:
        assert basis.shape[1] == math.prod(shape)
