"""Quote, order, cancel. An order is priced from itself and n; then one transaction reserves and records."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from psycopg.errors import UniqueViolation

from service.audit import service as audit
from service.audit.models import DONE
from service.auth.principal import Principal
from service.base.errors import (
    AlreadyOrdered,
    BudgetExhausted,
    Gone,
    IdempotencyConflict,
    InvalidInput,
    NameTaken,
    NotCancellable,
    NotFound,
    NotReady,
    TooManyOpenOrders,
)
from service.base.messages import Figure, Message, Text
from service.datasets import repository as datasets
from service.datasets.public import check_public_start, check_public_start_of, public_rows_of
from service.domain.open_columns import bought_columns
from service.domain.unit_words import protected_units
from service.ledger import service as ledger
from service.methods.catalogue import method_of, parse_order
from service.methods.facts import PublicRows
from service.methods.forecast import Forecast
from service.methods.knobs import MAX_EPSILON, AnyOrder, Order
from service.methods.pricing import Price, largest_next_epsilon, price_order, resolve_order
from service.methods.report import forecast_of, unlikely_to_be_met
from service.methods.turns import Asker, on_behalf_of
from service.methods.wants import Wanted, least_epsilon, parse_want
from service.methods.work import Estimate
from service.platform.context import Context
from service.platform.paging import Page
from service.platform.settings import Settings
from service.privacy.filters import Shares
from service.privacy.statements import statement_warnings
from service.releases import previews, repository
from service.releases.answers import answers_of_bundle
from service.releases.bundles import Bundles
from service.releases.models import Release
from service.releases.priority import DEFAULT_URGENCY
from service.releases.work import estimate_of, refuse_too_much
from service.samples.cache import expect_samples

MAX_IDEMPOTENCY_KEY_LENGTH = 255
FULL_RETRY_SECONDS = 30
"""Of a refusal because of too many open orders; a place is free when one of them ends."""
REFUSED = {"exhausted", "redeclared", "key_full", "tenant_full"}
"""Outcomes of a reservation that an earlier order with the same Idempotency-Key may explain."""


@dataclass(frozen=True, slots=True)
class Quote:
    """A resolved order, its price, what is left of the budget it would be paid from, and what must be said of both."""

    order: Order
    price: Price
    remaining: ledger.Remaining
    warnings: list[str]
    declaration: int
    """Under which declaration of the dataset."""
    estimate: Estimate
    """What it takes to carry it out."""
    forecast: Forecast
    """How far off what is published will be."""
    bought: list[dict[str, Any]]
    """Columns whose bounds or categories are not the owner's word."""
    wanted: Wanted | None = None
    """The least ε that gives what the caller wants, if that was said."""


def quote(context: Context, principal: Principal, dataset_id: uuid.UUID, document: Any) -> Quote:
    """Reads the dataset's declaration and balance, no private row; reserves nothing.

    An order that says what is wanted (`want`) may leave ε open: it is quoted at the least ε that gives it, or at the largest there is.
    """
    wants = isinstance(document, dict) and document.get("want") is not None
    order = None if wants else parse_order(document)
    with context.driver() as connection:
        ground = repository.find_ground(connection, principal.tenant_id, dataset_id)
    return (
        _quote_wanted(context, principal, dict(document), ground, dataset_id)
        if order is None
        else _price(context, principal, order, ground, dataset_id)
    )


