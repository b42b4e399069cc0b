"""The knobs of an order, from the JSON schema that the service gives: one line each, named as `--set` takes them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

NOT_ORDERED = ("method", "chosen_because")
"""The command names the method itself; the reason is filled in by the service."""
NONE = "–"
BOUNDS = {
    "minimum": "≥",
    "ge": "≥",
    "exclusiveMinimum": ">",
    "maximum": "≤",
    "le": "≤",
    "exclusiveMaximum": "<",
    "lt": "<",
}
TYPES = {"integer": "whole number", "number": "number", "string": "text", "boolean": "true or false"}


class Knob(NamedTuple):
    """One line of `imprimatur methods NAME`."""

    name: str
    default: str
    allowed: str
    meaning: str


class Schema:
    """The JSON schema of a method's orders; nested objects are looked up in its `$defs`."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._definitions: Mapping[str, Any] = document.get("$defs", {})

    def knobs(self) -> Iterator[Knob]:
        """Every knob; those of nested objects under dotted names."""
        for name, knob in self._document["properties"].items():
            if name not in NOT_ORDERED:
                yield from self._of(name, knob, knob.get("default"))

    def _of(self, name: str, knob: Mapping[str, Any], default: Any) -> Iterator[Knob]:
        choices = [choice for choice in self._choices(knob) if choice.get("type") != "null"]
        objects = [choice for choice in choices if "properties" in choice]
        meaning = knob.get("description", "")
        if not objects:
            yield Knob(name, _shown(default), _joined(_allowed(choice) for choice in choices), meaning)
            return
        given = default if isinstance(default, Mapping) else {}
        tag = next(
            (each["discriminator"]["propertyName"] for each in self._parts(knob) if "discriminator" in each), None
        )
        if tag is None:
            yield Knob(name, NONE if default is None else "", "the knobs below", meaning)
            for each in objects:
                yield from self._inside(name, each, given)
            return
        kinds = [str(each["properties"][tag].get("const", "")) for each in objects]
        yield Knob(
            f"{name}.{tag}", _shown(given.get(tag)), _joined(kinds), f"{meaning} Name it with each knob below.".strip()
        )
        found: dict[Knob, list[str]] = {}
        for kind, each in zip(kinds, objects, strict=True):
            for inner in self._inside(name, each, given if given.get(tag) == kind else {}, skip=tag):
                found.setdefault(inner, []).append(kind)
        for inner, of in found.items():
            yield inner._replace(meaning=f"({', '.join(of)}) {inner.meaning}".strip())

    def _inside(
        self, name: str, found: Mapping[str, Any], given: Mapping[str, Any], skip: str | None = None
    ) -> Iterator[Knob]:
        for inner, knob in found["properties"].items():
            if inner != skip:
                yield from self._of(f"{name}.{inner}", knob, given.get(inner, knob.get("default")))

    def _choices(self, knob: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        return [part for part in self._parts(knob) if not {"anyOf", "oneOf", "allOf", "$ref"} & part.keys()]

    def _parts(self, knob: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """The schema, and each that it refers to or lets one choose."""
        yield knob
        if "$ref" in knob:
            yield from self._parts(self._definitions[knob["$ref"].rpartition("/")[2]])
        for word in ("anyOf", "oneOf", "allOf"):
            for each in knob.get(word, ()):
                yield from self._parts(each)


def _allowed(choice: Mapping[str, Any]) -> str:
    if "const" in choice:
        return _shown(choice["const"])
    if "enum" in choice:
        return _joined(_shown(value) for value in choice["enum"])
    bounds = ", ".join(f"{sign} {_number(choice[word])}" for word, sign in BOUNDS.items() if word in choice)
    if choice.get("type") == "array":
        longest = f"of at most {choice['maxItems']}, each " if "maxItems" in choice else "of "
        return f"list {longest}{_allowed(choice.get('items', {}))}"
    if "maxLength" in choice:
        return f"text of at most {choice['maxLength']} characters"
    return f"{TYPES.get(choice.get('type', ''), '')} {bounds}".strip()


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:g}"


def _joined(words: Iterable[str]) -> str:
    *most, last = [*words] or [""]
    return f"{', '.join(most)} or {last}" if most else last


def _shown(value: Any) -> str:
    if value is None:
        return NONE
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
