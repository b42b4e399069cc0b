"""Columns of declared categories, and how a cell is written as text."""

from __future__ import annotations

import difflib
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from service.base.messages import Figure, Listed, Message, OnThePage
from service.samples.table.base import Array, Mask, SamplingError
from service.samples.table.reading import number_read
from service.samples.table.spelling import is_json_number, values_written

WORDS_COMPARED, LONGEST_COMPARED = 2_000, 200
"""Known words, and characters, for which it is said what a text may mean instead."""


class CategoryColumn:
    """Declared categories. A drawn column is their codes; null, where allowed, is the last of `values`."""

    def __init__(self, config: Mapping[str, Any], missing_value: str) -> None:
        self.name: str = config["name"]
        self.type: str = config["type"]
        self.size: int = config["size"]
        self.missing: bool = config["values"][-1] is None
        self.missing_value: str = config.get("missing_value", missing_value)
        self.values = [float(v) if self.type == "number" and v is not None else v for v in config["values"]]
        write = values_written(config)
        self.is_spelled = write is not None
        self.spelling: Mapping[str, Any] = config.get("spelling") or {}
        self._read = number_read(config)
        plain = [self.missing_value if v is None else text_of(v) for v in self.values]
        self.texts = (
            plain if write is None else [p if v is None else write(v) for v, p in zip(self.values, plain, strict=True)]
        )
        """As they are written in CSV, before quotes."""
        self._code_of_text: dict[str, int] = {}
        for code, text in [*enumerate(plain), *enumerate(self.texts)]:
            self._code_of_text.setdefault(text, code)
        self.code_of_written = {text: code for code, text in reversed(list(enumerate(self.texts)))}
        self._values = objects(self.values)
        self._texts = objects(
            [
                quoted(text, empty_too=v is not None or text != missing_value)
                for v, text in zip(self.values, self.texts, strict=True)
            ]
        )
        self.is_json_number = is_json_number(config)
        self._jsons = objects(list(map(self._json_of, self.values, self.texts)))

    def _json_of(self, value: Any, text: str) -> str:
        return text if self.is_json_number and value is not None else json.dumps(value, ensure_ascii=False)

    def fill(self, codes: Array, _rng: np.random.Generator) -> Array:
        """A category has one value: its code."""
        return codes

    def to_values(self, drawn: Array) -> list[Any]:
        return self._values[drawn].tolist()  # type: ignore[no-any-return]

    def to_texts(self, drawn: Array) -> list[str]:
        return self._texts[drawn].tolist()  # type: ignore[no-any-return]

    def to_jsons(self, drawn: Array) -> list[str]:
        return self._jsons[drawn].tolist()  # type: ignore[no-any-return]

    def codes_of(self, wanted: Any) -> list[int]:
        """The codes that a value stands for."""
        return [self.code_of(wanted)]

    def chances_of(self, allowed: Array) -> Array:
        """(size,) what part of each cell's rows has one of the allowed values, (values,) bool."""
        return allowed.astype(np.float64)

    def fill_allowed(self, codes: Array, _allowed: Array, rng: np.random.Generator) -> Array:
        """As `fill`, allowed values alone."""
        return self.fill(codes, rng)

    def code_of(self, wanted: Any) -> int:
        """The code of a value, given as itself or as text."""
        if wanted is None and self.missing:
            return self.size - 1
        text = self._own_text(wanted)
        if text not in self._code_of_text:
            raise SamplingError(
                Message(
                    "%(column)s has no value %(value)s%(nearest)s; %(described)s",
                    column=self.name,
                    value=repr(text),
                    nearest=nearest(text, self._code_of_text),
                    described=self.described,
                )
            )
        return self._code_of_text[text]

    def knows(self, wanted: Any) -> bool:
        """Whether a value, given as itself or as text, stands for some of its codes: soon told, unlike why not."""
        return (wanted is None and self.missing) or self._own_text(wanted) in self._code_of_text

    def _own_text(self, wanted: Any) -> str:
        """As its values are written, where it is a number that is written otherwise."""
        text = text_of(wanted)
        if text not in self._code_of_text and self.type in {"integer", "number"}:
            with suppress(ValueError):
                number = self.number_of(wanted)
                text = text_of(int(number) if self.type == "integer" and number % 1 == 0 else number)
        return text

    def has_text(self, text: str) -> bool:
        """Whether one of its values is written so."""
        return text in self._code_of_text

    def number_of(self, wanted: Any) -> float:
        """The number that a value says, given as itself or as text; `ValueError` where it is none. Whole numbers are exact."""
        with suppress(ValueError):
            return float(text_of(wanted)) if self.type == "number" else int(text_of(wanted))
        try:
            return float(text_of(wanted))
        except ValueError:
            if self._read is None or not isinstance(wanted, str):
                raise
            return self._read(wanted)

    @property
    def described(self) -> str:
        """Its values, in words."""
        known = [text for text in self._code_of_text if text]  # a missing cell has no text
        more = ["…"] if len(known) > 20 else []
        own = Listed(", ", [*[self._said(text) for text in self.texts if text][:20], *more])
        return Message("its values are: %(values)s", values=OnThePage(", ".join([*known[:20], *more]), own))

    def _said(self, text: str) -> str:
        return Figure(text) if self.type == "number" and not self.is_spelled else text

    def meets(self, condition: Mapping[str, Any]) -> Mask:
        """Rows that meet this part of an exclusion: they have one of its values."""
        cells = self.cells_of(condition)
        return lambda drawn: cells[drawn]

    def cells_of(self, condition: Mapping[str, Any]) -> Array:
        """(size,) which categories meet this part of an exclusion."""
        return np.isin(np.arange(self.size), [self.code_of(value) for value in condition["values"]])


def objects(items: Sequence[Any]) -> Array:
    """An array of Python objects."""
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


def nearest(text: str, known: Iterable[str]) -> str:
    """Words for the known text that is most like this one, if one is."""
    compared = list(itertools.islice(known, WORDS_COMPARED)) if len(text) <= LONGEST_COMPARED else []
    found = difflib.get_close_matches(text, compared, n=1)
    return Message(" (did you mean %(word)s?)", word=repr(found[0])) if found else ""


def no_such_column(name: object, names: Sequence[str]) -> SamplingError:
    """What a column that was named may be instead."""
    return SamplingError(
        Message(
            "there is no column %(name)s%(nearest)s; the columns are %(names)s",
            name=repr(name),
            nearest=nearest(str(name), names),
            names=", ".join(names),
        )
    )


def refused(column: Any, fault: str) -> SamplingError:
    """What is wrong in what was asked of a column, and what it holds. Values are as they are typed: on a page in the spelling of the column, or of its language."""
    return SamplingError(
        Message("%(column)s: %(fault)s; %(described)s", column=column.name, fault=fault, described=column.described)
    )


def text_of(value: Any) -> str:
    """As it is written in CSV, before quotes."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def quoted(text: str, *, empty_too: bool, separator: str = ",") -> str:
    """A CSV field; an empty category is quoted to tell it from a missing value."""
    if (empty_too and not text) or any(character in text for character in f'{separator}"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text
