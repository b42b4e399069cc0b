"""Keyed fingerprints of a table's columns, without their names: most columns the same, most likely the same rows.

The fingerprint of whole rows (`fingerprint.py`) is another one as soon as a column is renamed, added or left out. So
each column has its own, of the multiset of its values and of the number of rows:

1. value -> 128 bits, as there, but under one key for all columns: neither its name nor its place is in it.
2. column -> the sum of its rows' blocks, both halves modulo 2^64, with the number of rows, through HMAC-SHA256.

Order of rows does not matter, nor does spelling. A column has up to two: of its values as they are written, and as the
declaration makes them, which is what a generator learns from (out of range: the end of the range; undeclared: missing).
A column with a role, of which nothing is learnt, has them, too, under another label: compared only with what the same tenant models elsewhere.
The privacy unit's column has none, because unit ids say who a row is of and not what it holds.

Beside them, of whole rows without names: renamed columns of a table that holds too little for the rule (`alike.py`) are
recognised by that. A row is the sum of its cells' blocks through AES-256, a table the sum of its rows. Where the
declaration says how text is to be read, two more are of rows so read, with and without what is altered; where columns
follow from others, as many more are of rows with these.

Two different columns of n < 2^27 rows have one fingerprint with probability 2^-74 at most: some value is in them m and m'
times, and given all else (m - m')·F(value) must be one given pair of halves; at most 2^27 values of each half of F(value) do.

How much a match says depends on the column: a constant one says nothing, a balanced yes or no in 1,000 rows has the same
counts as another one with probability 1/40. `bits` is minus the binary logarithm of the chance that n draws from the
column's own proportions have exactly its counts: log2(n^n/n!) - Σ log2(c^c/c!) over the counts c of its values.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import threading
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from service.intake.table.alike import (
    COMPARED_ALONE,
    FIRST_DERIVED_PLACE,
    FIRST_LEFT_OUT_PLACE,
    ROWS_PLACE,
    ColumnFingerprint,
)
from service.intake.table.cells import Cells, MomentCells, NumberCells, WholeCells
from service.intake.table.fingerprint import Blocks, CellKeys, Meaning, aes, meaning_of, spread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.intake.table.canonical import DeclaredCells
    from service.intake.table.columns import Column

VERSION = 3
LEAST_BITS = 1.0
"""Columns below it have no fingerprint: a constant column has 0, one other cell in it makes 1.4."""

MOST_BITS = 64.0
_COUNTED_VALUES = 256
"""A column of more different values has more than `MOST_BITS`: each adds 1.3 or more."""

_LOOKED_AT = 4_096
"""Cells of a chunk that usually show that there are more: sorting all of them takes a hundred times as long."""


class ColumnFingerprints:
    """Sums the columns of chunks. `names`: all modelled columns of the file; `derived`: those that follow from them; `left_out`: those with a role."""

    def __init__(
        self,
        key: bytes,
        names: Sequence[str],
        derived: Sequence[str] = (),
        left_out: Sequence[str] = (),
        *,
        is_spelled: bool = False,
    ) -> None:
        self._key = key
        self._cells = CellKeys(_subkey(key, "cells"), _subkey(key, "texts"))
        self._written, self._declared = ({name: _Values() for name in (*names, *derived, *left_out)} for _ in range(2))
        self._derived, self._left_out = frozenset(derived), frozenset(left_out)
        kinds = 3 if is_spelled else 1
        self._rows_of_modelled, self._rows_of_all = (
            [_Rows(aes(_subkey(key, "rows"))) for _ in range(count)] for count in (kinds, kinds if derived else 0)
        )
        self._lock = threading.Lock()

    def read(
        self, column: Column, written: Meaning, declared: DeclaredCells | None, spelled: Meaning | None = None
    ) -> None:
        """Count a column of a chunk in; threads may do several columns at once. `add` when all are."""
        if column.name not in self._written:
            return
        meant = blocks = self._cells.blocks(written)
        part = _Part.of(blocks, column.times)
        self._written[column.name].add(part)
        if declared is not None and declared.altered.any():
            meant = blocks.copy()
            meant[declared.altered.to_numpy()] = self._cells.blocks(meaning_of(_cells_of(declared.meant), ()))
            part = _Part.of(meant, column.times)
        self._declared[column.name].add(part)
        if column.name in self._left_out:
            return
        kinds = [blocks]
        if len(self._rows_of_modelled) > 1:
            kinds += [blocks if spelled is None else self._cells.blocks(spelled), meant]
        modelled = () if column.name in self._derived else self._rows_of_modelled
        for place, cells in enumerate(kinds):
            rows = spread(column, cells)
            with self._lock:
                for one in (*modelled[place : place + 1], *self._rows_of_all[place : place + 1]):
                    one.read(rows)

    def add(self) -> None:
        """Count every row of the chunk in."""
        for one in (*self._rows_of_modelled, *self._rows_of_all):
            one.add()

    def fingerprints(self) -> list[ColumnFingerprint]:
        """The fingerprints of whole rows, and of every column that says something. Columns that share one are one column."""
        of_rows = [self._digest("rows", one.sum) for one in (*self._rows_of_modelled, *self._rows_of_all)]
        found = [ColumnFingerprint(ROWS_PLACE, digest, 0.0) for digest in dict.fromkeys(of_rows)]
        place_of: dict[bytes, int] = {}
        # Modelled ones first: a copy that follows from one is the same column.
        for number, name in enumerate(self._written):
            sums = [one for one in (self._written[name], self._declared[name]) if one.bits >= LEAST_BITS]
            values = {self._digest("column", one.sum): one for one in sums}
            known = next(
                (place_of[digest] for digest in values if digest in place_of), number + self._first_place(name)
            )
            for digest, one in values.items():
                if digest not in place_of:
                    place_of[digest] = known
                    found += self._of_both_kinds(known, digest, one)
        return found

    def _first_place(self, name: str) -> int:
        """Of the column's kind."""
        return FIRST_LEFT_OUT_PLACE if name in self._left_out else FIRST_DERIVED_PLACE if name in self._derived else 1

    def _of_both_kinds(self, place: int, digest: bytes, values: _Values) -> list[ColumnFingerprint]:
        """The one that is stored, and the one that is compared alone."""
        kinds = [digest, self._digest("left out", values.sum)]
        if place >= FIRST_LEFT_OUT_PLACE:
            kinds.reverse()
        return [
            ColumnFingerprint(where, one, values.bits)
            for where, one in zip((place, place + COMPARED_ALONE), kinds, strict=True)
        ]

    def _digest(self, what: str, total: NDArray[np.uint64]) -> bytes:
        """33 bytes, the version first."""
        message = json.dumps([what, self._rows_of_modelled[0].count]).encode() + total.astype("<u8").tobytes()
        return bytes([VERSION]) + hmac.digest(_subkey(self._key, "table"), message, hashlib.sha256)


