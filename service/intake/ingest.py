"""Take an uploaded table in: checked, fingerprinted and in canonical form, by a child process in a sandbox.

The child gets three open files and their keys, an environment of its own, and limits on memory, time and file size; what
else it gives up is in `service/intake/sandbox`. Nothing that it or a library prints is passed on. A file that takes
the child over could still answer wrongly about itself: with its own rows, fingerprints and notices.
"""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from service.base.carried import NotCarried, unpacked
from service.base.errors import InvalidFile, InvalidInput, TooLarge, Unavailable
from service.base.messages import Message
from service.domain.image_schema import DeclaredSchema, ImageSchema
from service.domain.privacy_unit import DeclaredUnit, ImageUnit
from service.domain.table_schema import UNIT_COLUMN
from service.intake import sandbox
from service.intake.caller import Caller
from service.intake.limits import IngestLimits
from service.intake.sealed import SealedFile
from service.intake.table.alike import ColumnFingerprint

if TYPE_CHECKING:
    from collections.abc import Collection

    from service.domain.table_schema import TableSchema

__all__ = ["IngestLimits", "IngestedTable", "ingest_table"]

_log = logging.getLogger(__name__)
_CHILD = "service.intake.child"
MOST_LINE_BYTES = 16 << 20
"""Of what a child says; the rest of a longer line is lost."""
_UNREADABLE = Message("The file cannot be read. If it opens elsewhere, save it again as CSV in UTF-8.")
_TOO_HARD = Message("The file is damaged, or reading it takes more memory than is allowed.")


@dataclass(frozen=True, slots=True)
class IngestedTable:
    """A table that passed. `notices` and all counts are for the owner only, except `units`. Gone when the block ends."""

    canonical: SealedFile
    rows: int
    units: int
    columns: tuple[str, ...]
    fingerprints: tuple[bytes, ...]
    """One, or two where the file holds declared missing values that need not mean that: the second is of all as it is written."""
    column_fingerprints: tuple[ColumnFingerprint, ...]
    """Of the columns of a table that say something, without their names; none of images."""
    notices: tuple[str, ...]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.canonical.close()


def ingest_table(
    upload: SealedFile,
    schema: DeclaredSchema,
    *,
    privacy_unit: DeclaredUnit | None,
    limits: IngestLimits,
    scratch_dir: Path | None,
    fingerprint_key: bytes,
    caller: Caller | None = None,
    accept_undeclared: Collection[str] = (),
) -> IngestedTable:
    """Check the file against the schema and write its canonical form into a sealed file in the scratch folder.

    A table becomes Parquet, images become `service.intake.image.canonical_file`.

    `accept_undeclared`: columns of which most rows may be outside what is declared; else that is refused.
    `caller` hears what share of the file has been read, a few times a second; when it leaves, reading ends at once.

    Raises `InvalidFile` or `TooLarge`, whose messages name columns and counts and never a cell, and `Unavailable` where the
    child did not start.
    """
    names: tuple[str, ...]
    if isinstance(schema, ImageSchema):
        _check_unit_of_images(schema, privacy_unit)
        names = ()
    else:
        _check_unit(schema, privacy_unit)
        names = schema.names
    with ExitStack() as stack:
        canonical = stack.enter_context(SealedFile.create(scratch_dir))
        with SealedFile.create(scratch_dir) as scratch:
            job = {
                "upload": upload.handle(),
                "canonical": canonical.handle(),
                "scratch": scratch.handle(),
                "schema": schema.as_json(),
                "privacy_unit": None if privacy_unit is None else privacy_unit.as_json(),
                "limits": limits.model_dump(),
                "fingerprint_key": fingerprint_key.hex(),
                "accept_undeclared": sorted(accept_undeclared),
                "parent": os.getpid(),
            }
            table = run_child(job, limits, (upload, canonical, scratch), caller or Caller())
        stack.pop_all()
    return IngestedTable(
        canonical=canonical,
        rows=table["rows"],
        units=table["units"],
        columns=names,
        fingerprints=tuple(map(bytes.fromhex, table["fingerprints"])),
        column_fingerprints=tuple(
            ColumnFingerprint(place, bytes.fromhex(fingerprint), bits) for place, fingerprint, bits in table["columns"]
        ),
        notices=tuple(map(told, table["notices"])),
    )


