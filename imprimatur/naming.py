"""Names and beginnings of ids, where a dataset or a release is meant."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

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


class Thing(NamedTuple):
    """One dataset or release of a list."""

    id: str
    name: str
    within: str = ""
    """The name of the dataset of a release."""

    @property
    def full_name(self) -> str:
        return f"{self.within}/{self.name}" if self.within else self.name


def name_of(item: Mapping[str, Any]) -> str:
    """A release's name; an older service gives none."""
    return str(item.get("name") or item["id"][:8])


def thing_of(item: Mapping[str, Any], datasets: Mapping[str, str] | None = None) -> Thing:
    """`datasets`: their names by their ids, for a release."""
    return Thing(str(item["id"]), name_of(item), (datasets or {}).get(str(item.get("dataset_id")), ""))


def begins_an_id(typed: str) -> bool:
    """Whether it may be the beginning of an id: four hexadecimal digits at least."""
    return bool(_PREFIX.match(typed.lower()))


def meant(typed: str, among: Sequence[Thing]) -> list[Thing]:
    """All that may be meant: those of this name (a release's may be DATASET/NAME), else those whose ids begin so."""
    found = [each for each in among if typed in {each.name, each.full_name}]
    if found or not begins_an_id(typed):
        return found
    wanted = typed.lower().replace("-", "")
    return [each for each in among if each.id.replace("-", "").startswith(wanted)]


def id_among(
    items: Sequence[Mapping[str, Any]], named: str, kind: str, datasets: Mapping[str, str] | None = None
) -> str:
    """The id of the one item that is meant. `datasets`: their names by their ids, for releases that are named DATASET/NAME."""
    ids = {each.id for each in meant(named, [thing_of(item, datasets) for item in items])}
    found = [item for item in items if str(item["id"]) in ids]
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


def _label(item: Mapping[str, Any]) -> str:
    more = item.get("name") or item.get("state") or ""
    return f"{item['id']} ({more})" if more else str(item["id"])
