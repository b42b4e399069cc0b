"""The child process that touches an uploaded file: limits first, then read, check, and write the canonical table.

Run by `service.intake.sandboxed`; takes one JSON document on standard input: the declaration, descriptors of the upload
and of the files to write, their keys, and the fingerprint key. On standard output it says, one document a line, which
layers of the sandbox hold, how much of the file it has read, and last the answer.
"""

from __future__ import annotations

import codecs
import importlib
import importlib.util
import json
import os
import resource
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from service.base.carried import packed
from service.base.errors import ImprimaturError, InvalidFile, TooLarge
from service.base.messages import Message
from service.domain.dialect import USUAL, Dialect, codec_of
from service.domain.image_schema import is_image_schema
from service.domain.privacy_unit import PrivacyUnit, no_unit_ids, own_units
from service.domain.table_schema import TableSchema
from service.domain.zones import offsets_of, zones_in
from service.intake import sandbox
from service.intake.image.child import ImageJob, read_images
from service.intake.limits import IngestLimits
from service.intake.room import Room
from service.intake.sealed import SealedFile
from service.intake.table import notices_of_cells
from service.intake.table.canonical import ColumnReader, Problem, refuse, run_on
from service.intake.table.canonical_file import CanonicalWriter, ColumnUnits, RowUnits, Units
from service.intake.table.column_fingerprint import ColumnFingerprints, spelled_meaning
from service.intake.table.columns import Chunk, Column
from service.intake.table.detecting import DETECTED
from service.intake.table.exclusions import ExclusionReader
from service.intake.table.fingerprint import Blocks, Fingerprint, fingerprints_of, meaning_of
from service.intake.table.first_line import refuse_row_as_header, some_cells
from service.intake.table.misdeclared import misdeclared
from service.intake.table.reading import check_names, open_table
from service.intake.table.relations import Modelled, RelationReader, UniqueReader, missing_rows
from service.intake.unit_ids import UnitIds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from service.intake.table.reading import Table

_REPORT_SECONDS = 0.25
_FOR_ALL = ("numpy.ma", "pyarrow.compute")
_FOR_TABLES = ("pyreadstat", "python_calamine", "tarfile", "gzip", "zoneinfo")
_FOR_IMAGES = tuple(f"PIL.{name}ImagePlugin" for name in ("Bmp", "Gif", "Jpeg", "Png", "Ppm"))
_ENCODINGS = ("ascii", "cp437", "latin-1", "utf-8-sig")
"""What libraries would import while they read. A user of its own may not be able to read the interpreter's folder."""
_THREADS = 3
"""Two read columns, which are independent, and one parses the next chunk; the libraries let go of the interpreter."""


@dataclass(frozen=True)
class Job:
    """What the parent asks for."""

    upload: SealedFile
    canonical: SealedFile
    scratch: SealedFile
    schema: TableSchema
    privacy_unit: PrivacyUnit | None
    limits: IngestLimits
    fingerprint_key: bytes
    accept_undeclared: frozenset[str] = frozenset()
    """Columns of which most rows may be outside what is declared."""

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Job:
        unit = document["privacy_unit"]
        return cls(
            upload=SealedFile.handed_over(document["upload"]),
            canonical=SealedFile.handed_over(document["canonical"]),
            scratch=SealedFile.handed_over(document["scratch"]),
            schema=TableSchema.model_validate(document["schema"]),
            privacy_unit=None if unit is None else PrivacyUnit.model_validate(unit),
            limits=IngestLimits.model_validate(document["limits"]),
            fingerprint_key=bytes.fromhex(document["fingerprint_key"]),
            accept_undeclared=frozenset(document["accept_undeclared"]),
        )


class _Read(NamedTuple):
    """One column of one chunk: what it is in the fingerprint, and its values if it is a field of the schema."""

    column: Column
    blocks: list[Blocks | None]
    """One for each fingerprint that has the column."""
    values: pl.Series | None
    units: Blocks | None
    """Whose rows they are, if it is the privacy unit's column."""


