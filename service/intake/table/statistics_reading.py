"""Stata, SPSS and SAS files as chunks of columns, with their value labels in place of the codes they label.

The library reads a file whole, so its size and its cells are limited. Codes without a label stay numbers, and what the
file declares missing is missing. A SAS file's labels lie in a catalogue of its own, which is not read.
"""

from __future__ import annotations

import datetime as dt
import re
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from service.base.errors import InvalidFile, TooLarge
from service.base.messages import Message, plural
from service.intake.table import notices_of_cells
from service.intake.table.columns import Chunk, ColumnSource, chunk
from service.intake.table.header import check_width, named
from service.intake.table.statistics_dates import more_formats, period_notices

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from service.domain.dialect import Dialect
    from service.intake.limits import IngestLimits
    from service.intake.room import Room, Source

_SAS = bytes(12) + bytes.fromhex("c2ea8160b31411cfbd92080009c7318c181f1011")
_CATALOGUE = bytes(12) + bytes.fromhex("c2ea8163b31411cfbd92080009c7318c181f1011")
_PORTABLE = b"SPSSPORT"
"""After 456 characters of tables, in lines of 80."""
_PORTABLE_BYTES = 600
_OLD_STATA = re.compile(rb"[\x68-\x73][\x01\x02]\x01\x00")
"""Version 104 to 115, byte order, 1, unused."""
_MARKS = ((_SAS, "SAS"), (b"$FL2@(#)", "SPSS"), (b"$FL3@(#)", "SPSS"), (b"<stata_dta>", "Stata"))
_MARKS_OF_TRANSPORT = (b"HEADER RECORD*******LIBRARY HEADER RECORD", b"HEADER RECORD*******LIBV8")
_READERS = {
    "SAS": "read_sas7bdat",
    "SAS transport": "read_xport",
    "SPSS": "read_sav",
    "SPSS portable": "read_por",
    "Stata": "read_dta",
}

_MOST_BYTES = 1024 * 1024 * 1024
_MOST_CELLS = 100_000_000
_CHUNK_ROWS = 65_536


def kind_of(content: Source) -> str | None:
    """Which program wrote it, if one of these did."""
    start = content.read_at(0, _PORTABLE_BYTES)
    if start.startswith(_CATALOGUE):
        raise InvalidFile(
            Message(
                "The file is a SAS catalogue of formats, which holds no rows. Give the .sas7bdat file of the table."
            )
        )
    for mark, kind in _MARKS:
        if start.startswith(mark):
            return kind
    if start.startswith(_MARKS_OF_TRANSPORT):
        return "SAS transport"
    if _PORTABLE in start.replace(b"\r", b"").replace(b"\n", b"")[456:472]:
        return "SPSS portable"
    return "Stata" if _OLD_STATA.match(start) else None


