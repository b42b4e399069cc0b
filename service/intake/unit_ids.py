"""Whose row a row is: cells of the privacy unit's column as units, exactly. What reads as missing is no unit id.

The same number is the same unit however it is written (7, 7.0, 007, 7e0), and so is the same moment; of any other text
every character that can be seen counts (blanks around it, format characters and the way accents are composed do not).
Different numbers are different units however long they are: no id goes through a float, in which
12345678901234567890123 and 12345678901234567890124 are one. A Parquet float column holds floats, and each is the shortest
number that means it.

A unit is known by 128 pseudorandom bits under a key, different for different units but for a chance of 2^-75 among 10^8
of them: AES-256 of a value and its kind, keyed BLAKE2b of any other text.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from service.intake.table.canonical import holding_line_ends
from service.intake.table.cells import MARKERS_ANY_CASE, Cells, NumberCells
from service.intake.table.fingerprint import CellKeys, Meaning, fill, spread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from service.domain.privacy_unit import MissingIds
    from service.intake.table.columns import Column
    from service.intake.table.fingerprint import Blocks

MISSING_IDS = MARKERS_ANY_CASE | {
    *("nil", "#na", "#n/a n/a", "-nan", "--", "n.a.", "n. a."),
    *("1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan", "\\n", ".", "(null)"),
}
"""Spellings (any case) that programs write where there is no value. More than the fingerprint's, which may never change."""

_WHOLE, _MOMENT, _OWN = 1, 2, 3
_LARGEST_EXACT_FLOAT = 2**53
_LIKE_A_NUMBER = r"^[-+.0-9][-+.0-9eE]*$"
_NUMBER = re.compile(r"([+-]?)([0-9]*)\.?([0-9]*)(?:[eE]([+-]?[0-9]{1,18}))?")


class UnitIds:
    """Reads one column chunk by chunk, in order; counts the rows that have no unit id."""

    def __init__(
        self, key: bytes, name: str, missing_values: Sequence[str] = (), *, missing: MissingIds = "refuse"
    ) -> None:
        self._keys = CellKeys(_subkey(key, "values", name), _subkey(key, "texts", name))
        self._gives_own = missing == "own_unit"
        self._own_units = 0
        markers = [marker for marker in missing_values if marker]
        self._markers = _as_keys(self._cell_blocks(Cells(pl.Series(markers, dtype=pl.String))))
        self.missing = 0
        """Rows without a unit id so far."""
        self.run_on = 0
        """Rows whose id has a line end so far."""

    def blocks(self, column: Column) -> Blocks:
        """Whose every row of the chunk is. With `own_unit`, a row without an id is a new unit."""
        cells = column.cells
        if type(cells) is Cells:
            self.run_on += column.count(holding_line_ends(cells.text))
            cells = _as_seen(cells)
        blocks = self._cell_blocks(cells)
        absent = cells.empty_or(MISSING_IDS)
        if len(self._markers):
            absent |= pl.Series(np.isin(_as_keys(blocks), self._markers))
        self.missing += column.count(absent)
        blocks = spread(column, blocks)
        if self._gives_own and absent.any():
            alone = column.spread(absent).to_numpy()
            blocks[alone] = self._new_units(int(alone.sum()))
        return blocks

    def _new_units(self, count: int) -> Blocks:
        """Units that are no one else's: AES keeps different numbers different."""
        plain = np.zeros((count, 2), dtype="<u8")
        plain[:, 0] = np.arange(self._own_units, self._own_units + count)
        plain[:, 1] = _OWN
        self._own_units += count
        return self._keys.blocks(Meaning(plain, np.zeros(count, dtype=np.bool_), []))

    def _cell_blocks(self, cells: Cells) -> Blocks:
        """One block for every cell; any one for a null."""
        whole = _whole(cells)
        left = np.ones(len(whole), dtype=np.bool_)
        plain = np.zeros((len(left), 2), dtype="<u8")
        fill(plain, left, whole, _WHOLE)
        if left.any():
            kinds = _MOMENT + (cells.nanoseconds.to_numpy().astype(np.uint64) << np.uint64(8))
            fill(plain, left, cells.moment, kinds)
        if left.any():  # true and false are 1 and 0, because that is how a boolean may also be written
            fill(plain, left, cells.word.cast(pl.Int64), _WHOLE)
        texts: list[bytes] = []
        if left.any():
            others = cells.text.filter(pl.Series(left)).fill_null("")
            may_be_numbers = others.str.contains(_LIKE_A_NUMBER).to_list()
            for place, text, like in zip(np.flatnonzero(left).tolist(), others.to_list(), may_be_numbers, strict=True):
                found = _exact(text) if like else b"t" + text.encode()
                if isinstance(found, bytes):
                    texts.append(found)
                else:
                    plain[place] = found % 2**64, _WHOLE
                    left[place] = False
        return self._keys.blocks(Meaning(plain, left, texts))


def _as_seen(cells: Cells) -> Cells:
    """One person is not two because of a character that cannot be seen: no-break spaces and byte-order marks that exports leave."""
    if not cells.text.str.contains(r"[^!-~]").any():
        return cells
    seen = cells.text.str.normalize("NFC").str.replace_all(r"\p{Cf}+", "").str.strip_chars()
    return Cells(seen)


def dense(blocks: Blocks) -> NDArray[np.int64]:
    """Units numbered from 0, in an order that says nothing."""
    return np.unique(_as_keys(blocks), return_inverse=True)[1].astype(np.int64)


def _whole(cells: Cells) -> pl.Series:
    """Int64 where the cell is that whole number for certain, whatever precision floats have."""
    if isinstance(cells, NumberCells):
        number, whole = cells.number, cells.whole
        return whole.set(~(number.abs() <= _LARGEST_EXACT_FLOAT).fill_null(value=False), None)
    if type(cells) is Cells:
        return cells.text.cast(pl.Int64, strict=False)
    return cells.whole


def _exact(text: str) -> int | bytes:
    """A whole number of 64 bits as itself; another number as its digits and a power of ten; or the text."""
    found = _NUMBER.fullmatch(text)
    if found is None or not found[2] + found[3]:
        return b"t" + text.encode()
    sign, before, after, power = found.groups()
    digits = (before + after).lstrip("0")
    if not digits:
        return 0
    exponent = int(power or 0) - len(after) + len(digits)
    digits = digits.rstrip("0")
    exponent -= len(digits)
    if 0 <= exponent <= 19 - len(digits):
        whole = int(sign + digits + "0" * exponent)
        if -(2**63) <= whole < 2**63:
            return whole
    return f"n{'-' if sign == '-' else ''}{digits}e{exponent}".encode()


def _as_keys(blocks: Blocks) -> NDArray[np.void]:
    """16 bytes at a time, compared and moved as one."""
    return np.ascontiguousarray(blocks).view(np.dtype("V16")).ravel()


def _subkey(key: bytes, purpose: str, name: str) -> bytes:
    message = f"{purpose}\x00{name}".encode()
    return hashlib.blake2b(message, key=key, digest_size=32, person=b"imprimatur unit").digest()
