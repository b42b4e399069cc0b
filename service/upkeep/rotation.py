"""New roots of the secret key file: data keys are wrapped anew, new API keys are hashed under the new root.

Three steps, each of which may be broken off anywhere and asked for again:

    prepare   the file gets new roots, beside those in use. Where several machines have copies, copy it to all now.
    rotate    the new roots are used from now on; every data key is wrapped anew. Prepares first where that was not done.
    finish    what was wrapped meanwhile is wrapped anew, and roots that nothing needs leave the file.

The order of writing is what makes breaking off harmless. The database knows a root before a file has it in front: an
older file put back is refused, not used. It knows that a root is retired before the file loses it: `prepare` takes such
a root out of a file in which it was left.

The root of the API keys' hashes stays as long as a living key depends on it: a hash cannot be made anew without its key.
The root of the fingerprints is not replaced: the rows of an erased dataset cannot be read again, and under another root
the same rows could be given a second budget. Only the role that owns the database may do any of it.
"""

from __future__ import annotations

import argparse
import os
import sys
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlalchemy import text

from service.base.errors import InvalidInput, Tampered
from service.datasets.stored_objects import UPLOAD
from service.platform import secret_roots
from service.platform.crypto import Secrets, unwrapped
from service.platform.keyring import KEY_BYTES, Keyring, Purpose, replace_file, root_id
from service.platform.settings import Settings, get_settings
from service.upkeep.installation import owner_transaction, write_worker_part

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

LOCK = "LOCK TABLE secret_roots IN SHARE ROW EXCLUSIVE MODE"
"""Of the operator's commands one at a time. No role of a process can take it: they may only read the table."""
BATCH = 200
COLUMNS = {"wrapped_data_key": "{}", "wrapped_upload_key": f"{{}}/{UPLOAD}"}
"""Columns of datasets that hold a wrapped key, and what each key is bound to."""


@dataclass(frozen=True, slots=True)
class Rotated:
    """What a step has done. `waiting_keys`: living API keys that still need an old root.

    `new_root`: whether this call put a new root in front. Without one it went on with an earlier rotation.
    """

    wrapped: int = 0
    finished: bool = False
    waiting_keys: int = 0
    new_root: bool = False


def prepare(settings: Settings) -> bool:
    """New roots behind those in use, unless there are some already; whether the file now has roots not used yet."""
    with owner_transaction(settings) as session:
        session.execute(text(LOCK))
        ring = _without_retired(session, _checked_ring(session, settings))
        if len(ring.wrapping) == 1:
            ring = replace(
                ring,
                wrapping=(*ring.wrapping, os.urandom(KEY_BYTES)),
                api_keys=(*ring.api_keys, os.urandom(KEY_BYTES)),
                first_signing=(),
            )
        write(settings, ring)
        return _newest_first(session, ring) != ring


def rotate(settings: Settings, on_progress: Callable[[int], None] = lambda _: None) -> Rotated:
    """Use the new roots, and wrap every data key under the newest one."""
    prepare(settings)
    with owner_transaction(settings) as session:
        session.execute(text(LOCK))
        ring = _checked_ring(session, settings)
        newest = _newest_first(session, ring)
        secret_roots.register(session, newest)
    # After the commit: what is wrapped under a root that the database does not know is lost with the file.
    with owner_transaction(settings) as session:
        session.execute(text(LOCK))
        ring = _checked_ring(session, settings)
        newest = _newest_first(session, ring)
        write(settings, newest)
    return Rotated(wrapped=_wrap_all(settings, newest, on_progress), new_root=newest != ring)


def finish(settings: Settings, on_progress: Callable[[int], None] = lambda _: None) -> Rotated:
    """Take out of the file what nothing needs any more."""
    with owner_transaction(settings) as session:
        ring = _ring_in_use(session, settings)
    wrapped = _wrap_all(settings, ring, on_progress)
    with owner_transaction(settings) as session:
        session.execute(text(LOCK))
        # No upload commits a key while the old root goes.
        session.execute(text("LOCK TABLE datasets IN SHARE ROW EXCLUSIVE MODE"))
        ring = _ring_in_use(session, settings)
        wrapped += sum(_wrap_one(session, ring, row) for row in _rows(session, None, limit=None))
        waiting = _living_keys(session, {root_id("api_keys", root) for root in ring.api_keys[1:]}, ring)
        kept = replace(ring, wrapping=ring.wrapping[:1], api_keys=ring.api_keys if waiting else ring.api_keys[:1])
        for root in ring.wrapping[1:]:
            secret_roots.retire(session, "wrapping", root)
        for root in () if waiting else ring.api_keys[1:]:
            secret_roots.retire(session, "api_keys", root)
    write(settings, kept)  # after the commit: a file that still holds a retired root behind does no harm
    return Rotated(wrapped, finished=True, waiting_keys=waiting)


def write(settings: Settings, ring: Keyring) -> None:
    """The keyring, and the workers' part of it."""
    path = settings.keyring_path
    if path.read_bytes() != ring.to_bytes():
        replace_file(path, ring.to_bytes())
    write_worker_part(settings, ring)


def _checked_ring(session: Session, settings: Settings) -> Keyring:
    secrets = Secrets.load(settings.keyring_path)
    secret_roots.require_right(session, secrets)
    return secrets.ring


