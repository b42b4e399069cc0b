"""Tell foreign declarations apart and convert them: Frictionless, SDV metadata, pandera, CSVW."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from service.base.errors import InvalidSchema
from service.domain.foreign.csvw import from_csvw, is_csvw
from service.domain.foreign.data_frames import from_pandera, from_sdv, is_pandera, is_sdv
from service.domain.foreign.frictionless import from_frictionless, is_frictionless

if TYPE_CHECKING:
    from collections.abc import Callable

    from service.domain.foreign.converted import Converted, Document

_KINDS: tuple[tuple[Callable[[Document], bool], Callable[[Document, str | None], Converted]], ...] = (
    (is_csvw, from_csvw),
    (is_pandera, from_pandera),
    (is_sdv, from_sdv),
    (is_frictionless, from_frictionless),
)
"""How to tell each, and what converts it; the first that fits does."""


def convert(document: Any, *, table: str | None = None) -> Converted:
    """A foreign declaration converted; of several tables, the one of this name. Raises `InvalidSchema` for none of the known forms."""
    if not isinstance(document, dict):
        raise InvalidSchema("schema: a JSON or YAML object is needed", where="schema")
    for is_one, converter in _KINDS:
        if is_one(document):
            found = _converted(converter, document, table)
            if not found.fields:
                raise InvalidSchema(f"schema: no column is left: {'; '.join(found.notes)}", where="schema")
            return found
    raise InvalidSchema(
        "schema: this is none of Frictionless (fields or resources), SDV metadata (columns with sdtype), pandera"
        " (schema_type) and CSVW (tableSchema or tables)",
        where="schema",
    )


def _converted(
    converter: Callable[[Document, str | None], Converted], document: Document, table: str | None
) -> Converted:
    try:
        return converter(document, table)
    except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        raise InvalidSchema(f"schema: it is not of its own form: {error}", where="schema") from None
