"""Names and beginnings of ids, where a dataset or a release is meant."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from imprimatur.errors import AmbiguousName, NotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

SHORTEST_PREFIX = 4
_PREFIX = re.compile(r"[0-9a-f]{4}[0-9a-f-]*\Z")
_SHOWN = 10


def whole_id(named: object) -> str | None:
    """The id, where it is given whole or by what the service answered; None: it has to be looked for."""
    if isinstance(named, Mapping):
        return str(named["id"])
    if isinstance(named, uuid.UUID):
        return str(named)
    try:
        return str(uuid.UUID(str(named)))
    except ValueError:
        return None


def id_among(items: Sequence[Mapping[str, Any]], named: str, kind: str) -> str:
    """The id of the one item that has this name, or whose id begins so (four hexadecimal digits at least)."""
    text = named.lower()
    begins = bool(_PREFIX.match(text))
    found = [item for item in items if item.get("name") == named or (begins and _matches(str(item["id"]), text))]
    if len(found) == 1:
        return str(found[0]["id"])
    if not found:
        known = ", ".join(_label(item) for item in items[:_SHOWN]) or "none"
        raise NotFound(
            404,
            "not_found",
            f"no {kind} has the name {named!r}, nor an id that begins with it ({SHORTEST_PREFIX} digits at least); the newest are: {known}",
        )
    candidates = ", ".join(_label(item) for item in found[:_SHOWN])
    raise AmbiguousName(
        409,
        "ambiguous_name",
        f"several {kind}s are meant by {named!r}: {candidates}; give more of the id",
        {"candidates": [str(item["id"]) for item in found]},
    )


def _matches(item_id: str, text: str) -> bool:
    return item_id.startswith(text) or item_id.replace("-", "").startswith(text)


def _label(item: Mapping[str, Any]) -> str:
    more = item.get("name") or item.get("state") or ""
    return f"{item['id']} ({more})" if more else str(item["id"])
