"""The SQL of datasets. Every read names the tenant, so another tenant's id finds nothing."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import psycopg
from sqlalchemy import Row, Text, cast, func, insert, or_, select, text, update
from sqlalchemy.orm import Session

from service.base.errors import NotFound
from service.base.messages import Message
from service.datasets.models import Dataset, DatasetColumnFingerprint, DatasetFingerprint
from service.datasets.promise import promised
from service.intake.table.alike import (
    FIRST_DERIVED_PLACE,
    FIRST_LEFT_OUT_PLACE,
    ROWS_PLACE,
    ColumnFingerprint,
    Match,
    count_columns,
    is_compared,
    is_stored,
)
from service.ledger.models import LedgerEntry
from service.platform.paging import Page, in_order, is_among
from service.privacy.filters import Budget

_FINGERPRINTS_LOCK = 7062
"""An advisory lock; migrations hold 7061."""
_FIRST_PLACES = (1, FIRST_DERIVED_PLACE, FIRST_LEFT_OUT_PLACE)


def find(session: Session, tenant_id: uuid.UUID, dataset_id: uuid.UUID) -> Dataset:
    """The tenant's dataset; `NotFound` where the tenant has none of this id."""
    dataset = session.scalars(
        select(Dataset).where(Dataset.id == dataset_id, Dataset.tenant_id == tenant_id)
    ).one_or_none()
    if dataset is None:
        raise NotFound(Message("no such dataset; GET /v1/datasets lists yours"))
    return dataset


ACCOUNT = """
SELECT d.units, d.epsilon, d.delta, d.renyi_order, d.renyi_capacity,
       b.simple_pending, b.simple_posted, b.renyi_pending, b.renyi_posted
FROM datasets d JOIN balances b ON b.dataset_id = d.id
WHERE d.id = %s AND d.tenant_id = %s
"""


class Account(NamedTuple):
    """A dataset's promise and what has become of it."""

    units: int
    epsilon: float
    delta: float
    renyi_order: int
    renyi_capacity: float
    simple_pending: int
    simple_posted: int
    renyi_pending: int
    renyi_posted: int

    @property
    def budget(self) -> Budget:
        return promised(self.epsilon, self.delta, self.renyi_order, self.renyi_capacity)


def find_account(connection: psycopg.Connection[Any], tenant_id: uuid.UUID, dataset_id: uuid.UUID) -> Account:
    """Read at every look at a budget; see `service.platform.database.driver`."""
    found = connection.execute(ACCOUNT, (dataset_id, tenant_id)).fetchone()
    if found is None:
        raise NotFound(Message("no such dataset; GET /v1/datasets lists yours"))
    return Account(*found)


def find_by_fingerprints(session: Session, fingerprints: Collection[bytes]) -> Dataset | None:
    """The dataset with one of these fingerprints; of several, the oldest."""
    its = select(DatasetFingerprint.dataset_id).where(DatasetFingerprint.fingerprint.in_(fingerprints))
    return session.scalars(select(Dataset).where(Dataset.id.in_(its)).order_by(Dataset.created_at)).first()


def lock_fingerprints(session: Session) -> None:
    """One upload at a time looks for rows like its own and writes its own down; held until the transaction ends."""
    session.execute(select(func.pg_advisory_xact_lock(_FINGERPRINTS_LOCK)))


def add_fingerprints(
    session: Session,
    dataset_id: uuid.UUID,
    fingerprints: Iterable[bytes],
    column_fingerprints: Sequence[ColumnFingerprint],
) -> None:
    """All that later uploads are compared with, beside those the dataset has. In one order: two who add the same wait for each other."""
    rows = [{"fingerprint": one, "dataset_id": dataset_id} for one in sorted(fingerprints)]
    if rows:
        session.execute(insert(DatasetFingerprint), rows)
    if column_fingerprints:
        known = columns_of(session, dataset_id)
        stored = [one for one in column_fingerprints if is_stored(one)]
        place_of = _places(stored, known)
        count = max([count_columns(column_fingerprints), *(column_count for _, column_count in known.values())])
        columns = [
            {
                "dataset_id": dataset_id,
                "fingerprint": one.fingerprint,
                "place": place_of[one.place],
                "column_count": count,
            }
            for one in stored
            if one.fingerprint not in known
        ]
        if columns:
            session.execute(insert(DatasetColumnFingerprint), columns)


