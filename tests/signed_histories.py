"""Certificates that a service's own key signed, with the log they belong to: a few entries of one dataset, no database."""

import datetime as dt
import uuid

from imprimatur.verify import chain, merkle
from imprimatur.verify.heads import TreeHead
from imprimatur.verify.signatures import UNSIGNED, PublicKey
from service.platform.signing import SigningKey

EARLY, KEY, LATER = (SigningKey(bytes([number]) * 32) for number in range(3))
KEYS = [
    PublicKey(EARLY.id, EARLY.public_bytes),
    PublicKey(KEY.id, KEY.public_bytes, EARLY.id, EARLY.endorse(KEY.public_bytes)),
    PublicKey(LATER.id, LATER.public_bytes, KEY.id, KEY.endorse(LATER.public_bytes)),
]
DATASET = str(uuid.uuid4())


def signed(document, key=KEY, **unsigned):
    document = {name: value for name, value in document.items() if name not in UNSIGNED}
    return {"consistency": [], **document, **unsigned, "public_key": key.public_key, "signature": key.sign(document)}


def history(*kinds):
    """A certificate for each entry of a log with one dataset, each with the log that ends there; all of them verify."""
    made, hashes, previous = [], [], bytes(32)
    for seq, kind in enumerate(kinds, 1):
        release, created = uuid.uuid4(), dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=seq)
        entry = {"dataset_id": uuid.UUID(DATASET), "seq": seq, "release_id": release, "kind": kind}
        hashed = chain.entry_hash(**entry, simple=1, renyi=1, created_at=created, previous_hash=previous)
        hashes.append(hashed)
        nodes = merkle.nodes_of(hashes)
        root = merkle.range_hash((0, seq), nodes)
        path = [merkle.range_hash(each, nodes).hex() for each in merkle.inclusion_ranges(seq - 1, seq)]
        document = {
            "format": 2,
            "release_id": str(release),
            "dataset_id": DATASET,
            "epsilon": 3.0,
            "ledger_entry": {"seq": seq, "kind": kind, "shares": {"simple": 1, "renyi": 1}, "hash": hashed.hex()},
            "transparency": {
                "tree_head": TreeHead.sign(KEY, tree_size=seq, timestamp_ms=seq, root_hash=root).to_json(),
                "entry": {
                    "created_at": created.isoformat(timespec="microseconds"),
                    "previous_hash": previous.hex(),
                },
                "inclusion": {"leaf_index": seq - 1, "path": path},
                "dataset": {"tree_size": seq, "root_hash": root.hex(), "path": path},
                "keys": [key.to_json() for key in KEYS],
            },
        }
        proofs = []
        for first in range(1, seq):
            proof = [merkle.range_hash(each, nodes).hex() for each in merkle.consistency_ranges(first, seq)]
            proofs.append({"tree_size": first, "path": proof, "dataset_path": proof})
        made.append(signed(document, consistency=proofs))
        previous = hashed
    return made
