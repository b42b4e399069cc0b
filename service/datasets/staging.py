"""Files that an owner has sent at the web page and not published yet: encrypted, for the key that sent them, for an hour.

File, draft and what was filled in are objects below `staged/{id}/`, all under one key of their own. That key is in the
database, wrapped; with the row it is destroyed, and the objects follow.
"""

from __future__ import annotations

import datetime as dt
import json
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy import DateTime, LargeBinary, Text, delete, func, insert, select, update
from sqlalchemy.orm import Mapped, Session, mapped_column

from service.audit import service as audit
from service.auth.principal import Principal
from service.base.carried import packed, unpacked
from service.base.errors import NotFound, RateLimited, Tampered, Unavailable
from service.base.messages import Message
from service.intake.sealed import SealedFile
from service.platform.context import Context
from service.platform.crypto import decrypt, encrypt
from service.platform.database import Base, database_time
from service.requests.spool import Spool

STAGED = "staged"
"""What keys and objects are bound to, so that none passes for rows or for the upload of a dataset."""

_FILE, _DRAFT, _FILLED, _READING = "file", "draft", "filled", "reading"
_RETRY_SECONDS = 60
_SILENT_SECONDS = 60.0
"""Of a process that makes a draft and says every second how far it is; after these it has ended."""


class StagedUpload(Base):
    """One file and where its walk to a dataset stands."""

    __tablename__ = "staged_uploads"

    id: Mapped[uuid.UUID] = mapped_column(primary_key=True)
    tenant_id: Mapped[uuid.UUID]
    key_id: Mapped[uuid.UUID]
    """Of the API key that sent it; no other key may see anything of it."""
    wrapped_data_key: Mapped[bytes | None] = mapped_column(LargeBinary)
    """None once it is published."""
    filled_key: Mapped[str] = mapped_column(Text)
    """Which object holds what was filled in; while the draft is made, how far that is."""
    version: Mapped[int]
    """Goes up with everything that is filled in, so that two windows do not overwrite one another unseen."""
    dataset_id: Mapped[uuid.UUID | None]
    """What it was published as."""
    created_at: Mapped[dt.datetime] = mapped_column(DateTime(timezone=True))

    @property
    def is_being_read(self) -> bool:
        """Whether its draft is still made, or could not be made."""
        return self.filled_key == _key_of(self.id, _READING)


@dataclass(frozen=True, slots=True)
class Staged:
    """A staged upload, opened: the draft, and what its owner has filled in so far."""

    id: uuid.UUID
    version: int
    draft: dict[str, Any]
    filled: dict[str, Any]
    sent_at: dt.datetime


@dataclass(frozen=True, slots=True)
class Reading:
    """How far the draft of a staged upload is."""

    share: float
    """Of the file, read so far."""
    fault: str | None
    """Why there will be none, for the key that sent the file."""
    is_over: bool
    """No draft will come: it has failed, or no process makes it any more."""


DISCARD = "discard_upload"
"""What the audit log calls it."""


def stage(
    context: Context, principal: Principal, upload: SealedFile, draft: dict[str, Any] | None, filled: dict[str, Any]
) -> uuid.UUID:
    """Keep a file with its draft; None: that is still made. Raises `RateLimited` where the tenant has as many as may wait."""
    staged_id, key = uuid.uuid4(), context.secrets.new_data_key()
    filled_key = _key_of(staged_id, _READING) if draft is None else _new_filled_key(staged_id)
    try:
        context.storage.put(_key_of(staged_id, _FILE), encrypt(upload.pieces(), key, context=_bound(_FILE)))
        if draft is None:
            _put(context, filled_key, _said_of_reading(context, 0.0, None), key, _READING)
        else:
            _put(context, _key_of(staged_id, _DRAFT), draft, key, _DRAFT)
            _put(context, filled_key, filled, key, _FILLED)
        with context.transaction() as session:
            session.execute(
                insert(StagedUpload).values(
                    id=staged_id,
                    tenant_id=principal.tenant_id,
                    key_id=principal.key_id,
                    wrapped_data_key=context.secrets.wrap_data_key(key, _owner_of(staged_id, principal.key_id)),
                    filled_key=filled_key,
                )
            )
            audit.record(session, principal, "staged_upload", staged_id)
        require_room(context, principal, and_this=True)  # after the commit: two at once see one another
    except BaseException as error:
        if not isinstance(error, Unavailable):  # then it may have happened nevertheless: the sweep removes it
            _forget(context, principal, staged_id)
        raise
    return staged_id


def require_room(context: Context, principal: Principal, *, and_this: bool = False) -> None:
    """Raise `RateLimited` where the tenant has as many unpublished files as may wait."""
    most = context.settings.staged_uploads_per_tenant
    remove_expired(context, principal.tenant_id)
    waiting = select(func.count()).where(
        StagedUpload.tenant_id == principal.tenant_id, StagedUpload.wrapped_data_key.is_not(None)
    )
    with context.statement() as session:
        count = session.scalars(waiting).one()
    if count > most or (count == most and not and_this):
        raise RateLimited(
            Message(
                "%(most)s files of your tenant already wait to be published; publish or discard one, or wait: each is "
                "removed after an hour",
                most=most,
            ),
            retry_after_seconds=_RETRY_SECONDS,
            limit_uploads=most,
        )


