"""What is recognised as the same rows although a table was changed, and what is not (docs/privacy.md, Limits)."""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import struct
import uuid
from collections import Counter

import numpy as np
import polars as pl
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from service.domain.privacy_unit import PrivacyUnit
from service.domain.table_schema import parse_table_schema
from service.intake.table.alike import (
    COMPARED_ALONE,
    LEAST_EVIDENCE,
    ROWS_PLACE,
    ColumnFingerprint,
    Match,
    alike,
    count_columns,
    evidence,
    is_compared,
    is_stored,
)
from service.intake.table.column_fingerprint import MOST_BITS, bits_of
from tests.service.intake.conftest import FINGERPRINT_KEY

ROWS = 300
CITIES = ("Rome", "Oslo", "Bonn", "Ulm")
PERSON = PrivacyUnit(column="person", max_rows_per_unit=8)


def people(seed=0, rows=ROWS):
    """Drawn from one source: another seed, other people."""
    random = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "age": random.integers(18, 90, rows),
            "wage": np.round(random.lognormal(7, 1, rows), 2),
            "city": random.choice(CITIES, rows, p=(0.4, 0.3, 0.2, 0.1)),
            "smoker": random.random(rows) < 0.3,
            "born": pl.Series(random.integers(-10_000, 10_000, rows)).cast(pl.Date),
        }
    )


def declared(frame, **constraints):
    """A schema of the frame's columns; `constraints` of single columns by name."""
    ranges = {"integer": (0, 120), "number": (0, 10**6), "date": ("1900-01-01", "2030-01-01")}

    def domain(kind):
        if kind in ranges:
            return dict(zip(("minimum", "maximum"), ranges[kind], strict=True))
        return {"enum": list(CITIES)} if kind == "string" else {}

    kinds = {pl.Int64: "integer", pl.Float64: "number", pl.String: "string", pl.Boolean: "boolean", pl.Date: "date"}
    fields = [
        {
            "name": name,
            "type": (kind := kinds[type(dtype)]),
            "constraints": {"required": False} | domain(kind) | constraints.get(name, {}),
        }
        for name, dtype in frame.schema.items()
        if name != "person"
    ]
    return parse_table_schema({"fields": fields})


@pytest.fixture
def fingerprints(reader):
    def of(frame, *, parquet=False, schema=None, unit=None):
        path = reader.write(frame, parquet=parquet)
        answer, _ = reader.read(path, schema or declared(frame), privacy_unit=unit, accept_undeclared=frame.columns)
        return [ColumnFingerprint(place, bytes.fromhex(text), bits) for place, text, bits in answer["columns"]]

    return of


def same(old, new, *, within_tenant=True):
    """Whether an upload of `new` is refused because of `old`."""
    dataset = uuid.uuid4()
    known = {
        one.fingerprint for one in new if any(is_compared(one, within_tenant=own) for own in {False, within_tenant})
    }
    matches = [
        Match(dataset, one.place, one.fingerprint, count_columns(old))
        for one in old
        if one.fingerprint in known and is_stored(one)
    ]
    found = alike(new, matches)
    assert found <= {dataset}
    return bool(found)


def renamed(frame):
    return frame.rename({name: f"x{place}" for place, name in enumerate(frame.columns)})


def with_constants(frame):
    return frame.with_columns(pl.lit(place).cast(pl.Int64).alias(f"constant {place}") for place in range(40))


def with_noise(frame):
    random = np.random.default_rng(9)
    return frame.with_columns(pl.Series(f"noise {place}", random.random(frame.height)) for place in range(40))


def one_cell(frame, name, row=3):
    """The frame with one cell of a column changed."""
    column = frame[name]
    other = next(value for value in column if value != column[row])
    return frame.with_columns(column.scatter(row, other) if column.dtype != pl.Date else _scattered(column, row, other))


def _scattered(column, row, value):
    values = column.to_list()
    values[row] = value
    return pl.Series(column.name, values)


RECOGNISED = {
    "as it is": lambda f: f,
    "every column renamed": renamed,
    "one constant column": lambda f: f.with_columns(pl.lit(7).cast(pl.Int64).alias("constant")),
    "forty constant columns": with_constants,
    "forty columns of noise": with_noise,
    "a column twice": lambda f: f.with_columns(pl.col("wage").alias("wage again")),
    "a column left out": lambda f: f.drop("wage"),
    "only two columns left": lambda f: f.select("wage", "born"),
    "only one column left": lambda f: f.select("wage"),
    "rows in another order": lambda f: f.sample(fraction=1.0, shuffle=True, seed=4),
    "one cell of one column changed": lambda f: one_cell(f, "wage"),
    "one cell of two columns of five changed": lambda f: one_cell(one_cell(f, "wage"), "age"),
    "each column in an order of its own": lambda f: f.with_columns(f["wage"].shuffle(seed=3).alias("wage")),
    "all of it": lambda f: renamed(with_constants(one_cell(f.drop("born"), "smoker").reverse())),
}


