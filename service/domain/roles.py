"""Columns that no model learns: left out, or made anew. And categories of which only a coarser public level is modelled.

`ignore`, `identifier` and `free_text` columns are in the file and nowhere else: not in the stored table, not in a
generator. `derived` ones are computed from others by a relation (`relations.py`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Protocol

from pydantic import Field

from service.base.messages import Message
from service.domain.bounds import is_unicode

Role = Literal["ignore", "identifier", "free_text", "derived"]

UUID = "uuid"
_DEFAULT_PATTERNS = {"string": UUID, "integer": "[1-9][0-9]{11}"}
_MOST_CHARACTERS = 64
_MOST_WHOLE = 18
_RANGES = {"d": "0123456789"}
_ALPHABET_LIMIT = 1_000
MOST_FINE = 100_000

Fine = Annotated[
    dict[str, tuple[str, ...] | dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]]], Field(min_length=1)
]
"""Coarse categories, and of each the finer ones: in equal shares, or with their public weights."""


class Domain(Protocol):
    """What constraints say of a column's values."""

    @property
    def enum(self) -> tuple[Any, ...] | None: ...
    @property
    def minimum(self) -> Any: ...
    @property
    def maximum(self) -> Any: ...
    @property
    def pattern(self) -> str | None: ...


class RoleField(Protocol):
    """What of a field its role is about."""

    @property
    def type(self) -> str: ...
    @property
    def role(self) -> Role | None: ...
    @property
    def pattern(self) -> str | None: ...
    @property
    def placeholder(self) -> str | None: ...
    @property
    def hierarchy(self) -> Mapping[str, Any] | None: ...
    @property
    def constraints(self) -> Domain: ...
    @property
    def bins(self) -> int | None: ...
    @property
    def edges(self) -> tuple[float, ...] | None: ...


def check_role(field: RoleField) -> bool:
    """Whether the field needs no domain of its own; raises ValueError where its words do not go together."""
    pattern = field.pattern if field.pattern is not None else field.constraints.pattern
    if pattern is not None and field.role != "identifier":
        raise ValueError(Message('pattern is for columns with "role": "identifier", whose values are made anew by it'))
    if field.placeholder is not None and field.role != "free_text":
        raise ValueError(Message('placeholder is for columns with "role": "free_text"'))
    if field.hierarchy is not None:
        _check_hierarchy(field)
    if field.role == "identifier":
        _check_identifier(field)
    if field.role == "free_text" and field.type != "string":
        raise ValueError(Message('"role": "free_text" is for string columns'))
    if field.placeholder is not None and not _is_text(field.placeholder):
        raise ValueError(Message("placeholder must be Unicode text without NUL"))
    if field.role == "derived":
        return field.constraints.enum is None and not says_a_range(field)
    return field.role is not None


def _check_identifier(field: RoleField) -> None:
    if field.type not in _DEFAULT_PATTERNS:
        raise ValueError(Message("an identifier is a string or an integer"))
    alphabets = alphabets_of(pattern_of(field))
    if field.type == "integer":
        _check_whole(alphabets)


def says_a_range(field: RoleField) -> bool:
    """Whether the owner declared one."""
    c = field.constraints
    return c.minimum is not None or c.maximum is not None or bool(field.bins) or bool(field.edges)


def pattern_of(field: RoleField) -> str:
    """The pattern of an identifier's values."""
    return field.pattern or field.constraints.pattern or _DEFAULT_PATTERNS[field.type]


def alphabets_of(pattern: str) -> list[str]:
    """The characters that may stand at each place of an identifier. Raises ValueError for what is no such pattern."""
    if pattern == UUID:
        pattern = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"  # version 4: random
    found: list[str] = []
    text = pattern.removeprefix("^").removesuffix("$")
    while text:
        alphabet, text = _next(text, pattern)
        repeated = re.match(r"\{([0-9]{1,2})\}", text)
        times = 1
        if repeated:
            times, text = int(repeated[1]), text[repeated.end() :]
        found += [alphabet] * times
    if not 1 <= len(found) <= _MOST_CHARACTERS:
        raise ValueError(
            Message("a pattern has between 1 and %(most_characters)s characters", most_characters=_MOST_CHARACTERS)
        )
    return found


