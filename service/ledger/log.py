"""The Merkle log over all entries of the service: grow it, sign its heads, prove what is in it.

Entries get their place after they are committed (`merkle_integrate` of migration 0009, in a transaction of its own).
A proof reads a few dozen nodes, whatever the size of the log.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from imprimatur.verify import merkle
from imprimatur.verify.chain import verify_ledger
from imprimatur.verify.heads import TreeHead
from service.base.errors import InvalidInput, NotFound, Tampered
from service.ledger import repository, signing_keys
from service.platform.database import database_time
from service.platform.signing import NoSigningKey

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from service.ledger.models import LedgerEntry
    from service.platform.context import Context
    from service.platform.signing import SigningKey

CONSISTENCY_PROOFS = 256
"""So many earlier certificates of its dataset a certificate is proved to follow; each takes about a kilobyte."""


@dataclass(frozen=True, slots=True)
class Inclusion:
    """The place of an entry in a log of a given size, and the path that proves it."""

    seq: int
    leaf_index: int
    path: list[bytes]


def sign_head(context: Context) -> TreeHead:
    """Give new entries their place and sign the log as it is now; the newest signed head where nothing has changed."""
    with context.transaction() as session:
        size = int(session.execute(text("SELECT public.merkle_integrate()")).scalar_one())
    with context.transaction() as session:
        return _signed_head(session, signing_keys.current(session, context.settings), size)


def transparency(context: Context, key: SigningKey, posted: LedgerEntry) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What a certificate says of the log: a signed head and the proof of its entry; and, apart, that the log only grew.

    The dataset's own entries are a tree as well: a log that only grows could still be given a second history of a
    dataset at its end. The second part proves that both trees follow those of the dataset's earlier certificates.
    Refuses where the database contradicts itself: nothing is certified from a ledger that was changed.
    """
    dataset = posted.dataset_id
    with context.transaction() as session:
        certify = text("SELECT tree_size, entry_count FROM public.merkle_certify(:dataset)")
        size, count = session.execute(certify, {"dataset": dataset}).one()
    with context.snapshot() as session:
        own = merkle.nodes_of(_untouched(session, dataset)[:count])
    with context.transaction() as session:
        head = _signed_head(session, key, size)
        (proof,) = inclusions(session, dataset, size, seqs=[posted.seq])
        if not merkle.verify_inclusion(bytes(posted.hash), proof.leaf_index, size, proof.path, head.root_hash):
            raise Tampered("the log does not hold the entry that paid for this release")
        earlier = session.execute(
            text(
                "SELECT tree_size, entry_count FROM merkle_certified WHERE dataset_id = :dataset AND tree_size < :size"
                " ORDER BY tree_size DESC LIMIT :most"
            ),
            {"dataset": dataset, "size": size, "most": CONSISTENCY_PROOFS},
        ).all()
        paths = consistencies(session, [row.tree_size for row in earlier], size)
        keys = [each.to_json() for each in signing_keys.registered(session)]
    consistency = [
        {
            "tree_size": row.tree_size,
            "path": hexadecimal(path),
            "dataset_path": hexadecimal(
                merkle.range_hash(each, own) for each in merkle.consistency_ranges(row.entry_count, count)
            ),
        }
        for row, path in zip(earlier, paths, strict=True)
    ]
    own_path = [merkle.range_hash(each, own) for each in merkle.inclusion_ranges(posted.seq - 1, count)]
    signed = {
        "tree_head": head.to_json(),
        "entry": {
            "created_at": posted.created_at.astimezone(dt.UTC).isoformat(timespec="microseconds"),
            "previous_hash": bytes(posted.previous_hash).hex(),
        },
        "inclusion": {"leaf_index": proof.leaf_index, "path": hexadecimal(proof.path)},
        "dataset": {
            "tree_size": count,
            "root_hash": merkle.range_hash((0, count), own).hex(),
            "path": hexadecimal(own_path),
        },
        "keys": keys,
    }
    return signed, consistency


def newest_head(session: Session) -> TreeHead:
    """The largest signed head of the newest key that signed one."""
    row = session.execute(
        text(
            "SELECT h.* FROM tree_heads h JOIN signing_keys k ON k.id = h.key_id"
            " ORDER BY h.tree_size DESC, k.number DESC LIMIT 1"
        )
    ).one_or_none()
    if row is None:
        raise NotFound("no tree head has been signed yet; the relay signs one within seconds")
    return _head(row)


def inclusions(
    session: Session,
    dataset_id: uuid.UUID,
    size: int,
    seqs: Iterable[int] | None = None,
    *,
    before: int | None = None,
    limit: int | None = None,
) -> list[Inclusion]:
    """Proofs for the dataset's entries, or for some of them, that are among the first `size` of the log, in order.

    limit: so many of the newest; of those before entry number `before`.
    """
    wanted = None if seqs is None else list(seqs)
    rows = session.execute(
        text(
            "SELECT seq, leaf_index FROM merkle_leaves WHERE dataset_id = :dataset AND leaf_index < :size"
            " AND (cast(:seqs AS bigint[]) IS NULL OR seq = ANY (:seqs))"
            " AND (cast(:before AS bigint) IS NULL OR seq < :before) ORDER BY seq DESC LIMIT cast(:limit AS bigint)"
        ),
        {"dataset": dataset_id, "size": size, "seqs": wanted, "before": before, "limit": limit},
    ).all()[::-1]
    if wanted is not None and len(rows) != len(set(wanted)):
        raise NotFound("there is no such entry among those of this tree size")
    paths = _roots(session, [merkle.inclusion_ranges(row.leaf_index, size) for row in rows])
    return [Inclusion(row.seq, row.leaf_index, path) for row, path in zip(rows, paths, strict=True)]


