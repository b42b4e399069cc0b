"""What a page shows of synthetic rows: a table, a histogram of each column, how far pairs of columns go together.

All of it is computed from rows that anybody with a reader's key may draw, so it costs no budget.
"""

from __future__ import annotations

import csv
import datetime as dt
import io
import itertools
import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from service.base.lazy import lazy
from service.domain.table_schema import TableSchema
from service.pages.writing import significant
from service.releases.sampling import SampleRequest, drawn_columns, sample_response

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from fastapi import Request

    from service.platform.context import Context
    from service.releases.models import Release
    from service.samples.table.ranges import GridColumn
    from service.samples.table.written import RowColumn
else:
    np = lazy("numpy")

SEED = 1
"""The same rows at every look, so that a page can be turned back to."""
ROWS_TO_TURN, ROWS_TO_COUNT, ROWS_OF_A_PAGE = 500, 2_000, 25
MOST_BARS, BINS, GROUPS, MOST_COLUMNS_OF_PAIRS, MOST_COLUMNS = 20, 20, 8, 16, 60

MADE_UP = {"identifier", "free_text"}
"""Roles of columns whose values follow from no row."""


@dataclass(frozen=True, slots=True)
class Texts:
    """Drawn rows as a CSV file of them has them."""

    names: list[str]
    rows: list[list[str]]


async def draw_texts(
    request: Request, context: Context, release: Release, rows: int, where: Sequence[str] | None = None
) -> Texts:
    """Synthetic rows, the same for the same arguments. A condition that cannot be met is refused."""
    reply = await sample_response(request, context, release, SampleRequest(rows, "csv", where or None, SEED))
    pieces = [piece async for piece in reply.body_iterator]
    text = b"".join(piece.encode() if isinstance(piece, str) else bytes(piece) for piece in pieces).decode()
    names, *found = csv.reader(io.StringIO(text, newline=""))
    return Texts(names, found)


def numbers_of(schema: Any) -> set[str]:
    """Names of the columns that hold numbers."""
    fields = schema.fields if isinstance(schema, TableSchema) else ()
    return {field.name for field in fields if field.type in {"integer", "number"}}


@dataclass(frozen=True, slots=True)
class Series:
    """A drawn column: the value of each row, None where it is missing; days are counted from 1970-01-01."""

    name: str
    values: list[Any]
    written: Callable[[Any], str]
    """A value as the schema spells it."""
    written_edge: Callable[[float], str] | None = None
    """The end of a bar of numbers; None of columns whose values are no numbers."""
    are_days: bool = False
    are_whole: bool = False


@dataclass(frozen=True, slots=True)
class Drawn:
    """What charts show, and the columns that they leave out."""

    columns: list[Series]
    left_out: list[str]


async def draw_columns(request: Request, release: Release, schema: Any, rows: int) -> Drawn:
    """Synthetic rows column by column, less identifiers and placeholders: those are made up and would only look like data."""
    columns, chunks = await drawn_columns(request, release, rows, SEED)
    left_out = {field.name for field in getattr(schema, "fields", ()) if field.role in MADE_UP}
    joined = [np.ma.concatenate(parts) for parts in zip(*chunks, strict=True)]  # type: ignore[no-untyped-call]  # numpy's
    found = [series(each, drawn) for each, drawn in zip(columns, joined, strict=False) if each.name not in left_out]
    return Drawn(found, [each.name for each in columns if each.name in left_out])


def series(column: RowColumn, drawn: Any) -> Series:
    """What a chart shows of one drawn column."""
    from service.samples.table.columns import CategoryColumn  # noqa: PLC0415 - large libraries: loaded with the sampler
    from service.samples.table.ranges import GridColumn  # noqa: PLC0415 - as above

    if isinstance(column, GridColumn):
        return _days(column, drawn) if column.type in {"date", "datetime"} else _numbers(column, drawn)
    texts = dict(zip(column.values, column.texts, strict=True)) if isinstance(column, CategoryColumn) else {}

    def written(value: Any) -> str:
        return texts.get(value, str(value))

    edge = _edge if column.type in {"integer", "number"} else None
    return Series(column.name, column.to_values(np.ma.getdata(drawn)), written, edge)


def _days(column: GridColumn, drawn: Any) -> Series:
    """Dates, and of moments the day that clocks of the declared zone show."""
    numbers = column.on_clocks(drawn)
    days = numbers // 86_400 if column.type == "datetime" else numbers

    def written(day: float) -> str:
        if column.type == "date":
            return column.spelled(np.array([math.ceil(day)]))[0]
        return (dt.date(1970, 1, 1) + dt.timedelta(math.ceil(day))).isoformat()

    return Series(column.name, days.tolist(), written, written, are_days=True)


