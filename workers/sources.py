"""Where a run gets its private rows: asked for once, after the charge, in the form that the method needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from workers.encoding.images import EncodedImages
    from workers.encoding.table import EncodedTable, TableDomain


class Source(Protocol):
    """One dataset. Each call decrypts and encodes; nothing is decrypted before."""

    @property
    def holds_images(self) -> bool: ...

    def table(
        self, *, numeric_bins: int, finer: bool = False, with_places: bool = False
    ) -> tuple[EncodedTable, TableDomain]:
        """Rows as codes, and the columns.

        numeric_bins: bins of a numeric field that declares none. finer: open ranges in the parts that counted bins are made of.
        with_places: with the place of every value in the grid of values that its column may hold.
        """

    def images(self) -> EncodedImages: ...


@dataclass(frozen=True)
class GivenTable:
    """Rows that are encoded already."""

    rows: EncodedTable
    domain: TableDomain
    holds_images: bool = False

    def table(self, **_how: object) -> tuple[EncodedTable, TableDomain]:
        return self.rows, self.domain

    def images(self) -> EncodedImages:
        raise TypeError("this is a table")


@dataclass(frozen=True)
class GivenImages:
    """Images that are encoded already."""

    given: EncodedImages
    holds_images: bool = True

    def table(self, **_how: object) -> tuple[EncodedTable, TableDomain]:
        raise TypeError("these are images")

    def images(self) -> EncodedImages:
        return self.given