def _check_unit_of_images(schema: ImageSchema, privacy_unit: DeclaredUnit | None) -> None:
    if privacy_unit is not None and not isinstance(privacy_unit, ImageUnit):
        raise InvalidInput(
            Message(
                'Of images, declare {"max_images_per_unit": k} and nothing else; whose an image is, is in the column '
                "`unit` of the labels file, or in the array `units` of an NPZ file. Without it each image is its own "
                "privacy unit."
            ),
            where="privacy_unit",
        )
    if privacy_unit is not None and schema.pixel_unit is not None:
        raise InvalidInput(
            Message(
                "One unit is a part of one image (pixel_unit of the schema), or all images of a person (privacy_unit): "
                "declare one of the two."
            ),
            where="privacy_unit",
        )


def _check_unit(schema: TableSchema, privacy_unit: DeclaredUnit | None) -> None:
    if schema.field(UNIT_COLUMN) is not None:
        raise InvalidInput(
            Message("The column name %(unit_column)s is reserved; rename the field.", unit_column=repr(UNIT_COLUMN)),
            where="schema",
        )
    if privacy_unit is None:
        return
    if isinstance(privacy_unit, ImageUnit):
        raise InvalidInput(
            Message(
                'Of a table, declare {"column": "customer", "max_rows_per_unit": 8}; max_images_per_unit is for images.'
            ),
            where="privacy_unit",
        )
    if schema.field(privacy_unit.column) is not None:
        raise InvalidInput(
            Message(
                "The privacy unit's column %(column)s must not be a field of the schema: it says whose row it is and "
                "is never published. Remove the field; the column stays in the file.",
                column=repr(privacy_unit.column),
            ),
            where="privacy_unit.column",
        )


def run_child(
    job: dict[str, Any], limits: IngestLimits, files: tuple[SealedFile, ...], caller: Caller, *, child: str = ""
) -> dict[str, Any]:
    """What a child process in the sandbox answers to a job, with these files alone.

    One that ends before it has looked at the files is started once more: that is a fault of the machine, not of a file.
    """
    try:
        return _run_once(job, limits, files, caller, child or _CHILD)
    except _NotStarted as first:
        _log.warning("the process that reads files did not start: %s; once more", first)
    try:
        return _run_once(job, limits, files, caller, child or _CHILD)
    except _NotStarted as again:
        _log.error("the process that reads files did not start: %s", again)
        raise Unavailable(
            Message("The process that reads files did not start. Nothing of the file was read; send it again."),
            retry_after_seconds=5,
        ) from None


class _NotStarted(Exception):
    """A child ended before it had looked at a file."""


def _run_once(
    job: dict[str, Any], limits: IngestLimits, files: tuple[SealedFile, ...], caller: Caller, child: str
) -> dict[str, Any]:
    process = subprocess.Popen(  # noqa: S603 - our own module, no shell, nothing of the upload on the command line
        [sys.executable, "-P", "-s", "-m", "service.intake.sandboxed", child],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # a library's panic may quote cells
        env=_environment(),
        cwd="/",
        pass_fds=[file.descriptor for file in files],
        start_new_session=True,  # Ctrl-C stops the service in order; the child is stopped by its parent
    )
    began = time.monotonic()
    late = threading.Timer(limits.seconds, process.kill)
    late.start()
    try:
        with caller.taking_along(process.kill):
            said = _converse(process, json.dumps(job).encode(), caller)
    finally:
        late.cancel()
        process.kill()
        status = process.wait()
    if not said.answer or status != 0:
        caller(caller.share)  # which says whether it was the caller who ended the child
    if not said.answer and time.monotonic() - began >= limits.seconds:
        raise _too_slow(limits)
    if not said.answer and not said.started:
        raise _NotStarted(said.why or f"it ended with status {status}")
    return _answer(said.answer, status, limits)


@dataclass
class _Said:
    """By a child, so far."""

    started: bool = False
    """The sandbox is closed, and it looks at the files from now on."""
    why: str = ""
    """It did not start."""
    answer: dict[str, Any] = field(default_factory=dict)


