"""The SQL of releases as callers see them. What workers do to them is in `workers/lease.py`."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import psycopg
from sqlalchemy import Text, case, cast, exists, func, select, text, type_coerce
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Session

from service.base.errors import NotFound
from service.datasets import repository as datasets
from service.domain.image_schema import DeclaredSchema
from service.methods.facts import Facts, declared_schema
from service.platform.paging import Page, in_order, is_among
from service.privacy.filters import Budget
from service.releases.models import Release

PLACE = """
WITH reservation AS (
    SELECT outcome, simple_left, renyi_left
    FROM set_config('synchronous_commit', 'off', true),
         order_reserve(%(tenant_id)s, %(key_id)s, %(most_of_key)s::bigint, %(most_of_tenant)s::bigint,
                       %(dataset_id)s, %(id)s, %(simple_cost)s::bigint, %(renyi_cost)s::bigint,
                       %(declaration)s::bigint)
), placed AS (
    INSERT INTO releases (id, tenant_id, dataset_id, key_id, priority, order_, price, simple_cost, renyi_cost,
                          idempotency_key, body_digest, steps, estimate, name)
    SELECT %(id)s, %(tenant_id)s, %(dataset_id)s, %(key_id)s, %(priority)s::smallint, %(order)s::jsonb, %(price)s::jsonb, %(simple_cost)s::bigint,
           %(renyi_cost)s::bigint, %(idempotency_key)s::text, %(body_digest)s, %(steps)s::bigint,
           %(estimate)s::jsonb, %(name)s::text
    FROM reservation WHERE outcome = 'done'
    RETURNING id, state, phase, step, created_at
), line AS MATERIALIZED (
    SELECT created_at, audit_append(%(tenant_id)s, %(key_id)s, %(action)s::text, 'release', id, %(audit_outcome)s::text,
                                    0, %(request_id)s)
    FROM placed
)
SELECT outcome, simple_left, renyi_left, state, phase, step, line.created_at,
       outcome <> 'done' AND pg_current_wal_flush_lsn() >= pg_current_wal_insert_lsn()
FROM reservation LEFT JOIN placed ON true LEFT JOIN line ON true
"""
"""Reserve, record and note, or change nothing: one statement and so one transaction of one round trip.

The line is written because its moment is read: a SELECT that nothing reads from would not run.

The balance's row, for which every order on the dataset waits, is locked only while the server works on this, not while
it flushes: this one transaction commits without. No answer leaves before `make_durable`
(docs/decisions/0010-locks-are-released-before-the-flush.md). No message is written: a recorded release is what waits for a
worker (`release_claim`, migration 0011).
"""

NAMES = "uq_releases_name"
"""The index that keeps names of releases unique in a dataset."""

PURCHASES = "uq_releases_declaration"
"""The index that lets one open order buy a dataset's declaration."""

MAKE_DURABLE = "SELECT pg_logical_emit_message(true, 'imprimatur', '')"
"""A transaction that writes something and says nothing: its commit flushes the log up to here, with all that wait."""


class Placed(NamedTuple):
    """The outcome of the reservation (`key_full`, `tenant_full`: it was not tried) and, where it is `done`, what the database filled in.

    `durable`: nothing that this outcome rests on is still to be flushed. Never true of what was just written.
    """

    outcome: str
    simple_left: int
    renyi_left: int
    state: str
    phase: str
    step: int
    created_at: dt.datetime
    durable: bool


def place(connection: psycopg.Connection[Any], **values: Any) -> Placed:
    """Carry out `PLACE`; its outcome says whether the order was reserved."""
    return Placed(*connection.execute(PLACE, {"name": None, **values}).fetchone())  # type: ignore[misc]  # it always answers one row


def make_durable(connection: psycopg.Connection[Any]) -> None:
    """Wait until everything that was committed before this has reached the disk. Orders that wait share the flush."""
    connection.execute(MAKE_DURABLE)


