"""Bounds and categories as they are typed into the form of a column, and the values that they are."""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from service.base.errors import InvalidInput
from service.base.messages import Message
from service.pages.typed_moments import MOMENTS, moment_of, moment_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NUMBERS = frozenset({"integer", "number"})
_MAY_BE_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]*\.[0-9]{3}", re.ASCII)
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?", re.ASCII)


def text_of(value: Any, use: str = "", field: Mapping[str, Any] = MappingProxyType({})) -> str:
    """A value as the form shows it: in the spelling of its column, as far as that is read back as the same value."""
    if value is None:
        return ""
    if isinstance(value, str):
        return moment_text(value, use, field)
    plain = json.dumps(value)
    if use not in NUMBERS or isinstance(value, bool) or not isinstance(value, int | float):
        return plain
    text = _spelled(value, plain, field)
    read = value_of(text, use, field, {})
    return text if (type(read), read) == (type(value), value) else plain


def _spelled(value: float, plain: str, field: Mapping[str, Any]) -> str:
    """With the column's own signs before its fraction and between its thousands."""
    decimal, group = _signs(field)
    digits = f"{Decimal(plain):f}" if isinstance(value, float) and math.isfinite(value) else plain
    whole, point, fraction = digits.lstrip("-").partition(".")
    if group and whole.isdigit():
        whole = f"{int(whole):,}".replace(",", group)
    return "-" * digits.startswith("-") + whole + (decimal + fraction if point else "")


def lines_of(values: Sequence[Any], use: str = "", field: Mapping[str, Any] = MappingProxyType({})) -> str:
    """Categories, one a line; as a JSON list where a line could not say it."""
    texts = [text_of(value, use, field) for value in values]
    plain = "\n".join(texts)
    are_lines = all(text.strip() == text != "" and "\n" not in text and "\r" not in text for text in texts)
    return plain if are_lines and not plain.startswith("[") else json.dumps(list(values), ensure_ascii=False)


def shown_texts(field: Mapping[str, Any], use: str) -> dict[str, Any]:
    """What the form has shown of a field's domain, and the value that each text stands for in a column that is used so."""
    shown_as = str(field.get("role") or field.get("type", "string"))
    if use != shown_as and not any({use, shown_as} <= alike for alike in (NUMBERS, MOMENTS)):
        return {}
    return {text_of(value, shown_as, field): value for value in _values_in(field)}


def _values_in(field: Mapping[str, Any]) -> list[Any]:
    constraints = field.get("constraints")
    constraints = constraints if isinstance(constraints, dict) else {}
    enum = constraints.get("enum")
    values = [*(enum if isinstance(enum, list) else ()), constraints.get("minimum"), constraints.get("maximum")]
    return [value for value in values if value is not None]


def values_of(text: str, use: str, field: Mapping[str, Any], known: Mapping[str, Any]) -> list[Any]:
    """The values in a list of categories, as `lines_of` writes it."""
    text = text.strip("\n")
    if text.lstrip().startswith("["):
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        if isinstance(found, list):
            return found
    return [value_of(line.strip(), use, field, known) for line in text.split("\n") if line.strip()]


def value_of(text: str, use: str, field: Mapping[str, Any], known: Mapping[str, Any]) -> Any:
    """Exactly what was typed: a whole number never through a float, and what is no number stays text, to be refused by name.

    What the form showed is the value that it was. All else is read in the spelling of the column first: 50.000 is fifty thousand where its cells
    have points between thousands. Where that cannot be told, it stays text.
    """
    if text in known:
        return known[text]
    plain = _plain(text, use, field)
    if use not in NUMBERS or not _NUMBER.fullmatch(plain) or (plain == text and _is_ambiguous(text, use, field)):
        return plain
    try:
        return int(plain)
    except ValueError:
        value = float(plain)
    return value if math.isfinite(value) else plain


def refuse_ambiguous(fields: Sequence[Mapping[str, Any]]) -> None:
    """Raise, in the words of the form, which number of a domain can be read in two ways."""
    for field in fields:
        values = _values_in(field) if field.get("type") in NUMBERS else ()
        for text in (each for each in values if isinstance(each, str) and _is_ambiguous(each, field["type"], field)):
            raise InvalidInput(
                Message(
                    "%(column)s: %(text)s could mean %(one)s or %(other)s: write one of these",
                    column=repr(field.get("name")),
                    text=text,
                    one=text.replace(".", ""),
                    other=text.partition(".")[0] if field["type"] == "integer" else text.replace(".", ","),
                ),
                where="schema",
            )


def _is_ambiguous(text: str, use: str, field: Mapping[str, Any]) -> bool:
    """Whether a point may stand between thousands, or before a fraction. Whole numbers have none: who writes one means thousands."""
    has_other_point = use == "integer" or field.get("decimalChar") == "," or field.get("groupChar") == "."
    return has_other_point and _MAY_BE_THOUSANDS.fullmatch(text) is not None


def _signs(field: Mapping[str, Any]) -> tuple[str, str]:
    """Before a fraction, and between thousands."""
    return str(field.get("decimalChar") or "."), str(field.get("groupChar") or "")


def _plain(text: str, use: str, field: Mapping[str, Any]) -> str:
    """A number with the column's own signs, or a day or time in its own format, as schemas write them; any other text as it is."""
    if use in MOMENTS:
        return moment_of(text, use, field)
    decimal, group = _signs(field)
    if use not in NUMBERS or (decimal, group) == (".", ""):
        return text
    whole = f"[1-9][0-9]{{0,2}}(?:{re.escape(group)}[0-9]{{3}})+|[0-9]+" if group else "[0-9]+"
    spelled = re.fullmatch(rf"([+-]?)({whole})(?:{re.escape(decimal)}([0-9]+))?", text, re.ASCII)
    if spelled is None:
        return text
    sign, digits, fraction = spelled.groups()
    digits = digits.replace(group, "") if group else digits
    return f"{sign}{digits}.{fraction}" if fraction else f"{sign}{digits}"
