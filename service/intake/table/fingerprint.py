"""The keyed fingerprint of a table's rows: same rows, same fingerprint, whatever the file looks like.

Independent of file name, row order, column order, CSV or Parquet, number and date spelling, and of the declared types;
of declared missing values by a second one (`fingerprints_of`).
Three keyed functions, each a pseudorandom function under its own key made by BLAKE2b from the secret one:

1. cell -> 128 bits, keyed by the column's name. A whole number, a float (its IEEE 754 bits), a moment or a missing
   value is one AES-256 block: value and kind. Any other text is keyed BLAKE2b of its UTF-8 bytes.
2. row -> the exclusive or of its cells, through AES-256 under the rows' key.
3. table -> the sum of its rows modulo 2^128, with row count and column names, through HMAC-SHA256.

Why no one without the key finds two tables of one fingerprint, whatever they upload (they see no value, only whether
two tables are the same). Put random functions in place of the pseudorandom ones:
step 1: rows that differ, differ in some column, whose two values are independent and uniform, so their exclusive ors
    are equal with probability 2^-128 (tabulation hashing: Zobrist 1970, Carter and Wegman 1979). Over q different rows
    ever uploaded: q²/2^129, that is 2^-49 for a million million rows.
steps 2 and 3: let two tables hold some row m and m' times, m ≠ m'. Given all else, the sums are equal only if
    (m - m')·F(row) takes one given value; fewer than 2^27 rows make that at most 2^27 of the 2^128 values of F(row).
    This is MSet-Add-Hash (Clarke, Devadas, van Dijk, Gassend, Suh 2003).
AES is a permutation rather than a function: that adds q²/2^129 (the switching lemma). A person with the key can make
two such tables, and would gain nothing: the second is refused as if it were the first.

The first byte of a fingerprint is the version of this algorithm; the rest must outlive every library.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from service.intake.table.cells import USUALLY_MISSING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from service.intake.table.cells import Cells
    from service.intake.table.columns import Column

Blocks = NDArray[np.uint64]
"""(n, 2): n values of 128 bits."""

VERSION = 2
_MODULUS = 2**128
_MISSING, _WHOLE, _FLOAT, _MOMENT = range(4)


class Meaning(NamedTuple):
    """What the cells of a column mean, before any key."""

    plain: Blocks
    """Value and kind of whole numbers, floats, moments and missing values."""
    is_text: NDArray[np.bool_]
    texts: list[bytes]
    """Of the cells that are text."""


def meaning_of(cells: Cells, missing_values: Sequence[str]) -> Meaning:
    """What every cell means, where these markers mean missing beside what everybody calls so."""
    left = ~(cells.missing(missing_values) | cells.usually_missing).to_numpy()
    plain = np.zeros((len(left), 2), dtype="<u8")
    fill(plain, left, cells.whole, _WHOLE)
    if left.any():
        finite = cells.number.is_finite().fill_null(value=False)
        fill(plain, left, _bits(cells.number, finite), _FLOAT)
    if left.any():
        fill(plain, left, cells.moment, _MOMENT)
    if left.any():  # true and false are 1 and 0, because that is how a boolean may also be written
        fill(plain, left, cells.word.cast(pl.Int64), _WHOLE)
    texts = cells.text.filter(pl.Series(left)).cast(pl.Binary).to_list() if left.any() else []
    return Meaning(plain, left, texts)


class CellKeys:
    """A pseudorandom function of what a cell means, to one block."""

    def __init__(self, numbers: bytes, texts: bytes) -> None:
        self._numbers = aes(numbers)
        self._texts = hashlib.blake2b(key=texts, digest_size=16)

    def blocks(self, meaning: Meaning) -> Blocks:
        """One block per cell."""
        blocks = self._numbers(meaning.plain)
        if meaning.texts:
            blocks[meaning.is_text] = self._text_blocks(meaning.texts)
        return blocks

    def _text_blocks(self, texts: Sequence[bytes]) -> Blocks:
        start, digests = self._texts, []
        for text in texts:
            digest = start.copy()
            digest.update(text)
            digests.append(digest.digest())
        return np.frombuffer(b"".join(digests), dtype="<u8").reshape(-1, 2)


def spread(column: Column, blocks: Blocks) -> Blocks:
    """One block per cell to one per row."""
    if column.codes is None:
        return blocks
    whole_blocks = blocks.view(np.complex128).ravel()  # 16 bytes at a time: only a type that numpy moves as one
    return np.take(whole_blocks, column.codes).view(np.uint64).reshape(-1, 2)


class Fingerprint:
    """Sums the rows of chunks."""

    def __init__(
        self,
        key: bytes,
        names: Sequence[str],
        missing_values: Sequence[str],
        own_missing_values: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._key = key
        self.names = tuple(sorted(names))
        self._missing_values = tuple(missing_values)
        self._own_missing_values = own_missing_values or {}
        self._columns = {
            name: CellKeys(_subkey(key, "cells", name), _subkey(key, "texts", name)) for name in self.names
        }
        self._rows = aes(_subkey(key, "rows"))
        self._sum = 0
        self.rows = 0

    def missing_values_of(self, name: str) -> Sequence[str]:
        """What means missing in the column of this name, beside what everybody calls so."""
        return self._own_missing_values.get(name, self._missing_values)

    def blocks(self, column: Column, meaning: Meaning | None = None) -> Blocks:
        """Step 1 for one column of a chunk. Threads may do several columns at once.

        `meaning`: what its cells mean with these missing values, where that is known already.
        """
        meaning = meaning or meaning_of(column.cells, self.missing_values_of(column.name))
        return spread(column, self._columns[column.name].blocks(meaning))

    def add(self, blocks: Mapping[str, Blocks]) -> None:
        """Count every row of the chunk in, given the blocks of all its columns."""
        if tuple(sorted(blocks)) != self.names:
            raise ValueError("a chunk must have the table's columns")
        first, *others = blocks.values()
        together = first.copy()
        for column in others:
            together ^= column
        words = self._rows(together).view("<u4")  # (rows, 4), least significant first
        for place in range(4):
            self._sum += int(words[:, place].sum(dtype=np.uint64)) << (32 * place)
        self._sum %= _MODULUS
        self.rows += len(together)

    def digest(self) -> bytes:
        """33 bytes, the version first."""
        head = json.dumps([list(self.names), self.rows]).encode()
        key = _subkey(self._key, "table")
        return bytes([VERSION]) + hmac.digest(key, head + self._sum.to_bytes(16, "little"), hashlib.sha256)


def fingerprints_of(
    key: bytes,
    names: Sequence[str],
    missing_values: Sequence[str],
    own_missing_values: Mapping[str, Sequence[str]] | None = None,
) -> list[Fingerprint]:
    """Fingerprints with the declared missing values and, if some are not what everybody calls missing, of all cells as they are written.

    Rows are the same as others if either is that of either: the same file under another declaration, and the same values
    from a file that writes them otherwise, have no second budget.
    """
    as_written = Fingerprint(key, names, ())
    said = [*missing_values, *(value for values in (own_missing_values or {}).values() for value in values)]
    if all(value.lower() in USUALLY_MISSING for value in said):
        return [as_written]
    return [Fingerprint(key, names, missing_values, own_missing_values), as_written]


class aes:  # noqa: N801 - used as a function
    """AES-256 on many independent blocks."""

    def __init__(self, key: bytes) -> None:
        self._cipher = Cipher(algorithms.AES(key), modes.ECB())  # noqa: S305 - a permutation, not a mode: see above

    def __call__(self, blocks: Blocks) -> Blocks:
        plain = np.ascontiguousarray(blocks).view(np.uint8).reshape(-1).data  # a memoryview casts no empty array
        room = np.empty(len(plain) + 15, dtype=np.uint8)  # `update` makes room in the interpreter: 2 ns a block, not 40
        self._cipher.encryptor().update_into(plain, room.data)
        return room[: len(plain)].view("<u8").reshape(-1, 2)


def _subkey(key: bytes, purpose: str, name: str = "") -> bytes:
    person = f"imprimatur {VERSION}".encode()
    return hashlib.blake2b(f"{purpose}\x00{name}".encode(), key=key, digest_size=32, person=person).digest()


def fill(plain: Blocks, left: NDArray[np.bool_], values: pl.Series, kind: int | NDArray[np.uint64]) -> None:
    """Write the values that are known, and strike their cells off the list of those left."""
    known = left & values.is_not_null().to_numpy()
    plain[known, 0] = values.fill_null(0).to_numpy()[known].view(np.uint64)
    plain[known, 1] = kind if isinstance(kind, int) else kind[known]
    left &= ~known


def _bits(number: pl.Series, wanted: pl.Series) -> pl.Series:
    bits = pl.Series(np.ascontiguousarray(number.fill_null(0.0).to_numpy()).view(np.int64))
    return bits.to_frame("v").select(pl.when(wanted.alias("m")).then(pl.col("v"))).to_series()
