"""One column of a draft as the form of the second step shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from service.domain.field_schema import FieldType

if TYPE_CHECKING:
    from collections.abc import Sequence

TYPES: tuple[str, ...] = get_args(FieldType)
ROLES = ("ignore", "identifier", "free_text")


@dataclass(frozen=True, slots=True)
class ColumnForm:
    """One column as the form shows it."""

    place: int
    name: str
    use: str
    """A type, or a role."""
    categories: str
    low: str
    high: str
    missing: str
    is_required: bool
    is_draft: bool
    """Whether its domain was read from the rows and is not confirmed."""
    is_special: bool
    """Whether it has words that only the whole document shows."""
    category_count: int
    is_bought: bool
    """Whether its bounds or categories are to be bought."""
    says_nothing: bool
    """Whether it says no more than a type: the rest is to be bought, and nothing of it is to be ticked as public."""
    has_own_words: bool
    """Whether it says more than a type, bounds and categories."""
    price: str
    """The epsilon of that, as it was typed."""
    findings: Sequence[str] = ()
    cells: Sequence[str | None] = ()

    @property
    def has_role(self) -> bool:
        return self.use in ROLES or self.use not in TYPES