def consistencies(session: Session, firsts: Sequence[int], second: int) -> list[list[bytes]]:
    """Proofs that the log of `second` entries begins with each of the earlier ones."""
    return _roots(session, [merkle.consistency_ranges(first, second) for first in firsts])


def require_size(session: Session, size: int) -> int:
    """The size, if the log has been as large."""
    largest = int(session.scalar(text("SELECT coalesce(max(leaf_index) + 1, 0) FROM merkle_leaves")) or 0)
    if not 0 <= size <= largest:
        raise InvalidInput(f"the log has {largest} entries", where="tree_size")
    return size


def require_own(session: Session, tenant_id: uuid.UUID, dataset_id: uuid.UUID) -> None:
    """Another tenant's dataset looks like none."""
    own = text("SELECT 1 FROM datasets WHERE id = :dataset AND tenant_id = :tenant")
    if session.scalar(own, {"dataset": dataset_id, "tenant": tenant_id}) is None:
        raise NotFound("no such dataset")


def hexadecimal(path: Iterable[bytes]) -> list[str]:
    """The hashes of a path as JSON has them."""
    return [each.hex() for each in path]


def _signed_head(session: Session, key: SigningKey, size: int) -> TreeHead:
    """The kept head of this size and key, signed now where there is none. There is never a second one."""
    ((root,),) = _roots(session, [[(0, size)]])
    head = TreeHead.sign(
        key, tree_size=size, timestamp_ms=int(1_000 * database_time(session).timestamp()), root_hash=root
    )
    keep = text(
        "INSERT INTO tree_heads (tree_size, key_id, timestamp_ms, root_hash, signature)"
        " VALUES (:tree_size, :key_id, :timestamp_ms, :root_hash, :signature) ON CONFLICT DO NOTHING"
    )
    try:
        session.execute(keep, {name: getattr(head, name) for name in TreeHead.__dataclass_fields__})
    except IntegrityError:  # the trigger tree_heads_are_possible: the key was replaced since it was read
        raise NoSigningKey("The signing key was replaced just now; the new one signs at the next try.") from None
    kept = session.execute(
        text("SELECT * FROM tree_heads WHERE tree_size = :size AND key_id = :key"), {"size": size, "key": key.id}
    ).one()
    if bytes(kept.root_hash) != root or not _head(kept).is_signed_by(key.public_bytes):
        raise Tampered("the log is not what an earlier signed head says it was")
    return _head(kept)


def _untouched(session: Session, dataset_id: uuid.UUID) -> list[bytes]:
    """Hashes of the dataset's entries, whose chain, balance and leaves tell the same story."""
    entries = repository.entries_of_dataset(session, dataset_id)
    faults = verify_ledger(entries, repository.read_balance(session, dataset_id))
    other = session.scalar(
        text(
            "SELECT count(*) FROM merkle_leaves l"
            " LEFT JOIN ledger_entries e ON (e.dataset_id, e.seq) = (l.dataset_id, l.seq)"
            " LEFT JOIN merkle_nodes n ON (n.level, n.place) = (0, l.leaf_index)"
            " WHERE l.dataset_id = :dataset AND sha256('\\x00'::bytea || e.hash) IS DISTINCT FROM n.hash"
        ),
        {"dataset": dataset_id},
    )
    if faults or other:
        raise Tampered("the ledger of this dataset was changed; nothing is certified from it")
    return [bytes(entry.hash) for entry in entries]


def _roots(session: Session, wanted: Sequence[Sequence[merkle.Range]]) -> list[list[bytes]]:
    """The roots of ranges, all nodes they need fetched at once."""
    nodes = {node for ranges in wanted for each in ranges for node in merkle.subtrees(each)}
    known = _read_nodes(session, nodes) if nodes else {}
    missing = nodes - set(known)
    if missing:
        raise Tampered(f"the log lacks {len(missing)} of its nodes")
    return [[merkle.range_hash(each, known) for each in ranges] for ranges in wanted]


def _read_nodes(session: Session, nodes: set[merkle.Node]) -> Mapping[merkle.Node, bytes]:
    rows = session.execute(
        text(
            "SELECT n.level, n.place, n.hash"
            " FROM unnest(cast(:levels AS smallint[]), cast(:places AS bigint[])) AS wanted (level, place)"
            " JOIN merkle_nodes n USING (level, place)"
        ),
        {"levels": [level for level, _ in nodes], "places": [place for _, place in nodes]},
    )
    return {(row.level, row.place): bytes(row.hash) for row in rows}


def _head(row: Any) -> TreeHead:
    return TreeHead(row.tree_size, row.timestamp_ms, bytes(row.root_hash), row.key_id, bytes(row.signature))
