"""Questions that were asked before on a dataset, with at least as little noise."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from itertools import chain
from typing import Any

import psycopg

from service.base.caching import BoundedCache
from service.base.errors import InvalidOrder
from service.methods.catalogue import parse_resolved_order
from service.methods.queries.order import QueriesOrder, Question
from service.methods.queries.price import events_of_each
from service.privacy.events import Events, events_from_json

MOST_LOOKED_AT = 200
"""Earlier releases that ask one of these questions; the oldest first."""
ALIKE = 0.97
"""The ε of an order is met within 1 % (`service.privacy.calibration.TOLERANCE`), and precision is its square: so much is as good as all of it."""

MOST_READ_BYTES = 2 << 20
"""Of orders and their price lists that one request reads and this process does not remember: about a second's work. The next request goes on."""
MOST_REMEMBERED_BYTES = 8 << 20
BYTES_OF_A_QUESTION = 200
"""That is remembered: its key, and how precise its answer is."""

EARLIER = """
SELECT r.id, r.state
FROM releases r
WHERE r.tenant_id = %(tenant)s AND r.dataset_id = %(dataset)s AND r.state IN ('reserved', 'charged', 'published')
  AND NOT r.cancel_requested
  AND r.order_ ->> 'method' = 'queries'
  AND EXISTS (SELECT FROM unnest(%(questions)s::jsonb[]) asked WHERE r.order_ @> asked)
ORDER BY r.created_at, r.id
LIMIT %(most)s
"""
READ = """
SELECT r.order_::text, (r.price -> 'events')::text
FROM releases r
WHERE r.tenant_id = %(tenant)s AND r.id = %(release)s
"""

Given = tuple[tuple[str, float], ...]
"""Of each question of a release in turn: its key, and how precise an answer it is given."""

_GIVEN: BoundedCache[Given] = BoundedCache(MOST_REMEMBERED_BYTES)
"""By release. What was ordered, and its price, never change."""


@dataclass(frozen=True)
class Earlier:
    """The release in which a question was asked first, whether it is published, and the question's place among its answers."""

    release_id: uuid.UUID
    is_published: bool
    place: int


def find_earlier(
    connection: psycopg.Connection[Any],
    tenant_id: uuid.UUID,
    dataset_id: uuid.UUID,
    order: QueriesOrder,
    events: Events | None,
) -> tuple[dict[int, Earlier], bool]:
    """The earlier answer to each question, by its place: the first with as little noise as it would have now; without `events`, the one with the least.

    And whether all that there is was looked at: there may be more where a request has read enough.
    """
    keys = [question.key for question in order.questions]
    wanted = _wanted(order, keys, events)
    values = {
        "tenant": tenant_id,
        "dataset": dataset_id,
        "questions": sorted({json.dumps({"questions": [_stored(question)]}) for question in order.questions}),
        "most": MOST_LOOKED_AT,
    }
    found: dict[int, tuple[float, Earlier]] = {}
    reading = _Reading(connection, tenant_id)
    for release_id, state in connection.execute(EARLIER, values).fetchall():
        for at, (key, given) in enumerate(reading.given(release_id)):
            asked = wanted.get(key, {})
            will_do = [place for place, enough in asked.items() if given >= ALIKE * enough]
            for place in will_do:
                if place not in found or given > found[place][0]:
                    found[place] = given, Earlier(release_id, state == "published", at)
                if events is not None:  # the first that will do
                    del asked[place]
        if events is not None and len(found) == len(keys):
            break
    return {place: answer for place, (_, answer) in found.items()}, len(found) == len(keys) or reading.has_all


def _wanted(order: QueriesOrder, keys: list[str], events: Events | None) -> dict[str, dict[int, float]]:
    """By the key of a question: the places that it has, and how precise an answer to each must be."""
    least = [0.0] * len(keys) if events is None else [precision(own) for own in events_of_each(order, events)]
    found: dict[str, dict[int, float]] = {}
    for place, (key, enough) in enumerate(zip(keys, least, strict=True)):
        found.setdefault(key, {})[place] = enough
    return found


class _Reading:
    """Reads what earlier releases were asked, each once in this process, and no more than one request may."""

    def __init__(self, connection: psycopg.Connection[Any], tenant_id: uuid.UUID) -> None:
        self._connection, self._tenant_id, self._left_bytes = connection, tenant_id, MOST_READ_BYTES
        self.has_all = True

    def given(self, release_id: uuid.UUID) -> Given:
        """Nothing where it is of another version, or the request has read enough."""
        if (known := _GIVEN.get(release_id)) is not None:
            return known[0]
        if self._left_bytes <= 0:
            self.has_all = False
            return ()
        read = self._connection.execute(READ, {"tenant": self._tenant_id, "release": release_id}).fetchone()
        if read is None:
            return ()
        self._left_bytes -= sum(map(len, read))
        given = _given(*map(json.loads, read))
        _GIVEN.put(release_id, given, BYTES_OF_A_QUESTION * len(given))
        return given


def _given(document: Any, listed: Any) -> Given:
    try:
        order = parse_resolved_order(document)
    except InvalidOrder:
        return ()  # of another version
    if not isinstance(order, QueriesOrder):
        return ()
    each = events_of_each(order, events_from_json(listed))
    return tuple((question.key, precision(own)) for question, own in zip(order.questions, each, strict=True))


def precision(events: Events) -> float:
    """What a question was given, to compare it with the same question: about 1/σ² of the Gaussian that its releases are worth."""
    return sum(chain.from_iterable(event.sizes() for event in events))


def _stored(question: Question) -> dict[str, Any]:
    """What the stored order holds of it, however it is weighted; conditions are compared by its key."""
    return question.model_dump(mode="json", exclude={"weight", "where"})
