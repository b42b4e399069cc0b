"""One table in every format that is read, and workbooks made by hand."""

from __future__ import annotations

import datetime as dt
import gzip
import io
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import polars as pl
import pyarrow as pa
import pyreadstat

from service.domain.table_schema import parse_table_schema

FRAME = pl.DataFrame(
    {
        "whole": [1, 2, None, 2**50, -7],
        "real": [1.5, None, -2.25, 0.1, 3.0],
        "town": ["Ulm", "Bern", None, "Zürich", "Ulm"],
        "day": [dt.date(2020, 1, 1), None, dt.date(2021, 2, 3), dt.date(1969, 1, 1), dt.date(2000, 2, 29)],
        "time": [
            dt.datetime(2020, 1, 1, 3, 4, 5),  # noqa: DTZ001 - naive UTC, as in the canonical table
            None,
            dt.datetime(2021, 1, 1),  # noqa: DTZ001 - see above
            dt.datetime(1999, 12, 31, 23, 59, 59),  # noqa: DTZ001 - see above
            dt.datetime(1970, 1, 1, 0, 0, 1),  # noqa: DTZ001 - see above
        ],
    }
)
DAYS: dict[str, Any] = {"minimum": "1900-01-01", "maximum": "2100-01-01"}
DOCUMENT: dict[str, Any] = {
    "fields": [
        {"name": "whole", "type": "integer", "constraints": {"minimum": -(2**53), "maximum": 2**53}},
        {"name": "real", "type": "number", "constraints": {"minimum": -10, "maximum": 10}},
        {"name": "town", "type": "string", "constraints": {"enum": ["Ulm", "Bern", "Zürich"]}},
        {"name": "day", "type": "date", "constraints": DAYS},
        {"name": "time", "type": "datetime", "constraints": DAYS},
    ]
}
SCHEMA = parse_table_schema(DOCUMENT)
CSV = FRAME.write_csv()


