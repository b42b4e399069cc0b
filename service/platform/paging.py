"""Lists have pages: the newest first, so many items and bytes at most, and a cursor that what is added later does not move."""

from __future__ import annotations

import base64
import datetime as dt
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import ColumnElement, Uuid, any_, literal, tuple_
from sqlalchemy.dialects.postgresql import ARRAY

from service.base.errors import InvalidInput

if TYPE_CHECKING:
    from sqlalchemy import Row, Select

DEFAULT_LIMIT, MOST_LIMIT = 100, 1_000
MOST_PAGE_BYTES = 4 << 20
"""Of what the items of a page hold, as text. One item is shown whatever its size."""

NEXT = "Give it as `before` to get the next, older page; null: the end."

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Cursor:
    """The last item of a page."""

    created_at: dt.datetime
    id: uuid.UUID

    @classmethod
    def read(cls, text: str) -> Cursor:
        """Refuses what is no cursor of ours."""
        try:
            moment, _, name = base64.urlsafe_b64decode(text.encode("ascii")).decode("ascii").partition(" ")
            return cls(dt.datetime.fromisoformat(moment).astimezone(dt.UTC), uuid.UUID(name))
        except (ValueError, OverflowError):  # a broken base64 is a ValueError, too
            raise InvalidInput("before: give `next` of the page before, as it is", where="before") from None

    def __str__(self) -> str:
        moment = self.created_at.astimezone(dt.UTC).isoformat(timespec="microseconds")
        return base64.urlsafe_b64encode(f"{moment} {self.id}".encode()).decode()


@dataclass(frozen=True, slots=True)
class Page:
    """Which page is asked for."""

    limit: int = DEFAULT_LIMIT
    before: Cursor | None = None

    @classmethod
    def of(cls, limit: int, before: str | None) -> Page:
        return cls(limit, None if before is None else Cursor.read(before))

    def narrow(self, query: Select[*tuple[Any, ...]], created_at: Any, its_id: Any) -> Select[Any]:
        """The rows of the page, and one more, which says whether there is a next one."""
        if self.before is not None:
            query = query.where(tuple_(created_at, its_id) < (self.before.created_at, self.before.id))
        return query.order_by(created_at.desc(), its_id.desc()).limit(self.limit + 1)

    def cut(self, rows: Sequence[Row[Any]]) -> tuple[list[uuid.UUID], str | None]:
        """From rows of (id, created_at, bytes): the ids that fit on the page, and the cursor of the next page."""
        ids: list[uuid.UUID] = []
        room = MOST_PAGE_BYTES
        for its_id, created_at, size in map(tuple, rows[: self.limit]):
            room -= size
            if ids and room < 0:
                break
            ids.append(its_id)
            last = created_at
        return ids, str(Cursor(last, ids[-1])) if ids and len(ids) < len(rows) else None


def in_order(ids: Iterable[uuid.UUID], items: Iterable[T]) -> list[T]:
    """Items with an `id`, as listed."""
    known = {item.id: item for item in items}  # type: ignore[attr-defined]  # rows of our tables
    return [known[each] for each in ids if each in known]


def is_among(its_id: Any, ids: Iterable[uuid.UUID]) -> ColumnElement[bool]:
    """Whether it is one of these, given as one array.

    Of a list of parameters each length is another statement, and each connection remembers the last hundred statements: 20 kB for a
    thousand ids.
    """
    condition: ColumnElement[bool] = its_id == any_(literal(list(ids), ARRAY(Uuid)))
    return condition
