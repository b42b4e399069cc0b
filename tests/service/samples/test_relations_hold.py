"""What a schema says of columns together holds in every synthetic row, in every format and in sample.py."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import subprocess
import sys
from collections import Counter
from decimal import Decimal

import numpy as np
import polars as pl
import pytest
from tiny_generators import tiny_files, tiny_sampler

from service.samples import row_streams
from service.samples.request import Wanted
from service.samples.shipped import table_script
from service.samples.table.base import SamplingError
from service.samples.table.identifiers import permuted

CHAPTERS = {"I10": "Heart", "I20": "Heart", "J00": "Cold"}
PAIRS = [["a", "p"], ["b", "q"], ["c", "r"], ["a", "q"]]
SCHEMA = {
    "missingValues": ["NA"],
    "fields": [
        {"name": "id", "type": "string", "role": "identifier", "pattern": "P[0-9]{4}"},
        {"name": "note", "type": "string", "role": "free_text", "placeholder": "left, out"},
        {"name": "secret", "type": "string", "role": "free_text"},
        {"name": "line", "type": "integer", "role": "ignore"},
        {"name": "start", "type": "date", "constraints": {"minimum": "2019-01-01", "maximum": "2023-12-31"}},
        {"name": "end", "type": "date", "constraints": {"minimum": "2019-01-01", "maximum": "2023-12-31"}},
        {"name": "icd", "type": "string", "hierarchy": {"I": ["I10", "I20"], "J": {"J00": 3, "J01": 1}}},
        {"name": "net", "type": "number", "decimals": 2, "constraints": {"minimum": 0, "maximum": 100}},
        {"name": "gross", "type": "number", "role": "derived"},
        {"name": "tax", "type": "number", "decimals": 2, "constraints": {"minimum": 0, "maximum": 20}},
        {"name": "rate", "type": "number", "decimals": 3, "role": "derived"},
        {"name": "stay", "type": "integer", "constraints": {"minimum": 0, "maximum": 900}},
        {"name": "chapter", "type": "string", "role": "derived"},
        {"name": "x", "type": "string", "constraints": {"enum": ["a", "b", "c"]}},
        {"name": "y", "type": "string", "constraints": {"enum": ["p", "q", "r"], "required": True}},
        {"name": "uid", "type": "string", "role": "identifier"},
        {"name": "number", "type": "integer", "role": "identifier", "pattern": "[1-9][0-9]{5}"},
    ],
    "relations": [
        "start <= end",
        "net + tax = gross",
        "rate = tax / (net + 0.01)",
        "stay = end - start",
        {"column": "chapter", "by": "icd", "table": CHAPTERS},
        {"columns": ["x", "y"], "allowed": PAIRS},
        "tax < 0.5 * net + 5",
        {"unique": "id"},
    ],
}
ROWS = 6_000
NAMES = [f["name"] for f in SCHEMA["fields"] if f["name"] not in {"secret", "line"}]


def _number(text):
    return None if text is None else Decimal(str(text))


def check(rows):
    """Rows as plain values, dates as ISO text."""
    for row in rows:
        assert list(row) == NAMES
        assert row["note"] == "left, out"
        days = None
        if row["start"] is not None and row["end"] is not None:
            days = (dt.date.fromisoformat(str(row["end"])) - dt.date.fromisoformat(str(row["start"]))).days
            assert 0 <= days <= 900
        assert row["stay"] == days
        net, tax, gross, rate = (_number(row[name]) for name in ("net", "tax", "gross", "rate"))
        if net is None or tax is None:
            assert gross is None
            assert rate is None
        else:
            assert net + tax == gross
            assert abs(rate - tax / (net + Decimal("0.01"))) <= Decimal("0.0005")
            assert tax < net / 2 + 5
        assert row["chapter"] == CHAPTERS.get(row["icd"])
        assert row["x"] is None or [row["x"], row["y"]] in PAIRS
    for name in ("id", "uid", "number"):
        assert len({row[name] for row in rows}) == len(rows)


def _plain(frame):
    return frame.with_columns(pl.col(pl.Date).cast(pl.String)).to_dicts()


@pytest.fixture(scope="module")
def sampler():
    return tiny_sampler(SCHEMA)


@pytest.mark.slow
@pytest.mark.parametrize("format_", ["csv", "jsonl", "parquet", "arrow"])
def test_relations_hold_in_every_format(sampler, format_):
    content = b"".join(getattr(row_streams, format_)(sampler, Wanted(rows=ROWS, seed=3, where=None)))
    if format_ == "csv":
        texts = csv.DictReader(io.StringIO(content.decode()))
        rows = [{name: None if text == "NA" else text for name, text in row.items()} for row in texts]
        rows = [row | {"stay": None if row["stay"] is None else int(row["stay"])} for row in rows]
    elif format_ == "jsonl":
        rows = [json.loads(line) for line in content.splitlines()]
    else:
        rows = _plain(pl.read_parquet(content) if format_ == "parquet" else pl.read_ipc_stream(content))
    assert len(rows) == ROWS
    check(rows)


def test_they_hold_in_sample_py(tmp_path):
    config, network = tiny_files(SCHEMA)
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (tmp_path / "generator.onnx").write_bytes(network)
    (tmp_path / "sample.py").write_bytes(table_script())
    command = [
        sys.executable,
        "-I",
        "sample.py",
        "--rows",
        "2000",
        "--seed",
        "3",
        "--format",
        "jsonl",
        "--where",
        "icd:J",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    check(rows)
    assert {row["icd"] for row in rows} == {"J00", "J01"}


def test_fine_categories_come_in_their_declared_shares(sampler):
    counts = Counter(value for chunk in sampler.chunks(9_000, seed=1) for value in chunk["icd"])
    assert counts["J00"] / (counts["J00"] + counts["J01"]) == pytest.approx(0.75, abs=0.03)
    assert counts["I10"] / (counts["I10"] + counts["I20"]) == pytest.approx(0.5, abs=0.03)
    assert counts[None] > 0


def test_identifiers_come_from_the_seed_alone(sampler):
    def ids(seed, **how):
        return [one for chunk in sampler.chunks(100, seed=seed, **how) for one in chunk["id"]]

    assert ids(1) == ids(1) != ids(2)
    assert ids(1, where={"y": "p"}) == ids(1)  # numbered as rows are given out
    assert set(map(len, ids(1))) == {5}


def test_rows_of_a_release_are_completed_and_what_is_made_anew_is_not_read(sampler):
    row = next(
        row for row in map(json.loads, "".join(sampler.jsonl(500, seed=1)).splitlines()) if None not in row.values()
    )
    other = {"id": "mine", "gross": -1, "chapter": "?", "note": "", "uid": None, "rate": "x"}
    (found,) = sampler.complete([row | other], seed=2)
    made_anew = {"id", "uid", "number"}
    assert {name: found[name] for name in row.keys() - made_anew} == {
        name: row[name] for name in row.keys() - made_anew
    }
    assert found["id"] != "mine"
    assert set(found) == set(row)


def test_a_sample_has_no_more_rows_than_there_are_identifiers(sampler):
    with pytest.raises(SamplingError, match=r"id has only 10,000 identifiers"):
        sampler.draws(10_001)
    with pytest.raises(SamplingError, match="made anew"):
        sampler.draws(10, where={"uid": "x"})


@pytest.mark.parametrize("count", [1, 2, 3, 10, 1_000, 4_096, 99_999])
def test_numbers_are_permuted(count):
    keys = np.random.default_rng(count).integers(2**64, size=6, dtype=np.uint64)
    numbers = np.arange(count, dtype=np.uint64)
    assert sorted(permuted(numbers, count, keys).tolist()) == list(range(count))


def test_what_the_model_knows_stays_as_it_was():
    """The relation's price in the marginals: rows exchange values rather than lose them."""
    fields = [
        {"name": "low", "type": "integer", "bins": 10, "constraints": {"minimum": 0, "maximum": 99, "required": True}},
        {"name": "high", "type": "integer", "bins": 10, "constraints": {"minimum": 0, "maximum": 99, "required": True}},
    ]
    bias = np.log(np.array([10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]))  # increasing in `high`
    frames = []
    for relations in ([], ["low <= high"]):
        sampler = tiny_sampler({"fields": fields, "relations": relations}, bias=bias, noise_scale=0.0, numeric_bins=10)
        frames.append(pl.concat(pl.DataFrame(chunk) for chunk in sampler.chunks(20_000, seed=1)))
    plain, kept = frames
    assert plain.filter(pl.col("low") > pl.col("high")).height > 2_000
    assert kept.filter(pl.col("low") > pl.col("high")).height == 0

    def tables(frame, *names):
        cells = np.zeros(10 ** len(names))
        np.add.at(cells, sum(frame[name].to_numpy() // 10 * 10**at for at, name in enumerate(names)), 1 / frame.height)
        return cells

    for name in ("low", "high"):
        assert 0.5 * np.abs(tables(plain, name) - tables(kept, name)).sum() < 0.01
    # The pair can do no better than lose what was impossible.
    impossible = plain.filter(pl.col("low") // 10 > pl.col("high") // 10).height / plain.height
    assert 0.5 * np.abs(tables(plain, "low", "high") - tables(kept, "low", "high")).sum() < 2 * impossible + 0.02
