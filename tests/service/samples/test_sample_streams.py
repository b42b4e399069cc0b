"""Streams of synthetic rows: five formats, one table, declared types, flat memory, early errors."""

import codecs
import io
import json
import re
import subprocess
import sys
import threading
import zipfile

import numpy as np
import polars as pl
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tiny_generators import MIXED, parse_csv, tiny_files, tiny_sampler

from service.base.caching import ENTRY_BYTES
from service.base.errors import InvalidInput
from service.samples.cache import COPIES, SESSION_BYTES, SamplerCache
from service.samples.formats import FORMATS as ALL
from service.samples.formats import formats_of, media_type
from service.samples.samplers import network_bytes, sampler_from_bundle
from service.samples.streams import stream_rows

FORMATS = formats_of("rows")
NAMES = [field["name"] for field in MIXED["fields"]]


def body(sampler, **options):
    return b"".join(stream_rows(sampler, **options))


def bundle(**options):
    config, onnx_bytes = tiny_files(**options)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("config.json", json.dumps(config))
        archive.writestr("generator.onnx", onnx_bytes)
    return file.getvalue()


def read(content, format):  # noqa: A002 - as in the module under test
    """Rows as plain values, dates as ISO text, whatever the format."""
    if format == "csv":
        header, rows = parse_csv(content.decode())
        assert header == NAMES
        return rows
    if format == "excel":
        assert content.startswith(codecs.BOM_UTF8)
        text = content.decode("utf-8-sig").replace("'=1+1", "=1+1")
        return read(re.sub(r"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)", r"\1T\2", text).encode(), "csv")
    if format == "jsonl":
        return [tuple(json.loads(line).values()) for line in content.decode().splitlines()]
    tables = {
        "parquet": lambda: pq.read_table(io.BytesIO(content)),
        "arrow": lambda: pa.ipc.open_stream(content).read_all(),
    }
    if format not in tables:
        raise NotImplementedError(f"say here how {format} is read")
    table = tables[format]()
    frame = pl.DataFrame(table)
    return frame.with_columns(
        pl.col(pl.Datetime).dt.strftime("%Y-%m-%dT%H:%M:%S"), pl.col(pl.Date).dt.to_string()
    ).rows()


@pytest.mark.parametrize("rows", [0, 1, 3_000, 20_000])
def test_all_formats_hold_the_same_rows(rows):
    sampler = tiny_sampler()
    expected = [row for chunk in sampler.chunks(rows, seed=5) for row in zip(*chunk.values(), strict=True)]
    assert len(expected) == rows
    for name in FORMATS:
        assert read(body(sampler, rows=rows, format=name, seed=5), name) == expected, name


def test_csv_reads_like_the_stand_alone_script():
    sampler = tiny_sampler()
    ours = body(sampler, rows=2_000, seed=1).decode()
    assert parse_csv(ours) == parse_csv("".join(sampler.csv(2_000, seed=1)))
    without_numbers = {"fields": [f for f in MIXED["fields"] if f["type"] != "number"], "missingValues": ["NA"]}
    sampler = tiny_sampler(without_numbers)
    assert body(sampler, rows=2_000, seed=1).decode() == "".join(sampler.csv(2_000, seed=1))


@pytest.mark.parametrize("missing_values", [["NA"], [""], ["n,a"], []])
@pytest.mark.parametrize("columns", [1, 2])
def test_missing_values_are_written_as_the_script_does(missing_values, columns):
    fields = [{"name": f"x{i}", "type": "boolean"} for i in range(columns)]
    sampler = tiny_sampler({"fields": fields, "missingValues": missing_values})
    assert body(sampler, rows=500, seed=0).decode() == "".join(sampler.csv(500, seed=0))


@pytest.mark.parametrize("name", ["parquet", "arrow"])
def test_columns_have_their_declared_types(name):
    content = body(tiny_sampler(), rows=10, format=name)
    table = pq.read_table(io.BytesIO(content)) if name == "parquet" else pa.ipc.open_stream(content).read_all()
    expected = {
        "string": pa.string() if name == "parquet" else pa.dictionary(pa.int16(), pa.string()),
        "boolean": pa.bool_(),
        "integer": pa.int64(),
        "number": pa.float64(),
        "date": pa.date32(),
        "datetime": pa.timestamp("us"),
    }
    assert table.schema.names == NAMES
    assert table.schema.types == [expected[field["type"]] for field in MIXED["fields"]]
    assert [f.nullable for f in table.schema] == [not f.get("constraints", {}).get("required") for f in MIXED["fields"]]


