"""Counts of each column's cells in real rows and in synthetic ones, side by side, as a histogram shows them. Not private."""

from __future__ import annotations

import datetime as dt
import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from service.samples.table.spelling import range_written, values_written
from workers.reports.distances import grouped

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from workers.encoding.table import ColumnDomain, TableDomain
    from workers.reports.rows import Rows

MOST_CELLS, MOST_CATEGORIES = 33, 20
"""Bars of a range with its missing cells; categories, of which the rest is one bar."""
MISSING, REST = "–", "…"


def counts_beside(domain: TableDomain, real: Sequence[Rows], synthetic: Rows) -> list[dict[str, Any]]:
    """Of each column its cells by name, and how many real and synthetic rows each has."""
    codes = np.concatenate([rows.codes for rows in real])
    (known, widths), (made, _) = grouped(codes, domain, MOST_CELLS), grouped(synthetic.codes, domain, MOST_CELLS)
    return [
        _categories(column, codes[:, place], synthetic.codes[:, place])
        if column.values is not None
        else _range(column, known[:, place], made[:, place], widths[place])
        for place, column in enumerate(domain.columns)
    ]


def _categories(column: ColumnDomain, real: NDArray[np.int64], made: NDArray[np.int64]) -> dict[str, Any]:
    """The most frequent ones, in the order in which they were declared; those that are not shown are one bar."""
    counts = np.stack([np.bincount(codes, minlength=column.size) for codes in (real, made)])
    shown = np.sort(np.argsort(-counts.sum(axis=0), kind="stable")[:MOST_CATEGORIES])
    write = values_written(column.to_config()) or _plain
    values = [(column.values or ())[place] for place in shown]
    names = [MISSING if value is None else write(value) for value in values]
    found = counts[:, shown]
    if column.size > len(shown):
        names.append(REST)
        found = np.concatenate([found, (counts.sum(axis=1) - found.sum(axis=1))[:, None]], axis=1)
    return _cells(names, found)


def _range(column: ColumnDomain, real: NDArray[np.int64], made: NDArray[np.int64], width: int) -> dict[str, Any]:
    cells, groups = column.size - column.missing, width - column.missing
    edges = column.edges or ()
    begins = [edges[-(-group * cells // groups)] for group in range(groups)] + [edges[-1]]
    write = _writer(column)
    names = [_interval(column, write, low, high) for low, high in itertools.pairwise(begins)]
    return _cells(
        names + [MISSING] * column.missing, np.stack([np.bincount(codes, minlength=width) for codes in (real, made)])
    )


def _cells(names: list[str], counts: NDArray[np.int64]) -> dict[str, Any]:
    real, made = counts.tolist()
    return {"names": names, "real": real, "synthetic": made}


def _interval(column: ColumnDomain, write: Callable[[float], str], low: float, high: float) -> str:
    if column.type == "number":
        return f"{write(low)} – {write(high)}"
    last = high - column.step
    return write(low) if last <= low else f"{write(low)} – {write(last)}"


def _writer(column: ColumnDomain) -> Callable[[float], str]:
    """The end of a bar as the schema spells it, as charts of synthetic rows have it; else as everybody reads it."""
    spelled = range_written(column.to_config())
    if spelled is None:
        return _number if column.type == "number" else lambda value: _moment(column, value)
    if column.type == "number":
        return lambda value: spelled(np.array([float(f"{value:.4g}")]))[0]
    return lambda value: spelled(np.array([math.floor(value)]))[0]


def _number(value: float) -> str:
    """To four digits, never in powers of ten where it can be read without."""
    text = f"{value:.4g}"
    return f"{float(text):.0f}" if "e+" in text else text


def _moment(column: ColumnDomain, value: float) -> str:
    whole = math.floor(value)
    if column.type == "date":
        return (dt.date(1970, 1, 1) + dt.timedelta(days=whole)).isoformat()
    if column.type == "datetime":
        return (dt.datetime(1970, 1, 1) + dt.timedelta(seconds=whole)).isoformat(" ", "minutes")  # noqa: DTZ001 - clock time
    return str(whole)


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
