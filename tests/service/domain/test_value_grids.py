"""Which single values of a declared range may be counted, and where a value stands among them."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.domain.field_schema import FieldSchema
from service.domain.value_grids import MOST_VALUES, value_grid


def field(kind: str, low: Any, high: Any, **more: Any) -> FieldSchema:
    constraints = {"minimum": low, "maximum": high}
    return FieldSchema.model_validate({"name": "x", "type": kind, "constraints": constraints, **more})


@pytest.mark.parametrize(
    ("declared", "first", "last", "step", "decimals"),
    [
        (field("integer", 16, 95), 16, 95, 1, 0),
        (field("integer", -3, 8_000_000), -3, 8_000_000, 1, 0),
        (field("integer", 5, 7_999_999_999), 1, 799_999_999, 10, 0),  # of a longer range, round numbers alone
        (field("number", 0, 99.99, decimals=2), 0, 9_999, 1, 2),
        (field("number", 0.07, 0.7, decimals=2), 7, 70, 1, 2),  # whose hundredfold is no whole number of floats
        (field("number", 0, 9), 0, 900_000, 1, 5),  # the finest that there are few enough of
        (field("number", -2_000_000, 2_000_000, decimals=2), -200_000_000, 200_000_000, 1, 2),
        (field("number", 0, 1e10, decimals=0), 0, 1_000_000_000, 10, 0),
        (field("number", 2**52, 2**52 + 1_000), 2**52, 2**52 + 1_000, 1, 0),  # floats have no more digits
        (field("number", -(2**53), 2**53), -900_719, 900_719, 10**10, 0),
        (field("date", "2000-01-01", "2020-12-31"), 10_957, 18_627, 1, 0),
        (field("datetime", "2020-01-01T00:00:00", "2020-01-31T00:00:00"), 1_577_836_800, 1_580_428_800, 1, 0),
        (field("datetime", "1900-01-01T00:00:00", "2020-01-01T00:00:00"), -36_816_480, 26_297_280, 60, 0),
    ],
)
def test_the_finest_step_of_which_there_are_few_enough(
    declared: FieldSchema, first: int, last: int, step: int, decimals: int
) -> None:
    grid = value_grid(declared, 32)
    assert grid is not None
    assert (grid.first, grid.first + grid.size - 1, grid.step, grid.decimals) == (first, last, step, decimals)
    assert 32 < grid.size <= MOST_VALUES
    low, high = declared.bounds
    ends = grid.values(np.array([-1, 0, grid.size - 1, grid.size]))
    assert ends[0] < low <= ends[1]
    assert ends[2] <= high < ends[3]


@pytest.mark.parametrize(
    "declared",
    [
        FieldSchema.model_validate({"name": "x", "type": "boolean"}),
        FieldSchema.model_validate({"name": "x", "type": "string", "constraints": {"enum": ["a"]}}),
        field("integer", 0, 31),
        field("integer", 0, 999, bins=20),
        field("number", 0, 40, edges=[0, 5, 40]),
        field("number", 0, 3, decimals=1),
    ],
)
def test_where_cells_are_declared_or_values_there_is_none(declared: FieldSchema) -> None:
    assert value_grid(declared, 32) is None


@settings(deadline=None)
@given(st.integers(0, 9), st.integers(-(10**6), 10**6), st.integers(1, 10**6), st.data())
def test_a_value_as_it_is_written_is_found_and_given_back(decimals: int, low: int, size: int, data: Any) -> None:
    one = 10**decimals
    declared = field("number", low / one, (low + size) / one, decimals=decimals)
    grid = value_grid(declared, 1)
    assert grid is not None
    assert (grid.first, grid.size) == (low, size + 1)
    whole = data.draw(st.integers(low, low + size))
    value = np.array([float(f"{whole}e-{decimals}")])
    (place,) = grid.places(value)
    assert grid.values(np.array([place], np.int64)) == value
    assert grid.places(np.nextafter(value, np.inf)) == place


def test_what_is_no_such_value_has_the_place_of_the_next_one_below_or_of_the_end() -> None:
    grid = value_grid(field("integer", 5, 7_999_999_999), 32)
    assert grid is not None
    found = grid.places(np.array([10, 15, 25, 5, 0, -1e300, np.nan, 1e300, np.inf, 7_999_999_990]))
    assert found.tolist() == [0, 0, 1, 0, 0, 0, grid.size, *[grid.size - 1] * 3]
    assert grid.below(np.array([0.0, 10.0, 10.5, 20.0, 1e12])).tolist() == [0, 0, 1, 1, grid.size]
    assert found.dtype == np.uint32


def test_how_round_values_are() -> None:
    grid = value_grid(field("number", 0, 99.99, decimals=2), 32)
    assert grid is not None
    assert grid.multiples == (1, 10, 100, 1_000)
    assert grid.roundness(np.array([1, 20, 300, 499, 5_000])).tolist() == [0, 1, 2, 0, 3]
    minutes = value_grid(field("datetime", "1900-01-01T00:00:00", "2020-01-01T00:00:00"), 32)
    assert minutes is not None
    assert minutes.multiples == (1, 60, 1_440)
    assert minutes.roundness(np.array([0, 1, 60, 1_440])).tolist() == [2, 0, 1, 2]  # midnight


def test_fewer_digits_are_some_of_the_values() -> None:
    grid = value_grid(field("number", 0.13, 40.2, decimals=3), 32)
    assert grid is not None
    fewer = grid.with_decimals(1)
    assert (fewer.first, fewer.size, fewer.step, fewer.decimals) == (2, 401, 1, 1)  # 0.2 to 40.2
    assert fewer.values(np.arange(2)).tolist() == [0.2, 0.3]
    assert set(fewer.values(np.arange(fewer.size))) < set(grid.values(np.arange(grid.size)))
    assert grid.with_decimals(3) == grid.with_decimals(5) == grid