def _converse(child: subprocess.Popen[bytes], job: bytes, caller: Caller) -> _Said:
    """Hand the job over and pass reports on, until the child answers or ends."""
    if child.stdin is None or child.stdout is None:
        raise RuntimeError("the child was started without pipes")
    with suppress(BrokenPipeError), child.stdin:  # closing it writes what is left
        child.stdin.write(job)
    so_far = _Said()
    with child.stdout as lines:
        while line := lines.readline(MOST_LINE_BYTES):
            try:
                said: dict[str, Any] = json.loads(line)
            except ValueError:  # cut off when the child was killed, or printed by a library
                _log.warning("the reading process said something that is no document")
                break
            if "layers" in said and not so_far.started:
                so_far.started = True
                _notice_layers({name: said["layers"].get(name) is True for name in sandbox.LAYERS})
            elif "share" in said:
                caller(said["share"])
            elif "not_started" in said:
                so_far.why = " ".join(str(said["not_started"]).split())[:200]
            else:
                so_far.answer = said
                break
    child.wait()
    return so_far


def _answer(answer: dict[str, Any], status: int, limits: IngestLimits) -> dict[str, Any]:
    if status == -signal.SIGXCPU:
        raise _too_slow(limits)
    if status != 0 or not answer:
        _log.warning("the reading process ended with status %s", status)
        raise TooLarge(_TOO_HARD, limit_bytes=limits.memory_bytes)
    if "table" in answer:
        table: dict[str, Any] = answer["table"]
        return table
    error = answer["error"]
    if error["code"] == "memory":
        raise TooLarge(_TOO_HARD, limit_bytes=limits.memory_bytes)
    if error["code"] == TooLarge.code:
        raise TooLarge(told(error["detail"]), **error["values"])
    if error["code"] == InvalidFile.code:
        raise InvalidFile(told(error["detail"]), **error["values"])
    kind, line = (
        _plain(error.get(name), form)
        for name, form in (("kind", r"[A-Za-z_.]{1,60}"), ("line", r"[\w.]{1,60}:\d{1,6}"))
    )
    _log.error("reading failed unexpectedly: %s at %s", kind, line)
    raise InvalidFile(_UNREADABLE)


def told(said: object) -> str:
    """A message of a child. A file may have taken that over: then it may say anything, and `InvalidFile` is raised for what is no message."""
    try:
        return unpacked(said)
    except NotCarried:
        _log.warning("the reading process said a sentence that is none")
        raise InvalidFile(_UNREADABLE) from None


def _plain(said: object, form: str) -> str:
    """For the log: of a child that a file has taken over, a name and a line and nothing else."""
    return said if isinstance(said, str) and re.fullmatch(form, said, re.ASCII) else "?"


def _too_slow(limits: IngestLimits) -> TooLarge:
    return TooLarge(
        Message("Reading the file took longer than %(seconds)s seconds.", seconds=limits.seconds),
        limit_seconds=limits.seconds,
    )


def describe_sandbox(layers: dict[str, bool]) -> str:
    """A line for the log: which layers hold around the process that reads uploads."""
    active, missing = ([name for name, holds in layers.items() if holds is wanted] for wanted in (True, False))
    return f"sandbox of the process that reads uploads: {', '.join(active) or 'none'}; not here: {', '.join(missing) or 'none'}"


@cache
def _warn_once(text: str) -> None:
    _log.warning(text)


def _notice_layers(layers: dict[str, bool]) -> None:
    """What the child has seen to hold; a warning, once, where that is less than this system promised."""
    if any(wanted and not layers.get(name, False) for name, wanted in sandbox.expected().items()):
        _warn_once(describe_sandbox(layers))


def _environment() -> dict[str, str]:
    """Only what Python and the libraries need: no search path, no home, no database URL, no credentials."""
    kept = {name: os.environ[name] for name in ("LANG", "LC_ALL") if name in os.environ}
    package_root = str(Path(__file__).parents[2])
    return kept | {
        "PYTHONPATH": os.pathsep.join([package_root, *(entry for entry in sys.path if entry)]),
        "POLARS_MAX_THREADS": "2",
        "OMP_NUM_THREADS": "2",
        "OPENBLAS_NUM_THREADS": "1",
        "MALLOC_ARENA_MAX": "2",  # address space is limited, and each arena reserves some
        "ARROW_DEFAULT_MEMORY_POOL": "system",
    }
