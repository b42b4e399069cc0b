"""Questions that were asked before on a dataset, with at least as little noise."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from itertools import chain
from typing import Any

import psycopg

from service.base.errors import InvalidOrder
from service.methods.catalogue import parse_resolved_order
from service.methods.queries.order import QueriesOrder, Question
from service.methods.queries.price import events_of_each
from service.privacy.events import Events, events_from_json

MOST_LOOKED_AT = 200
"""Earlier releases that ask one of these questions; the oldest first."""
ALIKE = 0.97
"""The ε of an order is met within 1 % (`service.privacy.calibration.TOLERANCE`), and precision is its square: so much is as good as all of it."""

EARLIER = """
SELECT r.id, r.state, r.order_, r.price -> 'events'
FROM releases r
WHERE r.tenant_id = %(tenant)s AND r.dataset_id = %(dataset)s AND r.state IN ('reserved', 'charged', 'published')
  AND NOT r.cancel_requested
  AND r.order_ ->> 'method' = 'queries'
  AND EXISTS (SELECT FROM unnest(%(questions)s::jsonb[]) asked WHERE r.order_ @> asked)
ORDER BY r.created_at, r.id
LIMIT %(most)s
"""


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
) -> dict[int, Earlier]:
    """The earlier answer to each question, by its place: the first with as little noise as it would have now; without `events`, the one with the least."""
    wanted = _wanted(order, events)
    values = {
        "tenant": tenant_id,
        "dataset": dataset_id,
        "questions": [json.dumps({"questions": [_stored(question)]}) for question in order.questions],
        "most": MOST_LOOKED_AT,
    }
    found: dict[int, tuple[float, Earlier]] = {}
    for release_id, state, document, listed in connection.execute(EARLIER, values).fetchall():
        try:
            earlier = parse_resolved_order(document)
        except InvalidOrder:
            continue  # of another version
        if not isinstance(earlier, QueriesOrder):
            continue
        each = events_of_each(earlier, events_from_json(listed))
        for at, (question, own) in enumerate(zip(earlier.questions, each, strict=True)):
            for place, (key, enough) in wanted.items():
                given = precision(own)
                if question.key != key or given < ALIKE * enough:
                    continue
                if place not in found or (events is None and given > found[place][0]):
                    found[place] = given, Earlier(release_id, state == "published", at)
    return {place: answer for place, (_, answer) in found.items()}


def _wanted(order: QueriesOrder, events: Events | None) -> dict[int, tuple[str, float]]:
    """By place: the key of a question, and how precise an answer to it must be."""
    keys = [question.key for question in order.questions]
    least = [0.0] * len(keys) if events is None else [precision(own) for own in events_of_each(order, events)]
    return dict(enumerate(zip(keys, least, strict=True)))


def precision(events: Events) -> float:
    """What a question was given, to compare it with the same question: about 1/σ² of the Gaussian that its releases are worth."""
    return sum(chain.from_iterable(event.sizes() for event in events))


def _stored(question: Question) -> dict[str, Any]:
    """What the stored order holds of it, however it is weighted; conditions are compared by its key."""
    return question.model_dump(mode="json", exclude={"weight", "where"})