GROUND = """
SELECT d.units, d.epsilon, d.delta, d.renyi_order, d.renyi_capacity,
       b.simple_pending, b.simple_posted, b.renyi_pending, b.renyi_posted,
       d.erased_at IS NOT NULL OR coalesce(d.rows_expire_at <= clock_timestamp(), false),
       b.declaration, d.schema::text,
       coalesce((d.privacy_unit ->> 'max_rows_per_unit')::int, (d.privacy_unit ->> 'max_images_per_unit')::int, 1),
       (SELECT r.id FROM releases r WHERE r.tenant_id = d.tenant_id AND r.idempotency_key = %(key)s::text)
FROM datasets d JOIN balances b ON b.dataset_id = d.id
WHERE d.id = %(dataset)s AND d.tenant_id = %(tenant)s
"""


class Ground(NamedTuple):
    """What an order stands on: the dataset's account and schema, and what the same key has ordered before."""

    account: datasets.Account
    erased: bool
    declaration: int
    """The number of the declaration. A price holds under it alone, and the reservation says so."""
    schema: str
    most_per_unit: int
    """Rows or images."""
    earlier_id: uuid.UUID | None

    @classmethod
    def of_new(cls, schema: DeclaredSchema, *, units: int, most_per_unit: int, budget: Budget) -> Ground:
        """The state of a dataset that is not made yet: nothing of its budget is spent."""
        account = datasets.Account(
            units, budget.epsilon, budget.delta, budget.renyi_order, budget.renyi_capacity, 0, 0, 0, 0
        )
        return cls(account, False, 0, json.dumps(schema.as_json()), most_per_unit, None)

    @property
    def declared_schema(self) -> DeclaredSchema:
        return declared_schema(self.schema)

    @property
    def facts(self) -> Facts:
        """What prices and the choice of a method may depend on."""
        account = self.account
        return Facts.of_declaration(
            self.schema, units=account.units, most_per_unit=self.most_per_unit, budget=account.budget
        )


def find_ground(
    connection: psycopg.Connection[Any],
    tenant_id: uuid.UUID,
    dataset_id: uuid.UUID,
    *,
    idempotency_key: str | None = None,
) -> Ground:
    """All of it in one statement."""
    values = {"tenant": tenant_id, "dataset": dataset_id, "key": idempotency_key}
    found = connection.execute(GROUND, values).fetchone()
    if found is None:
        raise NotFound("no such dataset; GET /v1/datasets lists yours")
    return Ground(datasets.Account(*found[:-5]), *found[-5:])


def find(session: Session, tenant_id: uuid.UUID, release_id: uuid.UUID) -> Release:
    """The tenant's release, as it is now; `NotFound` where the tenant has none of this id."""
    query = (
        select(Release)
        .where(Release.id == release_id, Release.tenant_id == tenant_id)
        .execution_options(populate_existing=True)
    )
    release = session.scalars(query).one_or_none()
    if release is None:
        raise NotFound("no such release; GET /v1/releases lists yours")
    return release


def require_own(session: Session, tenant_id: uuid.UUID, release_id: uuid.UUID) -> None:
    """Another tenant's looks like none."""
    if session.scalar(select(Release.id).where(Release.id == release_id, Release.tenant_id == tenant_id)) is None:
        raise NotFound("no such release; GET /v1/releases lists yours")


def find_id_of_key(
    connection: psycopg.Connection[Any], tenant_id: uuid.UUID, idempotency_key: str | None
) -> uuid.UUID | None:
    """The release that this key has made, if any; every refusal of an order asks for it."""
    query = "SELECT id FROM releases WHERE tenant_id = %s AND idempotency_key = %s::text"
    found = connection.execute(query, (tenant_id, idempotency_key)).fetchone()
    return None if found is None else found[0]


