"""The equally spaced values to which sums, quantiles and keys of a range are rounded. From the declaration alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from service.domain.field_schema import FieldSchema
from service.privacy.filters import exact

MOST_PLACES = 2**20
LARGEST_SUM_OF_ONE_UNIT = 2**30
"""In steps of the lattice: what the rows of one unit may add to a sum at most, so that noise fits into 64 bits."""
MOST_CANDIDATES = 4_096
"""Of a quantile or a median."""


@dataclass(frozen=True)
class Lattice:
    """Value (first + place)·step at place 0 to size - 1. Dates are days, datetimes seconds since 1970-01-01."""

    first: int
    size: int
    step: Fraction

    @property
    def last(self) -> int:
        return self.first + self.size - 1

    def value(self, place: int | Fraction) -> int | float:
        """The value at a place, or between two of them."""
        found = (self.first + place) * self.step
        return int(found) if found.denominator == 1 else float(found)


def lattice_of(field: FieldSchema, *, most_places: int = MOST_PLACES, largest: int | None = None) -> Lattice:
    """The finest with so many places at most: as fine as the declaration says, or a power of ten coarser.

    largest: no value is more steps from zero.
    """
    low, high = (exact(bound) for bound in field.bounds)
    step = Fraction(field.step) if field.type != "number" else _finest_of_numbers(field, high - low, most_places)
    while True:
        first, last = math.ceil(low / step), math.floor(high / step)
        fits = last - first + 1 <= most_places and (largest is None or max(abs(first), abs(last)) <= largest)
        if fits:
            break
        step *= 10
    if last < first:  # no multiple of the step lies in the range: it is told from nothing else
        first = last = round((low + high) / 2 / step)
    return Lattice(first, last - first + 1, step)


def _finest_of_numbers(field: FieldSchema, width: Fraction, most_places: int) -> Fraction:
    digits = math.ceil(math.log10(most_places / float(width)))
    if field.decimals is not None:
        digits = min(digits, field.decimals)
    return Fraction(10) ** -digits
