"""Synthetic rows as tables of pandas, polars or pyarrow, none of which is required."""

from __future__ import annotations

import importlib
import io
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from imprimatur.errors import MissingExtra
from imprimatur.formats import SampleFormat
from imprimatur.person_columns import is_person_id
from imprimatur.personal_looks import look_of
from imprimatur.replies import Json

_FEW = 20


@dataclass(frozen=True)
class Library:
    """One that has tables."""

    name: str
    modules: tuple[str, ...]
    extra: str

    @property
    def wanted(self) -> SampleFormat:
        """Arrow streams keep categories in their declared order. polars does not read those whose missing values have a code of none."""
        return "parquet" if self.name == "polars" else "arrow"

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


def library_of(table: Any) -> Library | None:
    """Whose table it is; None of what is none."""
    name = type(table).__module__.partition(".")[0]
    known = next((one for one in (PANDAS, POLARS) if one.name == name and hasattr(table, "columns")), None)
    return known or (ARROW if hasattr(table, "__arrow_c_stream__") else None)


def parquet_of(table: Any, library: Library) -> bytes:
    """The table as it is sent; an index of pandas stays behind."""
    library.check_installed()
    sent = io.BytesIO()
    if library is POLARS:
        (table.collect() if hasattr(table, "collect") else table).write_parquet(sent)
        return sent.getvalue()
    arrow = importlib.import_module("pyarrow")
    made = arrow.Table.from_pandas(table, preserve_index=False) if library is PANDAS else arrow.table(table)
    importlib.import_module("pyarrow.parquet").write_table(made.replace_schema_metadata(None), sent)
    return sent.getvalue()


def read_parquet(content: bytes, library: Library) -> Any:
    """A table of the library."""
    if library is POLARS:
        return importlib.import_module("polars").read_parquet(io.BytesIO(content))
    table = importlib.import_module("pyarrow.parquet").read_table(io.BytesIO(content))
    return table if library is ARROW else pandas_of(table)


def read_rows(content: bytes, library: Library) -> Any:
    """A table of the library from the format that `Library.wanted` names."""
    if library is POLARS:
        return read_parquet(content, library)
    table = importlib.import_module("pyarrow").ipc.open_stream(content).read_all()
    return table if library is ARROW else pandas_of(table)


def pandas_of(table: Any) -> Any:
    """A pandas DataFrame, with nullable types where something is missing: pandas would make floats of whole numbers, and objects of booleans."""
    pandas, arrow = importlib.import_module("pandas"), importlib.import_module("pyarrow")
    nullable = {arrow.int64(): pandas.Int64Dtype(), arrow.bool_(): pandas.BooleanDtype()}
    columns = {}
    for number, name in enumerate(table.column_names):
        column = table.column(number)
        mapper = nullable.get if column.null_count else None
        columns[name] = column.to_pandas(types_mapper=mapper)
    return pandas.DataFrame(columns, columns=table.column_names)


def categories_field(name: str, values: list[Any], rows: int) -> Json | None:
    """A field with these declared categories; None where they look as if they had been read from identifiers."""
    if not values or len(values) > max(_FEW, rows // 2):
        return None
    if is_person_id(name) or look_of(dict.fromkeys(map(str, values), 1)):
        return None
    if all(isinstance(value, str) for value in values):
        return {"name": name, "type": "string", "constraints": {"enum": values}}
    if all(isinstance(value, bool) for value in values):
        return {"name": name, "type": "boolean"}
    whole = all(isinstance(value, int) and not isinstance(value, bool) for value in values)
    return {"name": name, "type": "integer" if whole else "number", "constraints": {"enum": values}}


def plain(column: Any) -> Any:
    """A column of Arrow without a dictionary."""
    return column.cast(column.type.value_type) if hasattr(column.type, "value_type") else column


def cast(column: Any, to: Any) -> Any:
    """A drawn column with another Arrow type, where all of its values fit; moments were drawn in UTC."""
    arrow = importlib.import_module("pyarrow")
    column = plain(column)
    if arrow.types.is_timestamp(column.type) and getattr(to, "tz", None):
        column = importlib.import_module("pyarrow.compute").assume_timezone(column, "UTC")
    try:
        return column.dictionary_encode().cast(to) if arrow.types.is_dictionary(to) else column.cast(to)
    except arrow.ArrowInvalid:
        return column  # a declared range may be wider than the type
