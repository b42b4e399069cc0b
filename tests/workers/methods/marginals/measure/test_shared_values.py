"""Values that many rows share: found under noise, few by mistake, and shared out within their cells."""

import numpy as np
import pytest

from service.domain.field_schema import FieldSchema
from service.domain.value_grids import ValueGrid, value_grid
from workers.methods.marginals.measure.shared_values import (
    EXPECTED_FALSE,
    MOST_FOUND,
    HeavyHitters,
    digits_in_use,
    heavy_hitters,
    shares_of_cells,
)


def grid_of(maximum: float, **more: object) -> ValueGrid:
    constraints = {"minimum": 0, "maximum": maximum}
    field = FieldSchema.model_validate({"name": "x", "type": "number", "constraints": constraints, **more})
    grid = value_grid(field, 4)
    assert grid is not None
    return grid


PRICES = grid_of(40, decimals=2)
EDGES = np.linspace(0, 40, 5)


def found_in(counts: dict[float, int], noise_std: float, seed: int = 0, grid: ValueGrid = PRICES) -> HeavyHitters:
    noised = np.random.default_rng(seed).normal(0.0, noise_std, grid.size).round().astype(np.int64)
    for value, rows in counts.items():
        noised[grid.places(np.array([value]))] += rows
    return heavy_hitters(noised, grid, noise_std=noise_std)


def test_what_stands_out_has_about_its_rows() -> None:
    rows = np.array([4_000.0, 6_000.0, 0.0, 100.0])
    found = found_in({4.99: 3_000, 10.0: 2_000, 12.5: 1_000}, 20.0)
    shares = dict(shares_of_cells(found, PRICES, drawn_from=PRICES, edges=EDGES, rows=rows))
    assert {4.99, 10.0, 12.5} <= set(shares)
    assert shares[4.99] == pytest.approx(0.75, abs=0.02)
    assert shares[10.0] == pytest.approx(1 / 3, abs=0.02)  # an edge belongs to the cell above it
    assert shares[12.5] == pytest.approx(1 / 6, abs=0.02)
    assert list(shares) == sorted(shares)


def test_few_stand_out_by_noise_alone() -> None:
    grid = grid_of(1_000, decimals=2)
    trials = 60
    false = sum(len(found_in({}, 100.0, seed, grid).places) for seed in range(trials))
    assert 0 < false < trials * EXPECTED_FALSE * 1.8


def test_round_values_stand_out_at_fewer_rows() -> None:
    rows = np.full(4, 10_000.0)
    found = [found_in({20.0: 390, 7.13: 390}, 100.0, seed) for seed in range(20)]
    values = [
        [value for value, _ in shares_of_cells(one, PRICES, drawn_from=PRICES, edges=EDGES, rows=rows)] for one in found
    ]
    round_ones, others = (sum(value in own for own in values) for value in (20.0, 7.13))
    assert round_ones > others + 4


def test_an_even_spread_shares_nothing() -> None:
    grid = grid_of(39, decimals=0)
    counts = np.full(grid.size, 1_000)
    found = heavy_hitters(counts, grid, noise_std=50.0)
    assert len(found.places) == 40  # all are far from nothing
    edges = np.array([0.0, 10.0, 20.0, 30.0, 39.0])
    assert shares_of_cells(found, grid, drawn_from=grid, edges=edges, rows=np.full(4, 10_000.0)) == ()
    counts[25] = 3_000
    found = heavy_hitters(counts, grid, noise_std=50.0)
    ((value, share),) = shares_of_cells(
        found, grid, drawn_from=grid, edges=edges, rows=np.array([1e4, 1e4, 1.2e4, 1e4])
    )
    assert value == 25.0
    assert share == pytest.approx(2 / 12)  # its third of the cell's rows has what an even spread gives it, too


def test_more_rows_than_a_cell_seems_to_have_are_all_of_it() -> None:
    found = found_in({4.99: 3_000, 5.99: 1_000}, 1.0)
    shares = dict(shares_of_cells(found, PRICES, drawn_from=PRICES, edges=EDGES, rows=np.zeros(4)))
    assert sum(shares.values()) == pytest.approx(1.0)
    assert shares[4.99] == pytest.approx(0.75, abs=0.01)


def test_nothing_is_found_where_nothing_stands_out() -> None:
    found = heavy_hitters(np.zeros(PRICES.size, np.int64), PRICES, noise_std=1.0)
    assert shares_of_cells(found, PRICES, drawn_from=PRICES, edges=EDGES, rows=np.full(4, 10.0)) == ()
    assert HeavyHitters.from_json(found.to_json()).places.size == 0


@pytest.mark.parametrize(("digits", "noise_std"), [(0, 20.0), (1, 8.0), (2, 2.0)])
def test_digits_that_numbers_do_not_have_are_found_out(digits: int, noise_std: float) -> None:
    grid = grid_of(40)
    assert grid.decimals == 5
    random = np.random.default_rng(3)
    real = random.integers(1, 40 * 10**digits, size=10_000) / 10**digits
    places, counts = np.unique(grid.places(real), return_counts=True)
    noised = random.normal(0.0, noise_std, grid.size).round().astype(np.int64)
    noised[places] += counts
    found = heavy_hitters(noised, grid, noise_std=noise_std)
    assert digits_in_use(found, grid, rows=10_000.0) == digits
    # The rows of a cell that none of these found ones has lie on coarser values, each of which has its part of them.
    drawn_from = grid.with_decimals(digits)
    shares = dict(shares_of_cells(found, grid, drawn_from=drawn_from, edges=EDGES, rows=np.full(4, 2_500.0)))
    assert all(share < 0.05 for share in shares.values())


def test_digits_stay_open_where_some_rows_have_them_or_noise_hides_it() -> None:
    grid = grid_of(40)
    whole = {float(value): 400 for value in range(41)}
    rows = 400.0 * 41
    assert digits_in_use(found_in(whole, 30.0, grid=grid), grid, rows=rows) == 0
    assert digits_in_use(found_in(whole, 300.0, grid=grid), grid, rows=rows) is None
    assert digits_in_use(found_in(whole, 30.0, grid=grid), grid, rows=rows + 1_000) != 0
    # Nearly all have nothing, and what others have is not told by that.
    assert digits_in_use(found_in({0.0: 9_800}, 20.0, grid=grid), grid, rows=10_000.0) is None


def test_no_more_values_are_found_than_a_generator_should_name() -> None:
    grid = grid_of(400, decimals=2)
    counts = np.random.default_rng(0).permutation(grid.size)
    found = heavy_hitters(counts, grid, noise_std=1e-6)
    assert sorted(found.counts.tolist()) == list(range(grid.size))[-MOST_FOUND:]
    assert (np.diff(found.places) > 0).all()