class StatisticsTable:
    """An opened file; its header says the columns, its rows are read when they are asked for."""

    def __init__(self, content: Source, limits: IngestLimits, dialect: Dialect, room: Room) -> None:  # noqa: ARG002 - as all readers
        self._content, self._limits = content, limits
        self._kind = kind_of(content) or ""
        if content.size > _MOST_BYTES:
            raise TooLarge(
                Message(
                    "A %(kind)s file may have %(most_bytes)s bytes at most; write it as Parquet.",
                    kind=self._kind,
                    most_bytes=_MOST_BYTES,
                ),
                limit_bytes=_MOST_BYTES,
            )
        # Only with this option does the library say which columns have values that are declared missing.
        kept = {"user_missing": True} if self._kind == "SPSS" else {}
        _, about = self._read(metadataonly=True, **kept)
        self._own_missing = [name for name in about.column_names if name in (about.missing_ranges or {})]
        self._columns = list(about.column_names)
        if not self._columns or None in self._columns:  # a damaged name is None
            raise self._damaged()
        check_width(self._columns, limits)
        self._labels: Mapping[str, Mapping[Any, str]] = about.variable_value_labels or {}
        rows = about.number_rows
        self._most_rows = _MOST_CELLS // len(self._columns)
        self._check_rows(rows or 0)
        self.names = named(self._columns, dialect)
        formats = about.original_variable_types or {}
        self._formats = more_formats(self._kind, formats.values())
        names = zip(self._columns, self.names, strict=True)
        self.notices: list[str] = period_notices(self._kind, {name: formats.get(column) for column, name in names})
        self.notices += _shared_labels(dict(zip(self._columns, self.names, strict=True)), self._labels)
        if self._kind.startswith("SAS"):
            self.notices.append(
                Message("A SAS file has no value labels of its own; formats of a catalogue were not read.")
            )
        self.hint = ""
        self.expected_bytes = 8 * (rows or 0) * (len(self.names) + 2)

    def chunks(self) -> Iterator[Chunk]:
        found, _ = self._read(row_limit=self._most_rows + 1, **self._formats)
        sources = [ColumnSource(name, self._limits) for name in self.names]
        columns = [found[name] for name in self._columns]
        rows = len(columns[0])
        self._check_rows(rows)
        self._note_own_missing(found)
        for start in range(0, rows, _CHUNK_ROWS):
            stop = min(start + _CHUNK_ROWS, rows)
            arrays = [
                _array(values[start:stop], self._labels.get(name, {}))
                for name, values in zip(self._columns, columns, strict=True)
            ]
            yield chunk(sources, arrays, stop / rows)

    def _note_own_missing(self, found: Mapping[str, Any]) -> None:
        """How many cells hold what the file declares missing: they are read as missing, whatever they say."""
        if not self._own_missing:
            return
        kept, _ = self._read(
            row_limit=self._most_rows + 1, user_missing=True, usecols=self._own_missing, **self._formats
        )
        names = dict(zip(self._columns, self.names, strict=True))
        for name in self._own_missing:
            count = _known(kept[name]) - _known(found[name])
            if count:
                self.notices.append(notices_of_cells.user_missing(repr(names[name]), count))

    def _check_rows(self, rows: int) -> None:
        if rows > min(self._most_rows, self._limits.rows):
            raise TooLarge(
                Message(
                    "A %(kind)s file may have %(most_cells)s cells at most; write it as Parquet.",
                    kind=self._kind,
                    most_cells=_MOST_CELLS,
                ),
                limit_rows=self._most_rows,
            )

    def _read(self, **options: Any) -> tuple[dict[str, Any], Any]:
        import pyreadstat  # noqa: PLC0415 - of few uploads; `child.py` imports it before the sandbox closes

        read: Callable[..., tuple[dict[str, Any], Any]] = getattr(pyreadstat, _READERS[self._kind])
        try:
            with self._content.reader() as file:
                return partial(read, file, output_format="dict")(**options)
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001 - the library's errors have no common class, and their text may quote cells
            raise self._damaged() from None

    def _damaged(self) -> InvalidFile:
        return InvalidFile(
            Message(
                "The file begins like one of %(kind)s but cannot be read: it is damaged, cut off or encrypted, or "
                "holds a date beyond the year 9999. Write it as Parquet or CSV.",
                kind=self._kind,
            )
        )


def _shared_labels(names: Mapping[str, str], labels: Mapping[str, Mapping[Any, str]]) -> list[str]:
    """Columns in which one label stands for several codes: they become one value."""
    found: list[str] = []
    for column, name in names.items():
        texts = list(labels.get(column, {}).values())
        repeated = sum(texts.count(text) > 1 for text in set(texts))
        if repeated:
            found.append(
                plural(
                    "Column %(column)s: 1 value label stands for several codes, which become one value. Where they "
                    "differ, give each code a label of its own.",
                    "Column %(column)s: %(count)s value labels stand for several codes, which become one value. Where "
                    "they differ, give each code a label of its own.",
                    repeated,
                    column=repr(name),
                    count=repeated,
                )
            )
    return found


def _known(values: Any) -> int:
    """How many cells have a value."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "f":
        return int(np.count_nonzero(~np.isnan(values)))
    return sum(not _is_nothing(value) for value in values)


def _array(values: Any, labels: Mapping[Any, str]) -> pa.Array:
    """Of numbers as they are, else of text; labels where the column has some."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "iuf":
        array = pa.array(values, from_pandas=True)
        return _labelled(array, labels) if labels else array
    listed: Sequence[Any] = values.tolist() if isinstance(values, np.ndarray) else values
    known = [None if _is_nothing(value) else value for value in listed]
    kinds = {type(value) for value in known} - {type(None)}
    if not labels and kinds <= {dt.datetime}:
        return pa.array(known, pa.timestamp("us"))
    if not labels and kinds <= {dt.date}:
        return pa.array(known, pa.date32())
    return pa.array([None if value is None else labels.get(value, _text(value)) for value in known], pa.string())


def _labelled(array: pa.Array, labels: Mapping[Any, str]) -> pa.Array:
    encoded = array.dictionary_encode()
    texts = [labels.get(value, _text(value)) for value in encoded.dictionary.to_pylist()]
    return pa.DictionaryArray.from_arrays(encoded.indices, pa.array(texts, pa.string())).dictionary_decode()


def _text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value.isoformat() if isinstance(value, dt.date | dt.time) else str(value)


def _is_nothing(value: Any) -> bool:
    return value is None or value != value  # noqa: PLR0124 - NaN