def order_release(
    context: Context,
    principal: Principal,
    dataset_id: uuid.UUID,
    document: Any,
    idempotency_key: str | None = None,
    *,
    priority: int = DEFAULT_URGENCY,
    name: str | None = None,
) -> Release:
    """Reserve and record in one transaction, or refuse and change nothing.

    The same `idempotency_key` with the same body returns the release it made the first time, whatever its priority and name.
    """
    check_key(idempotency_key)
    digest = _body_digest(dataset_id, document)
    with context.driver() as connection:
        ground = repository.find_ground(connection, principal.tenant_id, dataset_id, idempotency_key=idempotency_key)
    if ground.earlier_id is not None:
        with context.driver() as connection:
            repository.make_durable(connection)  # its own request may not have come so far
        return _same_body(find(context, principal, ground.earlier_id), digest)
    quoted = _price(context, principal, parse_order(document), ground, dataset_id)
    if ground.erased:
        raise Gone(Message("the rows of this dataset were erased; nothing more can be released from it"))
    written = {
        "id": uuid.uuid4(),
        "tenant_id": principal.tenant_id,
        "dataset_id": dataset_id,
        "key_id": principal.key_id,
        "priority": priority,
        "name": name,
        "simple_cost": quoted.price.shares.simple,
        "renyi_cost": quoted.price.shares.renyi,
        "idempotency_key": idempotency_key,
        "body_digest": digest,
        "steps": quoted.order.progress_steps,
    }
    return _place(context, principal, quoted, written)


def check_key(idempotency_key: str | None) -> None:
    """Raises `InvalidInput`."""
    if idempotency_key is not None and not 1 <= len(idempotency_key) <= MAX_IDEMPOTENCY_KEY_LENGTH:
        raise InvalidInput(Message("Idempotency-Key: use 1 to 255 characters"), where="Idempotency-Key")


def check_first_order(
    context: Context, principal: Principal, order: AnyOrder, ground: repository.Ground, idempotency_key: str | None
) -> None:
    """Raises what `order_release` would on a dataset that is not made yet; reserves nothing and reads no private row."""
    if idempotency_key is not None and has_ordered(context, principal, idempotency_key):
        raise other_body()
    quoted = _price(context, principal, order, ground, None)
    cost, left = quoted.price.shares, quoted.remaining
    if not left.fits(cost):
        raise BudgetExhausted(
            Message(
                "neither account of the budget that the dataset would get has room for the order; no dataset was made and "
                "nothing was ordered: order an epsilon of at most %(most)s, or give the dataset a budget of at least "
                "epsilon %(least)s",
                most=Figure(f"{ground.account.epsilon:g}"),
                least=Figure(f"{quoted.order.epsilon:g}"),
            ),
            remaining={"simple": left.simple, "renyi": left.renyi},
            requested={"simple": cost.simple, "renyi": cost.renyi},
        )
    settings = context.settings
    with context.driver() as connection:
        of_key, of_tenant = repository.count_open(connection, principal.tenant_id, principal.key_id)
    if of_key >= settings.open_orders_per_key:
        _refuse_when_full("key_full", settings)
    if of_tenant >= settings.open_orders_per_tenant:
        _refuse_when_full("tenant_full", settings)


def has_ordered(context: Context, principal: Principal, idempotency_key: str) -> bool:
    """Whether this key has made a release, with whatever body."""
    with context.driver() as connection:
        return repository.find_id_of_key(connection, principal.tenant_id, idempotency_key) is not None


def _place(context: Context, principal: Principal, quoted: Quote, written: dict[str, Any]) -> Release:
    """One statement decides and writes everything down; another waits until that is on the disk."""
    idempotency_key, settings = written["idempotency_key"], context.settings
    estimate = {**quoted.estimate.as_json, "warnings": quoted.warnings}
    with context.driver() as connection:
        earlier_id: uuid.UUID | None = None
        try:
            placed = repository.place(
                connection,
                **written,
                declaration=quoted.declaration,
                order=quoted.order.model_dump_json(),
                price=quoted.price.json_text,
                most_of_key=settings.open_orders_per_key,
                most_of_tenant=settings.open_orders_per_tenant,
                estimate=json.dumps(estimate),
                action=principal.action,
                request_id=principal.request_id,
                audit_outcome=DONE,
            )
            if placed.outcome in REFUSED:
                earlier_id = repository.find_id_of_key(connection, principal.tenant_id, idempotency_key)
        except UniqueViolation as violation:
            # The same key came twice at once and the other request was first; or the name is taken.
            earlier_id = repository.find_id_of_key(connection, principal.tenant_id, idempotency_key)
            if earlier_id is None and violation.diag.constraint_name == repository.NAMES:
                raise NameTaken(
                    Message("another release of this dataset has this name; nothing was ordered: choose another one")
                ) from None
            if earlier_id is None and violation.diag.constraint_name == repository.PURCHASES:
                raise AlreadyOrdered(
                    Message(
                        "bounds and categories of this dataset are being bought by another order; nothing was ordered: "
                        "wait for that release, or cancel it"
                    )
                ) from None
            if earlier_id is None:
                raise
        if earlier_id is not None or not placed.durable:
            repository.make_durable(connection)
    if earlier_id is not None:
        return _same_body(find(context, principal, earlier_id), written["body_digest"])
    _refuse_when_full(placed.outcome, settings)
    ledger.require_done(placed, quoted.price.shares)
    expect_samples()
    return Release(
        **written,
        order_=quoted.order.model_dump(mode="json"),
        price=quoted.price.as_json,
        estimate=estimate,
        state=placed.state,
        phase=placed.phase,
        step=placed.step,
        created_at=placed.created_at,
    )


