"""Take an uploaded table in: checked, fingerprinted and in canonical form, by a child process with limits.

A hostile file can at worst kill the child: memory, processor time and wall-clock time are limited, its environment
holds no secret, and nothing that it or a library prints is passed on.
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
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from service.base.errors import InvalidFile, InvalidInput, TooLarge
from service.domain.image_schema import DeclaredSchema, ImageSchema
from service.domain.privacy_unit import DeclaredUnit, ImageUnit
from service.domain.table_schema import UNIT_COLUMN
from service.intake.limits import IngestLimits
from service.intake.table.alike import ColumnFingerprint

if TYPE_CHECKING:
    from collections.abc import Callable

    from service.domain.table_schema import TableSchema

    Report = Callable[[float], None]

__all__ = ["IngestLimits", "IngestedTable", "ingest_table"]

_log = logging.getLogger(__name__)
_TOO_HARD = "The file is damaged, or reading it takes more memory than is allowed."


@dataclass(frozen=True, slots=True)
class IngestedTable:
    """A table that passed. `notices` and all counts are for the owner only, except `units`."""

    canonical_path: Path
    rows: int
    units: int
    columns: tuple[str, ...]
    fingerprints: tuple[bytes, ...]
    """One, or two where the file holds declared missing values that need not mean that: the second is of all as it is written."""
    column_fingerprints: tuple[ColumnFingerprint, ...]
    """Of the columns of a table that say something, without their names; none of images."""
    notices: tuple[str, ...]


def ingest_table(
    path: Path,
    schema: DeclaredSchema,
    *,
    privacy_unit: DeclaredUnit | None,
    limits: IngestLimits,
    workdir: Path,
    fingerprint_key: bytes,
    report: Report = lambda _: None,
) -> IngestedTable:
    """Check the file against the schema and write its canonical form in the clear: encrypt it, then delete it.

    A table becomes `workdir/canonical.parquet`, images `workdir/canonical.images` (`service.intake.image.canonical_file`).

    `report` hears what share of the file has been read, a few times a second; when it raises, reading ends at once.

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
        canonical_path, names = workdir / "canonical.images", ()
    else:
        _check_unit(schema, privacy_unit)
        canonical_path, names = workdir / "canonical.parquet", schema.names
    job = {
        "path": str(path.absolute()),
        "canonical_path": str(canonical_path.absolute()),
        "workdir": str(workdir.absolute()),
        "schema": schema.as_json(),
        "privacy_unit": None if privacy_unit is None else privacy_unit.as_json(),
        "limits": limits.model_dump(),
        "fingerprint_key": fingerprint_key.hex(),
    }
    try:
        table = _run_child(job, limits, workdir, report)
    except BaseException:
        canonical_path.unlink(missing_ok=True)
        raise
    canonical_path.chmod(0o600)
    return IngestedTable(
        canonical_path=canonical_path,
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


def _run_child(job: dict[str, Any], limits: IngestLimits, workdir: Path, report: Report) -> dict[str, Any]:
    child = subprocess.Popen(  # our own module, no shell, nothing of the upload on the command line
        [sys.executable, "-m", "service.intake.child"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # a library's panic may quote cells
        env=_environment(workdir),
        cwd=workdir,
        start_new_session=True,  # Ctrl-C stops the service in order; the child is stopped by its parent
    )
    began = time.monotonic()
    late = threading.Timer(limits.seconds, child.kill)
    late.start()
    try:
        answer = _converse(child, json.dumps(job).encode(), report)
    finally:
        late.cancel()
        child.kill()
        status = child.wait()
    if not answer and time.monotonic() - began >= limits.seconds:
        raise _too_slow(limits)
    return _answer(answer, status, limits)


def _converse(child: subprocess.Popen[bytes], job: bytes, report: Report) -> dict[str, Any]:
    """Hand the job over and pass reports on; the last document, or an empty one if the child ended without."""
    if child.stdin is None or child.stdout is None:
        raise RuntimeError("the child was started without pipes")
    with child.stdin, suppress(BrokenPipeError):
        child.stdin.write(job)
    with child.stdout as lines, suppress(ValueError):  # a line cut off when the child was killed
        for line in lines:
            said: dict[str, Any] = json.loads(line)
            if "share" not in said:
                child.wait()
                return said
            report(said["share"])
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


def _environment(workdir: Path) -> dict[str, str]:
    """Only what Python and the libraries need: no database URL, no credentials."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "SYSTEMROOT") if name in os.environ}
    package_root = str(Path(__file__).parents[2])
    return kept | {
        "PYTHONPATH": os.pathsep.join([package_root, *(entry for entry in sys.path if entry)]),
        "HOME": str(workdir),
        "TMPDIR": str(workdir),
        "POLARS_MAX_THREADS": "2",
        "OMP_NUM_THREADS": "2",
        "OPENBLAS_NUM_THREADS": "1",
        "MALLOC_ARENA_MAX": "2",  # address space is limited, and each arena reserves some
        "ARROW_DEFAULT_MEMORY_POOL": "system",
    }
