"""Bad inputs by name: what is sent, and which statuses are an answer to it. Sent by test_bad_inputs.py.

Every one carries MARKER wherever it can; no reply and no log may repeat it. What the file reader refuses by itself is in
tests/service/intake/test_ingest_bad_files.py (72 files) and test_datasets_api.py (18 files, 23 fields).
"""

import bz2
import functools
import gzip
import io
import itertools
import json
import lzma
import struct
import zipfile
import zlib
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

MARKER = "Zanzibar90210"
CLIMBED, ABSOLUTE = b"/tmp/imprimatur-climbed", b"/tmp/imprimatur-absolute"
DATASET = "00000000-0000-4000-8000-000000000000"
"""Stands for the id of a dataset that is there when the inputs are sent."""
ORDERS = f"/v1/datasets/{DATASET}/releases"
BOUNDARY = b"b0undary"
MiB = 1 << 20
UNPROCESSABLE = {422}
TOO_LARGE = {413}
BY_SERVER = {400}
"""Broken below HTTP's meaning: the server library answers in plain text and closes."""
CLOSED = {0}
"""No request ever arrived whole: the connection is closed without a reply."""

SCHEMA = {
    "fields": [
        {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 120}},
        {"name": "town", "type": "string", "constraints": {"enum": ["Ulm", "Bern"], "required": True}},
    ]
}
GOOD_ROWS = b"age,town\n30,Ulm\n40,Bern\n"
FIELDS = {"schema": json.dumps(SCHEMA), "budget": '{"epsilon": 1}'}


@dataclass(frozen=True)
class Bad:
    """`pieces()` gives the bytes as they are sent; `{key}` in the first is where the owner's header line goes."""

    pieces: object
    statuses: frozenset
    pause: float = 0.0
    """Seconds between two pieces."""


CASES = {}


def case(name, statuses, pieces, pause=0.0):
    assert name not in CASES, name
    CASES[name] = Bad(pieces if callable(pieces) else lambda: pieces, frozenset(statuses), pause)


# -- how requests are written ---------------------------------------------------------------------------------------


def head(method, path, length=None, *lines):
    sized = [] if length is None else [f"Content-Length: {length}"]
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: test", "{key}", *sized, *lines, "", ""]).encode()


def part(name, content, filename=None, extra=b""):
    file = b"" if filename is None else b'; filename="' + filename + b'"'
    disposition = b'Content-Disposition: form-data; name="' + name.encode() + b'"' + file
    return b"--" + BOUNDARY + b"\r\n" + disposition + extra + b"\r\n\r\n" + content + b"\r\n"


END = b"--" + BOUNDARY + b"--\r\n"
MULTIPART = f"Content-Type: multipart/form-data; boundary={BOUNDARY.decode()}"


def form(file=GOOD_ROWS, *, filename=b"t.csv", more=b"", **fields):
    """A multipart body: the fields of a good upload, changed by `fields` (None leaves one out), then the file."""
    parts = [part(n, v.encode()) for n, v in {**FIELDS, **fields}.items() if v is not None]
    if file is not None:
        parts.append(part("file", file, filename))
    return b"".join(parts) + more + END


def upload(body, *lines, path="/v1/datasets", kind=MULTIPART):
    return [head("POST", path, len(body), kind, *lines), body]


def bad_file(name, make, statuses=UNPROCESSABLE):
    """An upload that is good but for its file; made when it is sent."""
    case(name, statuses, lambda: upload(form(make())))


def bad_form(what, /, statuses=UNPROCESSABLE, **changes):
    case(what, statuses, lambda: upload(form(**changes)))


def order(name, body, *lines, statuses=UNPROCESSABLE, kind="Content-Type: application/json"):
    """A body for an order on a dataset that is there."""
    case(name, statuses, lambda: [head("POST", ORDERS, len(body), kind, *lines), body])


def key(name, body, statuses=UNPROCESSABLE, kind="Content-Type: application/json"):
    case(name, statuses, lambda: [head("POST", "/v1/keys", len(body), kind), body])


