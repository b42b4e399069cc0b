"""What a sample is asked for besides its size, and rows to be completed, as the API takes them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, cast

if TYPE_CHECKING:
    from imprimatur.replies import SampleFormat
    from imprimatur.transport import Transport

Where = Mapping[str, Any] | str | Sequence[str]
"""`{"sex": "f", "age": {"minimum": 65}, "rank": [1, 2]}`, or `"age>=65&sex=f"`, or several texts."""
Weights = Mapping[str, Mapping[str, float] | str]
"""`{"income": {">50K": 0.5, "<=50K": 0.5}}` or `{"sex": "uniform"}`."""
Rows = TypeVar("Rows", list[dict[str, Any]], bytes)


class Asked(TypedDict, total=False):
    """What a sample is asked for besides its size."""

    format: SampleFormat | None
    where: Where | None
    weights: Weights | None
    seed: int | None


PARQUET, JSONL, CSV = "application/vnd.apache.parquet", "application/x-ndjson", "text/csv"
TYPES = {"csv": CSV, "jsonl": JSONL, "ndjson": JSONL, "parquet": PARQUET, "pq": PARQUET}
"""Of rows to be completed, by the ending of their file."""


def conditions_query(where: Where | None, weights: Weights | None) -> dict[str, Any]:
    """The query of a sample with these."""
    query: dict[str, Any] = {}
    if where:
        query["where"] = (
            where if isinstance(where, str) else to_json(where) if isinstance(where, Mapping) else list(where)
        )
    if weights:
        query["weights"] = to_json(weights)
    return query


def to_json(document: Any) -> str:
    """JSON, also of numbers of numpy, of dates and of sets."""
    return json.dumps(document, ensure_ascii=False, default=_plain)


def complete(transport: Transport, release_id: str, rows: Rows, seed: int | None) -> Rows:
    """The rows completed, as they came."""
    if isinstance(rows, bytes):
        return complete_bytes(transport, release_id, rows, _type_of(rows), seed)
    sent = "".join(to_json(dict(row)) + "\n" for row in rows).encode()
    reply = complete_bytes(transport, release_id, sent, JSONL, seed)
    return cast("Rows", [json.loads(line) for line in reply.splitlines()])


def complete_bytes(transport: Transport, release_id: str, content: bytes, media_type: str, seed: int | None) -> bytes:
    """A file completed, in its own format, every text as it is."""
    query = {"formulas": "keep"} | ({} if seed is None else {"seed": str(seed)})
    path = f"/v1/releases/{release_id}/complete"
    reply = transport.send(
        "POST", path, repeat=True, params=query, content=content, headers={"Content-Type": media_type}
    )
    return reply.content


def _type_of(content: bytes) -> str:
    if content.startswith(b"PAR1"):
        return PARQUET
    return JSONL if content.lstrip().startswith(b"{") else CSV


def _plain(value: Any) -> Any:
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)
    return value.item() if hasattr(value, "item") else str(value)
