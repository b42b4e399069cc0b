"""What a person types for a dataset or a release: its id, the beginning of its id, or its name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from imprimatur.cli.output import Exit, Failure
from imprimatur.naming import Thing, begins_an_id, meant, thing_of, whole_id

if TYPE_CHECKING:
    from imprimatur.client import Client

__all__ = ["Thing", "dataset_id_of", "find", "nearest", "release_id_of", "releases_of"]
MOST_SHOWN = 5


def dataset_id_of(client: Client, typed: str) -> str:
    """A dataset's id, by id, by its beginning, or by a name that only one dataset has."""
    return whole_id(typed) or find("dataset", typed, [thing_of(each) for each in client.datasets()]).id


def release_id_of(client: Client, typed: str) -> str:
    """A release's id, by id, by its beginning, by its name, or by DATASET/NAME."""
    return whole_id(typed) or find("release", typed, releases_of(client)).id


def releases_of(client: Client) -> list[Thing]:
    """All releases of the tenant, with the names of their datasets."""
    names = {each["id"]: each["name"] for each in client.datasets()}
    return [thing_of(each, names) for each in client.releases()]


def find(kind: str, typed: str, among: Sequence[Thing]) -> Thing:
    """The one that is meant: a name goes before the beginning of an id. A `Failure` lists what it may have been."""
    found = meant(typed, among)
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
    """The known names that look most like what was typed, at most three."""
    by_lower = {name.lower(): name for name in known}
    return [by_lower[name] for name in difflib.get_close_matches(typed.lower(), by_lower, n=3, cutoff=0.5)]


def _unknown(kind: str, typed: str, among: Sequence[Thing]) -> str:
    listing = {"dataset": "imprimatur datasets", "release": "imprimatur status"}[kind]
    begin = "" if begins_an_id(typed) else "; the beginning of an id has at least four hexadecimal digits"
    close = nearest(typed, dict.fromkeys(name for each in among for name in (each.name, each.full_name)))
    meant = f" Nearest: {', '.join(close)}." if close else ""
    return (
        f"no {kind} is named {typed!r}, and no {kind}'s id begins so{begin}.{meant} `{listing}` lists all {len(among)}"
    )


def _listed(found: Sequence[Thing]) -> str:
    some = ", ".join(f"{each.id} ({each.full_name})" for each in found[:MOST_SHOWN])
    return some + (f" and {len(found) - MOST_SHOWN} more" if len(found) > MOST_SHOWN else "")