def chunked(pieces):
    for piece in pieces:
        yield b"%x\r\n%s\r\n" % (len(piece), piece)
    yield b"0\r\n\r\n"


# -- decompression bombs --------------------------------------------------------------------------------------------

ZEROS = 64 * MiB


def zeros():
    return itertools.repeat(bytes(MiB), ZEROS // MiB)


def squeezed(compressor):
    return b"".join(compressor.compress(piece) for piece in zeros()) + compressor.flush()


def zip_bomb(name="t.csv", content=None, link=False):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        info = zipfile.ZipInfo(name)
        info.compress_type = zipfile.ZIP_DEFLATED
        if link:
            info.external_attr = 0o120777 << 16
        with archive.open(info, "w", force_zip64=True) as member:
            for piece in zeros() if content is None else [content]:
                member.write(piece)
    return buffer.getvalue()


def nested_zip():
    content = GOOD_ROWS * 100
    for depth in range(8):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for copy in range(8):
                archive.writestr(f"{depth}-{copy}.zip", content)
        content = buffer.getvalue()
    return content


def png_bomb():
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    size = struct.pack(">IIBBBBB", 50_000, 50_000, 8, 2, 0, 0, 0)
    pixels = squeezed(zlib.compressobj(9))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def parquet(table, **options):
    buffer = io.BytesIO()
    pq.write_table(table, buffer, **options)
    return buffer.getvalue()


def parquet_bomb(compression, rows=20_000_000):
    """Plain pages of one number over and over: 320 MB that pack into kilobytes."""
    numbers = pa.array(np.zeros(rows, dtype=np.int64))
    return parquet(
        pa.table({"age": numbers, "town": numbers}), compression=compression, use_dictionary=False, row_group_size=10**7
    )


def dictionary_bomb():
    long = pa.DictionaryArray.from_arrays(pa.array(np.zeros(2_000_000, dtype=np.int32)), pa.array([MARKER * 4_000]))
    return parquet(pa.table({"age": pa.array(np.zeros(2_000_000, dtype=np.int64)), "town": long}))


def nested_parquet(depth=60):
    array = pa.array([1, 2])
    for _ in range(depth):
        array = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), array)
    return parquet(pa.table({"age": array, "town": ["Ulm", "Bern"]}))


def wide_parquet(columns=10_000):
    column = pa.array([1, 2])
    return parquet(pa.table({f"{MARKER}{i}": column for i in range(columns)}), compression="none")


bad_file("gzip bomb", lambda: squeezed(zlib.compressobj(9, wbits=31)))
bad_file("gzip four times", lambda: functools.reduce(lambda packed, _: gzip.compress(packed), range(4), GOOD_ROWS))
bad_file("ZIP bomb", zip_bomb)
bad_file("ZIP of ZIPs of ZIPs", nested_zip)
bad_file("bzip2 bomb", lambda: squeezed(bz2.BZ2Compressor()))
bad_file("xz bomb", lambda: squeezed(lzma.LZMACompressor(preset=0)))
bad_file("zstandard bomb", lambda: pa.compress(bytes(64 * MiB), codec="zstd", asbytes=True))
bad_file("PNG bomb", png_bomb)
for codec in ("zstd", "gzip", "brotli", "lz4"):
    bad_file(f"Parquet bomb ({codec})", lambda codec=codec: parquet_bomb(codec), TOO_LARGE)
# Snappy packs nothing smaller than a twentieth, which is no bomb: the file is read, and refused for what it says.
bad_file("Parquet bomb (snappy)", lambda: parquet_bomb("snappy", rows=200_000))
bad_file("Parquet bomb (dictionary)", dictionary_bomb, TOO_LARGE | UNPROCESSABLE)
bad_file("Parquet nested sixty deep", nested_parquet)
bad_file("Parquet with 10,000 columns", wide_parquet)

# -- sizes ----------------------------------------------------------------------------------------------------------


