"""How a schema says that a part of it was read from the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

DRAFT = "DRAFT"
"""How descriptions of a draft begin."""


def is_marked(part: Mapping[str, Any]) -> bool:
    """Whether the schema itself, or one field of it, is a draft."""
    return str(part.get("description") or "").startswith(DRAFT)


def is_draft(schema: Mapping[str, Any]) -> bool:
    """Whether any part of it still is."""
    listed = schema.get("fields")
    parts = [schema, *(field for field in (listed if isinstance(listed, list) else []) if isinstance(field, dict))]
    return any(map(is_marked, parts))