class _Columns:
    """What is found out about the columns while the file is read: values, fingerprints, unit ids, problems."""

    def __init__(self, job: Job, table: Table) -> None:
        self._schema, self._unit = job.schema, job.privacy_unit
        unit = job.privacy_unit
        self._readers = {
            field.name: ColumnReader(field, job.schema.missing_values_of(field))
            for field in job.schema.understood.read()
        }
        modelled = set(job.schema.modelled.names)
        stored = [n for n in table.names if n in modelled or (unit is not None and n == unit.column)]
        is_spelled = any(reader.field.spells for reader in self._readers.values())
        # As the text is declared to be read, where that is declared; of other files as it is written.
        self._read_as_declared = (
            [Fingerprint(job.fingerprint_key, names, ()) for names in _each_once(stored, table)] if is_spelled else []
        )
        # The last is of the whole file.
        self._fingerprints = [
            *self._read_as_declared,
            *(one for names in _each_once(stored, table) for one in _fingerprints(job, names)),
        ]
        derived = job.schema.understood.names_derived
        self._columns = ColumnFingerprints(
            job.fingerprint_key,
            [n for n in table.names if n in modelled],
            [n for n in table.names if n in derived],
            [n for n in table.names if n not in derived and n not in stored],
            is_spelled=is_spelled,
        )
        self._ids = None if unit is None else _unit_ids(job, unit)
        self._unique, self._modelled = UniqueReader(job.schema), Modelled(job.schema)
        self._accepted = job.accept_undeclared

    @property
    def rows(self) -> int:
        return self._fingerprints[0].rows

    def read(self, make: Callable[[], Column]) -> _Read:
        """One column of one chunk; several at once."""
        column = make()
        reader = self._readers.get(column.name)
        declared = None if reader is None else reader.read_cells(column)
        meanings = [meaning_of(column.cells, one.missing_values_of(column.name)) for one in self._fingerprints]
        spelled = spelled_meaning(declared)
        if spelled is not None:
            meanings[: len(self._read_as_declared)] = [spelled] * len(self._read_as_declared)
        meant = None if declared is None else self._modelled.meant(column.name, declared)
        self._columns.read(column, meanings[-1], meant, spelled)  # the last is of cells as they are written
        return _Read(
            column,
            [
                one.blocks(column, meaning) if column.name in one.names else None
                for one, meaning in zip(self._fingerprints, meanings, strict=True)
            ],
            None if reader is None or declared is None else reader.spread(column, declared),
            self._units_in(column),
        )

    def add(self, done: Mapping[str, _Read]) -> tuple[pl.DataFrame, Blocks | None]:
        """A whole chunk: the values of its fields, and whose its rows are."""
        for place, fingerprint in enumerate(self._fingerprints):
            blocks = {name: found.blocks[place] for name, found in done.items()}
            fingerprint.add({name: own for name, own in blocks.items() if own is not None})
        self._columns.add()
        self._unique.read({name: self._key_of(done[name]) for name in self._unique.names})
        frame = pl.DataFrame([done[name].values for name in self._readers])
        return frame, None if self._unit is None else done[self._unit.column].units

    def problems(self) -> Iterator[Problem]:
        yield from _problems_of_units(self._unit, self._ids)
        for reader in self._readers.values():
            yield from reader.problems()
        yield from self._unique.problems()
        yield from misdeclared(self._readers.values(), self.rows, self._accepted)

    def notices(self, units: Units) -> Iterator[str]:
        for reader in self._readers.values():
            yield from reader.notices()
        yield from _notices_of_units(self._unit, self._ids, units)

    def fingerprints(self) -> dict[str, Any]:
        """The fingerprints of the rows, each once, the whole file's last, and those of the columns."""
        digests = [fingerprint.digest().hex() for fingerprint in self._fingerprints]
        columns = [[one.place, one.fingerprint.hex(), one.bits] for one in self._columns.fingerprints()]
        return {"fingerprints": list(dict.fromkeys(digests[::-1]))[::-1], "columns": columns}

    def _key_of(self, found: _Read) -> tuple[Blocks, Any]:
        """A column of a declared key: keyed blocks of its rows, and which have no value."""
        blocks = found.blocks[-1]
        if blocks is None:
            raise ValueError("the last fingerprint has every column")
        return blocks, missing_rows(found.column, self._missing_values_of(found.column.name))

    def _missing_values_of(self, name: str) -> tuple[str, ...]:
        return self._schema.own_missing_values.get(name, self._schema.missing_values)

    def _units_in(self, column: Column) -> Blocks | None:
        if self._ids is None or self._unit is None or column.name != self._unit.column:
            return None
        return self._ids.blocks(column)


