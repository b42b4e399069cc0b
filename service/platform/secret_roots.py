"""Whether the secret key file is the one that the database's data were made with.

A wrong file looks like nothing but unknown API keys. So the database knows the ids of the roots in use, and a process
compares before it works.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import text

from service.base.errors import WrongSecretKey
from service.platform.keyring import PURPOSES, Keyring, Purpose, root_id

if TYPE_CHECKING:
    import datetime as dt

    from sqlalchemy.orm import Session

    from service.platform.crypto import Secrets

ADVICE = (
    "restore the newest copy of the file from your backup, or copy it from the machine where keys were rotated;"
    " with another one no API key works and no row can be read"
)

_REGISTER = """
INSERT INTO secret_roots (purpose, id, in_use_since)
SELECT :purpose, :id, greatest(clock_timestamp(), max(in_use_since) + interval '1 microsecond')
FROM secret_roots WHERE purpose = :purpose
ON CONFLICT DO NOTHING
"""
"""Always later than those before, whatever the clock does: the order says which root is the newest."""


def in_use(session: Session) -> dict[Purpose, set[str]]:
    """Ids of the roots that some data need, by purpose; empty where none was ever registered."""
    found: dict[Purpose, set[str]] = {purpose: set() for purpose in PURPOSES}
    for row in session.execute(text("SELECT purpose, id FROM secret_roots WHERE retired_at IS NULL")):
        found[row.purpose].add(row.id)
    return found


def in_use_since(session: Session) -> dict[Purpose, dict[str, dt.datetime]]:
    """When each root came into use, also of those that are retired."""
    found: dict[Purpose, dict[str, dt.datetime]] = {purpose: {} for purpose in PURPOSES}
    for row in session.execute(text("SELECT purpose, id, in_use_since FROM secret_roots")):
        found[row.purpose][row.id] = row.in_use_since
    return found


def retired(session: Session) -> dict[Purpose, set[str]]:
    """Ids of the roots that no data need any more."""
    found: dict[Purpose, set[str]] = {purpose: set() for purpose in PURPOSES}
    for row in session.execute(text("SELECT purpose, id FROM secret_roots WHERE retired_at IS NOT NULL")):
        found[row.purpose].add(row.id)
    return found


def require_right(session: Session, secrets: Secrets) -> None:
    """Raises `WrongSecretKey` unless the file holds every root in use, of the purposes for which it has any."""
    needed = in_use(session)
    if not (_holds(secrets.ring, needed) or (secrets.reload() and _holds(secrets.ring, needed))):
        raise WrongSecretKey(f"The secret key file is not the one this database was made with: {ADVICE}.")


def _holds(ring: Keyring, needed: dict[Purpose, set[str]]) -> bool:
    held = {purpose: {root_id(purpose, root) for root in ring.of(purpose)} for purpose in PURPOSES}
    return all(not held[purpose] or needed[purpose] <= held[purpose] for purpose in PURPOSES)


def register(session: Session, ring: Keyring) -> None:
    """The file's roots are in use from now on, the one in front as the newest. For the role that owns the database."""
    for purpose in PURPOSES:
        for root in reversed(ring.of(purpose)):
            session.execute(
                text(_REGISTER),
                {"purpose": purpose, "id": root_id(purpose, root)},
            )


def retire(session: Session, purpose: Purpose, root: bytes) -> None:
    """Nothing needs this root any more."""
    session.execute(
        text("UPDATE secret_roots SET retired_at = clock_timestamp() WHERE purpose = :purpose AND id = :id"),
        {"purpose": purpose, "id": root_id(purpose, root)},
    )