def list_own(context: Context, principal: Principal) -> Sequence[StagedUpload]:
    """The files that this key has sent and not published, newest first."""
    with context.statement() as session:
        own = select(StagedUpload).where(
            StagedUpload.key_id == principal.key_id,
            StagedUpload.wrapped_data_key.is_not(None),
            _is_young(context),
        )
        return session.scalars(own.order_by(StagedUpload.created_at.desc())).all()


def find(context: Context, principal: Principal, staged_id: uuid.UUID) -> StagedUpload:
    """The row of a staged file, which says how far it is. Raises `NotFound` as `open_staged`."""
    return _find(context, principal, staged_id)


def read_reading(context: Context, principal: Principal, staged_id: uuid.UUID) -> Reading:
    """How far its draft is. Raises `NotFound` once it is there, and as `open_staged`."""
    row = _find(context, principal, staged_id)
    if not row.is_being_read:
        raise _gone()
    said = _get(context, row.filled_key, _data_key(context, row), _READING)
    is_silent = _seconds(context) - said["at"] > _SILENT_SECONDS
    fault = None if said["fault"] is None else unpacked(said["fault"])
    return Reading(said["share"], fault, is_over=is_silent or fault is not None)


def say_reading(
    context: Context, principal: Principal, staged_id: uuid.UUID, share: float, *, fault: str | None = None
) -> None:
    """Keep how far its draft is. Raises `NotFound` where it was discarded."""
    row = _find(context, principal, staged_id)
    _put(
        context,
        _key_of(staged_id, _READING),
        _said_of_reading(context, share, fault),
        _data_key(context, row),
        _READING,
    )
    _leave_nothing_of_discarded(context, principal, staged_id)


def finish_reading(
    context: Context, principal: Principal, staged_id: uuid.UUID, draft: dict[str, Any], filled: dict[str, Any]
) -> None:
    """Store the draft of a staged file. Raises `NotFound` where the file was discarded."""
    row = _find(context, principal, staged_id)
    key, filled_key = _data_key(context, row), _new_filled_key(staged_id)
    _put(context, _key_of(staged_id, _DRAFT), draft, key, _DRAFT)
    _put(context, filled_key, filled, key, _FILLED)
    with context.transaction() as session:
        session.execute(
            update(StagedUpload)
            .where(StagedUpload.id == staged_id)
            .values(filled_key=filled_key)
            .execution_options(synchronize_session=False)
        )
    context.storage.delete(_key_of(staged_id, _READING))
    _leave_nothing_of_discarded(context, principal, staged_id)


def _leave_nothing_of_discarded(context: Context, principal: Principal, staged_id: uuid.UUID) -> None:
    """After an object was written: who discarded it meanwhile has removed the others. Raises `NotFound` then."""
    try:
        _find(context, principal, staged_id)
    except NotFound:
        _remove_objects(context, staged_id)
        raise


def discard_unreadable(context: Context, principal: Principal) -> None:
    """Destroy those of this key whose draft could not be made: nothing more can be done with them."""
    for row in list_own(context, principal):
        with suppress(NotFound):  # its draft has come in this moment
            if row.is_being_read and read_reading(context, principal, row.id).is_over:
                discard(context, principal, row.id)


def open_staged(context: Context, principal: Principal, staged_id: uuid.UUID) -> Staged:
    """The draft and what was filled in, for the key that sent the file alone. `NotFound` for all others, after an hour, and once it is published."""
    row = _find(context, principal, staged_id)
    key = _data_key(context, row)
    return Staged(
        row.id,
        row.version,
        draft=_get(context, _key_of(staged_id, _DRAFT), key, _DRAFT),
        filled=_get(context, row.filled_key, key, _FILLED),
        sent_at=row.created_at,
    )


def fill_in(context: Context, principal: Principal, staged: Staged, filled: dict[str, Any], *, seen: int) -> bool:
    """Keep what was filled in; False where another window has done so since version `seen`: then nothing is kept."""
    row = _find(context, principal, staged.id)
    key, filled_key = _data_key(context, row), _new_filled_key(staged.id)
    _put(context, filled_key, filled, key, _FILLED)
    with context.transaction() as session:
        changed = session.execute(
            update(StagedUpload)
            .where(StagedUpload.id == staged.id, StagedUpload.version == seen, StagedUpload.dataset_id.is_(None))
            .values(filled_key=filled_key, version=seen + 1)
            .returning(StagedUpload.id)
            .execution_options(synchronize_session=False)
        ).one_or_none()
    context.storage.delete(filled_key if changed is None else row.filled_key)
    return changed is not None


def fetch_file(context: Context, principal: Principal, staged_id: uuid.UUID, spool: Spool) -> None:
    """The file, into the spool."""
    key = _data_key(context, _find(context, principal, staged_id))
    for piece in decrypt(_stream(context, _key_of(staged_id, _FILE)), key, context=_bound(_FILE)):
        spool.append(piece)


