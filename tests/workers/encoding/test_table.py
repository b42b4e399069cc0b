"""Domains come from the schema alone; every cell of every type survives decoding and encoding."""

import datetime as dt
import io
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_generators import MIXED, domain_of

from service.base.errors import InvalidFile, InvalidSchema, Tampered
from service.domain.field_schema import MAX_BINS, FieldSchema
from service.domain.grids import tree_levels
from service.domain.table_schema import parse_table_schema
from service.domain.value_grids import ValueGrid
from service.platform.crypto import encrypt, open_decrypted
from service.samples.table.columns import CategoryColumn
from service.samples.table.ranges import GridColumn
from workers.encoding.table import ABSENT, UNIT_COLUMN, ColumnDomain, EncodedTable, TableDomain, encode_table

POLARS_TYPES = {
    "string": pl.String,
    "integer": pl.Int64,
    "number": pl.Float64,
    "boolean": pl.Boolean,
    "date": pl.Date,
    "datetime": pl.Datetime("us"),
}


def parquet(columns, schema, units=None):
    """The canonical table of plain values; dates may be ISO text."""
    types = {field["name"]: POLARS_TYPES[field["type"]] for field in schema["fields"]}
    parse = {"date": dt.date.fromisoformat, "datetime": dt.datetime.fromisoformat}
    series = []
    for field in schema["fields"]:
        values = columns[field["name"]]
        if field["type"] in parse:
            values = [parse[field["type"]](v) if isinstance(v, str) else v for v in values]
        series.append(pl.Series(field["name"], values, dtype=types[field["name"]], strict=False))
    if units is not None:
        series.append(pl.Series(UNIT_COLUMN, units, dtype=pl.Int64))
    file = io.BytesIO()
    pl.DataFrame(series).write_parquet(file)
    return file.getvalue()


def encode(columns, schema, **options):
    rows = len(next(iter(columns.values())))
    return encode_table(parquet(columns, schema), domain_of(schema), units=rows, **options)


def one_field(**field):
    return {"fields": [{"name": "x", **field}]}


def codes_of(field, values):
    return encode({"x": values}, one_field(**field)).codes[:, 0].tolist()


@st.composite
def fields(draw):
    """Any declared column."""
    kind = draw(st.sampled_from(["string", "integer", "number", "boolean", "date", "datetime"]))
    constraints = {"required": draw(st.booleans())}
    more = {}
    if kind == "string":
        texts = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=8)
        more["missingValues"] = []  # any text may be a category
        constraints["enum"] = draw(st.lists(texts, min_size=1, max_size=12, unique=True))
    elif kind in {"integer", "number"} and draw(st.booleans()):
        values = st.integers(-(2**53), 2**53) if kind == "integer" else st.floats(-1e300, 1e300)
        constraints["enum"] = draw(st.lists(values, min_size=1, max_size=12, unique=True))
    elif kind == "integer":
        low, high = sorted(draw(st.lists(st.integers(-(2**52), 2**52), min_size=2, max_size=2, unique=True)))
        constraints |= {"minimum": low, "maximum": draw(st.sampled_from([high, low + 1, low + 70]))}
    elif kind == "number":
        low, high = sorted(draw(st.lists(st.floats(-1e15, 1e15), min_size=2, max_size=2, unique=True)))
        constraints |= {"minimum": low, "maximum": high}
    elif kind == "date":
        low, high = sorted(draw(st.lists(st.dates(), min_size=2, max_size=2, unique=True)))
        constraints |= {"minimum": low.isoformat(), "maximum": high.isoformat()}
    elif kind == "datetime":
        moments = st.datetimes().map(lambda moment: moment.replace(microsecond=0))
        low, high = sorted(draw(st.lists(moments, min_size=2, max_size=2, unique=True)))
        constraints |= {"minimum": low.isoformat(), "maximum": high.isoformat()}
    if "minimum" in constraints and draw(st.booleans()):
        more["bins"] = draw(st.integers(1, MAX_BINS))
    return {"name": "x", "type": kind, "constraints": constraints, **more}


@settings(max_examples=150, deadline=None)
@given(fields(), st.data())
def test_every_cell_survives_decoding_and_encoding(field, data):
    schema = {"fields": [field]}
    domain = domain_of(schema).columns[0]
    codes = np.array(data.draw(st.lists(st.integers(0, domain.size - 1), min_size=1, max_size=30)))
    column = (CategoryColumn if domain.kind == "categories" else GridColumn)(domain.to_config(), "")
    drawn = column.fill(codes, np.random.default_rng(data.draw(st.integers(0, 2**32))))
    table = encode({"x": column.to_values(drawn)}, schema)
    assert table.codes[:, 0].tolist() == codes.tolist()
    assert table.codes.dtype == (
        np.uint8 if domain.size * (1 if domain.value_grid is None else 2) <= 255 else np.uint16
    )
    assert table.codes.flags.c_contiguous


