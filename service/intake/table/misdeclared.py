"""A declaration that fits hardly any cell of a column is a mistake: the upload is refused before it has a budget.

The count is held against all rows, missing cells too, so that a table in which a unit has no cells is accepted wherever the
table with it is (docs/privacy.md, What acceptance says).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.base.messages import Message
from service.intake.table.canonical import Problem

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from service.intake.table.canonical import ColumnReader

MOST = 2
"""More than one row in so many is most of them;"""

FEW_ROWS = 20
"""of fewer rows than these, all."""

CORRECT = Message(
    "so the declaration looks wrong; correct it, or name the column in accept_undeclared (--accept-undeclared)"
)


def misdeclared(readers: Iterable[ColumnReader], rows: int, accepted: Collection[str]) -> Iterator[Problem]:
    """The columns most of whose rows would become missing or be moved, less those that the owner accepts."""
    for reader in readers:
        name = reader.field.name
        if name in accepted or reader.field.constraints.required:
            continue
        if _is_most(reader.undeclared, rows):
            count = reader.undeclared
            yield Problem(
                name,
                count,
                Message(
                    "%(count)s of %(rows)s cells are not among the enum's values, %(correct)s",
                    count=count,
                    rows=rows,
                    correct=CORRECT,
                ),
            )
    for reader in readers:
        name = reader.field.name
        if name not in accepted and _is_most(reader.out_of_range, rows):
            count = reader.out_of_range
            yield Problem(
                name,
                count,
                Message(
                    "%(count)s of %(rows)s cells are outside the declared range, %(correct)s",
                    count=count,
                    rows=rows,
                    correct=CORRECT,
                ),
            )


def _is_most(count: int, rows: int) -> bool:
    return MOST * count > rows if rows >= FEW_ROWS else count == rows > 0