@pytest.mark.parametrize("what", RECOGNISED)
def test_the_same_rows_are_recognised(fingerprints, what):
    frame = people()
    changed = RECOGNISED[what](frame)
    assert same(fingerprints(frame), fingerprints(changed))
    assert same(fingerprints(changed), fingerprints(frame)), "the changed table first"
    assert same(fingerprints(frame), fingerprints(changed, parquet=True))


NOT_RECOGNISED = {
    "one row more": lambda f: pl.concat([f, f[:1]]),
    "one row less": lambda f: f[1:],
    "one cell changed in every column": lambda f: one_cell(
        one_cell(one_cell(one_cell(one_cell(f, "age"), "wage"), "city"), "smoker"), "born"
    ),
    "one cell changed in three columns of five": lambda f: one_cell(one_cell(one_cell(f, "age"), "wage"), "city"),
    "numbers in another unit, categories recoded": lambda f: f.with_columns(
        pl.col("age") + 1, pl.col("wage") / 100, pl.col("city").replace(dict(zip(CITIES, CITIES[::-1], strict=True)))
    ),
    "most columns replaced by others": lambda f: f.select("wage", "city").with_columns(
        pl.Series(f"noise {place}", np.random.default_rng(place).random(ROWS)) for place in range(3)
    ),
    "only columns left that say little": lambda f: f.select("smoker"),
}


@pytest.mark.parametrize("what", NOT_RECOGNISED)
def test_what_is_not_recognised(fingerprints, what):
    """Each line of the list in docs/privacy.md, Limits. One that begins to be recognised comes off that list."""
    frame = people()
    assert not same(fingerprints(frame), fingerprints(NOT_RECOGNISED[what](frame)))


def test_columns_of_the_same_people_in_two_tables_are_not_recognised(fingerprints):
    frame = people()
    assert not same(fingerprints(frame.select("age", "city")), fingerprints(frame.select("wage", "born")))


def test_half_of_the_columns_changed_is_not_recognised(fingerprints):
    frame = people().drop("smoker")
    assert same(fingerprints(frame), fingerprints(one_cell(frame, "age")))
    assert not same(fingerprints(frame), fingerprints(one_cell(one_cell(frame, "age"), "wage")))


def test_a_handful_of_rows_is_recognised_by_whole_rows_alone(fingerprints):
    frame = people(rows=5)
    assert same(fingerprints(frame), fingerprints(renamed(frame)))
    assert not same(fingerprints(frame), fingerprints(with_constants(frame)))
    assert same(fingerprints(people(rows=15)), fingerprints(with_constants(people(rows=15))))


def test_constant_columns_are_no_difference(fingerprints):
    frame = people().select("wage", "age")
    years, codes = (
        [pl.lit(value).cast(pl.Int64).alias(f"{what} {place}") for place, value in enumerate(values)]
        for what, values in (("year", (1, 2, 3)), ("code", (4, 5, 6)))
    )
    assert same(fingerprints(frame.with_columns(years)), fingerprints(frame.with_columns(codes)))


def test_new_unit_ids_and_other_rows_of_a_unit_are_the_same_rows(fingerprints):
    frame = people().with_columns(pl.Series("person", [f"p{row // 2}" for row in range(ROWS)]))
    rekeyed = frame.with_columns(pl.Series("person", [f"q{row % 100}" for row in range(ROWS)]))
    assert same(fingerprints(frame, unit=PERSON), fingerprints(rekeyed, unit=PERSON))
    alone = frame.select("smoker", "person"), rekeyed.select("smoker", "person").rename({"smoker": "habit"})
    assert same(*(fingerprints(one, unit=PERSON) for one in alone)), "even where no column says much"


def test_cells_that_the_declaration_alters_do_not_matter(fingerprints):
    frame = people()
    narrow = declared(frame, age={"maximum": 60}, wage={"maximum": 1000}, city={"enum": ["Rome", "Oslo"]})
    altered = frame.with_columns(
        pl.when(pl.col("age") > 60).then(pl.col("age") + 7).otherwise("age").alias("age"),
        pl.when(pl.col("wage") > 1000).then(1e5).otherwise("wage").alias("wage"),
        pl.col("city").replace({"Bonn": "elsewhere", "Ulm": None}),
        one_cell(frame, "smoker")["smoker"],
        one_cell(frame, "born")["born"],
    )
    assert same(fingerprints(frame, schema=narrow), fingerprints(altered, schema=narrow))
    clamped = altered.with_columns(pl.col("age").clip(0, 60), pl.col("wage").clip(0, 1000))
    assert same(fingerprints(frame, schema=narrow), fingerprints(clamped)), "as written what was clamped before"
    assert not same(
        fingerprints(frame), fingerprints(altered.with_columns(pl.col("city").replace({"elsewhere": "Ulm"})))
    )