@settings(max_examples=100, deadline=None)
@given(fields(), st.data())
def test_any_stored_value_gets_a_code_of_the_domain(field, data):
    anything = {
        "string": st.text(st.characters(exclude_categories=["Cs"])),
        "integer": st.integers(-(2**63), 2**63 - 1),
        "number": st.floats(),
        "boolean": st.booleans(),
        "date": st.dates(),
        "datetime": st.datetimes(),
    }[field["type"]]
    values = data.draw(st.lists(st.none() | anything, min_size=1, max_size=20))
    codes = encode({"x": values}, {"fields": [field]}).codes[:, 0]
    domain = domain_of({"fields": [field]}).columns[0]
    assert (codes < domain.size).all()
    for value, code in zip(values, codes, strict=True):
        if value is None:
            assert code == (domain.size - 1 if domain.missing else 0)


@settings(max_examples=100, deadline=None)
@given(fields())
def test_the_domain_is_consistent(field):
    domain = domain_of({"fields": [field]}).columns[0]
    assert domain.missing is not field["constraints"]["required"]
    if domain.kind == "categories":
        assert len(domain.values) == domain.size
        assert (domain.values[-1] is None) is domain.missing
    else:
        assert len(domain.edges) - 1 + domain.missing == domain.size
        assert list(domain.edges) == sorted(set(domain.edges))


@pytest.mark.parametrize(
    ("field", "cells"),
    [
        ({"type": "boolean"}, 2),
        ({"type": "string", "constraints": {"enum": ["a", "b", "c"]}}, 3),
        ({"type": "integer", "constraints": {"minimum": 1, "maximum": 13}}, 13),
        ({"type": "integer", "constraints": {"minimum": 0, "maximum": 63}}, 64),
        ({"type": "integer", "constraints": {"minimum": 0, "maximum": 64}}, 8),
        ({"type": "integer", "constraints": {"minimum": 0, "maximum": 64}, "bins": 100}, 65),
        ({"type": "integer", "constraints": {"minimum": 0, "maximum": 9}, "bins": 3}, 3),
        ({"type": "integer", "constraints": {"minimum": 0, "maximum": 9}, "edges": [0, 1, 5, 9]}, 3),
        ({"type": "number", "constraints": {"minimum": 0, "maximum": 1}}, 8),
        ({"type": "number", "constraints": {"minimum": 0, "maximum": 1}, "edges": [0, 0.1, 1]}, 2),
        ({"type": "date", "constraints": {"minimum": "2024-02-01", "maximum": "2024-02-29"}}, 29),
        ({"type": "date", "constraints": {"minimum": "2000-01-01", "maximum": "2024-02-29"}}, 8),
    ],
)
def test_cells_follow_the_declaration(field, cells):
    field = {"name": "x", **field}
    assert domain_of({"fields": [field]}).columns[0].size == cells + 1
    required = {**field, "constraints": {**field.get("constraints", {}), "required": True}}
    assert domain_of({"fields": [required]}).columns[0].size == cells


def test_values_outside_the_range_are_clamped():
    ages = {"type": "integer", "constraints": {"minimum": 0, "maximum": 9}}
    assert codes_of(ages, [-(10**15), -1, 0, 9, 10, 10**15, None]) == [0, 0, 0, 9, 9, 9, 10]
    shares = {"type": "number", "constraints": {"minimum": 0, "maximum": 1}, "bins": 4}
    infinite = [float("-inf"), -1.0, 0.25, 1.0, 2.0, float("inf"), float("nan"), None]
    assert codes_of(shares, infinite) == [0, 0, 1, 3, 3, 3, 4, 4]
    days = {"type": "date", "constraints": {"minimum": "2024-01-01", "maximum": "2024-01-03"}}
    assert codes_of(days, ["1900-01-01", "2024-01-02", "2100-01-01"]) == [0, 1, 2]


def test_undeclared_values_become_missing_or_the_first_cell():
    enum = {"type": "integer", "constraints": {"enum": [5, 3]}}
    assert codes_of(enum, [3, 5, 4, None]) == [1, 0, 2, 2]
    required = {"type": "string", "constraints": {"enum": ["a", "b"], "required": True}}
    assert codes_of(required, ["b", "c", None]) == [1, 0, 0]


