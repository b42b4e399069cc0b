"""Checks that need no trust in the service: hash chains, signatures, and proofs of the Merkle log."""

from __future__ import annotations

import base64
import datetime as dt
import itertools
import json
import uuid
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from service.base.errors import InvalidInput
from service.base.text import read_json
from service.cli.output import Exit, Failure
from service.ledger import chain, merkle
from service.ledger.heads import TreeHead, whole
from service.platform.crypto import KEY_BYTES
from service.platform.signing import UNSIGNED, PublicKey, key_id, trusted_keys, verify_signature

if TYPE_CHECKING:
    from collections.abc import Sequence

    from imprimatur.client import Client, Entry, LedgerBalance
    from service.cli.connection import Target


MOST_HEADS = 100
"""Proofs from the service are counted by address; heads of the newest certificates are enough for one look."""
LATE_MS = 60_000
"""An entry that is this much older than a signed head, and not in its log, is kept out of it."""


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


def verify_in_log(client: Client, dataset_id: str, known: Sequence[bytes]) -> Checks:
    """That every entry of a dataset is in the log whose head is signed, where certificates say it is.

    Without a known key, the service's own list of keys is believed: a head by itself says little, but two heads, or a
    head and a certificate from another day, cannot both be true of a log that was rewritten.
    """
    checks = Checks()
    releases = client.releases(dataset_id)
    entries = [_Entry.of(dataset_id, entry) for entry in client.ledger(dataset_id)["items"]]
    listed = [PublicKey.of_json(key) for key in client.signing_keys()]
    trusted = trusted_keys(known or [key.public_bytes for key in listed], listed)
    head = TreeHead.of_json(client.tree_head())
    signer = trusted.get(head.key_id)
    if signer is None or not head.is_signed_by(signer):
        checks.faults.append("the head of the log is not signed by a key you know")
        return checks
    checks.passed.append(f"head of the log of {head.tree_size} entries, signed by key {head.key_id}")
    reply = client.inclusion(dataset_id, head.tree_size)
    proofs = {item["seq"]: item for item in reply["items"]}
    in_log = [entry for entry in entries if entry.seq in proofs]
    for entry in in_log:
        proof = proofs[entry.seq]
        if not merkle.verify_inclusion(
            entry.hash, proof["leaf_index"], head.tree_size, _path(proof["path"]), head.root_hash
        ):
            checks.faults.append(f"entry {entry.seq} is not in the log as it is in the ledger: it was changed")
    if not checks.faults:
        newer = "" if len(in_log) == len(entries) else ", the others are newer"
        checks.passed.append(f"{len(in_log)} of {len(entries)} entries are in it{newer}")
    late = [
        str(entry.seq)
        for entry in entries
        if entry.seq not in proofs and head.timestamp_ms - entry.created_at.timestamp() * 1_000 > LATE_MS
    ]
    checks.expect(not late, "no entry is kept out of the log", f"entries are kept out of the log: {', '.join(late)}")
    certificates = [c for release in releases if (c := release["certificate"]) is not None and "transparency" in c]
    moved = [
        str(c["ledger_entry"]["seq"])
        for c in certificates
        if proofs.get(c["ledger_entry"]["seq"], {}).get("leaf_index") != c["transparency"]["inclusion"]["leaf_index"]
    ]
    checks.expect(
        not moved,
        f"{len(certificates)} certificates name the places of their entries",
        f"certificates name other places in the log for entries: {', '.join(moved)}",
    )
    newest = certificates[:MOST_HEADS]
    torn = [str(c["ledger_entry"]["seq"]) for c in newest if not _follows(client, c, head)]
    checks.expect(
        not torn,
        f"the log only grew since {len(newest)} certificates",
        f"the log was REWRITTEN since certificates of entries {', '.join(torn)}",
    )
    return checks


def _follows(client: Client, certificate: dict[str, Any], head: TreeHead) -> bool:
    """Whether the log of this head begins with that of the certificate."""
    earlier = TreeHead.of_json(certificate["transparency"]["tree_head"])
    first, second = earlier.tree_size, head.tree_size
    path = _path(client.consistency(first, second)["path"]) if first < second else []
    return merkle.verify_consistency(first, second, path, earlier.root_hash, head.root_hash)


