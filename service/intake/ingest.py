"""Take an uploaded table in: checked, fingerprinted and in canonical form, by a child process in a sandbox.

The child gets three open files and their keys, an environment of its own, and limits on memory, time and file size; what
else it gives up is in `service/intake/sandbox`. Nothing that it or a library prints is passed on. A file that takes
the child over could still answer wrongly about itself: with its own rows, fingerprints and notices.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from service.base.errors import InvalidFile, InvalidInput, TooLarge
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
_TOO_HARD = "The file is damaged, or reading it takes more memory than is allowed."


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

    Raises `InvalidFile` or `TooLarge`, whose messages name columns and counts and never a cell.
    """
    names: tuple[str, ...]
    if isinstance(schema, ImageSchema):
        if privacy_unit is not None and not isinstance(privacy_unit, ImageUnit):
            raise InvalidInput(
                'Of images, declare {"max_images_per_unit": k} and nothing else; whose an image is, is in the column `unit` '
                "of the labels file, or in the array `units` of an NPZ file. Without it each image is its own privacy unit.",
                where="privacy_unit",
            )
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
        notices=tuple(table["notices"]),
    )


def _check_unit(schema: TableSchema, privacy_unit: DeclaredUnit | None) -> None:
    if schema.field(UNIT_COLUMN) is not None:
        raise InvalidInput(f"The column name {UNIT_COLUMN!r} is reserved; rename the field.", where="schema")
    if privacy_unit is None:
        return
    if isinstance(privacy_unit, ImageUnit):
        raise InvalidInput(
            'Of a table, declare {"column": "customer", "max_rows_per_unit": 8}; max_images_per_unit is for images.',
            where="privacy_unit",
        )
    if schema.field(privacy_unit.column) is not None:
        raise InvalidInput(
            f"The privacy unit's column {privacy_unit.column!r} must not be a field of the schema: it says whose row it"
            " is and is never published. Remove the field; the column stays in the file.",
            where="privacy_unit.column",
        )


def run_child(
    job: dict[str, Any], limits: IngestLimits, files: tuple[SealedFile, ...], caller: Caller, *, child: str = ""
) -> dict[str, Any]:
    """What a child process in the sandbox answers to a job, with these files alone."""
    process = subprocess.Popen(  # noqa: S603 - our own module, no shell, nothing of the upload on the command line
        [sys.executable, "-P", "-s", "-m", "service.intake.sandboxed", child or _CHILD],
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
            answer = _converse(process, json.dumps(job).encode(), caller)
    finally:
        late.cancel()
        process.kill()
        status = process.wait()
    if not answer or status != 0:
        caller(caller.share)  # which says whether it was the caller who ended the child
    if not answer and time.monotonic() - began >= limits.seconds:
        raise _too_slow(limits)
    return _answer(answer, status, limits)


def _converse(child: subprocess.Popen[bytes], job: bytes, caller: Caller) -> dict[str, Any]:
    """Hand the job over and pass reports on; the last document, or an empty one if the child ended without."""
    if child.stdin is None or child.stdout is None:
        raise RuntimeError("the child was started without pipes")
    with child.stdin, suppress(BrokenPipeError):
        child.stdin.write(job)
    with child.stdout as lines, suppress(ValueError):  # a line cut off when the child was killed
        while line := lines.readline(MOST_LINE_BYTES):
            said: dict[str, Any] = json.loads(line)
            if "layers" in said:
                _notice_layers(said["layers"])
            elif "share" in said:
                caller(said["share"])
            else:
                child.wait()
                return said
    child.wait()
    return {}


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
        raise TooLarge(error["detail"], **error["values"])
    if error["code"] == InvalidFile.code:
        raise InvalidFile(error["detail"], **error["values"])
    _log.error("reading failed unexpectedly: %s at %s", error.get("kind"), error.get("line"))
    raise InvalidFile("The file cannot be read. If it opens elsewhere, save it again as CSV in UTF-8.")


def _too_slow(limits: IngestLimits) -> TooLarge:
    return TooLarge(f"Reading the file took longer than {limits.seconds} seconds.", limit_seconds=limits.seconds)


def describe_sandbox(layers: dict[str, bool]) -> str:
    """For the log: which layers hold around the process that reads uploads."""
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