def _refuse_when_full(outcome: str, settings: Settings) -> None:
    """Open orders of a key and of a tenant are limited; the database counted them in the order's transaction."""
    full = {
        "key_full": ("key", settings.open_orders_per_key, Message("this key has")),
        "tenant_full": ("tenant", settings.open_orders_per_tenant, Message("the keys of this tenant have")),
    }
    if outcome in full:
        of, limit, who = full[outcome]
        raise TooManyOpenOrders(
            Message(
                "%(who)s %(limit)s open orders, the most that are allowed at once; nothing was ordered: wait until one "
                "of them has ended, or cancel one (POST /v1/releases/{id}/cancel), and order again",
                who=who,
                limit=limit,
            ),
            of=of,
            limit=limit,
            retry_after_seconds=FULL_RETRY_SECONDS,
        )


def find(context: Context, principal: Principal, release_id: uuid.UUID) -> Release:
    """The tenant's release; `NotFound` where the tenant has none of this id."""
    with context.statement() as session:
        return repository.find(session, principal.tenant_id, release_id)


def find_own(context: Context, principal: Principal, release_id: uuid.UUID) -> None:
    """Make sure that the release is the tenant's."""
    with context.statement() as session:
        repository.require_own(session, principal.tenant_id, release_id)


def find_published(context: Context, principal: Principal, release_id: uuid.UUID) -> Release:
    """A release whose artefacts may be handed out; says so to the audit log."""
    with context.transaction() as session:
        release = repository.find(session, principal.tenant_id, release_id)
        if release.state != "published":
            ended = release.state in {"failed", "voided"}
            later = "" if ended else Message("; its artefacts are there once it is published")
            raise NotReady(
                Message("this release is %(state)s%(later)s", state=Text(release.state), later=later),
                state=release.state,
            )
        audit.record(session, principal, "release", release_id)
        return release


def read_preview(context: Context, principal: Principal, release_id: uuid.UUID) -> bytes:
    """The picture of a release in training; where there is one, the audit log is told."""
    picture = previews.read_preview(context.storage, find(context, principal, release_id))
    with context.transaction() as session:
        audit.record(session, principal, "release", release_id)
    return picture


def open_bundle(context: Context, principal: Principal, bundles: Bundles, release_id: uuid.UUID) -> Iterator[bytes]:
    """The published ZIP, piece by piece, once it was found to be the one that was certified."""
    release = find_published(context, principal, release_id)
    return context.storage.stream_content(bundles.checked_key(release))


def read_answers(context: Context, principal: Principal, bundles: Bundles, release_id: uuid.UUID) -> dict[str, Any]:
    """What a release of answers holds."""
    release = find_published(context, principal, release_id)
    return answers_of_bundle(context.storage.get_content(bundles.checked_key(release)), release_id)


def list_page(
    context: Context, principal: Principal, dataset_id: uuid.UUID | None, page: Page
) -> tuple[list[Release], str | None]:
    with context.transaction() as session:
        return repository.page_of_tenant(session, principal.tenant_id, dataset_id, page)


