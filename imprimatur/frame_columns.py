"""DataFrames of pandas and polars, and tables of Arrow: what their dtypes declare, as a file, and synthetic rows with the same dtypes."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any, Protocol

from imprimatur.formats import invalid
from imprimatur.replies import Json
from imprimatur.tables import ARROW, PANDAS, POLARS, Library, cast, categories_field, plain, read_parquet


class Frame(Protocol):
    """A table of some library."""

    library: Library
    names: list[str]
    rows: int

    def declared(self, name: str) -> Json | None:
        """The field that the column's dtype declares by itself; None: its domain is open."""

    def counts(self, name: str) -> dict[Any, int]:
        """The values of a column without missing ones, and how many rows have each."""

    def has_missing(self, name: str) -> bool:
        """Whether a cell is empty."""

    def write(self, path: Path) -> None:
        """Write the frame as a Parquet file."""

    def restored(self, content: bytes) -> Any:
        """Rows in Parquet as a table of this library with these dtypes, in this order of columns."""


def frame_of(table: Any) -> Frame:
    """The table of a frame of pandas or polars; of anything else by the Arrow PyCapsule interface."""
    library = type(table).__module__.partition(".")[0]
    if library == "pandas" and hasattr(table, "columns"):
        from imprimatur.frame_pandas import PandasFrame  # noqa: PLC0415 - only for those who have pandas

        PANDAS.check_installed()
        return PandasFrame(table)
    if library == "polars" and hasattr(table, "columns"):
        return PolarsFrame(table.collect() if hasattr(table, "collect") else table)
    if hasattr(table, "__arrow_c_stream__"):
        ARROW.check_installed()
        return ArrowFrame(importlib.import_module("pyarrow").table(table))
    raise invalid(
        "table",
        f"a {type(table).__name__} is not a table: give a DataFrame of pandas or polars, a table of Arrow, or the path of a file",
    )


class PolarsFrame:
    """A DataFrame of polars. Only an Enum declares its categories: those of a Categorical are the texts that were read."""

    def __init__(self, frame: Any) -> None:
        self._polars = importlib.import_module("polars")
        self._frame = frame
        self.library, self.names, self.rows = POLARS, list(frame.columns), frame.height
        for name, dtype in frame.schema.items():
            if dtype.is_nested() or dtype in {self._polars.Duration, self._polars.Time, self._polars.Binary}:
                raise invalid(
                    "table",
                    f"column {name!r} is of type {dtype}, which no schema has: make numbers or texts of it, or drop it",
                )

    def declared(self, name: str) -> Json | None:
        dtype = self._frame.schema[name]
        if dtype == self._polars.Boolean:
            return {"name": name, "type": "boolean"}
        if isinstance(dtype, self._polars.Enum):
            return categories_field(name, dtype.categories.to_list(), self.rows)
        return None

    def counts(self, name: str) -> dict[Any, int]:
        counted = self._frame[name].alias("value").drop_nulls().value_counts(name="rows")
        return {value: rows for value, rows in counted.iter_rows() if value == value}  # noqa: PLR0124 - without NaN

    def has_missing(self, name: str) -> bool:
        column = self._frame[name]
        return bool(column.null_count()) or (column.dtype.is_float() and bool(column.is_nan().any()))

    def write(self, path: Path) -> None:
        self._frame.with_columns(self._polars.selectors.categorical().cast(self._polars.String)).write_parquet(path)

    def restored(self, content: bytes) -> Any:
        drawn = read_parquet(content, POLARS)
        columns = [
            self._restored(drawn[name], self._frame.schema[name]) for name in self.names if name in drawn.columns
        ]
        return self._polars.DataFrame(columns)

    def _restored(self, column: Any, dtype: Any) -> Any:
        polars = self._polars
        if column.dtype == polars.Categorical:
            column = column.cast(polars.String)
        if isinstance(dtype, polars.Datetime) and column.dtype == polars.Datetime and dtype.time_zone:
            column = column.dt.replace_time_zone("UTC").dt.convert_time_zone(dtype.time_zone)
        try:
            return column.cast(dtype, strict=True)
        except polars.exceptions.InvalidOperationError:
            return column  # a declared range may be wider than the dtype


class ArrowFrame:
    """A table of pyarrow. Its dictionaries hold the texts that were read, so they declare nothing."""

    library = ARROW

    def __init__(self, table: Any) -> None:
        self._table = table
        self.names, self.rows = list(table.column_names), table.num_rows

    def declared(self, name: str) -> Json | None:
        is_boolean = self._table.schema.field(name).type == importlib.import_module("pyarrow").bool_()
        return {"name": name, "type": "boolean"} if is_boolean else None

    def counts(self, name: str) -> dict[Any, int]:
        counted = importlib.import_module("pyarrow.compute").value_counts(plain(self._table.column(name)))
        values, rows = (counted.field(which).to_pylist() for which in ("values", "counts"))
        pairs = zip(values, rows, strict=True)
        return {value: times for value, times in pairs if value is not None and value == value}  # noqa: PLR0124 - without NaN

    def has_missing(self, name: str) -> bool:
        return bool(self._table.column(name).null_count)

    def write(self, path: Path) -> None:
        importlib.import_module("pyarrow.parquet").write_table(self._table, path)

    def restored(self, content: bytes) -> Any:
        drawn = read_parquet(content, ARROW)
        names = [name for name in self.names if name in drawn.column_names]
        columns = [cast(drawn.column(name), self._table.schema.field(name).type) for name in names]
        return importlib.import_module("pyarrow").table(dict(zip(names, columns, strict=True)))
