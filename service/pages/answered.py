"""Answers as people read them: on which rows, and counts beside what they are counts of."""

from __future__ import annotations

import datetime as dt
from itertools import islice, pairwise, product
from typing import TYPE_CHECKING, Any

from service.pages.writing import significant

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Cell = tuple[Any, ...]
"""What a count is of: a value, or both ends of a range."""

MOST_LINES = 200
"""Of a table of counts; all of them stand in the answer in full, and in its file."""
_DAY_SECONDS = 86_400
MISSING = "–"
"""As charts write a cell that is missing."""


def conditions_of(question: Mapping[str, Any]) -> str:
    """Which rows counted, as it may be typed into the form: `age>=65 & sex=f`."""
    return " & ".join(_condition(each) for each in question.get("where") or ())


def counts_of(answer: Mapping[str, Any], kinds: Mapping[str, str]) -> list[tuple[Sequence[Cell], Any]]:
    """Each count with the cells that it is of; nothing where the answer is no counts. `kinds`: types of columns by name."""
    axes, values = answer.get("axes"), answer.get("value")
    if not axes or not isinstance(values, list):
        return []
    cells = product(*(_cells(axis, kinds.get(axis["column"], "")) for axis in axes))
    return list(islice(zip(cells, values, strict=False), MOST_LINES))


def _condition(said: Mapping[str, Any]) -> str:
    column = str(said["column"])
    if (values := said.get("values")) is not None:
        if values == [None]:
            return f"{column} missing"
        listed = ", ".join("missing" if value is None else _text(value) for value in values)
        return f"{column}={listed}" if len(values) == 1 else f"{column} in [{listed}]"
    ends = ((">=", said.get("minimum")), ("<=", said.get("maximum")))
    return " & ".join(f"{column}{sign}{_text(end)}" for sign, end in ends if end is not None)


def _cells(axis: Mapping[str, Any], kind: str) -> list[Cell]:
    cells: list[Cell] = (
        list(pairwise(_end(edge, kind) for edge in axis["edges"]))
        if "edges" in axis
        else [(_text(value) if isinstance(value, bool) else value,) for value in axis["values"]]
    )
    return [*cells, (MISSING,)] if axis["missing"] else cells


def _end(edge: float, kind: str) -> Any:
    """Of a range: a number, or a day or time as schemas write it."""
    if kind not in {"date", "datetime"}:
        return edge
    at = dt.datetime.fromtimestamp(edge * (_DAY_SECONDS if kind == "date" else 1), dt.UTC)
    return at.date().isoformat() if kind == "date" else at.replace(tzinfo=None).isoformat()


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return significant(value, 15) if isinstance(value, float) else str(value)
