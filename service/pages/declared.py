"""The declaration of a table as the page of its dataset shows it: what is declared, what is to be bought, what was bought."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import accumulate, takewhile
from typing import TYPE_CHECKING, Any

from service.domain.inferred import ENDS
from service.domain.open_columns import open_columns
from service.domain.table_schema import TableSchema
from service.methods.catalogue import CATALOGUE
from service.releases.models import ACTIVE

if TYPE_CHECKING:
    import uuid
    from collections.abc import Sequence

    from service.domain.field_schema import FieldSchema
    from service.domain.image_schema import DeclaredSchema
    from service.releases.models import Release

PURCHASE = {"method": next(name for name, method in CATALOGUE.items() if method.buys_declaration)}
"""The order that buys what is open."""
_SHOWN, _CHARACTERS = 8, 60
"""Categories of a column, and how much of each."""
_MOST_CHARACTERS = 40_000
"""Of all categories of a page that are shown behind the first ones, so that it stays small."""
COLUMNS_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Open:
    """What is to be bought before anything else is ordered."""

    columns: tuple[str, ...]
    epsilon: float
    running: Release | None
    """What buys it now."""


@dataclass(frozen=True, slots=True)
class DeclaredColumn:
    """One line of the declaration."""

    name: str
    use: str
    """A type, or a role."""
    categories: tuple[str, ...]
    rest: tuple[str, ...]
    """Categories after the first ones, folded away."""
    more: int
    """Categories that are not shown."""
    ends: tuple[Any, Any] | None
    """Of a range, as the schema has them; None where an end is to be bought."""
    to_buy: float | None
    """For this epsilon."""
    bought: float | None
    release: str | None
    """That bought it."""
    bought_words: tuple[str, ...] = ()
    """What of it: `enum`, `minimum`, `maximum`."""
    other: str | None = None
    """Of bought categories, the one that stands for all others."""


def open_of(schema: DeclaredSchema, releases: Sequence[Release]) -> Open | None:
    """What is still to be bought; None where everything is declared or bought. `releases`: the newest; before a purchase there is no other order."""
    columns = open_columns(schema) if isinstance(schema, TableSchema) else ()
    if not columns:
        return None
    running = next((each for each in releases if is_purchase(each) and each.state in ACTIVE), None)
    return Open(tuple(one.name for one in columns), math.fsum(one.epsilon for one in columns), running)


def is_purchase(release: Release) -> bool:
    """Whether it buys, or has bought, a declaration."""
    return CATALOGUE[release.order_["method"]].buys_declaration


def shown_of(schema: DeclaredSchema) -> tuple[list[DeclaredColumn], int]:
    """The columns for a page that stays small: first those that are to be bought or were, then others; and how many are left out."""
    columns = sorted(columns_of(schema), key=lambda one: one.to_buy is None and one.bought is None)
    return _small(columns[:COLUMNS_SHOWN]), max(0, len(columns) - COLUMNS_SHOWN)


def columns_of(schema: DeclaredSchema) -> list[DeclaredColumn]:
    """The columns of a table as they are declared; none of images."""
    return [_column(field) for field in schema.fields] if isinstance(schema, TableSchema) else []


def bought_by(schema: DeclaredSchema, release_id: uuid.UUID) -> list[DeclaredColumn]:
    """Columns of which this release has bought something."""
    return _small([one for one in columns_of(schema) if one.release == str(release_id)])


def _small(columns: Sequence[DeclaredColumn]) -> list[DeclaredColumn]:
    """With as many of the categories that are folded away as the page may hold; the others are counted."""
    left, found = _MOST_CHARACTERS, []
    for column in columns:
        ends = accumulate(map(len, column.rest))
        kept = sum(1 for _ in takewhile(left.__ge__, ends))
        left -= sum(map(len, column.rest[:kept]))
        found.append(replace(column, rest=column.rest[:kept], more=len(column.rest) - kept))
    return found


def _column(field: FieldSchema) -> DeclaredColumn:
    says, bought = field.constraints, field.bought
    categories = tuple(map(_cut, says.enum or ()))
    ends = tuple(getattr(says, end) for end in ENDS)
    has_range = field.role is None and not categories and field.type not in {"string", "boolean"}
    return DeclaredColumn(
        name=field.name,
        use=str(field.role or field.type),
        categories=categories[:_SHOWN],
        rest=categories[_SHOWN:],
        more=0,
        ends=(ends[0], ends[1]) if has_range else None,
        to_buy=None if field.infer is None else field.infer.epsilon,
        bought=None if bought is None else bought.epsilon,
        release=None if bought is None else bought.release,
        bought_words=() if bought is None else bought.words,
        other=field.other,
    )


def _cut(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _CHARACTERS else f"{text[: _CHARACTERS - 1]}…"
