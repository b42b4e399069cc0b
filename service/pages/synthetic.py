"""What a page shows of synthetic rows: a table, a histogram of each column, how far pairs of columns go together.

All of it is computed from rows that anybody with a reader's key may draw, so it costs no budget.
"""

from __future__ import annotations

import datetime as dt
import itertools
import json
import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from service.base.lazy import lazy
from service.releases.sampling import SampleRequest, sample_response

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from fastapi import Request

    from service.platform.context import Context
    from service.releases.models import Release
else:
    np = lazy("numpy")

SEED = 1
"""The same rows at every look, so that a page can be turned back to."""
ROWS_TO_TURN, ROWS_TO_COUNT, ROWS_OF_A_PAGE = 500, 2_000, 25
MOST_BARS, BINS, GROUPS, MOST_COLUMNS_OF_PAIRS, MOST_COLUMNS = 20, 20, 8, 16, 60

DAY = re.compile(r"\d{4}-\d\d-\d\d(?:$|[T ])")

Row = dict[str, Any]


async def draw(
    request: Request, context: Context, release: Release, rows: int, where: Sequence[str] | None = None
) -> list[Row]:
    """Synthetic rows, the same for the same arguments. A condition that cannot be met is refused."""
    wanted = SampleRequest(rows, "jsonl", where or None, SEED)
    reply = await sample_response(request, context, release, wanted)
    pieces = [piece async for piece in reply.body_iterator]
    text = b"".join(piece.encode() if isinstance(piece, str) else bytes(piece) for piece in pieces)
    return [json.loads(line) for line in text.splitlines() if line]


@dataclass(frozen=True, slots=True)
class Histogram:
    """One column: labels of its bars and their counts; missing cells are a bar of their own."""

    column: str
    labels: list[str]
    counts: list[int]


def histograms(rows: Sequence[Row]) -> list[Histogram]:
    """One for each of the first columns."""
    columns = list(rows[0])[:MOST_COLUMNS] if rows else []
    return [_histogram(column, [row.get(column) for row in rows]) for column in columns]


def _histogram(column: str, values: list[Any]) -> Histogram:
    there = [value for value in values if value is not None]
    bars = _bars(there)
    if missing := len(values) - len(there):
        bars.append(("–", missing))
    return Histogram(column, [label for label, _ in bars], [count for _, count in bars])


def _bars(there: list[Any]) -> list[tuple[str, int]]:
    """(Label, count) of each: intervals of numbers or days, or single values."""
    days = _as_days(there) if len(set(there)) > MOST_BARS else None
    if _are_numbers(there) and len(set(there)) > MOST_BARS:
        counts, edges = np.histogram(np.array(there, dtype=float), bins=BINS)
        labels = [f"{a:.4g} – {b:.4g}" for a, b in itertools.pairwise(edges)]
        bars = list(zip(labels, map(int, counts), strict=True))
    elif days is not None:
        counts, edges = np.histogram(np.array(days, dtype=float), bins=BINS)
        bars = [
            (dt.date.fromordinal(math.ceil(edge)).isoformat(), int(n)) for edge, n in zip(edges, counts, strict=False)
        ]
    else:
        found = Counter(there)
        ordered = sorted(found) if _are_numbers(there) else [value for value, _ in found.most_common()]
        bars = [(_text(value), found[value]) for value in ordered[:MOST_BARS]]
        if rest := len(there) - sum(count for _, count in bars):
            bars.append(("…", rest))
    return bars


@dataclass(frozen=True, slots=True)
class Links:
    """How strongly pairs of columns are related: Cramér's V of each, 0 to 1, corrected for the number of rows."""

    columns: list[str]
    values: list[list[float]]


def links(rows: Sequence[Row]) -> Links:
    """Of the first columns, each in at most eight groups (Bergsma 2013 for the correction)."""
    columns = list(rows[0])[:MOST_COLUMNS_OF_PAIRS] if rows else []
    codes = {column: _codes([row.get(column) for row in rows]) for column in columns}
    return Links(columns, [[_cramers_v(codes[a], codes[b]) for b in columns] for a in columns])


def _codes(values: list[Any]) -> np.ndarray:
    there = [value for value in values if value is not None]
    if _are_numbers(there) and len(set(there)) > GROUPS:
        cuts = np.quantile(np.array(there, dtype=float), np.linspace(0, 1, GROUPS + 1)[1:-1])
        return np.array([GROUPS if v is None else int(np.searchsorted(cuts, float(v), side="right")) for v in values])
    named = {value: place for place, (value, _) in enumerate(Counter(there).most_common(GROUPS - 1))}
    return np.array([GROUPS if value is None else named.get(value, GROUPS - 1) for value in values])


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


def _as_days(values: Sequence[Any]) -> list[int] | None:
    """Dates, and moments of which the day is taken; None where one is neither."""
    if not all(isinstance(value, str) and DAY.match(value) for value in values):
        return None
    try:
        return [dt.date.fromisoformat(value[:10]).toordinal() for value in values]
    except ValueError:
        return None


def _are_numbers(values: Sequence[Any]) -> bool:
    return bool(values) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
