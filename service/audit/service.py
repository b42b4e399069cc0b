"""Who did what: a line for every change and every download, and for refusals as long as they come at a human pace."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from sqlalchemy.orm import Session

from service.audit import repository
from service.audit.repository import Found, Line
from service.auth.principal import Principal
from service.platform.context import Context
from service.requests.rates import Rates

RECORDED_REFUSALS_PER_MINUTE = 60
"""Lines about one key's refusals; what comes faster is counted and said in its next line. So no key can fill the disk."""


def record(
    session: Session, principal: Principal, object_kind: str, object_id: uuid.UUID, *, action: str | None = None
) -> None:
    """The request has done what it asked for to this object; stands or falls with the caller's transaction.

    `action`: where one request does several things, which of them this is.
    """
    line = Line(
        principal.tenant_id,
        action or principal.action,
        key_id=principal.key_id,
        request_id=principal.request_id,
        object_kind=object_kind,
        object_id=object_id,
    )
    repository.add(session, line)


def read_page(
    context: Context, principal: Principal, *, before: int | None, limit: int
) -> tuple[Sequence[Found], int | None]:
    """One page of the tenant's lines with their places, newest first, and where the next page begins."""
    with context.transaction() as session:
        events = repository.page(session, principal.tenant_id, before=before, limit=limit + 1)
    return events[:limit], events[limit - 1][0].id if len(events) > limit else None


class Refusals:
    """Writes down what a key was refused, at a bounded rate a key; the rest is counted. One a process."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._rates = Rates(RECORDED_REFUSALS_PER_MINUTE)
        self._unrecorded: dict[uuid.UUID, int] = {}

    def record(self, principal: Principal, object_kind: str | None, object_id: uuid.UUID | None, code: str) -> None:
        """One line, or one more on the count."""
        if self._rates.seconds_until_free(principal.key_id):
            self._unrecorded[principal.key_id] = self._unrecorded.get(principal.key_id, 0) + 1
            return
        with self._context.transaction() as session:
            line = Line(
                principal.tenant_id,
                principal.action,
                key_id=principal.key_id,
                request_id=principal.request_id,
                object_kind=object_kind,
                object_id=object_id,
                outcome=code,
                unrecorded=self._unrecorded.pop(principal.key_id, 0),
            )
            repository.add(session, line)