def cancel(context: Context, principal: Principal, release_id: uuid.UUID) -> Release:
    """Stop a release. Before the charge it is voided in full; after it the worker stops and the charge is settled."""
    with context.transaction() as session:
        outcome = repository.cancel(
            session, principal.tenant_id, release_id, key=principal.key_id, request=principal.request_id
        )
        if outcome is None:
            raise NotFound(Message("no such release; GET /v1/releases lists yours"))
        if outcome != "done":
            raise NotCancellable(Message("this release is already %(outcome)s", outcome=Text(outcome)), state=outcome)
        return repository.find(session, principal.tenant_id, release_id)


def _same_body(earlier: Release, digest: bytes) -> Release:
    if bytes(earlier.body_digest) != digest:
        raise other_body()
    return earlier


def other_body(**values: str) -> IdempotencyConflict:
    """The error of a request that repeats an Idempotency-Key with another body."""
    return IdempotencyConflict(
        Message("this Idempotency-Key was used with another body; use a new key for a new order"), **values
    )


def _quote_wanted(
    context: Context, principal: Principal, document: dict[str, Any], ground: repository.Ground, dataset_id: uuid.UUID
) -> Quote:
    want, left = parse_want(document.pop("want")), ledger.Remaining.of(ground.account)
    largest = min(MAX_EPSILON, largest_next_epsilon(ground.account.budget, Shares(left.simple, left.renyi)))
    is_open = document.get("epsilon") is None and document.get("share") is None
    order = parse_order({**document, "epsilon": 1.0} if is_open else document)
    with on_behalf_of(Asker(principal.key_id, principal.tenant_id)):
        wanted = least_epsilon(want, order, ground.facts, ground.declared_schema, largest)
    if is_open:
        order = order.model_copy(update={"epsilon": wanted.epsilon or wanted.largest or ground.account.epsilon})
    return replace(_price(context, principal, order, ground, dataset_id), wanted=wanted)


def _price(
    context: Context, principal: Principal, order: AnyOrder, ground: repository.Ground, dataset_id: uuid.UUID | None
) -> Quote:
    account, left = ground.account, ledger.Remaining.of(ground.account)
    with on_behalf_of(Asker(principal.key_id, principal.tenant_id)):
        resolved = resolve_order(order, ground.facts, Shares(left.simple, left.renyi), ground.declared_schema)
        public = _public_start(context, principal, resolved, dataset_id, ground)
        estimate = estimate_of(resolved, replace(ground.facts, public=public), context.settings)
        refuse_too_much(resolved, estimate, context.settings)  # before it is priced, which takes long for a long one
        price = price_order(resolved, account.budget)
    warnings = statement_warnings(
        epsilon=account.epsilon,
        delta=account.delta,
        units=protected_units(ground.declared_schema, account.units),
        release_epsilon=price.epsilon,
    )
    forecast = forecast_of(method_of(resolved), resolved, price.events, ground.facts)
    said = [*warnings, *forecast.warnings, *unlikely_to_be_met(resolved, forecast)]
    bought = bought_columns(ground.declared_schema)
    return Quote(resolved, price, left, said, ground.declaration, estimate, forecast, bought)


def _public_start(
    context: Context, principal: Principal, order: Order, dataset_id: uuid.UUID | None, ground: repository.Ground
) -> PublicRows | None:
    """The public rows that an order begins from, once it may. Raises `InvalidOrder`."""
    public_id = method_of(order).also_reads(order)
    if public_id is None:
        return None
    with context.statement() as session:
        if dataset_id is None:
            return public_rows_of(
                check_public_start_of(session, principal.tenant_id, public_id, ground.declared_schema)
            )
        private = datasets.find(session, principal.tenant_id, dataset_id)
        return public_rows_of(check_public_start(session, principal.tenant_id, public_id, private))


def _body_digest(dataset_id: uuid.UUID, document: Any) -> bytes:
    return digest_of([str(dataset_id), document])


def digest_of(document: Any) -> bytes:
    """A digest that is the same for documents that say the same."""
    return hashlib.sha256(json.dumps(document, sort_keys=True, separators=(",", ":")).encode()).digest()