def test_a_condition_may_be_text_or_a_mapping():
    sampler = tiny_sampler()
    for where in ("age:30", {"age": 30}):
        rows = read(body(sampler, rows=200, format="jsonl", where=where), "jsonl")
        assert {row[NAMES.index("age")] for row in rows} == {30}
        assert len(rows) == 200


@pytest.mark.parametrize(
    "wrong",
    [
        {"format": "xlsx"},
        {"rows": -1},
        {"seed": -1},
        {"where": "nobody:1"},
        {"where": "plain:c"},
        {"where": {"share": 1}},
        {"where": "no colon"},
    ],
)
def test_a_wrong_request_is_refused_before_the_first_piece(wrong):
    with pytest.raises(InvalidInput):
        stream_rows(tiny_sampler(), **{"rows": 10, **wrong})


def test_a_hopeless_condition_is_refused_before_the_first_piece():
    field = {"name": "x", "type": "boolean", "constraints": {"required": True}}
    with pytest.raises(InvalidInput, match="more common"):
        stream_rows(tiny_sampler({"fields": [field]}, bias=[-1e4, 1e4]), rows=10, where="x:false")


def test_media_types():
    types = [media_type(name) for name in ALL]
    assert types == [each.media_type for each in ALL.values()]
    assert len(set(types)) == sum(not each.like for each in ALL.values())
    assert all(re.fullmatch(r"[a-z]+/[a-z0-9.+-]+(; charset=utf-8)?", each) for each in types)
    with pytest.raises(InvalidInput):
        media_type("pickle")


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_a_huge_request_streams_in_flat_memory(name):
    process = psutil.Process()
    pieces = stream_rows(tiny_sampler(), rows=10**12, format=name)
    size = 0
    while size < 5e6:  # a few row groups
        size += len(next(pieces))
    before = process.memory_info().rss
    while size < 65e6:
        size += len(next(pieces))
    pieces.close()
    assert process.memory_info().rss - before < 40e6


def test_parquet_comes_in_bounded_row_groups():
    field = {"name": "x", "type": "boolean"}
    fields = [{**field, "name": f"x{i}"} for i in range(100)]
    sampler = tiny_sampler({"fields": fields})
    content = body(sampler, rows=60_000, format="parquet")
    metadata = pq.ParquetFile(io.BytesIO(content)).metadata
    assert metadata.num_rows == 60_000
    groups = [metadata.row_group(place).num_rows for place in range(metadata.num_row_groups)]
    assert max(groups) <= max(2**17 // len(fields) + 1, 1) + sampler.rows_at_a_time


def test_the_cache_loads_each_key_once_and_forgets_the_oldest():
    loaded = []

    def load(key):
        loaded.append(key)
        return bundle()

    size = SESSION_BYTES + COPIES * network_bytes(bundle()) + sampler_from_bundle(bundle()).most_kept_bytes
    cache = SamplerCache(load, most_bytes=2 * (size + ENTRY_BYTES))
    first = cache.get("a")
    assert cache.get("a") is first
    cache.get("b")
    cache.get("a")
    cache.get("c")  # forgets b
    assert cache.get("a") is first
    cache.get("b")
    assert loaded == ["a", "b", "c", "b"]


def test_threads_share_a_sampler():
    cache = SamplerCache(lambda _key: bundle())
    results = {}

    def sample(seed):
        results[seed] = body(cache.get("key"), rows=10_000, seed=seed)

    threads = [threading.Thread(target=sample, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alone = sampler_from_bundle(bundle())
    assert results == {seed: body(alone, rows=10_000, seed=seed) for seed in range(8)}


def test_sampling_never_imports_torch():
    code = "import sys, service.samples.streams; sys.exit('torch' in sys.modules or 'workers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_category_values_keep_their_type_in_parquet():
    content = body(tiny_sampler(), rows=500, format="parquet", seed=0)
    frame = pl.read_parquet(content)
    assert set(frame["rank"].drop_nulls()) == {1, 2, 3}
    assert set(frame["rate"].drop_nulls()) == {1.0, 2.5, -0.125}
    assert np.isin(frame["flag"].drop_nulls().to_numpy(), [True, False]).all()