class _Rows:
    """The multiset of rows: its keyed sum."""

    def __init__(self, cipher: aes) -> None:
        self.sum = np.zeros(2, dtype=np.uint64)
        self.count = 0
        self._cipher = cipher
        self._chunk: Blocks | None = None

    def read(self, blocks: Blocks) -> None:
        """A column of the chunk."""
        if self._chunk is None:
            self._chunk = blocks.copy()
        else:
            self._chunk += blocks

    def add(self) -> None:
        if self._chunk is not None:
            self.sum += _sum(self._cipher(self._chunk))
            self.count += len(self._chunk)
            self._chunk = None


class _Part(NamedTuple):
    """What a chunk adds to a column."""

    blocks: Blocks
    times: NDArray[np.uint64] | None
    sum: NDArray[np.uint64]

    @classmethod
    def of(cls, blocks: Blocks, times: NDArray[np.intp] | None) -> _Part:
        if times is None:
            return cls(blocks, None, _sum(blocks))
        weights = times.astype(np.uint64)
        return cls(blocks, weights, _sum(blocks * weights[:, None]))

    def counts(self) -> dict[int, int]:
        """How many rows hold each value; values are told apart by half of their block."""
        values, places = np.unique(self.blocks[:, 0], return_inverse=True)
        counts = np.bincount(places, weights=self.times, minlength=len(values))
        return dict(zip(values.tolist(), counts.astype(np.int64).tolist(), strict=True))


class _Values:
    """The multiset of a column's values: its keyed sum, and its counts as long as they are few."""

    def __init__(self) -> None:
        self.sum = np.zeros(2, dtype=np.uint64)
        self._counts: dict[int, int] | None = {}

    def add(self, part: _Part) -> None:
        self.sum += part.sum
        if self._counts is not None and len(np.unique(part.blocks[:_LOOKED_AT, 0])) > _COUNTED_VALUES:
            self._counts = None
        if self._counts is not None:
            for value, count in part.counts().items():
                self._counts[value] = self._counts.get(value, 0) + count
            if len(self._counts) > _COUNTED_VALUES:
                self._counts = None

    @property
    def bits(self) -> float:
        return MOST_BITS if self._counts is None else min(MOST_BITS, bits_of(list(self._counts.values())))


def bits_of(counts: Sequence[int]) -> float:
    """How surprising it is that another column of these proportions has exactly these counts, in bits."""
    counts = [count for count in counts if count]
    return (_surplus(sum(counts)) - sum(map(_surplus, counts))) / math.log(2.0)


def _sum(blocks: Blocks) -> NDArray[np.uint64]:
    """Of each half by itself, modulo 2^64; both at once take numpy a hundred times as long."""
    return np.array([blocks[:, 0].sum(dtype=np.uint64), blocks[:, 1].sum(dtype=np.uint64)])


def _surplus(count: int) -> float:
    return count * math.log(count) - math.lgamma(count + 1) if count else 0.0


def spelled_meaning(declared: DeclaredCells | None) -> Meaning | None:
    """What the cells of a column mean as the declaration says that its text is to be read; None where it says nothing."""
    return None if declared is None or not declared.is_spelled else meaning_of(_cells_of(declared.values), ())


def _cells_of(values: pl.Series) -> Cells:
    """Nulls and ends of ranges, in the declared type."""
    if values.dtype == pl.Float64:
        return NumberCells(values)
    if values.dtype == pl.Date or isinstance(values.dtype, pl.Datetime):
        return MomentCells(values)
    if isinstance(values.dtype, pl.Enum | pl.String):  # coarse categories, or those that are still to be bought
        return Cells(values)
    return WholeCells(values.cast(pl.Int64))


def _subkey(key: bytes, purpose: str) -> bytes:
    person = f"imprimatur {VERSION}".encode()
    return hashlib.blake2b(purpose.encode(), key=key, digest_size=32, person=person).digest()
