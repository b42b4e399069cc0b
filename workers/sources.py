"""Where a run gets its private rows: asked for once, after the charge, in the form that the method needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workers.encoding.images import EncodedImages
    from workers.encoding.table import EncodedTable, TableDomain
    from workers.encoding.values import TableValues


class Source(Protocol):
    """One dataset. Each call decrypts and encodes; nothing is decrypted before."""

    @property
    def holds_images(self) -> bool: ...

    def table(self, *, numeric_bins: int, with_places: bool = False) -> tuple[EncodedTable, TableDomain]:
        """Rows as codes, and the columns.

        numeric_bins: bins of a numeric field that declares none.
        with_places: with the place of every value in the grid of values that its column may hold.
        """

    def values(self, names: Sequence[str]) -> TableValues:
        """The values of these columns as they are declared, not as bins."""

    def images(self) -> EncodedImages: ...


class PublicSource(Protocol):
    """What runs that begin from a public dataset ask besides."""

    def public_images(self) -> EncodedImages: ...

    def public_table(self, *, numeric_bins: int) -> tuple[EncodedTable, TableDomain]:
        """Rows as codes, and the columns, as of the private dataset: by its bounds and categories, where those were bought."""


@dataclass(frozen=True)
class GivenTable:
    """Rows that are encoded already."""

    rows: EncodedTable
    domain: TableDomain
    holds_images: bool = False
    given_public: tuple[EncodedTable, TableDomain] | None = None

    def table(self, **_how: object) -> tuple[EncodedTable, TableDomain]:
        return self.rows, self.domain

    def public_table(self, **_how: object) -> tuple[EncodedTable, TableDomain]:
        if self.given_public is None:
            raise TypeError("there are no public rows")
        return self.given_public

    def public_images(self) -> EncodedImages:
        raise TypeError("this is a table")

    def values(self, names: Sequence[str]) -> TableValues:
        raise TypeError(f"the values of {', '.join(names)} are encoded already")

    def images(self) -> EncodedImages:
        raise TypeError("this is a table")


@dataclass(frozen=True)
class GivenImages:
    """Images that are encoded already."""

    given: EncodedImages
    holds_images: bool = True
    given_public: EncodedImages | None = None

    def table(self, **_how: object) -> tuple[EncodedTable, TableDomain]:
        raise TypeError("these are images")

    def values(self, names: Sequence[str]) -> TableValues:
        raise TypeError(f"these are images: they have no columns {', '.join(names)}")

    def images(self) -> EncodedImages:
        return self.given

    def public_table(self, **_how: object) -> tuple[EncodedTable, TableDomain]:
        raise TypeError("these are images")

    def public_images(self) -> EncodedImages:
        if self.given_public is None:
            raise TypeError("there are no public images")
        return self.given_public
