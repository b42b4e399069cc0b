"""Synthetic rows as tables of pandas, polars or pyarrow, none of which is required."""

from __future__ import annotations

import importlib
import io
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from imprimatur.errors import MissingExtra


@dataclass(frozen=True)
class Library:
    """One that has tables."""

    name: str
    modules: tuple[str, ...]
    extra: str

    @property
    def is_installed(self) -> bool:
        return all(find_spec(module) is not None for module in self.modules)

    def check_installed(self) -> None:
        """Raise `MissingExtra`, which says what to install."""
        if not self.is_installed:
            raise MissingExtra(f"a table of {self.name}", self.extra)


PANDAS = Library("pandas", ("pandas", "pyarrow"), "pandas")
POLARS = Library("polars", ("polars",), "polars")
ARROW = Library("pyarrow", ("pyarrow",), "arrow")


def read_parquet(content: bytes, library: Library) -> Any:
    """A table of the library. Texts come as categories in their declared order, whole numbers stay whole."""
    if library is POLARS:
        return importlib.import_module("polars").read_parquet(io.BytesIO(content))
    table = importlib.import_module("pyarrow.parquet").read_table(io.BytesIO(content))
    return table if library is ARROW else pandas_of(table)


def pandas_of(table: Any) -> Any:
    """As pandas has it, with nullable types where something is missing: pandas would make floats of whole numbers, and objects of booleans."""
    pandas, arrow = importlib.import_module("pandas"), importlib.import_module("pyarrow")
    nullable = {arrow.int64(): pandas.Int64Dtype(), arrow.bool_(): pandas.BooleanDtype()}
    columns = {}
    for number, name in enumerate(table.column_names):
        column = table.column(number)
        mapper = nullable.get if column.null_count else None
        columns[name] = column.to_pandas(types_mapper=mapper)
    return pandas.DataFrame(columns, columns=table.column_names)