def _ring_in_use(session: Session, settings: Settings) -> Keyring:
    """The file's roots, the newest of which is in front. Raises `InvalidInput` where prepared ones are not used yet."""
    ring = _checked_ring(session, settings)
    known = secret_roots.in_use_since(session)["wrapping"]
    if _newest_first(session, ring) != ring or any(root_id("wrapping", root) not in known for root in ring.wrapping):
        raise InvalidInput("new roots are prepared and not used yet; rotate first", where="secret key")
    return ring


def _without_retired(session: Session, ring: Keyring) -> Keyring:
    """A `finish` that was broken off between its commit and its file has left them there.

    One in front stays: that is an older file put back, and what was wrapped under it meanwhile is to be wrapped anew.
    """
    gone = secret_roots.retired(session)

    def needed(purpose: Purpose, roots: tuple[bytes, ...]) -> tuple[bytes, ...]:
        return (*roots[:1], *(root for root in roots[1:] if root_id(purpose, root) not in gone[purpose]))

    return replace(ring, wrapping=needed("wrapping", ring.wrapping), api_keys=needed("api_keys", ring.api_keys))


def _newest_first(session: Session, ring: Keyring) -> Keyring:
    """Prepared roots before those in use, and of these the one that was registered last in front."""
    since = secret_roots.in_use_since(session)

    def ordered(purpose: Purpose, roots: tuple[bytes, ...]) -> tuple[bytes, ...]:
        known = since[purpose]
        fresh = [root for root in roots if root_id(purpose, root) not in known]
        used = [root for root in roots if root not in fresh]
        return (*fresh, *sorted(used, key=lambda root: known[root_id(purpose, root)], reverse=True))

    return replace(ring, wrapping=ordered("wrapping", ring.wrapping), api_keys=ordered("api_keys", ring.api_keys))


def _wrap_all(settings: Settings, ring: Keyring, on_progress: Callable[[int], None]) -> int:
    """Every data key, a batch a transaction. What is wrapped under the newest root is left as it is."""
    after, done = None, 0
    while True:
        with owner_transaction(settings) as session:
            rows = _rows(session, after, limit=BATCH)
            done += sum(_wrap_one(session, ring, row) for row in rows)
        on_progress(done)
        if len(rows) < BATCH:
            return done
        after = rows[-1][0]


def _rows(session: Session, after: uuid.UUID | None, limit: int | None) -> list[tuple[uuid.UUID, dict[str, bytes]]]:
    found = session.execute(
        text(
            "SELECT id, wrapped_data_key, wrapped_upload_key FROM datasets"
            " WHERE (wrapped_data_key IS NOT NULL OR wrapped_upload_key IS NOT NULL)"
            " AND (CAST(:after AS uuid) IS NULL OR id > :after) ORDER BY id LIMIT :limit"
        ),
        {"after": after, "limit": limit},
    )
    return [(row.id, {c: bytes(getattr(row, c)) for c in COLUMNS if getattr(row, c) is not None}) for row in found]


def _wrap_one(session: Session, ring: Keyring, row: tuple[uuid.UUID, dict[str, bytes]]) -> int:
    dataset_id, wrapped = row
    done, newest = 0, Secrets(Keyring(wrapping=ring.wrapping[:1]).to_bytes())
    for column, old in wrapped.items():
        bound_to = COLUMNS[column].format(dataset_id)
        if unwrapped(ring.wrapping[0], old, bound_to) is not None:
            continue
        key = next((k for root in ring.wrapping[1:] if (k := unwrapped(root, old, bound_to)) is not None), None)
        if key is None:
            raise Tampered(f"The key of dataset {dataset_id} can be opened by no root of the secret key file.")
        # Nothing happens where the key was destroyed or replaced meanwhile.
        done += session.execute(  # type: ignore[attr-defined]
            text(f"UPDATE datasets SET {column} = :new WHERE id = :id AND {column} = :old"),  # noqa: S608 - constants
            {"new": newest.wrap_data_key(key, bound_to), "old": old, "id": dataset_id},
        ).rowcount
    return done


def _living_keys(session: Session, old_roots: set[str], ring: Keyring) -> int:
    """API keys that work now or will, hashed under one of these roots; a key without a name for its root has the oldest."""
    if len(ring.api_keys) == 1:
        return 0
    return int(
        session.execute(
            text(
                "SELECT count(*) FROM api_keys WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())"
                " AND (root_id IS NULL OR root_id = ANY(:old))"
            ),
            {"old": list(old_roots)},
        ).scalar_one()
    )


def main() -> None:
    """`python -m service.upkeep.rotation [--prepare | --finish]`, where the owner's URL and the file are at hand."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--prepare", action="store_true", help="only put new roots into the file, to be copied")
    what.add_argument("--finish", action="store_true", help="take out what nothing needs any more")
    arguments = parser.parse_args()
    if arguments.prepare:
        if not prepare(get_settings()):
            sys.exit("nothing is prepared: the file still has the old roots of a rotation; --finish first")
        print("prepared: copy the file to every API, then rotate")  # noqa: T201 - a command line
        return
    print((finish if arguments.finish else rotate)(get_settings()))  # noqa: T201 - a command line


if __name__ == "__main__":
    main()
