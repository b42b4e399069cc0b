"""When two tables of as many rows are taken for the same rows: most columns of the one with fewer are in the other.

Only columns that say something count (`column_fingerprint.py`), and only against the table that has fewer of them: columns
that are added or left out change nothing. k of s columns must be more than half of s, and together they must say enough
for the match not to be chance. Of an unrelated table, a given choice of k columns of each and a given pairing of them
match with probability 2^-bits, bits being the sum of their bits; there are C(s,k)·C(s,k)·k! of these. So

    evidence = bits - log2( C(s,k)² k! )

is minus the binary logarithm of a bound on the chance of a match by accident, and `LEAST_EVIDENCE` makes that one in a
million for each pair of tables. This takes columns for independent of one another and another table's rows for draws
from the same proportions. Columns that follow from one another count more than they say, and a column that is the same
by design (every day of a year, 1 to n, quotas) says nothing and counts: therefore more than half, and an owner's word.

Columns that follow from others may match, and are no column of their table's number: of net, tax and gross any two are
the table, whichever is declared to follow from the others. So matches are counted twice, by the modelled columns of
either table, which may match any column of the other one. So may those that one declaration leaves out and another
one models, or each half of a file would have a budget of its own; two columns that both declarations leave out say nothing.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable, Mapping, Sequence

ROWS_PLACE = 0
"""Stands for whole rows without names; columns count from 1, in the order of the file."""

FIRST_DERIVED_PLACE = 1_000_000
"""Places from here on are of columns that follow from others, which are not counted."""

FIRST_LEFT_OUT_PLACE = 2_000_000
"""And from here on of columns with a role, of which nothing is learnt: not counted either. Their fingerprints are of another kind, as what
other tenants model must not be compared with them."""

COMPARED_ALONE = 3_000_000
"""Added to the place of a column under the other kind of fingerprint, which is not stored: a modelled one as if it were left out, one that is
left out as if it were modelled. It is compared with the own tenant's datasets."""

LEAST_EVIDENCE = 20.0


class ColumnFingerprint(NamedTuple):
    """One fingerprint of the column at a place of the file. `bits`: how little it takes another column to have it, too."""

    place: int
    fingerprint: bytes
    bits: float


class Match(NamedTuple):
    """A fingerprint that a dataset shares with an upload."""

    dataset_id: uuid.UUID
    place: int
    fingerprint: bytes
    column_count: int
    """How many columns of the dataset count."""


def count_columns(fingerprints: Iterable[ColumnFingerprint]) -> int:
    """How many modelled columns count as evidence."""
    return len({one.place for one in fingerprints if _is_counted(one.place)})


def is_stored(one: ColumnFingerprint) -> bool:
    """Whether the fingerprint is kept for later uploads to be compared with."""
    return one.place < COMPARED_ALONE


def is_compared(one: ColumnFingerprint, *, within_tenant: bool) -> bool:
    """Whether a column is compared: with datasets of all tenants, or (`within_tenant`) of its own. What both leave out says nothing."""
    return one.place >= COMPARED_ALONE if within_tenant else one.place < FIRST_LEFT_OUT_PLACE


def _is_counted(place: int) -> bool:
    return ROWS_PLACE < place < FIRST_DERIVED_PLACE


def alike(fingerprints: Sequence[ColumnFingerprint], matches: Iterable[Match]) -> set[uuid.UUID]:
    """The datasets that hold the upload's rows, most likely."""
    of_dataset = defaultdict(list)
    for match in matches:
        of_dataset[match.dataset_id].append(match)
    return {dataset_id for dataset_id, found in of_dataset.items() if _is_alike(fingerprints, found)}


def _is_alike(fingerprints: Sequence[ColumnFingerprint], matches: Sequence[Match]) -> bool:
    place_of = {match.fingerprint: match.place for match in matches}
    ours: dict[int, float] = {}
    theirs: dict[int, float] = {}
    for one in fingerprints:
        if one.fingerprint in place_of:
            if one.place == ROWS_PLACE:
                return True
            for bits_of, place in ((ours, one.place % COMPARED_ALONE), (theirs, place_of[one.fingerprint])):
                bits_of[place] = max(one.bits, bits_of.get(place, 0.0))
    smaller = min(count_columns(fingerprints), max(match.column_count for match in matches))
    return _are_most(ours, len(theirs), smaller) or _are_most(theirs, len(ours), smaller)


def _are_most(bits_of_column: Mapping[int, float], partners: int, smaller: int) -> bool:
    """Whether the modelled ones of a table's columns that match are most, and enough."""
    bits = sorted(bits for place, bits in bits_of_column.items() if _is_counted(place))[: min(partners, smaller)]
    return 2 * len(bits) > smaller and evidence(bits, smaller) >= LEAST_EVIDENCE


def evidence(bits: Sequence[float], smaller: int) -> float:
    """How unlikely it is, in bits, that columns with so many bits each match by chance, of `smaller` columns that count."""
    k = len(bits)
    choices = math.lgamma(smaller + 1) - math.lgamma(k + 1) - math.lgamma(smaller - k + 1)
    return sum(bits) - (2.0 * choices + math.lgamma(k + 1)) / math.log(2.0)