def read_table(job: Job, report: Callable[[float], None] = lambda _: None) -> dict[str, Any]:
    """Read the whole file once, reporting the share that is read; the canonical file is written on the way and only counts if nothing was wrong."""
    room = Room(job.scratch, job.limits.unpacked_limit(job.upload.size))
    unit = job.privacy_unit
    declared = [*job.schema.names, *([unit.column] if unit else [])]
    table = open_table(job.upload, job.limits, job.schema.dialect, room, declared)
    check_names(table.names, declared, table)
    columns, exclusions = _Columns(job, table), ExclusionReader(job.schema.modelled)
    relations, modelled = RelationReader(job.schema), Modelled(job.schema)
    with ThreadPoolExecutor(_THREADS) as threads:
        writer = _writer(job, table.expected_bytes)
        for chunk in _ahead(table.chunks(), threads):
            done = {found.column.name: found for found in threads.map(columns.read, chunk.columns.values())}
            if not columns.rows:
                refuse_row_as_header(table.names, {name: some_cells(found.column) for name, found in done.items()})
            frame, units_of_rows = columns.add(done)
            if columns.rows > job.limits.rows:
                raise TooLarge(
                    Message("The file has more than %(rows)s rows.", rows=job.limits.rows), limit_rows=job.limits.rows
                )
            relations.read(frame)
            frame = modelled.of(frame)
            exclusions.read(frame)
            writer.add(frame, units_of_rows)
            report(chunk.share)
        refuse([*columns.problems(), *exclusions.problems(), *relations.problems()])
        units = writer.finish()
    if units.count < 2:
        what = Message("rows") if unit is None else Message("privacy units")
        raise InvalidFile(
            Message("The file needs at least two %(what)s; it has %(count)s.", what=what, count=units.count),
            count=units.count,
        )
    return {
        "rows": columns.rows,
        "units": units.count,
        **columns.fingerprints(),
        "notices": [*table.notices, *columns.notices(units)],
    }


def _each_once(stored: list[str], table: Table) -> list[Sequence[str]]:
    """What is stored, where that is not the whole file (the rest may be changed at will, and the rows are the same rows); and the file."""
    if len(stored) == len(table.names):
        return [table.names]
    return [stored, table.names]


def _fingerprints(job: Job, names: Sequence[str]) -> list[Fingerprint]:
    return fingerprints_of(job.fingerprint_key, names, job.schema.missing_values, job.schema.own_missing_values)


def _unit_ids(job: Job, unit: PrivacyUnit) -> UnitIds:
    markers = job.schema.own_missing_values.get(unit.column, job.schema.missing_values)
    return UnitIds(job.fingerprint_key, unit.column, markers, missing=unit.missing)


def _problems_of_units(unit: PrivacyUnit | None, ids: UnitIds | None) -> Iterator[Problem]:
    if unit is None or ids is None:
        return
    if ids.run_on:
        yield run_on(unit.column, ids.run_on)
    if ids.missing and unit.missing == "refuse":
        yield Problem(unit.column, ids.missing, no_unit_ids(ids.missing, "row"))


def _notices_of_units(unit: PrivacyUnit | None, ids: UnitIds | None, units: Units) -> Iterator[str]:
    if unit is None or ids is None:
        return
    if ids.missing:
        yield Message(
            "Column %(column)s: %(sentence)s", column=repr(unit.column), sentence=own_units(ids.missing, "row")
        )
    if units.over_maximum:
        yield notices_of_cells.over_maximum(repr(unit.column), units.over_maximum, unit.max_rows_per_unit)