def megabytes(count):
    return itertools.repeat(b"x" * MiB, count)


def streamed_field(field, filename, count=1_000, start=b""):
    """A multipart body with one part of `count` MB, which never lies in memory as a whole, on either side."""
    first = b"".join(part(n, v.encode()) for n, v in FIELDS.items() if n != field)
    opened = part(field, start + MARKER.encode(), filename)[:-2]
    length = len(first) + len(opened) + count * MiB + 2 + len(END)
    yield head("POST", "/v1/datasets", length, MULTIPART)
    yield first + opened
    yield from megabytes(count)
    yield b"\r\n" + END


bad_file("100,000 columns", lambda: ",".join(f"{MARKER}{i}" for i in range(100_000)).encode() + b"\n1,2\n")
bad_file("a row of 100,000 cells", lambda: GOOD_ROWS + b",".join([MARKER.encode()] * 100_000) + b"\n")
bad_file("a cell of 20 MB", lambda: GOOD_ROWS + b"30," + b"x" * (20 * MiB) + b"\n")
bad_file("a quoted cell of 20 MB", lambda: GOOD_ROWS + b'30,"' + b"x,\n" * (7 * MiB) + b'"\n')
bad_file("a header of 20 MB", lambda: b"x" * (20 * MiB))
case("a text field of 1 GB", UNPROCESSABLE | TOO_LARGE, lambda: streamed_field("schema", None))
case("a file of 1 GB over the limit", TOO_LARGE, lambda: streamed_field("file", b"t.csv"))
case(
    "a file over the limit without its length",
    TOO_LARGE,
    lambda: itertools.chain(
        [head("POST", "/v1/datasets", None, MULTIPART, "Transfer-Encoding: chunked")],
        chunked(itertools.chain([part("file", b"", b"t.csv")], megabytes(60))),
    ),
)
case(
    "a JSON body of 1 GB without its length",
    TOO_LARGE,
    lambda: itertools.chain(
        [head("POST", "/v1/keys", None, "Content-Type: application/json", "Transfer-Encoding: chunked")],
        chunked(megabytes(1_000)),
    ),
)
case("a JSON body that says 1 GB", TOO_LARGE, [head("POST", "/v1/keys", 1 << 30, "Content-Type: application/json")])
case("a length beyond 64 bits", TOO_LARGE | BY_SERVER, [head("POST", "/v1/keys", 10**30)])
case("a GET with a body of 1 GB", TOO_LARGE, [head("GET", "/v1/datasets", 1 << 30)])

# -- text -----------------------------------------------------------------------------------------------------------

MIXED = GOOD_ROWS + f"50,{MARKER}ü\n".encode() + f"50,{MARKER}ü\n".encode("latin-1")
bad_file("NUL in a cell", lambda: GOOD_ROWS + f"30,U\x00{MARKER}\n".encode())
bad_file("UTF-16 with its mark", lambda: GOOD_ROWS.decode().encode("utf-16"))
bad_file("UTF-16 without its mark", lambda: GOOD_ROWS.decode().encode("utf-16-le"))
bad_file("UTF-32", lambda: GOOD_ROWS.decode().encode("utf-32"))
bad_file("two byte order marks", lambda: b"\xef\xbb\xbf\xef\xbb\xbf" + GOOD_ROWS)
bad_file("a byte order mark in the middle", lambda: GOOD_ROWS + b"\xef\xbb\xbf50,Ulm\n")
bad_file("UTF-8, then Latin-1", lambda: MIXED)
bad_file("invalid UTF-8", lambda: GOOD_ROWS + b"30,\xff\xfe\n")
bad_file("overlong UTF-8", lambda: GOOD_ROWS + b"30,\xc0\xaf\n")
bad_file("a half surrogate pair", lambda: GOOD_ROWS + b"30,\xed\xa0\x80\n")
bad_form("a schema in UTF-16", schema=json.dumps(SCHEMA).encode("utf-16").decode("latin-1"))
case(
    "a schema as a file that is not UTF-8",
    UNPROCESSABLE,
    lambda: upload(form(schema=None, more=part("schema", b"\xff\xfe{}", b"s.json"))),
)

