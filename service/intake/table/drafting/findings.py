"""What a draft tells the owner: which column, what was seen, what to do about it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from service.base.messages import Message, Sentence, sentences

if TYPE_CHECKING:
    from collections.abc import Iterable

CELLS_SHOWN = 5
_CELL_CHARACTERS = 40


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that the owner should look at."""

    column: str
    what: str
    proposal: str = ""
    cells: tuple[str, ...] = ()
    """For the owner's terminal alone: a schema is public."""

    def sentence(self) -> str:
        """The finding without cells, so that it may stand in a schema."""
        return sentences(*(Sentence(part) for part in (self.what, self.proposal) if part))

    def beside_the_column(self) -> str:
        """The finding with its cells, for the owner, who sees which column it is of."""
        shown = Message("Cells: %(cells)s.", cells=", ".join(map(repr, self.cells))) if self.cells else ""
        return sentences(self.sentence(), shown)

    def for_the_owner(self) -> str:
        """A line of the terminal, with the cells."""
        return f"{self.column!r}: {self.beside_the_column()}"


@dataclasses.dataclass(slots=True)
class Decided:
    """A field, or why there is none; and what the owner should look at."""

    name: str
    field: dict[str, Any] | None = None
    why: str = ""
    role: str = "ignore"
    """Of a column that is left out: what it could be declared as."""

    omits_values: bool = False
    """Whether cells of the file are outside the proposed domain, and so become missing."""

    repeats: bool | None = False
    """Of a column that may say whose row it is, whether the same value stands in several rows; None: that is not known."""

    findings: list[Finding] = dataclasses.field(default_factory=list)


def shown(texts: Iterable[str]) -> tuple[str, ...]:
    """A few cells, cut to what a line holds."""
    cut = (text if len(text) <= _CELL_CHARACTERS else f"{text[: _CELL_CHARACTERS - 1]}…" for text in texts)
    return tuple(cell for cell, _ in zip(cut, range(CELLS_SHOWN), strict=False))