def verify_certificates(paths: Sequence[Path], target: Target | None, known: Sequence[bytes]) -> Checks:
    """Each certificate by itself, and that no entry was rewritten between one and the next.

    Needs no service. With one, what certificates lack is fetched: its list of keys, and proofs, which prove themselves.
    """
    checks = Checks()
    certificates = [Certificate.read(path) for path in paths]
    keys = _Keys.of(certificates, target, known)
    for certificate in certificates:
        own = Checks()
        _check_certificate(own, certificate, keys)
        if target is not None:
            _compare_with_service(own, certificate.document, target)
        label = f"{certificate.name}: " if len(certificates) > 1 else ""
        checks.passed += [label + text for text in own.passed]
        checks.faults += [label + text for text in own.faults]
    for one, other in itertools.combinations(certificates, 2):
        _check_same_payment(checks, one, other)
    with_head = [certificate for certificate in certificates if certificate.head is not None]
    with_head.sort(key=lambda certificate: (certificate.tree_size, certificate.seq))
    for earlier, later in itertools.pairwise(with_head):
        _check_log(checks, earlier, later, target)
    by_dataset: dict[str, list[Certificate]] = {}
    for certificate in with_head:
        by_dataset.setdefault(certificate.dataset_id, []).append(certificate)
    for of_dataset in by_dataset.values():
        for earlier, later in itertools.pairwise(of_dataset):
            _check_dataset(checks, earlier, later, target)
    if len(certificates) > 1:
        checks.faults += [
            f"{certificate.name}: carries no tree head (it was made before the log): it cannot be compared"
            for certificate in certificates
            if certificate.head is None
        ]
    return checks


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


@dataclass(frozen=True)
class _Keys:
    """Keys that certificates may be signed by, on whose word, and what is known of their history."""

    trusted: dict[str, bytes]
    whose: str
    lists: tuple[tuple[PublicKey, ...], ...]
    """Lists of all keys of a service, oldest first, as certificates and the service give them."""
    of_heads: frozenset[str]

    @classmethod
    def of(cls, certificates: Sequence[Certificate], target: Target | None, known: Sequence[bytes]) -> _Keys:
        served = _served_keys(target)
        if known:
            listed = [key for certificate in certificates for key in certificate.keys]
            trusted, whose = trusted_keys(known, listed), "a key you named"
        else:
            trusted = {key.id: key.public_bytes for key in served}
            whose = "" if target is None else f"a key of {target.url}"
        heads = frozenset(c.head.key_id for c in certificates if c.head is not None)
        return cls(trusted, whose, (served, *(certificate.keys for certificate in certificates)), heads)

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


