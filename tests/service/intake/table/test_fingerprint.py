"""Same rows, same fingerprint; any other row, another one."""

from __future__ import annotations

import hashlib
import hmac
import json
import random
import struct
from pathlib import Path

import polars as pl
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from service.domain.table_schema import parse_table_schema
from service.intake.limits import IngestLimits
from service.intake.table.columns import ColumnSource
from service.intake.table.fingerprint import Fingerprint

KEY = b"k" * 32
EXAMPLES = Path(__file__).parents[4] / "examples"

cell = st.one_of(
    st.just(""),
    st.integers(-(10**6), 10**6).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.text('abcü ,"-:', min_size=1, max_size=5),
    st.dates().map(str),
)
tables = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.lists(cell, min_size=width, max_size=width), min_size=1, max_size=12)
)


def _digest(columns: dict[str, list[str | None]], *, key: bytes = KEY, chunks: int = 1, repeats: bool = True) -> bytes:
    """`repeats`: whether distinct cells are looked for, which must change nothing."""
    fingerprint = Fingerprint(key, list(columns), ("",))
    frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
    size = max(1, -(-frame.height // chunks))
    for part in frame.iter_slices(size):
        blocks = {}
        for column in part:
            source = ColumnSource(column.name, IngestLimits())
            source._repeats = repeats
            blocks[column.name] = fingerprint.blocks(source.column(column.to_arrow()))
        fingerprint.add(blocks)
    return fingerprint.digest()


def _plainly(rows: list[dict[str, str]]) -> bytes:
    """The algorithm written down a second time, cell by cell, for texts of few kinds."""

    def subkey(purpose: str, name: str = "") -> bytes:
        message = purpose.encode() + b"\x00" + name.encode()
        return hashlib.blake2b(message, key=KEY, digest_size=32, person=b"imprimatur 2").digest()

    def aes(key: bytes, block: int) -> int:
        cipher = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
        return int.from_bytes(cipher.update(block.to_bytes(16, "little")), "little")

    def cell(name: str, text: str) -> int:
        numbers = subkey("cells", name)
        if text == "":
            return aes(numbers, 0)
        try:
            number = float(text)
        except ValueError:
            digest = hashlib.blake2b(text.encode(), key=subkey("texts", name), digest_size=16)
            return int.from_bytes(digest.digest(), "little")
        if number == int(number):
            return aes(numbers, int(number) % 2**64 + (1 << 64))
        return aes(numbers, int.from_bytes(struct.pack("<d", number), "little") + (2 << 64))

    total = 0
    for row in rows:
        together = 0
        for name, text in row.items():
            together ^= cell(name, text)
        total += aes(subkey("rows"), together)
    head = json.dumps([sorted(rows[0]), len(rows)]).encode()
    message = head + (total % 2**128).to_bytes(16, "little")
    return b"\x02" + hmac.digest(subkey("table"), message, "sha256")


def _columns(rows: list[list[str]]) -> dict[str, list[str | None]]:
    return {f"c{i}": list(column) for i, column in enumerate(zip(*rows, strict=True))}


def _meaning(text: str) -> object:
    """What the fingerprint may not tell apart, written down a second time."""
    text = text.strip(" \t")
    try:
        return float(text)
    except ValueError:
        return text


@given(
    rows=st.lists(
        st.fixed_dictionaries({"a": st.sampled_from(["", "Ulm", "7", "-3", "0.5"]), "ü": st.sampled_from("xyz")}),
        min_size=1,
    )
)
@settings(max_examples=50, deadline=None)
def test_it_is_what_its_description_says(rows):
    assert _digest({name: [row[name] for row in rows] for name in rows[0]}) == _plainly(rows)


@pytest.mark.slow
@given(rows=tables, seed=st.integers(), chunks=st.integers(1, 5))
@settings(max_examples=100, deadline=None)
def test_order_of_rows_and_columns_and_chunking_do_not_matter(rows, seed, chunks):
    columns = _columns(rows)
    shuffled = list(rows)
    random.Random(seed).shuffle(shuffled)
    others = dict(reversed(_columns(shuffled).items()))
    assert _digest(columns) == _digest(others, chunks=chunks) == _digest(columns, repeats=False)


@pytest.mark.slow
@given(rows=tables, row=st.integers(0, 11), column=st.integers(0, 3), changed=cell)
@settings(max_examples=200, deadline=None)
def test_any_changed_cell_matters(rows, row, column, changed):
    row, column = row % len(rows), column % len(rows[0])
    assume(_meaning(rows[row][column]) != _meaning(changed))
    other = [list(line) for line in rows]
    other[row][column] = changed
    assert _digest(_columns(rows)) != _digest(_columns(other))


@given(rows=tables)
@settings(max_examples=50, deadline=None)
def test_repeated_rows_count(rows):
    assert _digest(_columns(rows)) != _digest(_columns([*rows, rows[0]]))
    assert _digest(_columns(rows)) != _digest(_columns(rows), key=b"l" * 32)


@pytest.mark.parametrize(
    "spellings",
    [
        ["1", "1.0", "1e0", "+1", " 1 ", "01", "true", "True", "10e-1"],
        ["0", "-0", "0.0", "-0.0", "false", "FALSE", "0e5"],
        ["0.1", "1e-1", ".1", "0.10", "+.1"],
        ["100000000000000000", "1e17", "1.0e17"],
        [
            "2024-02-29",
            "2024-02-29T00:00",
            "2024-02-29 00:00:00",
            "2024-02-29T01:00:00+01:00",
            "2024-02-29T00:00:00.0Z",
        ],
        ["", " ", "NA", "?", "NaN", "null", "n/a"],
        ["Ulm", " Ulm", "Ulm "],
    ],
)
def test_spellings_of_one_value(spellings):
    assert len({_digest({"x": [text, "other"]}) for text in spellings}) == 1


def test_different_values_with_similar_spellings():
    spellings = [
        "1",
        "11",
        "1.5",
        "f1",
        "s1",
        "t1",
        "",
        "x",
        "X",
        "2024-02-29",
        "2024-02-30",
        "inf",
        "1 1",
        "1,5",
        "-1",
    ]
    assert len({_digest({"x": [text]}) for text in spellings}) == len(spellings)


def test_cells_do_not_run_into_one_another():
    assert _digest({"a": ["xy"], "b": ["z"]}) != _digest({"a": ["x"], "b": ["yz"]})
    assert _digest({"a": ["x"], "b": [""]}) != _digest({"a": [""], "b": ["x"]})


def test_values_swapped_between_rows_matter():
    assert _digest({"a": ["1", "2"], "b": ["3", "4"]}) != _digest({"a": ["1", "2"], "b": ["4", "3"]})


def test_column_names_matter():
    assert _digest({"a": ["1"]}) != _digest({"b": ["1"]})


def test_the_algorithm_stays_as_it_is():
    """Stored fingerprints must be found again by later versions; a change here is a new version of the algorithm."""
    columns = {"n": ["1", "2.5", ""], "t": ["2024-02-29", "2024-02-29T12:00", "?"], "s": ["Ulm", "true", "x"]}
    assert _digest(columns).hex() == "022fa3300c9c682e4f3095251320f2bd8875f345d6837e06155659ab5a4aa0c73c"


def _schema(kind: str, **constraints):
    return parse_table_schema({"fields": [{"name": "x", "type": kind, "constraints": constraints}]})


def test_the_declared_schema_does_not_matter(reader):
    path = reader.write("x\n1\n2\n2\n")
    schemas = [
        _schema("integer", minimum=0, maximum=9),
        _schema("integer", enum=[1]),
        _schema("number", minimum=-1, maximum=1),
        _schema("string", enum=["1", "2"]),
    ]
    assert len({reader.read(path, schema)[0]["fingerprints"][0] for schema in schemas}) == 1


def test_the_poker_hand_file_in_many_forms(reader):
    schema = parse_table_schema(json.loads((EXAMPLES / "poker_hand.schema.json").read_text()))
    frame = pl.read_csv(EXAMPLES / "poker_hand.csv")
    forms = {
        "as it is": EXAMPLES / "poker_hand.csv",
        "other row order": reader.write(frame.sample(fraction=1.0, shuffle=True, seed=1)),
        "other column order": reader.write(frame.select(reversed(frame.columns))),
        "Parquet": reader.write(frame, parquet=True),
        "floats": reader.write(frame.cast(pl.Float64)),
        "small Parquet integers": reader.write(frame.cast(pl.UInt8), parquet=True),
    }
    found = {name: reader.read(path, schema)[0] for name, path in forms.items()}
    assert len({answer["fingerprints"][0] for answer in found.values()}) == 1
    changed = reader.write(
        frame.with_row_index()
        .with_columns(CLASS=pl.when(pl.col("index") == 777).then(9 - pl.col("CLASS")).otherwise("CLASS"))
        .drop("index")
    )
    assert reader.read(changed, schema)[0]["fingerprints"][0] != found["as it is"]["fingerprints"][0]
