"""Names of columns that are an index of pandas, and names that no schema can have."""

from __future__ import annotations

import re
import unicodedata

LONGEST_NAME = 200
"""Of a field (`FieldSchema.name`)."""

_PANDAS_INDEX = re.compile(
    r"(__index_level_[0-9]+__|Unnamed: [0-9]+(_level_[0-9]+)?|level_[0-9]+|index|rownames|row_names)"
)
"""How pandas and R name the numbers of rows when they write a file."""


def is_index_name(name: str) -> bool:
    return _PANDAS_INDEX.fullmatch(name) is not None


def is_always_index(name: str) -> bool:
    """Names that nobody gives a column of their own."""
    return name.startswith(("__index_level_", "Unnamed: "))


def usable_name(name: str) -> str:
    """The name as a field may have it: without line breaks and other characters that are not printed, not too long."""
    text = "".join(char if char.isprintable() else " " for char in unicodedata.normalize("NFC", name))
    return " ".join(text.split())[:LONGEST_NAME].strip()


def why_renamed(name: str) -> str:
    """What is wrong with a name that `usable_name` changes."""
    if len(name) > LONGEST_NAME:
        return f"its name has {len(name)} characters, and {LONGEST_NAME} are the most"
    if "\n" in name or "\r" in name:
        return "its name holds a line break"
    return "its name holds characters that are not seen, such as a space that does not break"