def columns_of(session: Session, dataset_id: uuid.UUID) -> dict[bytes, tuple[int, int]]:
    """Place and column count by fingerprint, of all declarations the dataset has had."""
    its = DatasetColumnFingerprint
    query = select(its.fingerprint, its.place, its.column_count).where(its.dataset_id == dataset_id)
    return {bytes(row.fingerprint): (row.place, row.column_count) for row in session.execute(query)}


def _first_of(place: int) -> int:
    """Of its kind: modelled (whole rows, too), following from others, or with a role."""
    return max((first for first in _FIRST_PLACES if first <= place), default=1)


def _places(column_fingerprints: Sequence[ColumnFingerprint], known: Mapping[bytes, tuple[int, int]]) -> dict[int, int]:
    """A column of the file has the place at which it is known, whatever the order of this file; others have new ones."""
    place_of = {ROWS_PLACE: ROWS_PLACE}
    for one in column_fingerprints:
        if one.fingerprint in known:
            place_of.setdefault(one.place, known[one.fingerprint][0])
    free = {
        first: max((place + 1 for place, _ in known.values() if _first_of(place) == first), default=first)
        for first in _FIRST_PLACES
    }
    for one in column_fingerprints:
        if one.place not in place_of:
            first = _first_of(one.place)
            place_of[one.place] = one.place if not known else free[first]
            free[first] += 1
    return place_of


def find_matches(
    session: Session, tenant_id: uuid.UUID, column_fingerprints: Sequence[ColumnFingerprint]
) -> list[Match]:
    """What datasets of every tenant share with these columns; as for columns that one of two declarations leaves out, those of this tenant alone."""
    its = DatasetColumnFingerprint
    of_all, of_own = (
        its.fingerprint.in_([one.fingerprint for one in column_fingerprints if is_compared(one, within_tenant=own)])
        for own in (False, True)
    )
    query = (
        select(its.dataset_id, its.place, its.fingerprint, its.column_count)
        .join(Dataset, Dataset.id == its.dataset_id)
        .where(or_(of_all, of_own & (Dataset.tenant_id == tenant_id)))
    )
    return [Match(*row) for row in session.execute(query)]


def find_all(session: Session, dataset_ids: Collection[uuid.UUID]) -> Sequence[Dataset]:
    """Datasets of every tenant, the oldest first: to compare rows, not to show."""
    return session.scalars(select(Dataset).where(is_among(Dataset.id, dataset_ids)).order_by(Dataset.created_at)).all()


def page_of_tenant(session: Session, tenant_id: uuid.UUID, page: Page) -> tuple[Sequence[Dataset], str | None]:
    """One page, and the cursor of the next."""
    size = func.octet_length(cast(Dataset.schema, Text))
    query = select(Dataset.id, Dataset.created_at, size).where(Dataset.tenant_id == tenant_id)
    ids, following = page.cut(session.execute(page.narrow(query, Dataset.created_at, Dataset.id)).all())
    return in_order(ids, session.scalars(select(Dataset).where(is_among(Dataset.id, ids)))), following


def list_expired(session: Session) -> Sequence[uuid.UUID]:
    """Datasets whose rows should be gone by now and are not."""
    return session.scalars(
        select(Dataset.id).where(Dataset.erased_at.is_(None), Dataset.rows_expire_at <= func.now())
    ).all()


def bring_expiry_forward(session: Session, dataset_id: uuid.UUID, rows_expire_at: dt.datetime) -> bool:
    """Set the deletion date; False where an earlier one stands."""
    changed = session.scalars(
        update(Dataset)
        .where(
            Dataset.id == dataset_id,
            or_(Dataset.rows_expire_at.is_(None), Dataset.rows_expire_at >= rows_expire_at),
        )
        .values(rows_expire_at=rows_expire_at)
        .returning(Dataset.id)
        .execution_options(synchronize_session=False)
    )
    return changed.one_or_none() is not None


def mark_erased(session: Session, dataset_id: uuid.UUID, *, key: uuid.UUID, request: uuid.UUID) -> list[str]:
    """Forget where the rows and the upload lie and their keys, and write it into the audit log; returns the storage keys once, none when already erased."""
    return _forgotten(session, "dataset_erase(:dataset, :key, :request)", dataset=dataset_id, key=key, request=request)