def fine_shares(hierarchy: Fine) -> dict[str, dict[str, float]]:
    """Coarse -> fine -> share of the coarse one's rows. Sorted: Postgres keeps no order of an object's keys."""
    shares = {}
    for coarse in sorted(hierarchy):
        fine = hierarchy[coarse]
        weights = fine if isinstance(fine, dict) else dict.fromkeys(fine, 1.0)
        total = math.fsum(weights.values())
        shares[coarse] = {one: weights[one] / total for one in sorted(weights)}
    return shares


def _next(text: str, pattern: str) -> tuple[str, str]:
    """The characters of the first place, and what follows."""
    if text.startswith("\\") and len(text) > 1:
        escaped = text[1]
        if escaped.isalnum() and escaped not in _RANGES:
            raise _not_a_pattern(pattern)
        return _RANGES.get(escaped, escaped), text[2:]
    if text.startswith("["):
        inside, closed, rest = text[1:].partition("]")
        if not closed or not inside or inside[0] == "^" or "\\" in inside or "[" in inside:
            raise _not_a_pattern(pattern)
        return _class(inside, pattern), rest
    if text[0] in "{}()|*+?.^$]" or not text[0].isprintable():
        raise _not_a_pattern(pattern)
    return text[0], text[1:]


def _class(inside: str, pattern: str) -> str:
    characters: dict[str, None] = {}
    at = 0
    while at < len(inside):
        first = last = inside[at]
        if inside[at + 1 : at + 2] == "-" and at + 2 < len(inside):
            last = inside[at + 2]
            at += 2
        if not ord(first) <= ord(last) < ord(first) + _ALPHABET_LIMIT:
            raise _not_a_pattern(pattern)
        characters |= dict.fromkeys(map(chr, range(ord(first), ord(last) + 1)))
        at += 1
    found = "".join(characters)
    if not _is_text(found) or not found.isprintable():
        raise _not_a_pattern(pattern)
    return found


def _not_a_pattern(pattern: str) -> ValueError:
    return ValueError(
        Message(
            'pattern %(pattern)s: write "uuid", or characters and classes with a number of times, as in '
            "P[0-9]{6} or [A-Z]{2}-\\d{4}",
            pattern=repr(pattern),
        )
    )


def _check_whole(alphabets: list[str]) -> None:
    digits = set("0123456789")
    if any(set(one) - digits for one in alphabets) or len(alphabets) > _MOST_WHOLE:
        raise ValueError(
            Message(
                "the pattern of an integer identifier has at most %(most_whole)s digits and nothing else",
                most_whole=_MOST_WHOLE,
            )
        )
    if len(alphabets) > 1 and "0" in alphabets[0]:
        raise ValueError(Message("the pattern of an integer identifier must not begin with 0: write [1-9][0-9]{5}"))


def _check_hierarchy(field: RoleField) -> None:
    hierarchy = field.hierarchy or {}
    if field.type != "string" or field.role is not None:
        raise ValueError(Message("a hierarchy is for string columns without a role"))
    if field.constraints.enum is not None:
        raise ValueError(Message("give either enum or hierarchy: the hierarchy lists all values itself"))
    fine = [value for values in hierarchy.values() for value in values]
    if not fine or any(not values for values in hierarchy.values()):
        raise ValueError(Message("every coarse category of a hierarchy needs at least one fine one"))
    if len(fine) > MOST_FINE:
        raise ValueError(Message("a hierarchy has at most %(most_fine)s fine categories", most_fine=MOST_FINE))
    if len(set(fine)) != len(fine):
        raise ValueError(Message("a hierarchy lists every fine category under one coarse one only"))
    if not all(_is_text(value) for value in (*fine, *hierarchy)):
        raise ValueError(Message("categories must be Unicode text without NUL"))


def _is_text(value: Any) -> bool:
    return is_unicode(str(value)) and "\x00" not in str(value)
