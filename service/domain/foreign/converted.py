"""A declaration that is being made from a foreign one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from service.base.errors import InvalidSchema
from service.domain.table_schema import parse_table_schema

Document = Mapping[str, Any]


@dataclass
class Converted:
    """A declaration in the making: fields in order, and notes for the owner."""

    fields: list[dict[str, Any]] = field(default_factory=list)
    table: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def note(self, column: str | None, text: str) -> None:
        """Say what was not carried over, or what is to be added."""
        self.notes.append(text if column is None else f"column {column!r}: {text}")

    def leave_out(self, column: str, why: str) -> None:
        """Note columns that have no place in a declaration here."""
        self.note(column, f"left out: {why}")

    def add(self, name: str, kind: str, constraints: Document, **words: Any) -> None:
        """A column; says what its domain still lacks."""
        said = {word: value for word, value in constraints.items() if value is not None and value is not False}
        self._leave_out_infinite(name, said)
        if kind in {"date", "datetime", "boolean"} and said.pop("enum", None):
            self.note(name, f"enum is left out: {kind} columns have none")
        if kind == "boolean":
            said = {word: value for word, value in said.items() if word == "required"}
        elif "enum" in said:
            if {"minimum", "maximum"} & said.keys():
                self.note(name, "minimum and maximum are left out beside its enum")
            said = {word: value for word, value in said.items() if word in {"enum", "required"}}
        elif kind == "string":
            self.note(name, "to be added: constraints.enum, the values that it may have")
        else:
            lacking = [word for word in ("minimum", "maximum") if word not in said]
            if lacking:
                self.note(name, f"to be added: constraints.{' and constraints.'.join(lacking)}, or an enum")
        kept = {word: value for word, value in words.items() if value is not None}
        self.fields.append({"name": name, "type": kind, **kept, **({"constraints": said} if said else {})})

    def _leave_out_infinite(self, name: str, said: dict[str, Any]) -> None:
        for word in [word for word, value in said.items() if _is_beyond_numbers(value)]:
            del said[word]
            self.note(name, f"constraints.{word} is left out: it is not a finite number")

    def add_identifier(self, name: str, kind: str) -> None:
        """A key: it needs no domain, as its values are made anew."""
        self.fields.append({"name": name, "type": kind, "role": "identifier"})
        self.note(
            name, 'it is a key, and so an identifier, made anew in synthetic rows; for others write `"role": "ignore"`'
        )

    def as_json(self) -> dict[str, Any]:
        return {**self.table, "fields": self.fields}

    def fault(self) -> str | None:
        """What the service would say to it now."""
        try:
            parse_table_schema(self.as_json())
        except InvalidSchema as error:
            return error.detail
        return None


def key_columns(*keys: Any) -> set[str]:
    """Columns that are a key by themselves; of several columns together none is. A key: a name or a list of names."""
    alone = ([key] if isinstance(key, str) else key for key in keys)
    return {str(key[0]) for key in alone if isinstance(key, list) and len(key) == 1}


def _is_beyond_numbers(value: Any) -> bool:
    """Such as 1e400, which JSON can write and a float cannot hold; alone or in a list."""
    values = value if isinstance(value, list) else [value]
    return any(isinstance(one, float) and not math.isfinite(one) for one in values)


def chosen(tables: Mapping[str, Any], name: str | None) -> Any:
    """One of several tables."""
    if name is None and len(tables) == 1:
        return next(iter(tables.values()))
    if name is None or name not in tables:
        raise InvalidSchema(
            f"schema: choose one of its tables with --table: {', '.join(map(str, tables))}", where="table"
        )
    return tables[name]
