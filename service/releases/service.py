"""Quote, order, cancel. An order is priced from itself and n; then one transaction reserves, records and enqueues."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Sequence
from typing import Any

from sqlalchemy.exc import IntegrityError

from service.audit import service as audit
from service.auth.principal import Principal
from service.context import Context
from service.datasets import repository as datasets
from service.datasets.models import Dataset
from service.errors import Gone, IdempotencyConflict, InvalidInput, InvalidOrder, NotCancellable, NotReady
from service.ledger import repository as ledger_repository
from service.ledger import service as ledger
from service.outbox import TRAIN_TASK, enqueue
from service.privacy.calibration import Price, largest_epsilon, price_order, resolve_order
from service.privacy.events import steps_in
from service.privacy.orders import Order, parse_order
from service.releases import repository
from service.releases.models import ENDED, Release

MAX_IDEMPOTENCY_KEY_LENGTH = 255


def price(context: Context, principal: Principal, dataset_id: uuid.UUID, document: Any) -> tuple[Order, Price, Dataset]:
    """The resolved order and its price. Reads the dataset's declaration and balance, no private row."""
    order = parse_order(document)
    with context.transaction() as session:
        dataset = datasets.find(session, principal.tenant_id, dataset_id)
        left = ledger.Remaining.of(ledger_repository.read_balance(session, dataset_id))
    _check_against_schema(order, dataset)
    if order.share == "rest":
        epsilon = largest_epsilon(
            order, units=dataset.units, budget=dataset.budget, simple_left=left.simple, renyi_left=left.renyi
        )
        if epsilon <= 0.0:
            raise InvalidOrder("nothing is left of this dataset's budget", where="share")
        order = order.model_copy(update={"epsilon": epsilon, "share": None})
    order = resolve_order(order, units=dataset.units)
    return order, price_order(order, units=dataset.units, budget=dataset.budget), dataset


def remaining(context: Context, principal: Principal, dataset_id: uuid.UUID) -> ledger.Remaining:
    with context.transaction() as session:
        datasets.find(session, principal.tenant_id, dataset_id)
        return ledger.Remaining.of(ledger_repository.read_balance(session, dataset_id))


def order_release(
    context: Context, principal: Principal, dataset_id: uuid.UUID, document: Any, idempotency_key: str | None = None
) -> Release:
    """Reserve, record and enqueue in one transaction, or refuse and change nothing.

    The same `idempotency_key` with the same body returns the release it made the first time.
    """
    if idempotency_key is not None and not 1 <= len(idempotency_key) <= MAX_IDEMPOTENCY_KEY_LENGTH:
        raise InvalidInput("Idempotency-Key: use 1 to 255 characters", where="Idempotency-Key")
    digest = _body_digest(dataset_id, document)
    earlier = _earlier_release(context, principal, idempotency_key, digest)
    if earlier is not None:
        return earlier
    order, order_price, dataset = price(context, principal, dataset_id, document)
    if dataset.state == "erased":
        raise Gone("the rows of this dataset were erased; nothing more can be released from it")
    release_id = uuid.uuid4()
    try:
        with context.transaction() as session:
            repository.add(
                session,
                id=release_id,
                tenant_id=principal.tenant_id,
                dataset_id=dataset_id,
                order_=order.model_dump(mode="json"),
                price=order_price.as_json(),
                simple_cost=order_price.shares.simple,
                renyi_cost=order_price.shares.renyi,
                idempotency_key=idempotency_key,
                body_digest=digest,
                steps=steps_in(order_price.events),
            )
            ledger.reserve(session, dataset_id, release_id, order_price.shares)
            enqueue(session, TRAIN_TASK, release_id)
            audit.record(session, principal, "release", release_id)
            return repository.find(session, principal.tenant_id, release_id)
    except IntegrityError:
        # The same key came twice at once and the other request was first.
        earlier = _earlier_release(context, principal, idempotency_key, digest)
        if earlier is None:
            raise
        return earlier


def find(context: Context, principal: Principal, release_id: uuid.UUID) -> Release:
    with context.transaction() as session:
        return repository.find(session, principal.tenant_id, release_id)


def find_published(context: Context, principal: Principal, release_id: uuid.UUID) -> Release:
    """A release whose artefacts may be handed out; says so to the audit log."""
    with context.transaction() as session:
        release = repository.find(session, principal.tenant_id, release_id)
        if release.state != "published":
            raise NotReady(
                f"this release is {release.state}; its artefacts are there once it is published", state=release.state
            )
        audit.record(session, principal, "release", release_id)
        return release


def list_all(context: Context, principal: Principal, dataset_id: uuid.UUID | None) -> Sequence[Release]:
    with context.transaction() as session:
        return repository.list_of_tenant(session, principal.tenant_id, dataset_id)


def cancel(context: Context, principal: Principal, release_id: uuid.UUID) -> Release:
    """Stop a release. Before the charge it is voided in full; after it the worker stops and the charge is settled."""
    with context.transaction() as session:
        release = repository.find(session, principal.tenant_id, release_id, lock=True)
        if release.state in ENDED:
            raise NotCancellable(f"this release is already {release.state}", state=release.state)
        if release.state == "reserved":
            ledger.void(session, release.dataset_id, release_id)
            repository.change(session, release_id, state="voided", phase="ended", cancel_requested=True)
        else:
            repository.change(session, release_id, cancel_requested=True)
        audit.record(session, principal, "release", release_id)
        return repository.find(session, principal.tenant_id, release_id)


def _earlier_release(
    context: Context, principal: Principal, idempotency_key: str | None, digest: bytes
) -> Release | None:
    if idempotency_key is None:
        return None
    with context.transaction() as session:
        earlier = repository.find_by_idempotency_key(session, principal.tenant_id, idempotency_key)
    if earlier is not None and bytes(earlier.body_digest) != digest:
        raise IdempotencyConflict("this Idempotency-Key was used with another body; use a new key for a new order")
    return earlier


def _body_digest(dataset_id: uuid.UUID, document: Any) -> bytes:
    canonical = json.dumps([str(dataset_id), document], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).digest()


def _check_against_schema(order: Order, dataset: Dataset) -> None:
    if order.condition_on is None:
        return
    field = dataset.table_schema.field(order.condition_on)
    if field is None:
        raise InvalidOrder(f"condition_on: the schema has no field {order.condition_on!r}", where="condition_on")
    if field.type != "boolean" and field.constraints.enum is None:
        raise InvalidOrder(
            "condition_on: choose a field with declared categories (an enum or a boolean)", where="condition_on"
        )