def test_declared_edges_of_integers_keep_the_maximum_in_the_last_cell():
    field = {"type": "integer", "constraints": {"minimum": 0, "maximum": 9}, "edges": [0, 0.5, 0.7, 5, 9]}
    assert domain_of(one_field(**field)).columns[0].edges == (0, 1, 5, 10)
    assert codes_of(field, list(range(10))) == [0] + [1] * 4 + [2] * 5


def test_a_datetime_range_without_a_whole_second_is_refused():
    constraints = {"minimum": "2024-01-01T00:00:00.2", "maximum": "2024-01-01T00:00:00.8"}
    field = FieldSchema.model_validate({"name": "x", "type": "datetime", "constraints": constraints})
    with pytest.raises(InvalidSchema):
        ColumnDomain.from_field(field, numeric_bins=8)


@pytest.mark.parametrize(("resolution", "step", "edges"), [("minute", 60, 65), ("hour", 3_600, 49), ("day", 86_400, 4)])
def test_cells_of_a_datetime_begin_at_whole_steps_of_its_resolution(resolution, step, edges):
    constraints = {"minimum": "2024-01-01T00:00:00", "maximum": "2024-01-02T23:59:59", "required": True}
    if resolution == "day":
        constraints["maximum"] = "2024-01-03T11:00:00"
    document = {"name": "x", "type": "datetime", "constraints": constraints, "resolution": resolution}
    field = FieldSchema.model_validate(document)
    column = ColumnDomain.from_field(field, numeric_bins=64)
    assert len(column.edges) == edges
    assert all(edge % step == 0 for edge in column.edges)
    assert (column.edges[0], column.edges[-1]) == (field.bounds[0], field.bounds[1] // step * step + step)
    assert column.to_config()["step"] == step
    assert (tree_levels(field, 64) == 0) == (edges < 65)
    assert field.model_dump()["resolution"] == resolution


def test_a_resolution_is_of_moments_and_leaves_one_in_the_range():
    with pytest.raises(ValueError, match="resolution is for datetime"):
        FieldSchema.model_validate(
            {"name": "x", "type": "integer", "constraints": {"minimum": 0, "maximum": 9}, "resolution": "hour"}
        )
    constraints = {"minimum": "2024-01-01T00:00:01", "maximum": "2024-01-01T00:59:59"}
    field = FieldSchema.model_validate(
        {"name": "x", "type": "datetime", "constraints": constraints, "resolution": "hour"}
    )
    with pytest.raises(InvalidSchema, match="no whole hour"):
        ColumnDomain.from_field(field, numeric_bins=8)


def test_widths_add_up_and_columns_are_found():
    domain = domain_of(MIXED)
    assert domain.total_width == sum(domain.widths)
    assert domain.index("age") == [f["name"] for f in MIXED["fields"]].index("age")
    with pytest.raises(KeyError):
        domain.index("nobody")
    assert [c["name"] for c in domain.to_config()] == list(domain.names)


@pytest.fixture
def numbered():
    """One column that tells every row apart."""
    return one_field(type="integer", constraints={"minimum": 0, "maximum": 99_999, "required": True}, bins=1024)


def by_unit(rows_per_unit):
    return np.repeat(np.arange(len(rows_per_unit)), rows_per_unit).tolist()


@pytest.mark.parametrize(
    ("field", "values", "places"),
    [
        (
            {"type": "number", "decimals": 2, "constraints": {"minimum": 0, "maximum": 40}},
            [4.99, 0.0, 40.0, None, 4.995, -1.0, 41.0, float("nan")],
            [499, 0, 4_000, 4_001, 499, 0, 4_000, 4_001],
        ),
        (
            {"type": "integer", "constraints": {"minimum": 100, "maximum": 999, "required": True}},
            [100, 999, 5, None],
            [0, 899, 0, 900],
        ),
        ({"type": "date", "constraints": {"minimum": "2024-01-01", "maximum": "2025-12-31"}}, ["2024-02-01", None], [31, 731]),
        (
            {"type": "datetime", "constraints": {"minimum": "2000-01-01T00:00:00", "maximum": "2009-12-31T00:00:00"}},
            ["2000-01-02T00:00:00", "2000-01-01T00:01:00", "2000-01-01T00:01:01", None],
            [86_400, 60, 61, 315_532_801],
        ),
    ],
)  # fmt: skip
def test_values_have_places_and_missing_ones_the_one_after_the_last(field, values, places):
    table = encode({"x": values}, one_field(**field), with_places=True)
    assert table.places[0].tolist() == places
    assert encode({"x": values}, one_field(**field)).places == {}


def test_places_are_those_of_the_kept_rows():
    field = one_field(type="integer", constraints={"minimum": 0, "maximum": 99_999, "required": True})
    rows = np.random.default_rng(1).permutation(100_000).tolist()
    source = parquet({"x": rows}, field, by_unit([5] * 20_000))
    table = encode_table(source, domain_of(field), units=20_000, max_rows_per_unit=3, with_places=True)
    assert table.places[0].shape == (60_000,)
    edges = domain_of(field).columns[0].edges
    assert np.array_equal(np.searchsorted(edges, table.places[0], side="right") - 1, table.codes[:, 0])
    assert len(set(table.places[0].tolist())) == 60_000


def test_rows_are_encoded_anew_by_other_bins():
    field = one_field(type="number", decimals=2, constraints={"minimum": 0, "maximum": 40})
    table = encode({"x": [0.0, 4.98, 4.99, 5.0, 40.0, None]}, field, with_places=True)
    table.codes[0] = table.places[0][0] = np.iinfo(table.codes.dtype).max  # a null record
    table.places[0][0] = np.iinfo(np.uint32).max
    starts = np.array([0, 499, 500])
    domain = domain_of(field).with_bins({0: starts})
    assert domain.columns[0].edges == (0.0, 4.99, 5.0, 40.0)
    assert domain.widths == (4,)
    table.encode_anew(domain.columns[0], 0, starts)
    assert table.codes[:, 0].tolist() == [np.iinfo(table.codes.dtype).max, 0, 1, 2, 2, 3]


def test_units_keep_at_most_max_rows_per_unit_in_order():
    field = one_field(type="integer", constraints={"minimum": 0, "maximum": 63, "required": True})
    counts = [1, 7, 0, 3, 20, 2]
    rows = list(range(sum(counts)))
    source = parquet({"x": rows}, field, by_unit(counts))
    table = encode_table(source, domain_of(field), units=6, max_rows_per_unit=3)
    assert np.diff(table.unit_starts).tolist() == [1, 3, 0, 3, 3, 2]
    assert table.unit_starts[0] == 0
    assert table.units == 6
    assert table.max_rows_per_unit == 3
    kept = table.codes[:, 0]
    assert (np.diff(kept.astype(int)) > 0).all()  # the rows, in their order, each at most once
    assert [by_unit(counts)[row] for row in kept] == by_unit([1, 3, 0, 3, 3, 2])
    assert not (table.codes == ABSENT).any()


def test_kept_rows_are_uniform():
    field = one_field(type="integer", constraints={"minimum": 0, "maximum": 4, "required": True})
    units, rows, kept = 4_000, 5, 2
    source = parquet({"x": list(range(rows)) * units}, field, by_unit([rows] * units))
    random = np.random.default_rng(0)
    table = encode_table(
        source,
        domain_of(field),
        units=units,
        max_rows_per_unit=kept,
        random_keys=lambda count: random.integers(0, 2**64, count, dtype=np.uint64),
    )
    pairs = table.codes[:, 0].reshape(units, kept)
    _, counts = np.unique(pairs[:, 0] * rows + pairs[:, 1], return_counts=True)
    expected = units / 10  # 5 choose 2
    assert len(counts) == 10
    assert (np.abs(counts - expected) < 5 * np.sqrt(expected)).all()


def test_two_encodings_choose_different_rows(numbered):
    source = parquet({"x": list(range(50_000))}, numbered, by_unit([500] * 100))
    first, second = (encode_table(source, domain_of(numbered), units=100, max_rows_per_unit=5) for _ in range(2))
    assert not np.array_equal(first.codes, second.codes)


def test_units_smaller_than_the_limit_are_whole(numbered):
    source = parquet({"x": list(range(200))}, numbered, by_unit([2] * 100))
    table = encode_table(source, domain_of(numbered), units=100, max_rows_per_unit=5)
    assert len(table.codes) == 200
    assert table.unit_starts.tolist() == list(range(0, 201, 2))


def test_many_batches_are_one_table(numbered, tmp_path):
    rows = list(range(100_000))
    (tmp_path / "rows").write_bytes(parquet({"x": rows}, numbered))
    table = encode_table(tmp_path / "rows", domain_of(numbered), units=len(rows))
    edges = domain_of(numbered).columns[0].edges
    assert np.array_equal(table.codes[:, 0], np.searchsorted(edges, rows, side="right") - 1)
    assert table.unit_starts is None


def test_a_table_that_is_not_the_recorded_one_is_refused(numbered):
    domain = domain_of(numbered)
    plain = parquet({"x": [1, 2, 3]}, numbered)
    for source, units in [
        (plain, 4),  # rows are units
        (parquet({"x": [1, 2]}, numbered, [0, 2]), 2),  # no such unit
        (parquet({"x": [1, 2]}, numbered, [1, 0]), 2),  # not sorted
        (parquet({"y": [1]}, {"fields": [{**numbered["fields"][0], "name": "y"}]}), 1),
    ]:
        with pytest.raises(InvalidFile):
            encode_table(source, domain, units=units)


def test_the_domain_never_sees_rows():
    schema = parse_table_schema(MIXED)
    assert domain_of(MIXED) == domain_of(schema.as_json())


@pytest.mark.parametrize("most", [1, 2])
def test_a_large_table_is_mapped_from_a_file_without_a_name(
    most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid = ValueGrid(0, 300, 1, 0, (1,))
    cells = ("grid", 300, None, tuple(range(301)))
    domain = TableDomain((ColumnDomain("x", "integer", *cells, missing=False, value_grid=grid),))
    frame = pl.DataFrame({"x": range(300)})
    if most > 1:
        frame = frame.with_columns((pl.col("x") // 3).alias(UNIT_COLUMN))
    parquet = io.BytesIO()
    frame.write_parquet(parquet)

    def encoded() -> EncodedTable:
        return encode_table(
            parquet.getvalue(),
            domain,
            units=300 if most == 1 else 100,
            max_rows_per_unit=most,
            random_keys=lambda count: np.arange(count, dtype=np.uint64),
            scratch_dir=tmp_path,
            with_places=True,
        )

    held = encoded()
    monkeypatch.setattr("workers.encoding.table._SMALLEST_MAPPED_BYTES", 0)
    mapped = encoded()
    assert isinstance(mapped.codes, np.memmap)
    assert not isinstance(held.codes, np.memmap)
    assert mapped.codes.dtype == np.uint16
    assert isinstance(mapped.places[0], np.memmap)
    assert mapped.codes.tolist() == held.codes.tolist()
    assert mapped.codes[:, 0].tolist() == mapped.places[0].tolist() == held.places[0].tolist()
    assert len(mapped.codes) == (300 if most == 1 else 200)
    assert list(tmp_path.iterdir()) == []


def test_encrypted_rows_are_read_group_by_group_and_damage_is_noticed() -> None:
    """Every group is fetched on its own, and a changed byte ends the reading with `Tampered`, not with rows."""
    schema = one_field(type="integer", constraints={"minimum": 0, "maximum": 10**9, "required": True})
    rows = 400_000
    frame = pl.DataFrame({"x": np.random.default_rng(1).integers(10**9, size=rows)})
    parquet = io.BytesIO()
    frame.write_parquet(parquet, row_group_size=50_000, compression="uncompressed")
    key = bytes(range(32))
    sealed = b"".join(encrypt([parquet.getvalue()], key))

    def encoded(stored: bytes) -> EncodedTable:
        source = open_decrypted(lambda start, stop: stored[start:stop], len(stored), key)
        return encode_table(source, domain_of(schema), units=rows)

    held = encode_table(parquet.getvalue(), domain_of(schema), units=rows)
    assert np.array_equal(encoded(sealed).codes, held.codes)
    damaged = bytearray(sealed)
    damaged[len(sealed) // 2] ^= 1
    with pytest.raises(Tampered):
        encoded(bytes(damaged))


def test_exclusions_are_values_and_numbers_in_the_order_of_the_fields():
    domain = domain_of(
        {
            "fields": [
                {"name": "net", "type": "string", "constraints": {"enum": ["none", "slow", "fast"]}},
                {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 119}},
                {"name": "seen", "type": "date", "constraints": {"minimum": "2020-01-01", "maximum": "2020-01-08"}},
            ],
            "exclusions": [
                {"age": {"maximum": 14}, "net": ["none", None]},  # as Postgres would have it: keys have no order
                {"age": [None], "seen": {"minimum": "2020-01-03", "maximum": "2030-01-01"}},
            ],
        }
    )
    open_columns = {place: np.array([0, 1]) for place in domain.value_grids}
    assert domain.with_bins(open_columns).exclusions == domain.exclusions
    assert domain.exclusions_to_config() == [
        [{"column": "net", "values": ["none", None]}, {"column": "age", "low": 0.0, "high": 14.0}],
        [{"column": "age", "values": [None]}, {"column": "seen", "low": 18264.0, "high": 18269.0}],
    ]
