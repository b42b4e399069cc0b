"""What a person types for a dataset or a release: its id, the beginning of its id, or its name."""

from __future__ import annotations

import difflib
import re
import uuid
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from imprimatur.cli.output import Exit, Failure

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from imprimatur.client import Client

BEGINNING = re.compile(r"[0-9a-fA-F][0-9a-fA-F-]{3,}\Z")
"""Four characters of an id, or more."""
MOST_SHOWN = 5


class Thing(NamedTuple):
    """One dataset or release of a list."""

    id: str
    name: str
    within: str = ""
    """The name of the dataset of a release."""

    @property
    def full_name(self) -> str:
        return f"{self.within}/{self.name}" if self.within else self.name


def dataset_id_of(client: Client, typed: str) -> str:
    """A dataset's id, by id, by its beginning, or by a name that only one dataset has."""
    return _whole_id(typed) or find("dataset", typed, [_of_dataset(each) for each in client.datasets()]).id


def release_id_of(client: Client, typed: str) -> str:
    """A release's id, by id, by its beginning, by its name, or by DATASET/NAME."""
    return _whole_id(typed) or find("release", typed, releases_of(client)).id


def releases_of(client: Client) -> list[Thing]:
    """All releases of the tenant, with the names of their datasets."""
    names = {each["id"]: each["name"] for each in client.datasets()}
    return [Thing(each["id"], name_of(each), names.get(each["dataset_id"], "")) for each in client.releases()]


def name_of(release: Mapping[str, Any]) -> str:
    """A release's name; an older service gives none."""
    return str(release.get("name") or release["id"][:8])


def find(kind: str, typed: str, among: Sequence[Thing]) -> Thing:
    """The one that is meant: a name goes before the beginning of an id. A `Failure` lists what it may have been."""
    found = [each for each in among if typed in {each.name, each.full_name}]
    if not found and BEGINNING.match(typed):
        wanted = typed.lower().replace("-", "")
        found = [each for each in among if each.id.replace("-", "").startswith(wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        raise Failure(
            f"{typed!r} may be {len(found)} {kind}s: {_listed(found)}. Give more of the id",
            Exit.NOT_FOUND,
            "ambiguous_name",
            candidates=[{"id": each.id, "name": each.full_name} for each in found],
        )
    raise Failure(_unknown(kind, typed, among), Exit.NOT_FOUND, "not_found")


def nearest(typed: str, known: Iterable[str]) -> list[str]:
    """Those that look like what was typed, at most three."""
    by_lower = {name.lower(): name for name in known}
    return [by_lower[name] for name in difflib.get_close_matches(typed.lower(), by_lower, n=3, cutoff=0.5)]


def _unknown(kind: str, typed: str, among: Sequence[Thing]) -> str:
    listing = {"dataset": "imprimatur datasets", "release": "imprimatur status"}[kind]
    begin = "" if BEGINNING.match(typed) else "; the beginning of an id has at least four hexadecimal digits"
    close = nearest(typed, dict.fromkeys(name for each in among for name in (each.name, each.full_name)))
    meant = f" Nearest: {', '.join(close)}." if close else ""
    return (
        f"no {kind} is named {typed!r}, and no {kind}'s id begins so{begin}.{meant} `{listing}` lists all {len(among)}"
    )


def _listed(found: Sequence[Thing]) -> str:
    some = ", ".join(f"{each.id} ({each.full_name})" for each in found[:MOST_SHOWN])
    return some + (f" and {len(found) - MOST_SHOWN} more" if len(found) > MOST_SHOWN else "")


def _whole_id(typed: str) -> str | None:
    try:
        return str(uuid.UUID(typed))
    except ValueError:
        return None


def _of_dataset(dataset: Mapping[str, Any]) -> Thing:
    return Thing(str(dataset["id"]), str(dataset["name"]))