def test_another_declaration_of_the_same_cells_does_not_matter(fingerprints):
    frame = people()
    other = declared(
        frame, age={"maximum": 30}, wage={"maximum": 10}, city={"enum": ["Ulm"]}, born={"maximum": "1960-01-01"}
    )
    assert same(fingerprints(frame), fingerprints(frame, schema=other))


def test_renaming_a_table_that_says_little_is_recognised_by_its_rows(fingerprints):
    frame = people().select("smoker")
    assert same(fingerprints(frame), fingerprints(renamed(frame)))
    assert not same(fingerprints(frame), fingerprints(one_cell(frame, "smoker")))


@pytest.mark.parametrize("seed", range(1, 6))
def test_other_people_of_the_same_source_are_other_rows(fingerprints, seed):
    assert not same(fingerprints(people()), fingerprints(people(seed)))


def test_many_columns_of_yes_and_no_on_few_rows_are_no_evidence(fingerprints):
    """Thirty columns of ten rows: by chance, nearly all have the counts of some column of another such table."""

    def table(seed):
        answers = np.random.default_rng(seed).random((10, 30)) < 0.5
        return pl.DataFrame({f"q{place}": answers[:, place] for place in range(30)})

    known = [fingerprints(table(seed)) for seed in range(6)]
    assert not any(same(a, b) for a in known for b in known if a is not b)
    shared = [{one.fingerprint for one in fps if one.place != ROWS_PLACE and is_stored(one)} for fps in known]
    assert 2 * len(shared[0] & shared[1]) > min(map(len, shared)), "most columns match, and that says nothing"


def test_many_columns_of_yes_and_no_on_many_rows_are_evidence(fingerprints):
    answers = np.random.default_rng(5).random((20_000, 30)) < np.linspace(0.2, 0.8, 30)
    frame = pl.DataFrame({f"q{place}": answers[:, place] for place in range(30)})
    assert same(fingerprints(frame), fingerprints(with_constants(renamed(frame.drop("q3", "q17")))))
    others = np.random.default_rng(6).random((20_000, 30)) < np.linspace(0.2, 0.8, 30)
    assert not same(
        fingerprints(frame), fingerprints(pl.DataFrame({f"q{place}": others[:, place] for place in range(30)}))
    )


def test_a_column_that_every_table_has_is_not_most_of_two(fingerprints):
    """Days of a year beside what a sensor says."""
    days = pl.date_range(pl.date(2025, 1, 1), pl.date(2025, 12, 31), eager=True).alias("day")
    one, other = (pl.DataFrame([days, pl.Series("reading", np.random.default_rng(s).random(365))]) for s in (1, 2))
    assert not same(fingerprints(one), fingerprints(other))


def test_constant_columns_have_no_fingerprint_and_equal_ones_share_one(fingerprints):
    frame = pl.DataFrame({"a": [1, 2] * 50, "b": [3] * 100, "c": [2, 1] * 50, "d": [5] * 99 + [6]})
    found = fingerprints(frame)
    assert Counter(one.place for one in found if is_stored(one)) == {ROWS_PLACE: 1, 1: 1, 4: 1}
    assert all((one.fingerprint[0], len(one.fingerprint)) == (3, 33) for one in found)


def test_chunks_and_repeated_cells_do_not_matter(reader):
    """Cells that are altered in one chunk and not in another, and distinct ones found or not."""
    frame = people(rows=3_000)
    schema = declared(frame, age={"maximum": 60})
    several, whole = reader.folder / "several.parquet", reader.folder / "whole.parquet"
    frame.sort("age").write_parquet(several, row_group_size=70)
    frame.write_parquet(whole)
    assert reader.read(several, schema)[0]["columns"] == reader.read(whole, schema)[0]["columns"]


def test_bits_are_those_of_the_chance_of_the_same_counts():
    def chance(counts):
        n = sum(counts)
        ways = math.factorial(n) // math.prod(map(math.factorial, counts))
        return ways * math.prod((c / n) ** c for c in counts)

    for counts in ([10], [5, 5], [9, 1], [1] * 8, [3, 4, 5, 20], [70, 30]):
        assert bits_of(counts) == pytest.approx(-math.log2(chance(counts)), abs=1e-9)
    assert min(bits_of([1] * 257), bits_of([1] * 256 + [10**7])) > MOST_BITS, "what is not counted on is enough"


def test_evidence_counts_the_ways_in_which_columns_could_match():
    assert evidence([30.0], 1) == pytest.approx(30.0)
    assert evidence([30.0, 30.0], 2) == pytest.approx(60.0 - 1.0)  # two pairings
    assert evidence([30.0, 30.0], 3) == pytest.approx(60.0 - math.log2(3 * 3 * 2))


