"""The relations of a schema, understood: checked at upload, true of every synthetic row.

What follows from other columns (a sum, a city from its postcode) is no part of the model: it costs no budget and is
computed from the drawn columns. Everything here follows from the declaration alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from service.base.messages import Message, fault_of
from service.domain.arithmetic import Tree, columns_of
from service.domain.expressions import Operand, Reader, Statement
from service.domain.relations import MOST_ENTRIES, Combinations, Lookup, Unique, Value
from service.domain.resolved_fields import (
    check_declared,
    coarse,
    digits_for,
    fine,
    operand,
    with_categories,
    with_range,
)
from service.domain.roles import says_a_range

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from service.domain.field_schema import FieldSchema
    from service.domain.relations import Relation

_MOST = 2**62


@dataclass(frozen=True)
class Inequality:
    """A comparison that every row meets in which none of its columns is missing."""

    number: int
    tree: Tree


@dataclass(frozen=True)
class Derived:
    """A column that follows from others: by an expression, or by a table."""

    number: int
    column: str
    by: tuple[str, ...]
    tree: Tree | None = None
    digits: int = 0
    entries: tuple[tuple[Value, ...], ...] = ()


class Relations:
    """The relations of a schema, understood; raises ValueError where they make no sense."""

    def __init__(self, fields: Sequence[FieldSchema], relations: tuple[Relation, ...]) -> None:
        self._fields = {field.name: field for field in fields}
        self._resolved: dict[str, FieldSchema] = {}
        self.inequalities: list[Inequality] = []
        self.combinations: list[tuple[int, Combinations]] = []
        self.unique: list[tuple[int, Unique]] = []
        self.derived: list[Derived] = []
        """Each after those that it follows from."""
        self._read(relations)
        for field in fields:
            if field.role == "derived" and field.name not in self.names_derived:
                raise ValueError(Message("%(name)s is derived: write a relation that it follows from", name=field.name))

    @cached_property
    def names_derived(self) -> frozenset[str]:
        return frozenset(one.column for one in self.derived)

    def is_modelled(self, field: FieldSchema) -> bool:
        return field.role is None and field.name not in self.names_derived

    def why_not_modelled(self, name: str) -> str:
        """Why a column is not modelled, in words; empty for one that is, or is not there."""
        field = self._fields.get(name)
        if field is None or self.is_modelled(field):
            return ""
        if field.role in {None, "derived"}:
            return Message("follows from other columns")
        return Message("has the role %(role)s", role=field.role)

    def modelled(self) -> tuple[FieldSchema, ...]:
        """What a generator learns: of a hierarchy the coarse level."""
        return tuple(coarse(field) for field in self._fields.values() if self.is_modelled(field))

    def read(self) -> tuple[FieldSchema, ...]:
        """The columns of the file that are looked at, each with its values or its range: of a hierarchy the fine level."""
        return tuple(self._resolved[name] for name, field in self._fields.items() if field.role in {None, "derived"})

    def _read(self, relations: tuple[Relation, ...]) -> None:
        equations: list[tuple[int, Reader, Statement]] = []
        inequalities: list[tuple[int, Reader, Statement]] = []
        operands: dict[str, Operand | None] = dict.fromkeys(self._fields)
        for name, field in self._fields.items():
            if field.role is None:
                self._resolve(name, fine(field), operands)
        numbered = list(enumerate(relations, start=1))
        lookups = [(number, one) for number, one in numbered if isinstance(one, Lookup)]
        self.combinations = [(number, one) for number, one in numbered if isinstance(one, Combinations)]
        self.unique = [(number, one) for number, one in numbered if isinstance(one, Unique)]
        for number, text in numbered:
            if isinstance(text, str):
                with _naming(number):
                    reader = Reader(operands)
                    for statement in reader.statements(text):
                        (equations if statement.operator == "=" else inequalities).append((number, reader, statement))
        self._derive([(n, self._side(n, s)) for n, _, s in equations], lookups, operands)
        for number, reader, statement in inequalities:
            with _naming(number):
                self.inequalities.append(_inequality(number, reader, statement))
        for number, combination in self.combinations:
            with _naming(number):
                self._check_combinations(combination)
        for number, unique in self.unique:
            with _naming(number):
                self._check_unique(unique)

    def _resolve(self, name: str, field: FieldSchema, operands: dict[str, Operand | None]) -> None:
        self._resolved[name] = field
        operands[name] = operand(field)

    def _side(self, number: int, statement: Statement) -> tuple[str, Tree]:
        """Which column an equation gives, and from what."""
        sides = [(statement.left, statement.right), (statement.right, statement.left)]
        alone = [(one[1], other) for one, other in sides if one[0] == "column"]
        alone.sort(key=lambda side: self._fields[side[0]].role != "derived")
        if not alone:
            raise ValueError(
                Message(
                    "relation %(number)s: an equation has one column alone on one side, which follows from the others",
                    number=number,
                )
            )
        return alone[0]

    def _derive(
        self,
        equations: list[tuple[int, tuple[str, Tree]]],
        lookups: list[tuple[int, Lookup]],
        operands: dict[str, Operand | None],
    ) -> None:
        """In an order in which each follows from what is known."""
        waiting: dict[str, tuple[int, tuple[str, ...], Tree | Lookup]] = {}
        of_all: list[tuple[int, str, tuple[str, ...], Tree | Lookup]] = [
            *((n, column, tuple(columns_of(tree)), tree) for n, (column, tree) in equations),
            *((n, one.column, one.keys, one) for n, one in lookups),
        ]
        for number, column, by, how in of_all:
            for name in (column, *by):
                if name not in self._fields:
                    raise ValueError(
                        Message("relation %(number)s: there is no field %(name)s", number=number, name=repr(name))
                    )
                if self._fields[name].role not in {None, "derived"}:
                    raise ValueError(
                        Message(
                            "relation %(number)s: %(name)s is %(role)s and has no values to compare",
                            number=number,
                            name=repr(name),
                            role=self._fields[name].role,
                        )
                    )
            if column in waiting:
                raise ValueError(
                    Message(
                        "relation %(number)s: %(column)s follows from relation %(waiting)s already",
                        number=number,
                        column=repr(column),
                        waiting=waiting[column][0],
                    )
                )
            waiting[column] = (number, by, how)
        for column in waiting:
            self._resolved.pop(column, None)
        while waiting:
            ready = [column for column, (_, by, _how) in waiting.items() if not set(by) & waiting.keys()]
            if not ready:
                raise ValueError(
                    Message("relations: %(waiting)s follow from one another in a circle", waiting=", ".join(waiting))
                )
            for column in ready:
                number, by, how = waiting.pop(column)
                with _naming(number):
                    one = (
                        self._looked_up(number, how)
                        if isinstance(how, Lookup)
                        else self._computed(number, column, how, operands)
                    )
                    self.derived.append(one)
                    operands[column] = operand(self._resolved[column])

    def _computed(self, number: int, column: str, tree: Tree, operands: dict[str, Operand | None]) -> Derived:
        field, reader = self._fields[column], Reader(operands)
        tree = reader.resolved(tree)
        by = tuple(columns_of(tree))
        if not by:
            raise ValueError(Message("%(column)s follows from no column", column=repr(column)))
        span = reader.span(tree)
        if field.type not in {"date", "datetime", "integer", "number"} or field.constraints.enum is not None:
            raise ValueError(
                Message(
                    "%(column)s follows from an expression, so it is a number, a date or a time with a range",
                    column=repr(column),
                )
            )
        if span.kind != (field.type if field.type in {"date", "datetime"} else "number"):
            raise ValueError(
                Message(
                    "%(column)s is %(type)s, but its expression a %(kind)s",
                    column=repr(column),
                    type=field.type,
                    kind=span.kind,
                )
            )
        digits = digits_for(
            field, span, [name for name in by if (o := operands[name]) is not None and o.digits is None]
        )
        self._check_missing(field, by)
        if not says_a_range(field):
            field = with_range(field, span, digits)
        largest = math.ceil(max(map(abs, field.bounds))) * 10**digits
        if max(largest * span.denominator, span.numerator * 10**digits) >= _MOST // 4:
            raise ValueError(
                Message(
                    "%(column)s may become too large to be computed exactly: declare fewer decimals or a smaller range",
                    column=repr(column),
                )
            )
        self._resolved[column] = field if field.type != "number" else field.model_copy(update={"decimals": digits})
        return Derived(number, column, by, tree, digits)

    def _looked_up(self, number: int, lookup: Lookup) -> Derived:
        field, entries = self._fields[lookup.column], lookup.entries
        if len(entries) > MOST_ENTRIES:
            raise ValueError(Message("a table has at most %(most_entries)s entries", most_entries=MOST_ENTRIES))
        keys = [self._resolved[name] for name in lookup.keys]
        for key in keys:
            if not key.is_categorical:
                raise ValueError(
                    Message(
                        "%(column)s is looked up by columns with declared categories; %(name)s has a range",
                        column=repr(lookup.column),
                        name=repr(key.name),
                    )
                )
        if any(len(entry) != len(keys) + 1 for entry in entries):
            raise ValueError(
                Message(
                    "every entry of the table has %(count)s values: %(keys)s, %(column)s",
                    count=len(keys) + 1,
                    keys=", ".join(lookup.keys),
                    column=lookup.column,
                )
            )
        known = {entry[:-1] for entry in entries}
        if len(known) != len(entries):
            raise ValueError(
                Message(
                    "the table gives %(column)s twice for the same %(keys)s",
                    column=repr(lookup.column),
                    keys=", ".join(lookup.keys),
                )
            )
        for place, key in enumerate(keys):
            check_declared(key, [entry[place] for entry in entries if entry[place] is not None])
        values = tuple(dict.fromkeys(entry[-1] for entry in entries if entry[-1] is not None))
        field = with_categories(field, values)
        check_declared(field, list(values))
        if field.constraints.required:
            self._check_complete(field, lookup, keys)
        self._resolved[lookup.column] = field
        return Derived(number, lookup.column, lookup.keys, entries=tuple(entries))

    def _check_complete(self, field: FieldSchema, lookup: Lookup, keys: list[FieldSchema]) -> None:
        """Of a required column."""
        self._check_missing(field, lookup.keys)
        expected = math.prod(len(key.categories or ()) for key in keys)
        if len(lookup.entries) < expected or None in {entry[-1] for entry in lookup.entries}:
            raise ValueError(
                Message(
                    "%(name)s is required, so the table needs an entry for all %(expected)s values of %(keys)s",
                    name=repr(field.name),
                    expected=expected,
                    keys=", ".join(lookup.keys),
                )
            )

    def _check_missing(self, field: FieldSchema, by: tuple[str, ...]) -> None:
        for name in by:
            if field.constraints.required and not self._resolved[name].constraints.required:
                raise ValueError(
                    Message(
                        "%(name)s is required, but %(other)s, from which it follows, may be missing",
                        name=repr(field.name),
                        other=repr(name),
                    )
                )

    def _check_combinations(self, combination: Combinations) -> None:
        if len(set(combination.columns)) != len(combination.columns):
            raise ValueError(Message("it names a column twice"))
        if any(len(one) != len(combination.columns) for one in combination.allowed):
            raise ValueError(Message("every allowed combination has %(count)s values", count=len(combination.columns)))
        if len(set(combination.allowed)) != len(combination.allowed):
            raise ValueError(Message("it allows a combination twice"))
        for place, name in enumerate(combination.columns):
            field = self._fields.get(name)
            if field is None or not self.is_modelled(field) or field.hierarchy is not None or not field.is_categorical:
                raise ValueError(
                    Message("%(name)s is not a column with declared categories of its own", name=repr(name))
                )
            check_declared(field, [one[place] for one in combination.allowed if one[place] is not None])
            if field.constraints.required and any(one[place] is None for one in combination.allowed):
                raise ValueError(Message("%(name)s is required, so that no value of it is missing", name=name))

    def _check_unique(self, unique: Unique) -> None:
        for name in unique.unique:
            if name not in self._fields:
                raise ValueError(Message("there is no field %(name)s", name=repr(name)))
        if not any(self._fields[name].role == "identifier" for name in unique.unique):
            raise ValueError(Message('unique columns are made anew: give one of them "role": "identifier"'))


def _inequality(number: int, reader: Reader, statement: Statement) -> Inequality:
    tree = reader.compared(statement)
    if not columns_of(tree):
        raise ValueError(Message("it compares no column"))
    return Inequality(number, tree)


class _naming:  # noqa: N801 - used as a function
    """Says which relation an error is of."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, ValueError):
            raise ValueError(  # noqa: TRY004 - pydantic wants ValueError
                Message("relation %(number)s: %(fault)s", number=self._number, fault=fault_of(error))
            ) from None


def check_exclusions(exclusions: Sequence[Collection[str]], relations: Relations) -> None:
    """Exclusions, by the names of their columns, are of what is modelled."""
    for number, names in enumerate(exclusions, start=1):
        for name in names:
            why = relations.why_not_modelled(name)
            if why:
                raise ValueError(
                    Message(
                        "exclusion %(number)s: %(name)s %(why)s; name the columns that rows are drawn with",
                        number=number,
                        name=repr(name),
                        why=why,
                    )
                )
