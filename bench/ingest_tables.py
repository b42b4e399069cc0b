"""Tables to take in: one like Adult (fifteen columns, about 100 bytes a row), a narrow one, and one with units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from pathlib import Path

PIECE_ROWS = 500_000
CATEGORIES = {
    "workclass": 8,
    "education": 16,
    "marital-status": 7,
    "occupation": 14,
    "relationship": 6,
    "race": 5,
    "sex": 2,
    "native-country": 41,
    "income": 2,
}
RANGES = {
    "age": (17, 90),
    "fnlwgt": (10_000, 1_500_000),
    "education-num": (1, 16),
    "capital-gain": (0, 99_999),
    "capital-loss": (0, 4_356),
    "hours-per-week": (1, 99),
}
MOSTLY_ZERO = {"capital-gain": 0.92, "capital-loss": 0.95}


@dataclass(frozen=True)
class Kind:
    """One shape of table; `units`: with a column of as many different privacy units as rows."""

    name: str
    columns: tuple[str, ...]
    units: bool = False

    @property
    def schema(self) -> dict[str, Any]:
        return {"fields": [_field(name) for name in self.columns]}

    @property
    def privacy_unit(self) -> dict[str, Any] | None:
        return {"column": "person", "max_rows_per_unit": 2} if self.units else None

    def write(self, folder: Path, rows: int, *, parquet: bool) -> Path:
        """A table of so many new rows, made piece by piece; kept for later runs."""
        path = folder / f"{self.name.replace(' ', '-')}-{rows}.{'parquet' if parquet else 'csv'}"
        if path.exists():
            return path
        pieces = [folder / f"piece-{start}.parquet" for start in range(0, rows, PIECE_ROWS)]
        for number, piece in enumerate(pieces):
            self._piece(min(PIECE_ROWS, rows - number * PIECE_ROWS), seed=number).write_parquet(piece)
        table = pl.scan_parquet(pieces)
        table.sink_parquet(path) if parquet else table.sink_csv(path)
        for piece in pieces:
            piece.unlink()
        return path

    def _piece(self, rows: int, *, seed: int) -> pl.DataFrame:
        random = np.random.default_rng([seed, len(self.columns)])
        columns = [_column(name, rows, random) for name in self.columns]
        if self.units:
            columns.append(pl.Series("person", random.integers(0, 2**40, rows)))
        return pl.DataFrame(columns)


ADULT = Kind(
    "like Adult",
    (
        *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship"),
        *("race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "income"),
    ),
)
NARROW = Kind("narrow", ("age", "fnlwgt", "sex"))
UNITS = Kind("like Adult with units", ADULT.columns, units=True)


def _values(name: str) -> list[str]:
    """Categories of lengths as Adult has them: 4 to 17 letters."""
    return [f"{name[:3]}{'-' * (number % 10)}{number:02}"[:17] for number in range(CATEGORIES[name])]


def _field(name: str) -> dict[str, Any]:
    if name in CATEGORIES:
        return {"name": name, "type": "string", "constraints": {"enum": _values(name), "required": True}}
    low, high = RANGES[name]
    return {"name": name, "type": "integer", "constraints": {"minimum": low, "maximum": high, "required": True}}


def _column(name: str, rows: int, random: np.random.Generator) -> pl.Series:
    if name in CATEGORIES:
        codes = np.minimum(random.geometric(0.3, rows) - 1, CATEGORIES[name] - 1)
        return pl.Series(_values(name)).gather(codes).alias(name)
    low, high = RANGES[name]
    numbers = random.integers(low, high + 1, rows)
    if name in MOSTLY_ZERO:
        numbers[random.random(rows) < MOSTLY_ZERO[name]] = 0
    return pl.Series(name, numbers)
