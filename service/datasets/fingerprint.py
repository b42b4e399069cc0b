"""The keyed fingerprint of a table's rows: same rows, same fingerprint, whatever the file looks like.

Independent of file name, row order, column order, CSV or Parquet, number and date spelling, and of the declared types.
A row becomes one string (columns by name, cells in their canonical spelling); its keyed BLAKE2b digest is a 256-bit
number; the table is the sum of them modulo 2^256. This is the multiset hash MSet-Add-Hash with a secret key (Clarke,
Devadas, van Dijk, Gassend, Suh 2003): order-free, repetitions count, and it streams in constant memory. The sum, the
row count and the column names are then sealed with HMAC-SHA256.

hashlib costs about a microsecond a row. A vectorised hash would be faster, but one that is stable across versions of
the libraries would have to be written here, and the digest must outlive them all.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from service.datasets.cells import Cells

_VERSION = b"imprimatur rows 1"
_MODULUS = 2**256
_ALWAYS_MISSING = frozenset({"", "?", "na", "n/a", "nan", "null"})
"""Spellings (any case) of a missing value that are one, whatever the schema declares."""


class Fingerprint:
    """Sums the rows of chunks."""

    def __init__(self, key: bytes, missing_values: Sequence[str]) -> None:
        self._key = key
        self._row_hash = hashlib.blake2b(
            key=hashlib.blake2b(key, digest_size=32, person=b"imprimatur rows").digest(), digest_size=32
        )
        self._missing_values = tuple(missing_values)
        self._names: tuple[str, ...] = ()
        self._sum = 0
        self.rows = 0

    def add(self, columns: Mapping[str, Cells]) -> None:
        """Count every row of the chunk in."""
        self._names = tuple(sorted(columns))
        spelled = [
            columns[name].canonical(self._missing(columns[name])).alias(str(i)) for i, name in enumerate(self._names)
        ]
        # NUL cannot occur in a cell (reading refuses it), so the row's string is unambiguous.
        rows = pl.DataFrame(spelled).select(pl.concat_str(pl.all(), separator="\x00").cast(pl.Binary)).to_series()
        start, total = self._row_hash, 0
        for row in rows.to_list():
            digest = start.copy()
            digest.update(row)
            total += int.from_bytes(digest.digest(), "little")
        self._sum = (self._sum + total) % _MODULUS
        self.rows += len(rows)

    def digest(self) -> bytes:
        """32 bytes."""
        head = json.dumps([list(self._names), self.rows]).encode()
        return hmac.digest(self._key, _VERSION + head + self._sum.to_bytes(32, "little"), hashlib.sha256)

    def _missing(self, cells: Cells) -> pl.Series:
        usual = cells.text.str.to_lowercase().is_in(list(_ALWAYS_MISSING)).fill_null(value=True)
        return cells.missing(self._missing_values) | usual
