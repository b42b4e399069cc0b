"""Which signing keys the service has had: made at installation, replaced by hand, never removed.

Only the role that owns the database writes here; a process that signs checks that its file holds the newest key.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import text

from imprimatur.verify.signatures import PublicKey
from service.base.errors import InvalidInput
from service.platform.signing import NoSigningKey, SigningKey

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from service.platform.settings import Settings


def registered(session: Session) -> list[PublicKey]:
    """All keys, in the order in which they came into use."""
    rows = session.execute(
        text("SELECT id, public_key, endorsed_by, endorsement, created_at FROM signing_keys ORDER BY number")
    )
    return [
        PublicKey(
            row.id,
            bytes(row.public_key),
            row.endorsed_by,
            row.endorsement and bytes(row.endorsement),
            created_at=row.created_at,
        )
        for row in rows
    ]


def current(session: Session, settings: Settings) -> SigningKey:
    """The key of the file, which must be the newest one. Read each time, so that a replaced file counts at once."""
    key = SigningKey.load(settings.signing_key_path)
    _require_newest(registered(session), key)
    return key


def install(session: Session, settings: Settings, predecessor: SigningKey | None) -> SigningKey:
    """The key of the file; made and registered where the service has none yet. Harmless to repeat.

    `predecessor` signed certificates before there was a file. A service that has a key and finds no file makes none:
    certificates would silently change their signer.
    """
    _lock(session)
    keys, path = registered(session), settings.signing_key_path
    if not keys:
        key = SigningKey.load_or_create(path)
        if predecessor is not None:
            _add(session, predecessor, None)
        _add(session, key, predecessor)
        return key
    _finish_replacement(keys, path)
    if not path.exists():
        raise NoSigningKey(
            f"The signing key file {path} is missing, and certificates have been signed with it: restore it from your"
            " backup. If it is lost, make another with `imprimatur key replace-signing --lost` (`python -m service.upkeep.installation --replace-signing-key --lost`)."
        )
    key = SigningKey.load(path)
    _require_newest(keys, key)
    return key


def replace(session: Session, settings: Settings, *, lost: bool = False) -> SigningKey:
    """A new key in place of the old one, endorsed by it unless it is lost (or no longer to be believed).

    The new file is complete before its key is registered, and takes the old one's name afterwards. A crash in between
    is put right by the next `install` or `replace`.
    """
    _lock(session)
    keys, path = registered(session), settings.signing_key_path
    if not keys:
        raise InvalidInput("the service has no signing key yet; install it first", where="signing key")
    _finish_replacement(keys, path)
    old = None
    if not lost:
        old = SigningKey.load(path)
        _require_newest(keys, old)
    draft = _draft(path)
    draft.unlink(missing_ok=True)
    new = SigningKey.load_or_create(draft)
    _add(session, new, old)
    session.commit()
    draft.replace(path)
    return new


def _finish_replacement(keys: list[PublicKey], path: Path) -> None:
    """A draft whose key is registered takes its place; any other was never used."""
    draft = _draft(path)
    if draft.exists() and SigningKey.load(draft).id == keys[-1].id:
        draft.replace(path)


def _draft(path: Path) -> Path:
    return path.with_name(path.name + os.extsep + "new")


def _require_newest(keys: list[PublicKey], key: SigningKey) -> None:
    if not keys or keys[-1].id != key.id:
        raise NoSigningKey(
            "The signing key file does not hold the newest key that the database knows; copy the newest file here, or"
            " run `python -m service.upkeep.installation` where the service was installed."
        )


def _add(session: Session, key: SigningKey, endorser: SigningKey | None) -> None:
    session.execute(
        text(
            "INSERT INTO signing_keys (id, public_key, endorsed_by, endorsement) VALUES (:id, :raw, :by, :endorsement)"
        ),
        {
            "id": key.id,
            "raw": key.public_bytes,
            "by": None if endorser is None else endorser.id,
            "endorsement": None if endorser is None else endorser.endorse(key.public_bytes),
        },
    )


def _lock(session: Session) -> None:
    session.execute(text("LOCK TABLE signing_keys IN SHARE ROW EXCLUSIVE MODE"))