def mark_published(context: Context, staged_id: uuid.UUID, dataset_id: uuid.UUID) -> None:
    """Key and objects are destroyed; that it has become this dataset stays known for the hour."""
    with context.transaction() as session:
        session.execute(
            update(StagedUpload)
            .where(StagedUpload.id == staged_id)
            .values(wrapped_data_key=None, dataset_id=dataset_id)
            .execution_options(synchronize_session=False)
        )
    _remove_objects(context, staged_id)


def discard(context: Context, principal: Principal, staged_id: uuid.UUID) -> None:
    """Destroy it. What is not there is fine."""
    with context.transaction() as session:
        own = delete(StagedUpload).where(StagedUpload.id == staged_id, StagedUpload.key_id == principal.key_id)
        gone = session.execute(own.returning(StagedUpload.id)).one_or_none()
        if gone is not None:  # also to make room for the next file, whose own line says that it was uploaded
            audit.record(session, principal, "staged_upload", staged_id, action=DISCARD)
    if gone is not None:
        _remove_objects(context, staged_id)


def remove_expired(context: Context, tenant_id: uuid.UUID | None = None) -> int:
    """Destroy those whose hour is over, of one tenant or, for the sweep, of all; how many."""
    old = delete(StagedUpload).where(~_is_young(context))
    if tenant_id is not None:
        old = old.where(StagedUpload.tenant_id == tenant_id)
    with context.transaction() as session:
        gone = session.scalars(old.returning(StagedUpload.id).execution_options(synchronize_session=False)).all()
    for staged_id in gone:
        _remove_objects(context, staged_id)
    return len(gone)


def is_staged(session: Session, storage_key: str) -> bool:
    """Whether a row names the upload that an object belongs to."""
    try:
        staged_id = uuid.UUID(storage_key.split("/")[1])
    except (IndexError, ValueError):
        return False
    return session.scalars(select(StagedUpload.id).where(StagedUpload.id == staged_id)).first() is not None


def _find(context: Context, principal: Principal, staged_id: uuid.UUID) -> StagedUpload:
    with context.statement() as session:
        row = session.scalars(
            select(StagedUpload).where(
                StagedUpload.id == staged_id, StagedUpload.key_id == principal.key_id, _is_young(context)
            )
        ).one_or_none()
    if row is None:
        raise _gone()
    return row


def _is_young(context: Context) -> Any:
    seconds = context.settings.staged_upload_seconds
    return StagedUpload.created_at > func.clock_timestamp() - func.make_interval(0, 0, 0, 0, 0, 0, seconds)


def _gone() -> NotFound:
    return NotFound(
        Message("this file is no longer here: a file is kept for an hour, for the key that sent it. Choose it again")
    )


def _data_key(context: Context, row: StagedUpload) -> bytes:
    if row.wrapped_data_key is None:
        raise _gone()
    try:
        return context.secrets.unwrap_data_key(bytes(row.wrapped_data_key), _owner_of(row.id, row.key_id))
    except Tampered:  # of another key; or the root was taken away meanwhile: a rotation does not wait for an hour
        raise _gone() from None


def _stream(context: Context, storage_key: str) -> Any:
    try:
        return context.storage.stream(storage_key)
    except NotFound:  # discarded or published in this moment
        raise _gone() from None


def _owner_of(staged_id: uuid.UUID, key_id: uuid.UUID) -> str:
    """What its key is bound to. A row that says that another API key has sent it opens nothing."""
    return f"{staged_id}/{STAGED}/{key_id}"


def _bound(part: str) -> str:
    return f"{STAGED}/{part}"


def _key_of(staged_id: uuid.UUID, part: str) -> str:
    return f"{STAGED}/{staged_id}/{part}"


def _new_filled_key(staged_id: uuid.UUID) -> str:
    return _key_of(staged_id, f"{_FILLED}-{uuid.uuid4().hex}")


def _said_of_reading(context: Context, share: float, fault: str | None) -> dict[str, Any]:
    return {"share": share, "fault": None if fault is None else packed(fault), "at": _seconds(context)}


def _seconds(context: Context) -> float:
    """Since 1970, by the one clock that all machines share."""
    with context.transaction() as session:
        return database_time(session).timestamp()


def _put(context: Context, storage_key: str, document: dict[str, Any], key: bytes, part: str) -> None:
    content = json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass")
    context.storage.put(storage_key, encrypt([content], key, context=_bound(part)))


def _get(context: Context, storage_key: str, key: bytes, part: str) -> dict[str, Any]:
    content = b"".join(decrypt(_stream(context, storage_key), key, context=_bound(part)))
    document: dict[str, Any] = json.loads(content.decode("utf-8", "surrogatepass"))
    return document


def _forget(context: Context, principal: Principal, staged_id: uuid.UUID) -> None:
    """What was refused. If that was after its commit, the audit log says that it was uploaded, and so that it is gone."""
    discard(context, principal, staged_id)
    _remove_objects(context, staged_id)


def _remove_objects(context: Context, staged_id: uuid.UUID) -> None:
    for key in list(context.storage.list(f"{STAGED}/{staged_id}/")):
        context.storage.delete(key)
