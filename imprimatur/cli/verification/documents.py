"""Certificates and keys as people have them: files, and text that was pasted. Nothing is believed here."""

from __future__ import annotations

import base64
import uuid
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from imprimatur.cli.output import Exit, Failure
from imprimatur.verify.documents import NotJson, read_json
from imprimatur.verify.heads import TreeHead, whole
from imprimatur.verify.members import MOST_CERTIFICATE_BYTES, NotAsCertified, certificate_in
from imprimatur.verify.signatures import KEY_BYTES, UNSIGNED, PublicKey


@dataclass(frozen=True)
class Certificate:
    """What the checks need of a certificate. Nothing in it is believed before it is checked."""

    name: str
    document: dict[str, Any]
    public_bytes: bytes
    release_id: str
    dataset_id: str
    seq: int
    entry_hash: bytes
    head: TreeHead | None
    keys: tuple[PublicKey, ...]
    dataset_size: int
    dataset_root: bytes

    @classmethod
    def read(cls, path: Path) -> Certificate:
        document = read_certificate(path)
        if not isinstance(document.get("signature"), str) or not isinstance(document.get("public_key"), str):
            raise Failure(
                f"{path}: the certificate carries no signature and public key", Exit.BAD_INPUT, "invalid_input"
            )
        try:
            return cls._of(path.name, document)
        except (AttributeError, KeyError, TypeError, ValueError):
            raise Failure(f"{path}: the certificate cannot be read", Exit.BAD_INPUT, "invalid_input") from None

    @classmethod
    def _of(cls, name: str, document: dict[str, Any]) -> Certificate:
        paid, says = document["ledger_entry"], document.get("transparency")
        return cls(
            name,
            document,
            base64.b64decode(document["public_key"], validate=True),
            str(uuid.UUID(document["release_id"])),
            str(uuid.UUID(document["dataset_id"])),
            whole(paid["seq"]),
            bytes.fromhex(paid["hash"]),
            None if says is None else TreeHead.of_json(says["tree_head"]),
            () if says is None else tuple(PublicKey.of_json(key) for key in says["keys"]),
            0 if says is None else whole(says["dataset"]["tree_size"]),
            b"" if says is None else bytes.fromhex(says["dataset"]["root_hash"]),
        )

    @property
    def signed(self) -> dict[str, Any]:
        return {name: value for name, value in self.document.items() if name not in UNSIGNED}

    @property
    def tree_size(self) -> int:
        return 0 if self.head is None else self.head.tree_size

    def proof_from(self, tree_size: int) -> dict[str, Any] | None:
        """What it carries of its log having grown from that size."""
        proofs = self.document.get("consistency")
        listed = [p for p in proofs if isinstance(p, dict)] if isinstance(proofs, list) else []
        return next((p for p in listed if p.get("tree_size") == tree_size), None)


def path_of(hashes: Any) -> list[bytes]:
    return [bytes.fromhex(each) for each in hashes]


def path_or_none(proof: dict[str, Any] | None, name: str) -> list[bytes] | None:
    try:
        return None if proof is None else path_of(proof[name])
    except (KeyError, TypeError, ValueError):
        return None


def known_key(text: str) -> bytes:
    """A public key as base64, or a file that holds one."""
    path = Path(text)
    try:
        raw = base64.b64decode((_short_text(path) if path.is_file() else text).strip(), validate=True)
    except (OSError, ValueError):
        raw = b""
    if len(raw) != KEY_BYTES:
        raise Failure(
            f"{text} is not a public key: give 32 bytes in base64, as /v1/ledger/keys lists it, or a file that holds them",
            Exit.BAD_INPUT,
            "invalid_input",
        )
    return raw


def known_head(text: str) -> TreeHead:
    """A head of the log from before, as JSON or a file that holds it."""
    try:
        if not text.lstrip().startswith("{"):
            text = _short_text(Path(text))
        return TreeHead.of_json(read_json(text))
    except (OSError, KeyError, TypeError, ValueError):
        raise Failure(
            "--head is not a head of a log: give JSON as `imprimatur verify` shows it, or a file that holds it",
            Exit.BAD_INPUT,
            "invalid_input",
        ) from None


def read_certificate(path: Path) -> dict[str, Any]:
    """The certificate in a JSON file or in a generator ZIP, of which never more is unpacked than a certificate can have."""
    try:
        if zipfile.is_zipfile(path):
            with path.open("rb") as file:
                return certificate_in(file)
        document, why = read_json(_short_text(path)), ""
    except NotJson as error:
        document, why = None, f" (certificate: {error})"
    except NotAsCertified as error:
        why = f" ({error}); if it was downloaded as one, do not use it: download it again"
        document = None
    except ValueError:
        document, why = None, ""
    if not isinstance(document, dict):
        raise Failure(f"{path} is neither a certificate nor a generator ZIP{why}", Exit.BAD_INPUT, "invalid_input")
    return document


def _short_text(path: Path) -> str:
    """A file's text. Raises `ValueError` where it is longer than a certificate can be."""
    with path.open("rb") as file:
        content = file.read(MOST_CERTIFICATE_BYTES + 1)
    if len(content) > MOST_CERTIFICATE_BYTES:
        raise ValueError("too long")
    return content.decode()
