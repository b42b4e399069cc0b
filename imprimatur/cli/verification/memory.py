"""What this person's command remembers of a service: its signing keys, the newest head of its log, and ledgers it saw.

Trust on first use, as ssh has it: what a service says the first time is kept, and every later answer is held against
it. One file for each service, mode 0600, in the folder `known` of IMPRIMATUR_CONFIG (~/.config/imprimatur).
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import json
import os
import stat
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from imprimatur.cli.config import config_folder
from imprimatur.cli.output import Exit, Failure
from imprimatur.verify.documents import NotJson, read_json
from imprimatur.verify.heads import TreeHead, whole
from imprimatur.verify.signatures import KEY_BYTES, PublicKey, trusted_keys

FORMAT = 1
HASH_BYTES = 32


@dataclass(frozen=True)
class KnownLedger:
    """The number of a dataset's entries, and the hash of the last one, which fixes all before it."""

    entries: int
    hash: bytes
    since: str


@dataclass
class Memory:
    """What is known of one service from earlier."""

    service: str
    path: Path
    keys: list[tuple[bytes, str]] = field(default_factory=list)
    """Public keys and since when they are pinned; the last one is the newest."""
    head: TreeHead | None = None
    head_since: str = ""
    ledgers: dict[str, KnownLedger] = field(default_factory=dict)

    @classmethod
    def of(cls, service: str) -> Memory:
        """The memory of the service with this address; empty at the first use. Refuses a file that it cannot read."""
        name = hashlib.sha256(service.encode()).hexdigest()[:32] + ".json"
        path = config_folder() / "known" / name
        try:
            with path.open("rb") as file:
                others_write = stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o022
                text = file.read()
        except FileNotFoundError:
            return cls(service, path)
        if others_write and os.name == "posix":
            raise _unreadable(path, service, "others than you may write to it (chmod 600 it if it is yours alone)")
        try:
            return cls._read(service, path, read_json(text))
        except (NotJson, KeyError, TypeError, ValueError, AttributeError):
            raise _unreadable(path, service, "it is damaged") from None

    @classmethod
    def _read(cls, service: str, path: Path, document: Any) -> Memory:
        if document["format"] != FORMAT or document["service"] != service:
            raise ValueError("another format, or another service")
        head, ledgers = document["head"], document["ledgers"].items()
        return cls(
            service,
            path,
            [
                (_bytes(base64.b64decode(key["public_key"], validate=True)), str(key["since"]))
                for key in document["keys"]
            ],
            None if head is None else TreeHead.of_json(head),
            str(document["head_since"]),
            {
                str(dataset): KnownLedger(whole(of["entries"]), _bytes(bytes.fromhex(of["hash"])), str(of["since"]))
                for dataset, of in ledgers
            },
        )

    @property
    def public_keys(self) -> list[bytes]:
        return [raw for raw, _ in self.keys]

    def pin(self, listed: tuple[PublicKey, ...]) -> None:
        """Keep the newest key that a service lists; the ones before it only where they lead to it."""
        newest = listed[-1].public_bytes
        if newest in self.public_keys:
            return
        follows = self.keys and listed[-1].id in trusted_keys([self.keys[-1][0]], listed)
        self.keys = [*(self.keys if follows else []), (newest, today())]

    def keep_head(self, head: TreeHead) -> None:
        """Keep the larger one of two heads that were found to follow each other."""
        if self.head is None or head.tree_size > self.head.tree_size:
            self.head, self.head_since = head, today()

    def keep_ledger(self, dataset_id: str, hashes: list[bytes]) -> None:
        """Keep what a dataset's ledger holds now."""
        known = self.ledgers.get(dataset_id)
        if hashes and (known is None or len(hashes) > known.entries):
            self.ledgers[dataset_id] = KnownLedger(len(hashes), hashes[-1], today())

    def save(self) -> None:
        """Whole or not at all, readable by this person alone."""
        document = {
            "format": FORMAT,
            "service": self.service,
            "keys": [{"public_key": base64.b64encode(raw).decode(), "since": since} for raw, since in self.keys],
            "head": None if self.head is None else self.head.to_json(),
            "head_since": self.head_since,
            "ledgers": {
                dataset: {"entries": of.entries, "hash": of.hash.hex(), "since": of.since}
                for dataset, of in self.ledgers.items()
            },
        }
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, unfinished = tempfile.mkstemp(dir=self.path.parent, prefix=".unfinished-")  # made with mode 0600
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(document, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            Path(unfinished).replace(self.path)
        finally:
            Path(unfinished).unlink(missing_ok=True)


def today() -> str:
    return dt.datetime.now(dt.UTC).date().isoformat()


def _bytes(raw: bytes) -> bytes:
    if len(raw) != HASH_BYTES or HASH_BYTES != KEY_BYTES:
        raise ValueError("not 32 bytes")
    return raw


def _unreadable(path: Path, service: str, why: str) -> Failure:
    return Failure(
        f"{path}, which holds the key and the head of {service} that you know from earlier, is not used: {why}. Put it"
        " back from a backup. Without one, remove it: the service is then trusted as at the first time, so"
        " compare its key with what its operator tells you by another way",
        Exit.FAILURE,
        "memory_unreadable",
    )