def _served_keys(target: Target | None) -> tuple[PublicKey, ...]:
    """The list of a service; empty where it cannot be had."""
    from imprimatur.client import ApiError, Client

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
    if keys.trusted:
        fault = f"key {signer} is not {keys.whose}, and no endorsement leads to it from one"
        checks.expect(signer in keys.trusted, f"key {signer} is {keys.whose}, or endorsed by one", fault)
    else:
        checks.faults.append(
            f"self-signed by key {signer}: anybody can make a key. Give the service's with --public-key, or --url"
        )
    kind = document["ledger_entry"].get("kind")
    checks.expect(kind == "post", "the entry it names is a charge", "the entry it names is no charge: it paid nothing")
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
            _path(says["inclusion"]["path"]),
            head.root_hash,
        )
        in_dataset = merkle.verify_inclusion(
            certificate.entry_hash,
            certificate.seq - 1,
            certificate.dataset_size,
            _path(says["dataset"]["path"]),
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
        checks.passed.append(
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


def _check_log(checks: Checks, earlier: Certificate, later: Certificate, target: Target | None) -> None:
    """That the later log begins with the earlier one."""
    if earlier.head is None or later.head is None:
        return
    names, first, second = f"{earlier.name} → {later.name}", earlier.tree_size, later.tree_size
    proof = {"path": []} if first == second else later.proof_from(first)
    path = _path_or_none(proof, "path") or (_fetched(first, second, target) if first < second else [])
    if path is None:
        checks.faults.append(
            f"{names}: {later.name} carries no proof from {first} to {second} entries: it is not known whether the log"
            " was rewritten between them. Name the service with --url, which has the proof"
        )
        return
    checks.expect(
        merkle.verify_consistency(first, second, path, earlier.head.root_hash, later.head.root_hash),
        f"{names}: the log only grew, from {first} to {second} entries",
        f"{names}: the log was REWRITTEN: that of {second} entries does not begin with that of {first}"
        f"{_unless_altered(later, first != second)}",
    )


def _check_dataset(checks: Checks, earlier: Certificate, later: Certificate, target: Target | None) -> None:
    """The same for the ledger of their dataset: a log that only grows may still hold a second history of it."""
    names, first, second = f"{earlier.name} → {later.name}", earlier.dataset_size, later.dataset_size
    proof = {"dataset_path": []} if earlier.tree_size == later.tree_size else later.proof_from(earlier.tree_size)
    path = _path_or_none(proof, "dataset_path")
    if path is None:
        path = _computed(later.dataset_id, first, second, target)
    if path is None:
        checks.faults.append(
            f"{names}: {later.name} carries no proof that its dataset's ledger follows. Name the service with --url"
        )
        return
    checks.expect(
        merkle.verify_consistency(first, second, path, earlier.dataset_root, later.dataset_root),
        f"{names}: the dataset's ledger only grew, from {first} to {second} entries",
        f"{names}: the dataset's ledger was REWRITTEN: the {second} entries do not begin with the {first}"
        f"{_unless_altered(later, earlier.tree_size != later.tree_size)}",
    )


def _unless_altered(later: Certificate, by_a_proof: bool) -> str:
    """Proofs beside a certificate are not signed: anybody who had the file could have changed them."""
    if not by_a_proof:
        return ""
    return (
        f". Or a proof in {later.name} was changed, which is not signed: --url fetches it anew, and then it is certain"
    )


def _fetched(first: int, second: int, target: Target | None) -> list[bytes] | None:
    """A proof from the service, which needs no trust: it proves itself or nothing."""
    from imprimatur.client import ApiError, Client

    if target is None:
        return None
    try:
        with Client(target.url, target.key) as client:
            return _path(client.consistency(first, second)["path"])
    except (ApiError, KeyError, TypeError, ValueError):
        return None


def _computed(dataset_id: str, first: int, second: int, target: Target | None) -> list[bytes] | None:
    """A proof made of the entries that the service lists."""
    from imprimatur.client import ApiError, Client

    if target is None or first > second:
        return None
    try:
        with Client(target.url, target.key) as client:
            hashes = [bytes.fromhex(entry["hash"]) for entry in client.ledger(dataset_id)["items"]]
        own = merkle.nodes_of(hashes[:second])
        return [merkle.range_hash(each, own) for each in merkle.consistency_ranges(first, second)]
    except (ApiError, KeyError, TypeError, ValueError):
        return None


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


def _path(hashes: Any) -> list[bytes]:
    return [bytes.fromhex(each) for each in hashes]


def _path_or_none(proof: dict[str, Any] | None, name: str) -> list[bytes] | None:
    try:
        return None if proof is None else _path(proof[name])
    except (KeyError, TypeError, ValueError):
        return None


def known_key(text: str) -> bytes:
    """A public key as base64, or a file that holds one."""
    path = Path(text)
    try:
        raw = base64.b64decode((path.read_text("utf-8") if path.is_file() else text).strip(), validate=True)
    except (OSError, ValueError):
        raw = b""
    if len(raw) != KEY_BYTES:
        raise Failure(
            f"{text} is no public key: 32 bytes in base64, as /v1/ledger/keys lists it, or a file that holds them",
            Exit.BAD_INPUT,
            "invalid_input",
        )
    return raw


def read_certificate(path: Path) -> dict[str, Any]:
    """The certificate in a JSON file or in a generator ZIP."""
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                text = archive.read("certificate.json").decode()
        else:
            text = path.read_text(encoding="utf-8")
        document, why = read_json(text, "certificate"), ""
    except InvalidInput as error:
        document, why = None, f" ({error.detail})"
    except (KeyError, ValueError, zipfile.BadZipFile):
        document, why = None, ""
    if not isinstance(document, dict):
        raise Failure(f"{path} is neither a certificate nor a generator ZIP{why}", Exit.BAD_INPUT, "invalid_input")
    return document


def _compare_with_service(checks: Checks, certificate: dict[str, Any], target: Target) -> None:
    from imprimatur.client import ApiError, Client

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
