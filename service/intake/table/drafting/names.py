"""Names of columns that are an index of pandas or R."""

from __future__ import annotations

import re

_PANDAS_INDEX = re.compile(
    r"(__index_level_[0-9]+__|Unnamed: [0-9]+(_level_[0-9]+)?|level_[0-9]+|index|rownames|row_names)"
)
"""How pandas and R name the numbers of rows when they write a file."""


def is_index_name(name: str) -> bool:
    return _PANDAS_INDEX.fullmatch(name) is not None


def is_always_index(name: str) -> bool:
    """Names that a program gives a column, not a person."""
    return name.startswith(("__index_level_", "Unnamed: "))
