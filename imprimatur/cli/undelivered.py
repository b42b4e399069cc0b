"""Orders of `publish` whose outcome has not been delivered: kept, so that a second run finds the release and pays nothing.

One file for each order, mode 0600, in the folder `orders` of IMPRIMATUR_CONFIG (~/.config/imprimatur). It is written before
the order is sent and removed once everything that was asked for has been written.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from imprimatur.cli.output import Exit, Failure
from imprimatur.cli.verification.memory import config_folder

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Undelivered:
    """One order on one dataset of one service, and the key under which it is sent."""

    path: Path
    idempotency_key: str
    is_repeated: bool
    """Whether an earlier run has sent it, or tried to."""

    @classmethod
    def begin(cls, service: str, dataset_id: str, order: Mapping[str, Any], *, again: bool) -> Undelivered:
        """The kept key of the same order; a new one where there is none, or where it shall be paid `again`."""
        document = json.dumps([service, dataset_id, order], sort_keys=True)
        path = config_folder() / "orders" / (hashlib.sha256(document.encode()).hexdigest()[:32] + ".json")
        kept = None if again else _read(path)
        if kept is not None:
            return cls(path, kept, is_repeated=True)
        new = str(uuid.uuid4())
        _write(path, {"idempotency_key": new, "service": service, "dataset_id": dataset_id})
        return cls(path, new, is_repeated=False)

    def end(self) -> None:
        """Everything is delivered, or nothing will be: the next run is another order."""
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)


def check_can_be_kept() -> None:
    """Refuse before anything is paid where nothing can be kept."""
    folder = config_folder() / "orders"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, probe = tempfile.mkstemp(dir=folder, prefix=".unfinished-")
        os.close(descriptor)
        Path(probe).unlink()
    except OSError as error:
        raise Failure(
            f"{folder}: {error.strerror}; an order is kept there until its rows are delivered, so that nothing is paid twice. "
            "Name a folder that can be written: IMPRIMATUR_CONFIG=FOLDER",
            Exit.BAD_INPUT,
            "invalid_input",
        ) from None


def _read(path: Path) -> str | None:
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))["idempotency_key"]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        raise Failure(
            f"{path} is damaged: an earlier order may be unfinished. See `imprimatur status`, then give --again to pay for a new one",
            code="memory_unreadable",
        ) from None
    return str(kept)


def _write(path: Path, document: Mapping[str, str]) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, unfinished = tempfile.mkstemp(dir=path.parent, prefix=".unfinished-")  # made with mode 0600
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(document, file)
            file.flush()
            os.fsync(file.fileno())
        Path(unfinished).replace(path)
    finally:
        Path(unfinished).unlink(missing_ok=True)
