"""How synthetic values of a field are spelled, in the form of a bundle's config.json. From the declaration alone."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from service.domain.spellings import parts_of, texts_of
from service.domain.zones import offsets_of

if TYPE_CHECKING:
    from service.domain.field_schema import FieldSchema

_ISO = {"date": "%Y-%m-%d", "datetime": "%Y-%m-%dT%H:%M:%S"}


def written_as(field: FieldSchema) -> dict[str, Any]:
    """What `service/samples/table/spelling.py` reads: `spelling` and `missing_value`, each where the field says something."""
    found: dict[str, Any] = {}
    if field.missing_values is not None:
        found["missing_value"] = next(iter(field.missing_values), "")
    if field.spells_moments:
        found["spelling"] = {"parts": [list(part) for part in parts_of(field.strptime_pattern or _ISO[field.type])]}
        found["spelling"] |= {"offsets": _offsets_in_range(field)} if field.timezone is not None else {}
    elif field.spells_booleans:
        found["spelling"] = {str(truth).lower(): texts_of(field, truth=truth)[0] for truth in (False, True)}
    elif field.spells_numbers:
        found["spelling"] = _of_numbers(field)
    return found


def _of_numbers(field: FieldSchema) -> dict[str, Any]:
    spelling: dict[str, Any] = {
        "decimal": field.decimal_char or ".",
        "group": field.group_char or "",
        "prefix": field.prefix or "",
        "suffix": field.suffix or "",
        "parentheses": field.negative == "parentheses",
        "decimals": None if field.trailing_zeros is False else field.decimals,
    }
    if field.trailing_zeros is not None and field.type == "number" and not field.reads_numbers_otherwise:
        spelling["json"] = True
    return spelling


def _offsets_in_range(field: FieldSchema) -> list[list[Any]]:
    """Those that the declared range meets."""
    low, high = field.bounds
    offsets = offsets_of(field.timezone or "UTC")
    ended = [after.start <= low for _, after in pairwise(offsets)] + [False]
    return [list(one) for one, is_over in zip(offsets, ended, strict=True) if not is_over and (one.start <= high)] or [
        list(offsets[0])
    ]