def _ahead(chunks: Iterator[Chunk], threads: ThreadPoolExecutor) -> Iterator[Chunk]:
    """The next chunk is parsed while this one is read."""
    coming = threads.submit(next, chunks, None)
    while (chunk := coming.result()) is not None:
        coming = threads.submit(next, chunks, None)
        yield chunk


NICENESS = 5
"""As a training (`workers/run.py`): work of minutes lets requests go first, which take milliseconds."""


def limit_resources(limits: IngestLimits, held: int) -> None:
    """Memory beyond what the libraries already hold, processor time, file size; and no core dump of private rows."""
    os.nice(NICENESS)
    for kind, limit in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_AS, held + limits.memory_bytes),
        (resource.RLIMIT_CPU, 2 * limits.seconds),
        (resource.RLIMIT_FSIZE, 4 * limits.unpacked_bytes),
    ):
        with suppress(ValueError, OSError):  # where the system has no such limit, or a stricter one
            resource.setrlimit(kind, (limit, limit))


def read_upload(document: dict[str, Any]) -> dict[str, Any]:
    """What is to be done, in the sandbox."""
    if is_image_schema(document["schema"]):
        found = read_images(ImageJob.from_json(document), Reports())
    else:
        found = read_table(Job.from_json(document), Reports())
    return found | {"notices": [packed(each) for each in found["notices"]]}


def main(begun: sandbox.Begun, work: Callable[[dict[str, Any]], dict[str, Any]] = read_upload) -> None:
    """One job in, one answer out. Whatever goes wrong, no message of a library leaves this process."""
    answer: dict[str, Any]
    try:
        document = json.loads(sys.stdin.buffer.read())
        for name in (
            *_FOR_ALL,
            *_pandas(),
            *(_FOR_IMAGES if is_image_schema(document["schema"]) else _FOR_TABLES),
        ):
            importlib.import_module(name)
        for name in (*_ENCODINGS, *DETECTED):
            codecs.lookup(name)
        for name in zones_in(document["schema"]):
            offsets_of(name)
        if not is_image_schema(document["schema"]):
            dialect = document["schema"].get("dialect")
            codec_of(USUAL if dialect is None else Dialect.model_validate(dialect))
        limit_resources(IngestLimits.model_validate(document["limits"]), begun.held_bytes())
        _say({"layers": sandbox.finish(begun, document["parent"])})
        answer = {"table": work(document)}
    except ImprimaturError as error:
        answer = {"error": {"code": error.code, "detail": packed(error.detail), "values": error.values}}
    except MemoryError:
        answer = {"error": {"code": "memory"}}
    except BaseException as error:  # noqa: BLE001 - a panic of a library is a BaseException, and its text may quote cells
        answer = {"error": {"code": "unexpected", "kind": type(error).__name__, "line": _own_line(error)}}
    _say(answer)


def _writer(job: Job, expected_bytes: int) -> CanonicalWriter:
    if job.privacy_unit is None:
        return RowUnits(job.canonical)
    return ColumnUnits(
        job.canonical,
        job.scratch,
        expected_bytes=expected_bytes,
        max_rows_per_unit=job.privacy_unit.max_rows_per_unit,
    )


class Reports:
    """Says the share of the file that has been read, a few times a second."""

    def __init__(self) -> None:
        self._spoke = time.monotonic()

    def __call__(self, share: float) -> None:
        if time.monotonic() - self._spoke >= _REPORT_SECONDS:
            _say({"share": share})
            self._spoke = time.monotonic()


def _say(document: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


def _pandas() -> tuple[str, ...]:
    """No library of ours needs it, but pyarrow looks for it while it reads, and imports what it finds."""
    there = importlib.util.find_spec("pandas") is not None
    return ("pandas", "pyarrow.pandas_compat", "pyarrow.vendored.version") if there else ()


def _own_line(error: BaseException) -> str:
    """Where it happened, for the operator: file and line, no values."""
    trace, where = error.__traceback__, ""
    while trace is not None:
        where = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return where
