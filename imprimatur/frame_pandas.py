"""DataFrames of pandas, by way of Arrow."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from imprimatur.formats import invalid
from imprimatur.replies import Json
from imprimatur.tables import ARROW, PANDAS, cast, categories_field, plain, read_parquet


class PandasFrame:
    """A DataFrame of pandas. A categorical column declares its categories, a boolean one its two values."""

    library = PANDAS

    def __init__(self, frame: Any) -> None:
        _check_index(frame)
        if isinstance(frame.columns, pd.MultiIndex):
            raise invalid(
                "table",
                "the columns have several levels; give each one name, for example frame.columns = frame.columns.map('_'.join)",
            )
        self._frame = frame
        self._labels = list(frame.columns)
        self.names, self.rows = [str(label) for label in self._labels], len(frame)
        twice = sorted({name for name in self.names if self.names.count(name) > 1})
        if twice:
            raise invalid(
                "table", f"several columns are named {', '.join(map(repr, twice))}; give each a name of its own"
            )

    def _column(self, name: str) -> Any:
        return self._frame.iloc[:, self.names.index(name)]

    def declared(self, name: str) -> Json | None:
        dtype = self._column(name).dtype
        if isinstance(dtype, pd.CategoricalDtype):
            return categories_field(name, _values_of(dtype), self.rows)
        if pd.api.types.is_bool_dtype(dtype):
            never_missing = {"constraints": {"required": True}} if isinstance(dtype, np.dtype) else {}
            return {"name": name, "type": "boolean", **never_missing}
        return None

    def counts(self, name: str) -> dict[Any, int]:
        counted = self._column(name).dropna().value_counts(sort=False)
        pairs = zip(counted.index.tolist(), counted.tolist(), strict=True)
        found = ((value, rows) for value, rows in pairs if rows)  # a category of no row is counted, too
        return {v.to_pydatetime(warn=False) if isinstance(v, pd.Timestamp) else v: rows for v, rows in found}

    def has_missing(self, name: str) -> bool:
        return bool(self._column(name).isna().any())

    def write(self, path: Path) -> None:
        pq.write_table(pa.table({name: _arrow_of(name, self._column(name)) for name in self.names}), path)

    def restored(self, content: bytes) -> Any:
        drawn = read_parquet(content, ARROW)
        names = [name for name in self.names if name in drawn.column_names]
        columns = [_restored(drawn.column(name), self._column(name).dtype) for name in names]
        made = pd.DataFrame(dict(enumerate(columns)))
        made.columns = pd.Index(
            [self._labels[self.names.index(name)] for name in names], dtype=self._frame.columns.dtype
        )
        return made


def _check_index(frame: Any) -> None:
    """Row numbers are dropped. Anything else may be a column, or who a row is of: its owner has to say."""
    index = frame.index
    named = [name for name in index.names if name is not None]
    is_numbers = pd.api.types.is_integer_dtype(index.dtype) and not isinstance(index, pd.MultiIndex)
    if named or not is_numbers:
        what = f"the index {', '.join(map(repr, named))}" if named else "an index that is not row numbers"
        raise invalid(
            "table",
            f"{what} is neither published nor dropped silently: frame.reset_index() makes a column of it, which has to be declared; "
            "frame.reset_index(drop=True) leaves it out",
        )


def _values_of(dtype: Any) -> list[Any]:
    """Categories as a schema can say them: what is neither text, number nor truth value, by its text."""
    values = dtype.categories.tolist()
    is_plain = (
        all(isinstance(value, str) for value in values)
        or {*values} == {False, True}
        or all(
            isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) for value in values
        )
    )
    return values if is_plain else [str(value) for value in values]


def _arrow_of(name: str, column: Any) -> Any:
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        values = pa.array(_values_of(dtype))
        codes = pa.array(column.cat.codes.to_numpy(), mask=(column.cat.codes < 0).to_numpy())
        return values.take(codes)
    try:
        return pa.Array.from_pandas(column)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        kinds = sorted({type(value).__name__ for value in column.dropna()})
        raise invalid(
            "table",
            f"column {name!r} of dtype {dtype} holds values of {', '.join(kinds)}; make one kind of them, for example frame[{name!r}].astype(str)",
        ) from None


def _restored(column: Any, dtype: Any) -> Any:
    """A drawn column of Arrow as pandas had it. Where something is missing and the dtype knows no missing values, its nullable kin."""
    column = plain(column)
    if isinstance(dtype, pd.CategoricalDtype):
        code_of = {value: code for code, value in enumerate(_values_of(dtype))}
        made = pd.Series(pd.Categorical.from_codes([code_of.get(v, -1) for v in column.to_pylist()], dtype=dtype))
    elif isinstance(dtype, pd.ArrowDtype):
        made = _by_arrow(cast(column, dtype.pyarrow_dtype))
    elif isinstance(dtype, pd.DatetimeTZDtype):
        made = column.to_pandas().dt.tz_localize("UTC").dt.tz_convert(dtype.tz).astype(dtype)
    elif pd.api.types.is_object_dtype(dtype):
        made = pd.Series(column.to_pylist(), dtype=object)
    elif dtype.kind in "iub":
        is_of_numpy = isinstance(dtype, np.dtype)
        fitting = cast(column, pa.from_numpy_dtype(dtype if is_of_numpy else dtype.numpy_dtype))
        made = fitting.to_pandas() if is_of_numpy and not fitting.null_count else _nullable(fitting)
    elif isinstance(dtype, np.dtype):
        made = column.to_pandas().astype(dtype)
    else:
        made = _by_arrow(column).astype(dtype)
    return made


def _by_arrow(column: Any) -> Any:
    return pd.Series(column.to_pandas(types_mapper=pd.ArrowDtype))


def _nullable(column: Any) -> Any:
    """Whole numbers and truth values as pandas' own nullable types."""
    kin = {pa.bool_(): pd.BooleanDtype()}
    for bits in (8, 16, 32, 64):
        kin |= {getattr(pa, f"int{bits}")(): getattr(pd, f"Int{bits}Dtype")()}
        kin |= {getattr(pa, f"uint{bits}")(): getattr(pd, f"UInt{bits}Dtype")()}
    return column.to_pandas(types_mapper=kin.get)
