"""Checks that need no trust in the service: the ledger's hash chain and a certificate's signature."""

from __future__ import annotations

import datetime as dt
import json
import uuid
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from service.cli.output import Exit, Failure
from service.ledger import chain

if TYPE_CHECKING:
    from service.cli.connection import Target
    from service.client import Client, Entry, LedgerBalance


@dataclass
class Checks:
    """What was checked and held, and what did not."""

    passed: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    @property
    def verified(self) -> bool:
        return not self.faults

    def expect(self, held: bool, passed: str, fault: str) -> None:
        """Note one check."""
        (self.passed if held else self.faults).append(passed if held else fault)


@dataclass(frozen=True)
class _Entry:
    dataset_id: uuid.UUID
    seq: int
    release_id: uuid.UUID
    kind: str
    simple: int
    renyi: int
    created_at: dt.datetime
    previous_hash: bytes
    hash: bytes

    @classmethod
    def of(cls, dataset_id: str, entry: Entry) -> _Entry:
        return cls(
            uuid.UUID(dataset_id),
            entry["seq"],
            uuid.UUID(entry["release_id"]),
            entry["kind"],
            entry["simple"],
            entry["renyi"],
            dt.datetime.fromisoformat(entry["created_at"]),
            bytes.fromhex(entry["previous_hash"]),
            bytes.fromhex(entry["hash"]),
        )


@dataclass(frozen=True)
class _Balance:
    simple_pending: int
    simple_posted: int
    renyi_pending: int
    renyi_posted: int
    entry_count: int
    head_hash: bytes

    @classmethod
    def of(cls, balance: LedgerBalance) -> _Balance:
        return cls(
            balance["simple_pending"],
            balance["simple_posted"],
            balance["renyi_pending"],
            balance["renyi_posted"],
            balance["entry_count"],
            bytes.fromhex(balance["head_hash"]),
        )


def verify_ledger(client: Client, dataset_id: str) -> Checks:
    """Compute every hash again, add the entries up again, and look for the entries that certificates name.

    Certificates are signed and in other people's hands: a history that was rewritten as a whole, balance included,
    still lacks what they name.
    """
    releases = client.releases(dataset_id)
    ledger = client.ledger(dataset_id)
    entries = [_Entry.of(dataset_id, entry) for entry in ledger["items"]]
    checks = Checks()
    faults = chain.verify_ledger(entries, _Balance.of(ledger["balance"]))
    checks.faults += faults
    if not faults:
        checks.passed += [
            f"hash chain of {len(entries)} entries, computed again here",
            "entries add up to the balances",
        ]
    fault = f"the service's own check fails: {'; '.join(ledger['faults'])}"
    checks.expect(ledger["verified"], "the service's own check", fault)
    hashes = {entry.seq: entry.hash.hex() for entry in entries}
    named = [certificate["ledger_entry"] for release in releases if (certificate := release["certificate"]) is not None]
    lost = [str(entry["seq"]) for entry in named if hashes.get(entry["seq"]) != entry["hash"]]
    checks.expect(
        not lost,
        f"the entries that {len(named)} certificates name",
        f"certificates name entries that the ledger does not hold as they were: {', '.join(lost)}",
    )
    return checks


def verify_certificate(path: Path, target: Target | None) -> Checks:
    """The signature with the key the certificate names; with a service, that it is the service's own certificate."""
    from service.crypto import verify_signature

    certificate = read_certificate(path)
    checks = Checks()
    signed = {name: value for name, value in certificate.items() if name not in {"signature", "public_key"}}
    signature, public_key = certificate.get("signature"), certificate.get("public_key")
    if not isinstance(signature, str) or not isinstance(public_key, str):
        raise Failure(f"{path}: the certificate carries no signature and public key", Exit.BAD_INPUT, "invalid_input")
    checks.expect(
        verify_signature(signed, signature, public_key),
        f"signature of key {public_key}",
        "the signature does not belong to this certificate: it was changed",
    )
    if target is not None:
        _compare_with_service(checks, certificate, target)
    return checks


def read_certificate(path: Path) -> dict[str, Any]:
    """The certificate in a JSON file or in a generator ZIP."""
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                text = archive.read("certificate.json").decode()
        else:
            text = path.read_text(encoding="utf-8")
        document = json.loads(text)
    except (KeyError, ValueError, zipfile.BadZipFile):
        document = None
    if not isinstance(document, dict):
        raise Failure(f"{path} is neither a certificate nor a generator ZIP", Exit.BAD_INPUT, "invalid_input")
    return document


def _compare_with_service(checks: Checks, certificate: dict[str, Any], target: Target) -> None:
    from service.client import ApiError, Client

    try:
        with Client(target.url, target.key) as client:
            published = client.certificate(str(certificate.get("release_id")))
            entries = client.ledger(str(certificate.get("dataset_id")))["items"]
    except ApiError as error:
        checks.faults.append(f"{target.url}: {error.detail}")
        return
    same = published == certificate
    checks.expect(same, f"the certificate that {target.url} publishes", f"{target.url} publishes another certificate")
    paid = certificate.get("ledger_entry", {})
    in_ledger = any((entry["seq"], entry["hash"]) == (paid.get("seq"), paid.get("hash")) for entry in entries)
    checks.expect(in_ledger, "paid by an entry of the ledger", "no entry of the ledger paid for this release")
