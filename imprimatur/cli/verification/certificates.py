"""Certificates: each by itself, and one beside another. Needs no service."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import uuid
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from imprimatur.cli.verification.checks import Checks, Word
from imprimatur.cli.verification.documents import Certificate, path_of
from imprimatur.cli.verification.growth import check_dataset, check_log
from imprimatur.cli.verification.history import Kept, check_head, kept_heads, remember
from imprimatur.cli.verification.trust import Trust
from imprimatur.verify import chain, merkle
from imprimatur.verify.heads import TreeHead, whole
from imprimatur.verify.members import NOT_BOUND, NotAsCertified, check_bundle, is_bound
from imprimatur.verify.signatures import PublicKey, key_id, verify_signature

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from imprimatur.cli.target import Target
    from imprimatur.cli.verification.memory import Memory


def verify_certificates(
    paths: Sequence[Path],
    target: Target | None,
    known: Sequence[bytes],
    memory: Memory | None = None,
    named: TreeHead | None = None,
) -> Checks:
    """Each certificate by itself, and that no entry was rewritten between one and the next.

    Needs no service. With one, what certificates lack is fetched: its list of keys, and proofs, which prove themselves;
    and its log must follow the certificates, the named head, and what the memory holds of it.
    """
    certificates = [Certificate.read(path) for path in paths]
    keys = _Keys.of(certificates, target, known, memory)
    checks = Checks(keys.trust.word)
    if keys.trust.fault:
        checks.faults.append(keys.trust.fault)
        return checks
    for path, certificate in zip(paths, certificates, strict=True):
        own = Checks(keys.trust.word)
        _check_certificate(own, certificate, keys)
        _check_members(own, path, certificate)
        if target is not None:
            _compare_with_service(own, certificate.document, target)
        checks.add(own, f"{certificate.name}: " if len(certificates) > 1 else "")
    if target is not None:
        _check_log_of_service(checks, certificates, target, keys, kept_heads(memory, named))
    elif named is not None:
        checks.notes.append("the head you named was not compared: name the service with --url, which has the proof")
    _compare(checks, certificates, target)
    if memory is not None and not checks.faults:
        remember(memory, keys.trust, keys.lists[0], checks.head)
    return checks


def _compare(checks: Checks, certificates: list[Certificate], target: Target | None) -> None:
    """That no two contradict each other, and nothing was rewritten between one and the next."""
    for one, other in itertools.combinations(certificates, 2):
        _check_same_payment(checks, one, other)
    with_head = [certificate for certificate in certificates if certificate.head is not None]
    with_head.sort(key=lambda certificate: (certificate.tree_size, certificate.seq))
    for earlier, later in itertools.pairwise(with_head):
        check_log(checks, earlier, later, target)
    by_dataset: dict[str, list[Certificate]] = {}
    for certificate in with_head:
        by_dataset.setdefault(certificate.dataset_id, []).append(certificate)
    for of_dataset in by_dataset.values():
        for earlier, later in itertools.pairwise(of_dataset):
            check_dataset(checks, earlier, later, target)
    if len(certificates) > 1:
        checks.faults += [
            f"{certificate.name}: carries no tree head (it was made before the log): it cannot be compared"
            for certificate in certificates
            if certificate.head is None
        ]


@dataclass(frozen=True)
class _Keys:
    """Keys that certificates may be signed by, and what is known of their history."""

    trust: Trust
    lists: tuple[tuple[PublicKey, ...], ...]
    """Lists of all keys of a service, oldest first, as certificates and the service give them."""
    of_heads: frozenset[str]

    @classmethod
    def of(
        cls, certificates: Sequence[Certificate], target: Target | None, known: Sequence[bytes], memory: Memory | None
    ) -> _Keys:
        served = served_keys(target)
        listed = [key for certificate in certificates for key in certificate.keys]
        trust = Trust.of(known, memory, listed, served=served, service="" if target is None else target.url)
        heads = frozenset(c.head.key_id for c in certificates if c.head is not None)
        return cls(trust, (served, *(certificate.keys for certificate in certificates)), heads)

    def is_from_before_the_log(self, signer: str) -> bool | None:
        """Whether a key signed before there was a signing key file, which signs heads; None where no list has it.

        That key is listed first, is endorsed by none, and has the first key of the file after it.
        """
        lists = [keys for keys in self.lists if any(key.id == signer for key in keys)]
        if signer in self.of_heads:
            return False
        if not lists:
            return None
        return all(len(keys) > 1 and keys[0].id == signer and keys[0].endorsed_by is None for keys in lists)


def served_keys(target: Target | None) -> tuple[PublicKey, ...]:
    """The list of a service; empty where it cannot be had."""
    from imprimatur.client import Client
    from imprimatur.errors import ApiError

    if target is None:
        return ()
    try:
        with Client(target.url, target.key) as client:
            return tuple(PublicKey.of_json(key) for key in client.signing_keys())
    except (ApiError, KeyError, TypeError, ValueError):
        return ()


def _check_certificate(checks: Checks, certificate: Certificate, keys: _Keys) -> None:
    """Signature, key, entry, and place in the log."""
    document = certificate.document
    checks.expect(
        verify_signature(certificate.signed, document["signature"], document["public_key"]),
        f"signature of key {document['public_key']}",
        "the signature does not belong to this certificate: it was changed",
    )
    signer = key_id(certificate.public_bytes)
    trust = keys.trust
    if trust.keys:
        fault = f"key {signer} is not {trust.whose}, and no endorsement leads to it from one"
        checks.expect(signer in trust.keys, f"key {signer} is {trust.whose}, or endorsed by one", fault)
        checks.anchors += [trust.anchor] if trust.anchor else []
    else:
        checks.self_signed = True
        checks.notes.append(f"self-signed by key {signer}: no key is known to compare it with")
    kind = document["ledger_entry"].get("kind")
    checks.expect(kind == "post", "the entry it names is a charge", "the entry it names is not a charge")
    if certificate.head is None:
        _check_no_head(checks, document, signer, keys)
        return
    head, says = certificate.head, document["transparency"]
    checks.expect(
        head.key_id == signer and head.is_signed_by(certificate.public_bytes),
        f"head of the log of {head.tree_size} entries",
        "the head of the log is not signed by the certificate's key",
    )
    try:
        computed = _entry_hash(document)
        in_log = merkle.verify_inclusion(
            certificate.entry_hash,
            whole(says["inclusion"]["leaf_index"]),
            head.tree_size,
            path_of(says["inclusion"]["path"]),
            head.root_hash,
        )
        in_dataset = merkle.verify_inclusion(
            certificate.entry_hash,
            certificate.seq - 1,
            certificate.dataset_size,
            path_of(says["dataset"]["path"]),
            certificate.dataset_root,
        )
    except (KeyError, TypeError, ValueError):
        checks.faults.append("what it says of the log cannot be read")
        return
    checks.expect(
        computed == certificate.entry_hash,
        "the ledger entry's hash, computed again here",
        "the hash is not that of the ledger entry it names",
    )
    checks.expect(in_log, "the entry is in the log", "nothing proves that the entry is in the log")
    checks.expect(in_dataset, "the entry is in its dataset's ledger", "nothing proves that its dataset has the entry")


def _check_no_head(checks: Checks, document: dict[str, Any], signer: str, keys: _Keys) -> None:
    """A certificate may lack a head only if it was made before the log: of format 1, by the key of that time."""
    version, early = document.get("format"), keys.is_from_before_the_log(signer)
    if type(version) is not int or version != 1:
        checks.faults.append(
            "it carries no tree head, and is not of format 1: only those from before the log have none"
        )
    elif early is None:
        checks.notes.append(
            f"it carries no tree head: it was made before the log if key {signer} is that of this time; no list of the"
            " service's keys is here to tell. Name the service with --url, which has it"
        )
    else:
        checks.expect(
            early,
            "it carries no tree head: it was made before the log",
            f"it carries no tree head, and key {signer} is not the one from before the log",
        )


def _check_same_payment(checks: Checks, one: Certificate, other: Certificate) -> None:
    """One release has one certificate, and one entry pays for one."""
    if one.release_id == other.release_id:
        what = f"release {one.release_id}"
    elif (one.dataset_id, one.seq) == (other.dataset_id, other.seq):
        what = f"entry {one.seq} of dataset {one.dataset_id}"
    else:
        return
    if json.dumps(one.signed, sort_keys=True) != json.dumps(other.signed, sort_keys=True):
        checks.faults.append(f"{one.name}, {other.name}: two different certificates of {what}")


def _entry_hash(document: dict[str, Any]) -> bytes:
    """The hash of the ledger entry as the certificate describes it."""
    paid, more = document["ledger_entry"], document["transparency"]["entry"]
    return chain.entry_hash(
        dataset_id=uuid.UUID(document["dataset_id"]),
        seq=paid["seq"],
        release_id=uuid.UUID(document["release_id"]),
        kind=paid["kind"],
        simple=paid["shares"]["simple"],
        renyi=paid["shares"]["renyi"],
        created_at=dt.datetime.fromisoformat(more["created_at"]),
        previous_hash=bytes.fromhex(more["previous_hash"]),
    )


def _check_members(checks: Checks, path: Path, certificate: Certificate) -> None:
    """The other files of a ZIP, which certificates sign since format 3."""
    if not zipfile.is_zipfile(path):
        if is_bound(certificate.document):
            checks.notes.append(
                "the certificate alone: the files it signs were not looked at; give generator.zip for that"
            )
        return
    try:
        with path.open("rb") as file:
            check_bundle(file, certificate.document)
    except NotAsCertified as error:
        checks.faults.append(
            f"{error}. Do not use the ZIP: download it again, and if it is the same, tell the operator"
        )
        return
    if is_bound(certificate.document):
        checks.hold(
            f"the ZIP holds the {len(certificate.document['members'])} files that the certificate signs, and no other"
        )
    else:
        checks.notes.append(NOT_BOUND)


def _check_log_of_service(
    checks: Checks, certificates: Sequence[Certificate], target: Target, keys: _Keys, kept: list[Kept]
) -> None:
    """That the log as the service signs it now follows the certificates, and what was kept of it."""
    from imprimatur.client import Client
    from imprimatur.errors import ApiError

    word = keys.trust.word
    of_files = [Kept(c.head, f"the certificate {c.name}", word) for c in certificates if c.head is not None]
    if not of_files and not kept:
        return
    try:
        with Client(target.url, target.key) as client:
            check_head(checks, client, keys.trust, [*kept, *of_files])
    except ApiError as error:
        checks.faults.append(f"{target.url}: {error.detail}")


def _compare_with_service(checks: Checks, certificate: dict[str, Any], target: Target) -> None:
    """What the service says of the certificate today; it proves nothing, and a contradiction is a fault."""
    from imprimatur.client import Client
    from imprimatur.errors import ApiError

    try:
        with Client(target.url, target.key) as client:
            published = client.certificate(str(certificate.get("release_id")))
            entries = client.ledger(str(certificate.get("dataset_id")))["items"]
    except ApiError as error:
        checks.faults.append(f"{target.url}: {error.detail}")
        return
    same = published == certificate
    fault = f"{target.url} publishes another certificate"
    checks.expect(same, f"the certificate that {target.url} publishes", fault, Word.CONSISTENT)
    paid = certificate.get("ledger_entry", {})
    in_ledger = any((entry["seq"], entry["hash"]) == (paid.get("seq"), paid.get("hash")) for entry in entries)
    fault = "no entry of the ledger charges for this release"
    checks.expect(in_ledger, "charged by an entry of the ledger", fault, Word.CONSISTENT)