# -- names ----------------------------------------------------------------------------------------------------------

BAD = b"age,town\nx," + MARKER.encode() + b"\n"
for what, filename in {
    "a file name that climbs up": b"../" * 12 + CLIMBED,
    "an absolute file name": ABSOLUTE,
    "a file name with backslashes": b"..\\..\\climbed",
    "a file name with NUL": b"t\x00.csv",
    "a file name of 10 kB": MARKER.encode() * 800,
    "a file name that is a device": b"/dev/stdout",
}.items():
    case(what, UNPROCESSABLE, lambda filename=filename: upload(form(BAD, filename=filename)))
bad_file("a ZIP member that climbs up", lambda: zip_bomb("../../climbed", GOOD_ROWS))
bad_file("a ZIP member with an absolute name", lambda: zip_bomb("/etc/absolute", GOOD_ROWS))
bad_file("a ZIP member that is a link", lambda: zip_bomb("t.csv", b"/etc/passwd", link=True))
case("a path that climbs up", {404}, [head("GET", "/v1/../../../../etc/passwd")])
case("a path that climbs up, encoded", {404}, [head("GET", "/v1/datasets/..%2f..%2f..%2fetc%2fpasswd")])
case("NUL in the path", UNPROCESSABLE, [head("GET", "/v1/datasets/%00")])
case("no UTF-8 in the path", UNPROCESSABLE | {404}, [head("GET", "/v1/datasets/%ff%fe")])

# -- JSON -----------------------------------------------------------------------------------------------------------

EPSILON = '{"method": "idpgan", "epsilon": %s}'
bad_form("a deep schema", schema="[" * 100_000)
bad_form("a deep object in a schema", schema='{"a":' * 50_000)
bad_form("a budget of 10,000 digits", budget='{"epsilon": ' + "9" * 10_000 + "}")
bad_form("a budget of 1e400", budget='{"epsilon": 1e400}')
bad_form("a budget given twice in one object", budget='{"epsilon": 1, "epsilon": 100}')
bad_form("a schema whose name is given twice", schema='{"fields": [], "fields": []}')
bad_form("NUL in a schema", schema=json.dumps({**SCHEMA, "title": f"{MARKER}\x00"}))
bad_form("half a surrogate pair in a schema", schema=json.dumps({**SCHEMA, "title": f"{MARKER}\ud800"}))
bad_form(
    "half a surrogate pair in a unit's column", privacy_unit=json.dumps({"column": "\ud800", "max_rows_per_unit": 1})
)
bad_form("a name with a line end", name=f"{MARKER}\nb")
bad_form("an order that is no JSON", schema=f"{{{MARKER}")
order("a deep order", b"[" * 100_000)
order("an order of 10,000 digits", (EPSILON % ("9" * 10_000)).encode())
order("an order of 1e400", (EPSILON % "1e400").encode())
order("an order of a denormal", (EPSILON % "-5e-324").encode())
order("an order with NaN", (EPSILON % "NaN").encode())
order("an order that gives epsilon twice", b'{"method": "idpgan", "epsilon": 0.1, "epsilon": 9}')
order("an order with NUL in its method", b'{"method": "idpgan\\u0000", "epsilon": 1}')
order("an order with half a surrogate pair", b'{"method": "idpgan", "epsilon": 1, "condition_on": "\\ud800"}')
order("an order that is a string", json.dumps(MARKER).encode())
order(
    "an order with an unknown kind", b'{"method": "idpgan", "epsilon": 1, "clusters": {"kind": "%s"}}' % MARKER.encode()
)
order("an order in UTF-16", (EPSILON % "1").encode("utf-16"))
order("an order in gzip", gzip.compress((EPSILON % "1").encode()), "Content-Encoding: gzip")
order("an order as plain text", (EPSILON % "1").encode(), kind="Content-Type: text/plain")
order("an order as a form", b"method=idpgan&epsilon=1", kind="Content-Type: application/x-www-form-urlencoded")
order("an idempotency key of 10 kB", (EPSILON % "1").encode(), f"Idempotency-Key: {MARKER * 800}")
key("a key's name with NUL", b'{"name": "a\\u0000b", "scope": "reader"}')
key("a key's name with half a surrogate pair", b'{"name": "\\udfff", "scope": "reader"}')
key("a key's scope that is no scope", b'{"name": "a", "scope": "%s"}' % MARKER.encode())
key("a key's end of 10,000 digits", b'{"name": "a", "scope": "reader", "expires_at": %s}' % (b"9" * 4_000))
key("a key's end beyond the year 9999", b'{"name": "a", "scope": "reader", "expires_at": "9999-12-31T23:59:59-23:59"}')
key("a key as multipart", form(None), kind=MULTIPART)

