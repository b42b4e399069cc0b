"""Logs of the parts are bounded: a month of running must not fill the disk that the ledger needs."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from service.local.private_files import append_private

if TYPE_CHECKING:
    from pathlib import Path

LOG_BYTES = 16 << 20
"""A log that is larger is moved aside."""
OLD_LOGS = 2
"""How many are kept beside it: `api.log.1` is younger than `api.log.2`."""
LOOK_SECONDS = 2.0


def bound(log: Path) -> None:
    """Copy a large log and empty it. Its writer has it open to append, and goes on at its new end.

    Lines written between the copy and the emptying are lost. Without room for the copy the log is emptied nevertheless:
    what it holds back may be the room.
    """
    try:
        size = log.stat().st_size
    except FileNotFoundError:
        return
    if size <= LOG_BYTES:
        return
    for number in range(OLD_LOGS, 1, -1):
        with suppress(FileNotFoundError):
            _old(log, number - 1).replace(_old(log, number))
    with suppress(OSError):
        _copy_end(log, _old(log, 1), size)
    os.truncate(log, 0)


def _old(log: Path, number: int) -> Path:
    return log.with_name(f"{log.name}.{number}")


def _copy_end(log: Path, copy: Path, size: int) -> None:
    copy.unlink(missing_ok=True)
    with log.open("rb") as source, append_private(copy) as target:
        source.seek(max(0, size - LOG_BYTES))
        remaining = LOG_BYTES
        while remaining and (piece := source.read(min(remaining, 1 << 20))):
            target.write(piece)
            remaining -= len(piece)