def count_open(connection: psycopg.Connection[Any], tenant_id: uuid.UUID, key_id: uuid.UUID) -> tuple[int, int]:
    """Open orders of the key and of its tenant, as `order_reserve` counts them; here without taking turns, so that another may come between."""
    query = """
    SELECT count(*) FILTER (WHERE key_id = %s), count(*) FROM releases
    WHERE tenant_id = %s AND state IN ('reserved', 'charged')
    """
    of_key, of_tenant = connection.execute(query, (key_id, tenant_id)).fetchone()  # type: ignore[misc]  # it always answers one row
    return of_key, of_tenant


MOST_CERTIFICATE_BYTES = 1 << 16
"""Of a certificate in a list, without its consistency proofs, which grow with the number of releases."""


def page_of_tenant(
    session: Session, tenant_id: uuid.UUID, dataset_id: uuid.UUID | None, page: Page
) -> tuple[list[Release], str | None]:
    """One page without what does not belong in lists, and the cursor of the next: price and certificate are cut in the database."""
    size = func.octet_length(cast(Release.order_, Text)) + case(
        (_CERTIFICATE_BYTES <= MOST_CERTIFICATE_BYTES, _CERTIFICATE_BYTES), else_=0
    )
    query = select(Release.id, Release.created_at, size).where(Release.tenant_id == tenant_id)
    if dataset_id is not None:
        query = query.where(Release.dataset_id == dataset_id)
    ids, following = page.cut(session.execute(page.narrow(query, Release.created_at, Release.id)).all())
    return in_order(ids, listed(session, ids)), following


def listed(session: Session, ids: Sequence[uuid.UUID]) -> list[Release]:
    """These releases, with what lists and events show of them."""
    shown = select(*_LISTED, _PROMISE.label("price"), _SHOWN.label("certificate"))
    rows = session.execute(shown.where(is_among(Release.id, ids))).mappings()
    return [Release(**row) for row in rows]


class Progress(NamedTuple):
    """How far a release is: what changes while somebody watches."""

    state: str
    phase: str
    step: int


def progress_of(connection: psycopg.Connection[Any], ids: Sequence[uuid.UUID]) -> Iterator[tuple[uuid.UUID, Progress]]:
    """The progress of those of these releases that exist."""
    for found in connection.execute("SELECT id, state, phase, step FROM releases WHERE id = ANY(%s)", (ids,)):
        yield found[0], Progress(*found[1:])


_LISTED = (
    Release.id,
    Release.name,
    Release.priority,
    Release.estimate,
    Release.dataset_id,
    Release.state,
    Release.cancel_requested,
    Release.order_,
    Release.simple_cost,
    Release.renyi_cost,
    Release.phase,
    Release.step,
    Release.steps,
    Release.failure,
    Release.created_at,
)
_CERTIFICATE = Release.certificate.op("-")("consistency")
_CERTIFICATE_BYTES = func.coalesce(func.octet_length(cast(_CERTIFICATE, Text)), 0)
_SHOWN = type_coerce(case((_CERTIFICATE_BYTES <= MOST_CERTIFICATE_BYTES, _CERTIFICATE)), JSONB)
_PROMISE = type_coerce(
    func.jsonb_build_object("epsilon", Release.price["epsilon"], "delta", Release.price["delta"]), JSONB
)


def any_published(session: Session) -> bool:
    """Whether any tenant has a release to sample from."""
    return bool(session.scalar(select(exists().where(Release.bundle_key.is_not(None)))))


def cancel(
    session: Session, tenant_id: uuid.UUID, release_id: uuid.UUID, *, key: uuid.UUID, request: uuid.UUID
) -> str | None:
    """`done`, and the audit log says so; the state in which the release had ended before; None where the tenant has none of this id."""
    call = text("SELECT release_cancel(:tenant, :release, :key, :request)")
    names = {"tenant": tenant_id, "release": release_id, "key": key, "request": request}
    outcome: str | None = session.execute(call, names).scalar_one()
    return outcome