def mark_expired(session: Session, dataset_id: uuid.UUID) -> list[str]:
    """Mark a dataset as erased where its deletion date has come, with a line of the audit log; else change nothing."""
    return _forgotten(session, "dataset_expire(:dataset)", dataset=dataset_id)


def _forgotten(session: Session, call: str, **names: uuid.UUID) -> list[str]:
    found = session.execute(text(f"SELECT storage_key, upload_key FROM {call}"), names)  # noqa: S608 - constants of this module
    return [key for key in found.one() if key is not None]


# -- the declaration, and the upload that is kept for another one


class Standing(NamedTuple):
    """What of a dataset's ledger decides whether its declaration may be replaced, and the declaration's number."""

    declaration: int
    charged: bool
    open_releases: list[uuid.UUID]


STANDING = """
SELECT b.declaration,
       EXISTS (SELECT FROM ledger_entries e WHERE e.dataset_id = b.dataset_id AND e.kind = 'post'),
       ARRAY(SELECT e.release_id FROM ledger_entries e
             WHERE e.dataset_id = b.dataset_id AND e.kind = 'reserve' AND NOT EXISTS (
                 SELECT FROM ledger_entries v WHERE v.release_id = e.release_id AND v.kind <> 'reserve')
             ORDER BY e.seq)
FROM balances b WHERE b.dataset_id = :dataset
"""


def standing(session: Session, dataset_id: uuid.UUID) -> Standing:
    """What decides whether a declaration may be replaced, as of this moment; only `redeclare` decides."""
    return Standing(*session.execute(text(STANDING), {"dataset": dataset_id}).one())


REDECLARE = """
SELECT outcome, open_releases
FROM dataset_redeclare(:dataset, :declaration, :name, CAST(:schema AS jsonb), CAST(:privacy_unit AS jsonb), :units,
                       :delta, :renyi_order, :renyi_capacity, :storage_key, CAST(:key AS uuid), CAST(:request AS uuid))
"""


def redeclare(session: Session, dataset_id: uuid.UUID, **values: Any) -> Row[Any]:
    """Replace the declaration and write it into the audit log, or say why not (migration 0029); holds the balance until the transaction ends."""
    return session.execute(text(REDECLARE), {"dataset": dataset_id, **values}).one()


def fingerprints_of(session: Session, dataset_id: uuid.UUID) -> set[bytes]:
    its = select(DatasetFingerprint.fingerprint).where(DatasetFingerprint.dataset_id == dataset_id)
    return set(map(bytes, session.scalars(its)))


def take_upload(
    session: Session, dataset_id: uuid.UUID, key_id: uuid.UUID, most_reads: int
) -> tuple[str, bytes] | None:
    """Count one more reading of the kept upload; its storage key and wrapped key, None where this key may have no more of it."""
    taken = session.execute(
        update(Dataset)
        .where(
            Dataset.id == dataset_id,
            Dataset.upload_key.is_not(None),
            Dataset.upload_key_id == key_id,
            Dataset.upload_reads < most_reads,
        )
        .values(upload_reads=Dataset.upload_reads + 1)
        .returning(Dataset.upload_key, Dataset.wrapped_upload_key)
        .execution_options(synchronize_session=False)
    )
    row = taken.one_or_none()
    return None if row is None or row[0] is None or row[1] is None else (row[0], bytes(row[1]))


def set_upload(session: Session, dataset_id: uuid.UUID, **values: Any) -> None:
    """Name another upload."""
    session.execute(
        update(Dataset).where(Dataset.id == dataset_id).values(**values).execution_options(synchronize_session=False)
    )


def forget_upload(session: Session, dataset_id: uuid.UUID) -> bool:
    """Forget the kept upload and its key; False where the dataset is neither charged nor erased, and it is needed."""
    call = text("SELECT dataset_forget_upload(:dataset)")
    return bool(session.execute(call, {"dataset": dataset_id}).scalar_one())


def list_needless_uploads(session: Session) -> Sequence[Row[uuid.UUID, str | None]]:
    """Ids and uploads of datasets that are charged or erased and still have one: a process of another version did it."""
    charged = (
        select(LedgerEntry.dataset_id).where(LedgerEntry.dataset_id == Dataset.id, LedgerEntry.kind == "post").exists()
    )
    query = select(Dataset.id, Dataset.upload_key).where(
        Dataset.upload_key.is_not(None), or_(charged, Dataset.erased_at.is_not(None))
    )
    return session.execute(query).all()
