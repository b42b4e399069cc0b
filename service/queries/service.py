"""Ask: parse, look for earlier answers, price and order the rest. No private row is read here."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from service.auth.principal import Principal
from service.base.errors import InvalidOrder, RateLimited, Unpriceable
from service.base.messages import Message
from service.domain.table_schema import TableSchema
from service.methods.catalogue import parse_order
from service.methods.queries.order import MOST_QUESTIONS, QueriesOrder
from service.platform.context import Context
from service.queries.conditions import OrderConditions
from service.queries.earlier import Earlier, find_earlier
from service.releases import repository
from service.releases import service as releases
from service.releases.answers import answers_of_bundle
from service.releases.models import Release
from service.releases.priority import DEFAULT_URGENCY

OF_ORDER = ("epsilon", "share", "device")
"""What a request may say besides its questions."""

BundleKey = Callable[[Release], str]


@dataclass(frozen=True)
class Asked:
    """What becomes of the questions of one request."""

    keys: list[str]
    earlier: dict[int, Earlier]
    """By place, of the questions that were asked before."""
    left: QueriesOrder | None
    """The questions that are to be paid, in the order of their places; None where all were asked before."""
    document: dict[str, Any]
    """The same, as it is ordered."""
    quote: releases.Quote | None


def look(context: Context, principal: Principal, dataset_id: uuid.UUID, body: Any, *, is_dry: bool = True) -> Asked:
    """Which questions cost nothing, and the price of the others. Reserves nothing and reads no private row.

    is_dry: nothing will be ordered, so that a price is right even where an earlier answer may not have been found. Else `RateLimited` then.
    """
    document = document_of(context, principal, dataset_id, body)
    try:
        quote = releases.quote(context, principal, dataset_id, document)
    except (InvalidOrder, Unpriceable):
        asked = _of_no_rest(context, principal, dataset_id, document)
        if asked is None:
            raise
        return asked
    order = quote.order
    if not isinstance(order, QueriesOrder):
        raise InvalidOrder(
            Message("questions: give the questions as an order has them (docs/queries.md)"), where="questions"
        )
    with context.driver() as connection:
        earlier, is_all = find_earlier(connection, principal.tenant_id, dataset_id, order, quote.price.events)
    keys = [question.key for question in order.questions]
    if len(earlier) == len(keys):
        return Asked(keys, earlier, None, document, None)
    if not (is_all or is_dry):
        raise RateLimited(
            Message(
                "so much was asked of this dataset that not all of it is read yet, and what was asked before costs "
                "nothing: ask again"
            ),
            retry_after_seconds=1,
        )
    if earlier:
        document = _without(document, order, earlier)
        quote = releases.quote(context, principal, dataset_id, document)
        order = quote.order if isinstance(quote.order, QueriesOrder) else order
    return Asked(keys, earlier, order, document, quote)


def _of_no_rest(
    context: Context, principal: Principal, dataset_id: uuid.UUID, document: dict[str, Any]
) -> Asked | None:
    """Questions at what is left of the budget, where that has no price any more: the best answers there are, if all of them are there."""
    order = parse_order(document)
    if order.share != "rest" or not isinstance(order, QueriesOrder):
        return None
    with context.driver() as connection:
        earlier, _ = find_earlier(connection, principal.tenant_id, dataset_id, order, None)
    keys = [question.key for question in order.questions]
    return Asked(keys, earlier, None, document, None) if len(earlier) == len(keys) else None


def ask(
    context: Context,
    principal: Principal,
    dataset_id: uuid.UUID,
    asked: Asked,
    idempotency_key: str | None,
    *,
    priority: int = DEFAULT_URGENCY,
) -> Release | None:
    """Reserve and order what was not asked before; None where that is nothing."""
    if asked.left is None:
        return None
    return releases.order_release(context, principal, dataset_id, asked.document, idempotency_key, priority=priority)


def answers_of(
    context: Context, principal: Principal, asked: Asked, bundle_key: BundleKey
) -> dict[int, dict[str, Any]]:
    """The answers that are there, by place: read from published releases, and noted in the audit log."""
    read: dict[uuid.UUID, list[dict[str, Any]]] = {}
    found = {}
    for place, earlier in asked.earlier.items():
        if not earlier.is_published:
            continue
        if earlier.release_id not in read:
            release = releases.find_published(context, principal, earlier.release_id)
            bundle = context.storage.get_content(bundle_key(release))
            read[earlier.release_id] = answers_of_bundle(bundle, release.id)["answers"]
        found[place] = read[earlier.release_id][earlier.place]
    return found


def document_of(context: Context, principal: Principal, dataset_id: uuid.UUID, body: Any) -> dict[str, Any]:
    """A request as an order: one question or several, conditions as people write them."""
    if not isinstance(body, dict):
        raise InvalidOrder(
            Message('a request is a JSON object, for example {"kind": "count", "epsilon": 0.1}'), where="body"
        )
    rest = {name: value for name, value in body.items() if name != "dry_run"}
    said = {name: rest.pop(name) for name in OF_ORDER if name in rest}
    if "questions" in rest:
        questions = rest.pop("questions")
        if rest:
            raise InvalidOrder(
                Message("%(knob)s: with `questions`, put it into one of them", knob=next(iter(rest))), where="body"
            )
    else:
        questions = [rest]
    if not isinstance(questions, list) or not all(isinstance(question, dict) for question in questions):
        raise InvalidOrder(Message("questions: a list of questions is meant, each a JSON object"), where="questions")
    if any(question.get("where") is not None for question in questions):
        with context.driver() as connection:
            schema = repository.find_ground(connection, principal.tenant_id, dataset_id).declared_schema
        if isinstance(schema, TableSchema):
            read = OrderConditions(schema.modelled)
            read_now = [_with_conditions(each, read, place) for place, each in enumerate(questions[:MOST_QUESTIONS])]
            questions = [*read_now, *questions[MOST_QUESTIONS:]]  # more are refused
    document = {"method": "queries", "questions": questions, **said}
    parse_order(document)
    return document


def _with_conditions(question: dict[str, Any], read: OrderConditions, place: int) -> dict[str, Any]:
    where = question.get("where")
    without = {name: value for name, value in question.items() if name != "where"}
    if where is None:
        return without
    return {**without, "where": read.of(where, f"questions.{place}")}


def _without(document: dict[str, Any], order: QueriesOrder, earlier: dict[int, Earlier]) -> dict[str, Any]:
    """Without what was asked before, and without its part of the price."""
    kept = [place for place in range(len(order.questions)) if place not in earlier]
    part = sum(order.shares[place] for place in kept)
    smaller = {**document, "questions": [document["questions"][place] for place in kept]}
    for name in ("epsilon", "share"):
        if isinstance(smaller.get(name), int | float):
            smaller[name] = part * smaller[name]
    return smaller