def zipped(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def tarred(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def zstandard(content: bytes) -> bytes:
    packed: bytes = pa.compress(content, codec="zstd", asbytes=True)
    return packed


def parquet(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


def arrow(frame: pl.DataFrame, *, stream: bool = False, **options: Any) -> bytes:
    buffer = io.BytesIO()
    (frame.write_ipc_stream if stream else frame.write_ipc)(buffer, **options)
    return buffer.getvalue()


def json_lines(frame: pl.DataFrame) -> bytes:
    return frame.with_columns(pl.col("time").dt.to_string("iso"), pl.col("day").dt.to_string()).write_ndjson().encode()


def statistics(write: Callable[..., None], folder: Path, frame: pl.DataFrame, ending: str, **options: Any) -> bytes:
    path = folder / f"statistics.{ending}"
    write(frame, str(path), **options)
    return path.read_bytes()


def spark() -> dict[str, bytes]:
    """Parts with columns in two orders, and what Spark writes beside them."""
    return {
        "t/part-00000-c000.snappy.parquet": parquet(FRAME[:2]),
        "t/part-00001-c000.snappy.parquet": parquet(FRAME[2:].select(*reversed(FRAME.columns))),
        "t/part-00002-c000.snappy.parquet": parquet(FRAME[:0]),
        "t/_SUCCESS": b"",
        "t/.part-00000-c000.snappy.parquet.crc": b"crc\x00",
    }


def by_town() -> dict[str, bytes]:
    """Folders whose names hold a column."""
    folders = {"Ulm": "Ulm", "Bern": "Bern", "Z%C3%BCrich": "Zürich", "__HIVE_DEFAULT_PARTITION__": None}
    return {
        f"t/town={folder}/part-0.parquet": parquet(FRAME.filter(pl.col("town").eq_missing(pl.lit(town))).drop("town"))
        for folder, town in folders.items()
    }


def workbook(
    sheets: Mapping[str, list[list[Any]]], *, prolog: str = "", more: Mapping[str, bytes] | None = None
) -> bytes:
    """The least that a workbook needs; texts stand in the cells themselves, dates as numbers with a date's format."""
    names = list(sheets)
    listed = "".join(f'<sheet name="{escape(n)}" sheetId="{i}" r:id="r{i}"/>' for i, n in enumerate(names, 1))
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    relations = "".join(
        f'<Relationship Id="r{i}" Type="{office}/worksheet" Target="worksheets/sheet{i}.xml"/>'
        for i, _ in enumerate(names, 1)
    )
    relations += f'<Relationship Id="rs" Type="{office}/styles" Target="styles.xml"/>'
    styles = '<numFmts count="0"/><cellXfs count="3"><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="22"/></cellXfs>'
    files = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types"/>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" Type="{office}/officeDocument"'
        ' Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets>{listed}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships">{relations}</Relationships>',
        "xl/styles.xml": f'<styleSheet xmlns="{main}">{styles}</styleSheet>',
    }
    for number, rows in enumerate(sheets.values(), start=1):
        body = "".join(f'<row r="{r}">{_cells(r, row)}</row>' for r, row in enumerate(rows, start=1))
        files[f"xl/worksheets/sheet{number}.xml"] = (
            f'{prolog}<worksheet xmlns="{main}"><sheetData>{body}</sheetData></worksheet>'
        )
    return zipped({name: text.encode() for name, text in files.items()} | dict(more or {}))


def sheet_of(frame: pl.DataFrame) -> list[list[Any]]:
    return [list(frame.columns), *map(list, frame.rows())]


def _cells(row: int, cells: list[Any]) -> str:
    return "".join(_cell(f"{chr(64 + place)}{row}", cell) for place, cell in enumerate(cells, start=1))


def _cell(place: str, cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, str):
        return f'<c r="{place}" t="inlineStr"><is><t xml:space="preserve">{escape(cell)}</t></is></c>'
    if isinstance(cell, bool):
        return f'<c r="{place}" t="b"><v>{int(cell)}</v></c>'
    if isinstance(cell, dt.datetime):
        since = cell - dt.datetime(1899, 12, 30)  # noqa: DTZ001 - as spreadsheets count
        return f'<c r="{place}" s="2"><v>{since / dt.timedelta(days=1)!r}</v></c>'
    if isinstance(cell, dt.date):
        return f'<c r="{place}" s="1"><v>{(cell - dt.date(1899, 12, 30)).days}</v></c>'
    return f'<c r="{place}"><v>{cell!r}</v></c>'


def every_format(folder: Path) -> dict[str, bytes]:
    """The same rows in all of them, each to be read without a dialect."""
    csv = CSV.encode()
    return {
        "CSV": csv,
        "CSV with a mark": b"\xef\xbb\xbf" + csv,
        "gzip of two members": gzip.compress(csv[:20]) + gzip.compress(csv[20:]),
        "ZIP": zipped({"folder/t.csv": csv, "__MACOSX/._t.csv": b"\x00", "folder/.DS_Store": b"\x00"}),
        "Zstandard of two frames": zstandard(csv[:20]) + zstandard(csv[20:]),
        "gzip in a ZIP": zipped({"t.csv.gz": gzip.compress(csv)}),
        "Parquet": parquet(FRAME),
        "Parquet in gzip": gzip.compress(parquet(FRAME)),
        "Spark's folder in a ZIP": zipped(spark()),
        "Spark's folder in a tar": tarred(spark()),
        "Spark's folder in a packed tar": gzip.compress(tarred(spark())),
        "Spark's folder by town": zipped(by_town()),
        "Arrow file": arrow(FRAME),
        "Arrow file, packed": arrow(FRAME, compression="zstd"),
        "Arrow file with categories": arrow(FRAME.with_columns(pl.col("town").cast(pl.Categorical))),
        "Arrow stream": arrow(FRAME, stream=True),
        "Arrow of large strings": arrow(FRAME, stream=True, compat_level=pl.CompatLevel.oldest()),
        "JSON lines": json_lines(FRAME),
        "workbook": workbook({"People": sheet_of(FRAME)}),
        "Stata": statistics(pyreadstat.write_dta, folder, FRAME, "dta"),
        "SPSS": statistics(pyreadstat.write_sav, folder, FRAME, "sav"),
        "SPSS, packed": statistics(pyreadstat.write_sav, folder, FRAME, "zsav", compress=True),
        "SAS transport": statistics(pyreadstat.write_xport, folder, FRAME, "xpt"),
    }