def _numbers(column: GridColumn, drawn: Any) -> Series:
    def written(value: float) -> str:
        return column.spelled(np.array([value]))[0]

    def edge(value: float) -> str:
        return written(float(f"{value:.4g}")) if column.is_spelled else _edge(value)

    return Series(column.name, np.ma.asarray(drawn).tolist(), written, edge, are_whole=column.type == "integer")


def _edge(value: float) -> str:
    return significant(value, 4)


@dataclass(frozen=True, slots=True)
class Histogram:
    """One column: labels of its bars and their counts; missing cells are a bar of their own."""

    column: str
    labels: list[str]
    counts: list[int]


def histograms(columns: Sequence[Series]) -> list[Histogram]:
    """One for each of the first columns."""
    return [_histogram(column) for column in columns[:MOST_COLUMNS]]


def _histogram(column: Series) -> Histogram:
    there = [value for value in column.values if value is not None]
    bars = _bars(column, there)
    if missing := len(column.values) - len(there):
        bars.append(("–", missing))
    return Histogram(column.name, [label for label, _ in bars], [count for _, count in bars])


def _bars(column: Series, there: list[Any]) -> list[tuple[str, int]]:
    """(Label, count) of each: intervals of numbers or days, or single values."""
    write = column.written_edge
    if write is None or len(set(there)) <= MOST_BARS:
        found = Counter(there)
        ordered = sorted(found) if write is not None else [value for value, _ in found.most_common()]
        bars = [(column.written(value), found[value]) for value in ordered[:MOST_BARS]]
        if rest := len(there) - sum(count for _, count in bars):
            bars.append(("…", rest))
        return bars
    if column.are_whole:
        return _whole_bars(column, list(map(int, there)))
    counts, edges = np.histogram(np.array(there, dtype=float), bins=BINS)
    if column.are_days:
        return [(write(edge), int(n)) for edge, n in zip(edges, counts, strict=False)]
    return [(f"{write(a)} – {write(b)}", int(n)) for (a, b), n in zip(itertools.pairwise(edges), counts, strict=True)]


def _whole_bars(column: Series, there: list[int]) -> list[tuple[str, int]]:
    """Intervals of equally many whole numbers each; the last may reach beyond the largest value."""
    low, high = min(there), max(there)
    width = -(-(high - low + 1) // BINS)
    found = Counter((value - low) // width for value in there)
    begins = range(low, high + 1, width)
    return [
        (f"{column.written(begin)} – {column.written(min(begin + width - 1, high))}", found[place])
        for place, begin in enumerate(begins)
    ]


@dataclass(frozen=True, slots=True)
class Links:
    """How strongly pairs of columns are related: Cramér's V of each, 0 to 1, corrected for the number of rows."""

    columns: list[str]
    values: list[list[float]]


def links(columns: Sequence[Series]) -> Links:
    """Cramér's V of each pair of the first columns, each in at most eight groups, with the correction of Bergsma 2013."""
    codes = {column.name: _codes(column) for column in columns[:MOST_COLUMNS_OF_PAIRS]}
    return Links(list(codes), [[_cramers_v(a, b) for b in codes.values()] for a in codes.values()])


def _codes(column: Series) -> np.ndarray:
    there = [value for value in column.values if value is not None]
    if column.written_edge is not None and len(set(there)) > GROUPS:
        cuts = np.quantile(np.array(there, dtype=float), np.linspace(0, 1, GROUPS + 1)[1:-1])
        return np.array(
            [GROUPS if v is None else int(np.searchsorted(cuts, float(v), side="right")) for v in column.values]
        )
    named = {value: place for place, (value, _) in enumerate(Counter(there).most_common(GROUPS - 1))}
    return np.array([GROUPS if value is None else named.get(value, GROUPS - 1) for value in column.values])


def _cramers_v(left: np.ndarray, right: np.ndarray) -> float:
    table = np.zeros((GROUPS + 1, GROUPS + 1))
    np.add.at(table, (left, right), 1.0)
    table = table[table.any(axis=1)][:, table.any(axis=0)]
    n, (r, c) = table.sum(), table.shape
    if n < 2 or min(r, c) < 2:
        return 0.0
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / n
    phi = max(0.0, float(((table - expected) ** 2 / expected).sum() / n) - (r - 1) * (c - 1) / (n - 1))
    most = min(r - (r - 1) ** 2 / (n - 1), c - (c - 1) ** 2 / (n - 1)) - 1.0
    return min(1.0, math.sqrt(phi / most)) if most > 0 else 0.0