# -- multipart ------------------------------------------------------------------------------------------------------

WHOLE = form()
case("multipart without its end", UNPROCESSABLE, lambda: upload(WHOLE[: -len(END)]))
case("multipart cut off in the file", UNPROCESSABLE, lambda: upload(WHOLE[: -len(END) - 10]))
case("multipart cut off in a part's head", UNPROCESSABLE, lambda: upload(WHOLE[: WHOLE.index(b"filename") + 4]))
case("multipart of nothing", UNPROCESSABLE, upload(b""))
case(
    "another boundary than announced",
    UNPROCESSABLE,
    upload(WHOLE, kind="Content-Type: multipart/form-data; boundary=x"),
)
case("no boundary", UNPROCESSABLE, upload(WHOLE, kind="Content-Type: multipart/form-data"))
case(
    "a boundary of 10 kB",
    UNPROCESSABLE,
    upload(WHOLE, kind=f"Content-Type: multipart/form-data; boundary={'x' * 10_000}"),
)
case("an upload as JSON", UNPROCESSABLE, upload(WHOLE, kind="Content-Type: application/json"))
case("an upload without a type", UNPROCESSABLE, lambda: [head("POST", "/v1/datasets", len(WHOLE)), WHOLE])
case("two files", UNPROCESSABLE, upload(form(more=part("file", GOOD_ROWS, b"u.csv"))))
case("two schemas", UNPROCESSABLE, upload(form(more=part("schema", b"{}"))))
case("the file as a text field", UNPROCESSABLE, upload(form(None, more=part("file", GOOD_ROWS))))
case("no file", UNPROCESSABLE, upload(form(None)))
case("no schema", UNPROCESSABLE, upload(form(schema=None)))
case(
    "the file first and no budget after it",
    UNPROCESSABLE,
    upload(part("file", GOOD_ROWS, b"t") + form(None, budget=None)),
)
case("an unknown field", UNPROCESSABLE, upload(form(more=part(MARKER, b"1"))))
case("a hundred fields", UNPROCESSABLE, upload(form(more=b"".join(part(f"f{i}", b"1") for i in range(100)))))
case("a hundred files", UNPROCESSABLE, upload(form(more=b"".join(part(f"f{i}", b"1", b"t") for i in range(100)))))
case("a part without a name", UNPROCESSABLE, upload(form(more=b"--" + BOUNDARY + b"\r\n\r\nx\r\n")))
case("a part whose head is garbage", UNPROCESSABLE, upload(b"--" + BOUNDARY + b"\r\n\x00\xff: \r\n\r\nx\r\n" + END))
case("a part whose head is 1 MB", UNPROCESSABLE, upload(form(more=part("name", b"x", None, b"\r\nX: " + b"y" * MiB))))
case("an upload that publishes without an order", UNPROCESSABLE, upload(WHOLE, path="/v1/publish"))
case(
    "an upload that publishes 10^30 rows",
    UNPROCESSABLE,
    upload(form(order=EPSILON % "1", rows="1" + "0" * 30), path="/v1/publish"),
)

# -- HTTP itself ----------------------------------------------------------------------------------------------------