def test_a_column_counts_once_however_many_of_its_fingerprints_match():
    dataset = uuid.uuid4()
    new = [ColumnFingerprint(1, b"w", 64.0), ColumnFingerprint(1, b"d", 64.0), ColumnFingerprint(2, b"x", 64.0)]
    both = [Match(dataset, 1, b"w", 2), Match(dataset, 1, b"d", 2)]
    assert not alike(new, both)
    assert alike(new, [*both, Match(dataset, 2, b"x", 2)]) == {dataset}
    assert not alike([one._replace(bits=LEAST_EVIDENCE / 2) for one in new], [*both, Match(dataset, 2, b"x", 2)])


def test_it_is_what_its_description_says(reader):
    """The algorithm written down a second time, cell by cell."""

    def subkey(purpose):
        return hashlib.blake2b(purpose.encode(), key=FINGERPRINT_KEY, digest_size=32, person=b"imprimatur 3").digest()

    def aes(key, block):
        cipher = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
        return struct.unpack("<2Q", cipher.update(struct.pack("<2Q", *block)))

    def cell(value):
        if isinstance(value, str):
            return struct.unpack("<2Q", hashlib.blake2b(value.encode(), key=subkey("texts"), digest_size=16).digest())
        if value is None:
            return aes(subkey("cells"), (0, 0))
        if isinstance(value, float):
            return aes(subkey("cells"), (struct.unpack("<Q", struct.pack("<d", value))[0], 2))
        return aes(subkey("cells"), (value % 2**64, 1))

    def total(blocks):
        return [sum(block[half] for block in blocks) % 2**64 for half in (0, 1)]

    def digest(what, blocks):
        message = json.dumps([what, len(blocks)]).encode() + struct.pack("<2Q", *total(blocks))
        return "03" + hmac.digest(subkey("table"), message, "sha256").hex()

    rows = [(1, 0.5, "Ulm"), (-2, None, "Ulm"), (130, 0.25, None)]
    frame = pl.DataFrame(rows, schema=["a", "b", "c"], orient="row")
    written = [[cell(value) for value in column] for column in zip(*rows, strict=True)]
    clamped = [cell(1), cell(0), cell(120)]
    whole = [aes(subkey("rows"), total(row)) for row in zip(*written, strict=True)]
    expected = {
        digest("rows", whole),
        digest("column", written[0]),
        digest("column", clamped),
        digest("column", written[1]),
        digest("column", written[2]),
    }
    answer, _ = reader.read(reader.write(frame), declared(frame))
    assert {text for place, text, _ in answer["columns"] if place < COMPARED_ALONE} == expected
    left_out = {digest("left out", column) for column in (written[0], clamped, written[1], written[2])}
    assert {text for place, text, _ in answer["columns"] if place >= COMPARED_ALONE} == left_out


def test_the_key_decides(reader):
    frame = people()
    path = reader.write(frame)
    one, other = (reader.read(path, declared(frame), key=key)[0]["columns"] for key in (FINGERPRINT_KEY, b"x" * 32))
    assert not {text for _, text, _ in one} & {text for _, text, _ in other}


def leaving_out(frame, names):
    """A declaration of the frame by which these columns are in the file, and no part of the model."""
    fields = [
        {"name": one["name"], "type": one["type"], "role": "ignore"} if one["name"] in names else one
        for one in declared(frame).as_json()["fields"]
    ]
    return parse_table_schema({"fields": fields})


def test_half_of_the_columns_modelled_and_then_the_other_half_is_recognised_within_a_tenant(fingerprints):
    """With other cells in the columns that are left out each time, so that no whole file is the same."""
    frame = people().drop("smoker")
    first, second = ("age", "city"), ("wage", "born")
    altered = one_cell(one_cell(frame, "age"), "city")
    one, other = (
        fingerprints(table, schema=leaving_out(frame, names)) for table, names in ((frame, second), (altered, first))
    )
    assert same(one, other)
    assert same(other, one)
    assert not same(one, other, within_tenant=False), "no other tenant learns of a column that nothing is learnt of"
    alone = fingerprints(frame.select(second))
    assert same(one, alone), "the file without what is left out"
    assert same(alone, one), "and then the whole file, in which just that is left out"
    assert not same(fingerprints(frame.select(first)), alone), "two tables cut by columns"


def test_columns_that_both_declarations_leave_out_say_nothing(fingerprints):
    frame, others = people(), people(1)
    mixed = others.with_columns(frame["wage"], frame["born"])
    names = ("wage", "born")
    one, other = (fingerprints(table, schema=leaving_out(frame, names)) for table in (frame, mixed))
    assert not same(one, other)
