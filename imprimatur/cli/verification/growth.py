"""That the log, and a dataset's ledger, only grew from one certificate to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imprimatur.cli.verification.documents import path_of, path_or_none
from imprimatur.verify import merkle

if TYPE_CHECKING:
    from imprimatur.cli.target import Target
    from imprimatur.cli.verification.checks import Checks
    from imprimatur.cli.verification.documents import Certificate


def check_log(checks: Checks, earlier: Certificate, later: Certificate, target: Target | None) -> None:
    """Check that the later log begins with the earlier one."""
    if earlier.head is None or later.head is None:
        return
    names, first, second = f"{earlier.name} → {later.name}", earlier.tree_size, later.tree_size
    proof = {"path": []} if first == second else later.proof_from(first)
    path = path_or_none(proof, "path") or (_fetched(first, second, target) if first < second else [])
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


def check_dataset(checks: Checks, earlier: Certificate, later: Certificate, target: Target | None) -> None:
    """Check the same for the ledger of their dataset: a log that only grows may still hold a second history of it."""
    names, first, second = f"{earlier.name} → {later.name}", earlier.dataset_size, later.dataset_size
    proof = {"dataset_path": []} if earlier.tree_size == later.tree_size else later.proof_from(earlier.tree_size)
    path = path_or_none(proof, "dataset_path")
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
        f". Or a proof in {later.name} was changed, which is not signed: --url fetches it again, and then it is certain"
    )


def _fetched(first: int, second: int, target: Target | None) -> list[bytes] | None:
    """A proof from the service, which needs no trust: it proves itself or nothing."""
    from imprimatur.client import Client
    from imprimatur.errors import ApiError

    if target is None:
        return None
    try:
        with Client(target.url, target.key) as client:
            return path_of(client.consistency(first, second)["path"])
    except (ApiError, KeyError, TypeError, ValueError):
        return None


def _computed(dataset_id: str, first: int, second: int, target: Target | None) -> list[bytes] | None:
    """A proof made of the entries that the service lists."""
    from imprimatur.client import Client
    from imprimatur.errors import ApiError

    if target is None or first > second:
        return None
    try:
        with Client(target.url, target.key) as client:
            hashes = [bytes.fromhex(entry["hash"]) for entry in client.ledger(dataset_id)["items"]]
        own = merkle.nodes_of(hashes[:second])
        return [merkle.range_hash(each, own) for each in merkle.consistency_ranges(first, second)]
    except (ApiError, KeyError, TypeError, ValueError):
        return None
