"""Whose a row is: equal numbers are one unit, different ones never, and what reads as missing is no unit id."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from fractions import Fraction

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.intake.limits import IngestLimits
from service.intake.table.columns import ColumnSource
from service.intake.unit_ids import MISSING_IDS, UnitIds, dense

KEY = b"k" * 32


def units_of(*arrays: pa.Array, repeats: bool = True, missing: str = "own_unit", markers=(), key: bytes = KEY) -> list:
    """The unit of every row of some chunks, as bytes. `repeats`: whether distinct cells are looked for."""
    ids = UnitIds(key, "who", markers, missing=missing)
    source = ColumnSource("who", IngestLimits())
    found = []
    for array in arrays:
        source._repeats = repeats
        found += [row.tobytes() for row in ids.blocks(source.column(array))]
    return found


def texts(*cells: str | None) -> pa.Array:
    return pa.array(cells, pa.string())


digits = st.text("0123456789", max_size=25)
numbers = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "-", "+"]),
    digits,
    st.one_of(st.just(""), digits.map(".{}".format)),
    st.one_of(st.just(""), st.integers(-30, 30).map("e{}".format), st.integers(-30, 30).map("E{:+}".format)),
).filter(lambda text: any(character.isdigit() for character in text.lower().partition("e")[0]))


@given(cells=st.lists(numbers, min_size=2, max_size=12), repeats=st.booleans())
@settings(max_examples=200, deadline=None)
def test_two_numbers_are_one_unit_if_and_only_if_they_are_equal(cells, repeats):
    units = units_of(texts(*cells), repeats=repeats)
    for one, of_one in zip(cells, units, strict=True):
        for other, of_other in zip(cells, units, strict=True):
            equal = Fraction(Decimal(one)) == Fraction(Decimal(other))
            assert (of_one == of_other) == equal, (one, other)


@pytest.mark.parametrize(
    "spellings",
    [
        ["7", "7.0", "007", "+7", " 7 ", "7e0", "70e-1"],
        ["1000", "1e3", "1E+3"],
        ["0", "-0", "0.000", "0e9"],
        ["9223372036854775807", "9223372036854775807.0"],
        ["12345678901234567890123", "12345678901234567890123.0", "1.2345678901234567890123e22"],
        ["2024-02-29", "2024-02-29T00:00:00Z", "2024-02-29T01:00+01:00"],
    ],
)
def test_one_unit_however_it_is_written(spellings):
    assert len(set(units_of(texts(*spellings)))) == 1


@pytest.mark.parametrize(
    "ids",
    [
        ["12345678901234567890123", "12345678901234567890124"],
        ["9007199254740992", "9007199254740993", "9007199254740993.5", "9007199254740992.0000000001"],
        ["9223372036854775807", "9223372036854775808", "9223372036854775809", "-9223372036854775809"],
        ["0.1", "0.1000000000000000055511151231257827"],
        ["1e400", "1e401", "-1e400", "1e-400", "1e-401", "0"],
        ["2024-02-29T00:00:00.123456781", "2024-02-29T00:00:00.123456789", "2024-02-29T00:00:00.123456"],
        ["3fa85f64-5717-4562-b3fc-2c963f66afa6", "3fa85f64-5717-4562-b3fc-2c963f66afa7"],
        ["ab", "AB", "a b", "ab."],
        ["1e", "e1", ".", "-", "0x10", "1_000", "10"],
        ["n1e0", "1e99999999999999999999", "t1"],
    ],
)
def test_different_ids_are_different_units(ids):
    present = [one for one in ids if one.lower() not in MISSING_IDS]
    for repeats in (True, False):
        assert len(set(units_of(texts(*ids), repeats=repeats))) == len(ids)
        assert len(set(units_of(texts(*present), repeats=repeats, missing="refuse"))) == len(present)


@pytest.mark.parametrize(
    "array",
    [
        pa.array([2**64 - 1, 2**64 - 2, 2**63], pa.uint64()),
        pa.array([2**63 - 1, 2**63 - 2, -(2**63)], pa.int64()),
        pa.array([Decimal("12345678901234567890123.01"), Decimal("12345678901234567890123.02")]),
        pa.array([0.1, np.nextafter(0.1, 1.0), 1e300, float(2**60), float(2**60 + 256)], pa.float64()),
        pa.array([1, 2, 1_000], pa.timestamp("ns")),
        pa.array([dt.date(1, 1, 1), dt.date(2024, 2, 29)]),
    ],
    ids=["uint64", "int64", "decimals", "floats", "nanoseconds", "dates"],
)
def test_every_value_of_a_parquet_column_is_a_unit(array):
    units = units_of(array)
    assert len(set(units)) == len(array)
    assert units_of(array, repeats=False) == units


def test_ids_are_the_same_in_every_chunk_whatever_else_is_in_it():
    """A chunk with NaN is read as text, one without as floats."""
    values = [0.1, 7.0, 2.0**53, 2.0**60, 1e300, 1e-320, 123456789012345680000.0]
    plain = pa.array(values, pa.float64())
    with_nan = pa.array([*values, float("nan")], pa.float64())
    first, second = units_of(plain), units_of(with_nan)
    assert second[:-1] == first
    assert units_of(plain, with_nan)[: 2 * len(values)] == first + first
    nanoseconds = pa.array([1_709_164_800_123_456_789], pa.timestamp("ns"))
    assert units_of(nanoseconds) == units_of(texts("2024-02-29T00:00:00.123456789"))


@pytest.mark.parametrize("repeats", [True, False])
def test_what_reads_as_missing_is_no_unit_id(repeats):
    cells = ["", " ", "NA", "n/a", "NaN", "Null", "?", "None", "<NA>", "#N/A", "nil", "-", None, "ada", "ada", "7"]
    ids = UnitIds(KEY, "who", ("-999", "unknown", ""))
    source = ColumnSource("who", IngestLimits())
    source._repeats = repeats
    ids.blocks(source.column(texts(*cells)))
    assert ids.missing == 13
    ids.blocks(source.column(texts("unknown", "-999", "-999.0", "-9.99e2", "Unknown", "ada")))
    assert ids.missing == 17, "declared ones are as they are spelled, or the same number"
    ids.blocks(source.column(pa.array([-999, 3, None], pa.int64())))
    assert ids.missing == 19
    ids.blocks(source.column(pa.array([float("nan"), 1.5, None], pa.float64())))
    assert ids.missing == 21


def test_a_marker_that_is_a_long_number_is_that_number_only():
    ids = UnitIds(KEY, "who", ("9007199254740992",))
    ids.blocks(ColumnSource("who", IngestLimits()).column(texts("9007199254740993", "9007199254740992.0")))
    assert ids.missing == 1


@given(
    chunks=st.lists(
        st.lists(st.sampled_from(["", "NA", None, "0", "1", "2", "ada"]), min_size=1, max_size=9),
        min_size=1,
        max_size=4,
    ),
    repeats=st.booleans(),
)
@settings(max_examples=100, deadline=None)
def test_by_declaration_each_row_without_an_id_is_a_unit_of_its_own(chunks, repeats):
    cells = [cell for chunk in chunks for cell in chunk]
    units = units_of(*(texts(*chunk) for chunk in chunks), repeats=repeats)
    for place, cell in enumerate(cells):
        same = [other for other, unit in enumerate(units) if unit == units[place]]
        alone = cell in {"", "NA", None}
        assert same == [place] if alone else [cells[other] for other in same] == [cell] * cells.count(cell)


def test_units_are_numbered_without_gaps_and_under_a_key():
    array = texts(*(str(i % 50) for i in range(400)))
    blocks = UnitIds(KEY, "who").blocks(ColumnSource("who", IngestLimits()).column(array))
    numbered = dense(blocks)
    assert sorted(set(numbered.tolist())) == list(range(50))
    assert pl.DataFrame({"a": array, "b": numbered}).n_unique() == 50
    assert units_of(array) != units_of(array, key=b"l" * 32)


def test_characters_that_cannot_be_seen_make_no_second_unit():
    seven = texts("7", "7\u00a0", "\u00a07", "7\u200b", "\ufeff7", " 7 ")
    assert len(set(units_of(seven))) == 1
    name = texts("caf\u00e9", "cafe\u0301", "caf\u00e9\u00ad", "\u3000caf\u00e9")
    assert len(set(units_of(name))) == 1
    assert len(set(units_of(texts("ann lee", "annlee", "Ann Lee")))) == 3


def test_a_cell_of_blanks_that_cannot_be_seen_is_no_unit_id():
    ids = UnitIds(KEY, "who", missing="refuse")
    ids.blocks(ColumnSource("who", IngestLimits()).column(texts("\u00a0", "\u200b", "\\N", ".", "(null)", "7")))
    assert ids.missing == 5
