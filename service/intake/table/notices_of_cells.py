"""What the owner is told of cells that were taken in otherwise than they are written: counts of a column, and no cell."""

from __future__ import annotations

from service.base.messages import Message, plural
from service.domain.field_schema import RESOLUTIONS


def marked(column: str, count: int) -> str:
    """The notice of cells that are declared to be missing."""
    return plural(
        "Column %(column)s: 1 cell is read as missing: their text is among missingValues.",
        "Column %(column)s: %(count)s cells are read as missing: their text is among missingValues.",
        count,
        column=column,
        count=count,
    )


def leading_zeros(column: str, count: int) -> str:
    """The notice of numbers that are written with leading zeros."""
    return plural(
        "Column %(column)s: 1 cell is written with zeros before other digits, as codes are, and numbers lose them. If "
        "these are codes, declare type string and list them in constraints.enum.",
        "Column %(column)s: %(count)s cells are written with zeros before other digits, as codes are, and numbers lose "
        "them. If these are codes, declare type string and list them in constraints.enum.",
        count,
        column=column,
        count=count,
    )


def clamped(column: str, count: int, *, is_declared: bool) -> str:
    """The notice of cells that are moved to the ends of the range."""
    beyond = Message("outside the declared range") if is_declared else Message("outside all bounds that can be bought")
    return plural(
        "Column %(column)s: 1 cell is %(beyond)s and will be clamped.",
        "Column %(column)s: %(count)s cells are %(beyond)s and will be clamped.",
        count,
        column=column,
        count=count,
        beyond=beyond,
    )


def between_steps(column: str, count: int, *, unit: str) -> str:
    """The notice of moments that are no whole multiple of the resolution."""
    return plural(
        "Column %(column)s: 1 cell is no whole %(unit)s, which synthetic ones are.",
        "Column %(column)s: %(count)s cells are no whole %(unit)s, which synthetic ones are.",
        count,
        column=column,
        count=count,
        unit=RESOLUTIONS[unit],
    )


def undeclared(column: str, count: int) -> str:
    """The notice of cells that are none of the declared categories and became missing."""
    return plural(
        "Column %(column)s: 1 cell is not among the enum's values and became missing.",
        "Column %(column)s: %(count)s cells are not among the enum's values and became missing.",
        count,
        column=column,
        count=count,
    )


def user_missing(column: str, count: int) -> str:
    """The notice of cells that an SPSS file declares to be missing."""
    return plural(
        "Column %(column)s: 1 cell holds a value that the SPSS file declares missing (user-missing); read as missing.",
        "Column %(column)s: %(count)s cells hold a value that the SPSS file declares missing (user-missing); read as "
        "missing.",
        count,
        column=column,
        count=count,
    )


def over_maximum(column: str, count: int, most: int) -> str:
    """The notice of units with more rows than are used."""
    return plural(
        "Column %(column)s: 1 unit has more than %(most)s rows; only %(most)s of them are used.",
        "Column %(column)s: %(count)s units have more than %(most)s rows; of each, only %(most)s are used.",
        count,
        column=column,
        count=count,
        most=most,
    )
