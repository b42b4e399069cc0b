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

from imprimatur.cli.config import config_folder
from imprimatur.cli.output import Exit, Failure

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass
class Undelivered:
    """One order on one dataset, and the key under which it is sent."""

    path: Path
    idempotency_key: str
    release_id: str | None = None
    """What an earlier run ordered."""

    @classmethod
    def begin(cls, dataset_id: str, order: Mapping[str, Any], *, again: bool) -> Undelivered:
        """The kept key of the same order; a new one where there is none, or where it shall be paid `again`."""
        document = json.dumps([dataset_id, order], sort_keys=True)
        path = _folder() / (hashlib.sha256(document.encode()).hexdigest()[:32] + ".json")
        found = None if again else cls._read(path)
        if found is None:
            found = cls(path, str(uuid.uuid4()))
            if not found._write(is_new=not again):  # another run was quicker: the two are one order
                return cls._read(path) or found
        return found

    def placed(self, release_id: str) -> None:
        """What was ordered; a second run says so."""
        self.release_id = release_id
        self._write()

    def end(self) -> None:
        """Everything is delivered, or nothing will be: the next run is another order."""
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)

    @classmethod
    def _read(cls, path: Path) -> Undelivered | None:
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            return cls(path, str(kept["idempotency_key"]), kept["release_id"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError):
            raise Failure(
                f"{path} is damaged: an earlier order may be unfinished. See `imprimatur status`; --again pays for a new one",
                code="memory_unreadable",
            ) from None

    def _write(self, *, is_new: bool = False) -> bool:
        """Whole or not at all; False where it is to be new and is there already."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, unfinished = tempfile.mkstemp(dir=self.path.parent, prefix=".unfinished-")  # made with mode 0600
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump({"idempotency_key": self.idempotency_key, "release_id": self.release_id}, file)
                file.flush()
                os.fsync(file.fileno())
            if is_new:
                os.link(unfinished, self.path)  # fails where it is there, unlike a rename
            else:
                Path(unfinished).replace(self.path)
        except FileExistsError:
            return False
        finally:
            Path(unfinished).unlink(missing_ok=True)
        return True


def check_can_be_kept() -> None:
    """Refuse before anything is paid where nothing can be kept."""
    folder = _folder()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise Failure(
            f"{folder}: {error.strerror}; an order is kept there until its rows are delivered, so that nothing is paid twice. "
            "Name a folder that can be written: IMPRIMATUR_CONFIG=FOLDER",
            Exit.BAD_INPUT,
            "invalid_input",
        ) from None


def _folder() -> Path:
    return config_folder() / "orders"