JSON = "Content-Type: application/json"
case("no HTTP at all", BY_SERVER, [b"\x16\x03\x01\x02\x00" + MARKER.encode() + b"\r\n\r\n"])
case("a negative length", BY_SERVER, [head("POST", "/v1/keys", -5, JSON)])
case("a length that is no number", BY_SERVER, [head("POST", "/v1/keys", MARKER, JSON)])
case("two different lengths", BY_SERVER, [head("POST", "/v1/keys", 5, JSON, "Content-Length: 6"), b"{}   "])
case(
    "a chunk size that is no number",
    BY_SERVER | UNPROCESSABLE,
    [head("POST", "/v1/keys", None, JSON, "Transfer-Encoding: chunked"), b"zz\r\n{}\r\n0\r\n\r\n"],
)
case(
    "a chunk size beyond 64 bits",
    BY_SERVER | UNPROCESSABLE,
    [head("POST", "/v1/keys", None, JSON, "Transfer-Encoding: chunked"), b"f" * 30 + b"\r\n{}\r\n"],
)
case(
    "an unknown transfer encoding",
    BY_SERVER | {501},
    [head("POST", "/v1/keys", None, JSON, "Transfer-Encoding: marker")],
)
case(
    "a length shorter than the body",
    BY_SERVER | UNPROCESSABLE,
    lambda: [head("POST", "/v1/datasets", 100, MULTIPART), WHOLE],
)
case("a head of 100 kB", {431}, [head("GET", "/v1/datasets", None, f"X: {MARKER * 8_000}")])
case(
    "ten thousand header lines",
    {431},
    [head("GET", "/v1/datasets", None, *[f"X-{i}: 1" for i in range(10_000)])],
)
case("a header line without a name", BY_SERVER, [head("GET", "/v1/datasets", None, f": {MARKER}")])
case("a method that is none", BY_SERVER | {405}, [head("BREW", "/v1/datasets")])
case("a known path, a wrong method", {405}, [head("PUT", "/v1/datasets", 0)])
case("a query with numbers too large", UNPROCESSABLE, [head("GET", f"/v1/audit?limit={'9' * 5_000}")])
case("a query with the wrong kind", UNPROCESSABLE, [head("GET", f"/v1/audit?before={MARKER}")])
case("an id that is no id", UNPROCESSABLE, [head("GET", f"/v1/datasets/{MARKER}")])

# -- slowness -------------------------------------------------------------------------------------------------------

case("a connection that says nothing", CLOSED, [b""], pause=1.0)
case(
    "a head that never ends",
    CLOSED,
    lambda: itertools.chain([b"GET / HTTP/1.1\r\n"], itertools.repeat(b"X: y\r\n", 60)),
    pause=0.2,
)
case("a head that stops", CLOSED, [b"GET /v1/datasets HTTP/1.1\r\nHost: "])
case(
    "a head without an end, as fast as it goes",
    CLOSED | BY_SERVER,
    lambda: itertools.chain([b"GET / HTTP/1.1\r\n"], itertools.repeat(b"X: " + b"y" * 8_000 + b"\r\n", 500_000)),
)
case("an order that stops", {408}, [head("POST", ORDERS, 1_000, JSON), b'{"method": "'])
case(
    "a body that drips",
    {408},
    lambda: itertools.chain([head("POST", "/v1/keys", 10_000, JSON)], itertools.repeat(b"x", 100)),
    pause=0.1,
)
case("a body that stops", {408}, [head("POST", "/v1/keys", 10_000, JSON), b'{"name": "' + MARKER.encode()])
case(
    "an upload that drips",
    {408},
    lambda: itertools.chain([head("POST", "/v1/datasets", 10**6, MULTIPART)], (WHOLE[i : i + 1] for i in range(100))),
    pause=0.1,
)
case(
    "an upload that stops in its file",
    {408},
    lambda: [head("POST", "/v1/datasets", 10**6, MULTIPART), WHOLE[: -len(END)]],
)
