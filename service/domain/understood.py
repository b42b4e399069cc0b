"""The relations of a schema, understood: checked at upload, true of every synthetic row.

What follows from other columns (a sum, a city from its postcode) is no part of the model: it costs no budget and is
computed from the drawn columns. Everything here follows from the declaration alone.
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from service.domain.arithmetic import Tree, columns_of
from service.domain.expressions import Operand, Reader, Span, Statement, digits_of
from service.domain.relations import MOST_ENTRIES, Combinations, Lookup, Unique, Value
from service.domain.roles import fine_shares, says_a_range

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from service.domain.field_schema import FieldSchema
    from service.domain.relations import Relation

_MOST_DIGITS = 9
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
                raise ValueError(f"{field.name} is derived: write a relation that it follows from")

    @cached_property
    def names_derived(self) -> frozenset[str]:
        return frozenset(one.column for one in self.derived)

    def is_modelled(self, field: FieldSchema) -> bool:
        return field.role is None and field.name not in self.names_derived

    def why_not_modelled(self, name: str) -> str:
        """In words; nothing of a column that is modelled, or is not there."""
        field = self._fields.get(name)
        if field is None or self.is_modelled(field):
            return ""
        return "follows from other columns" if field.role in {None, "derived"} else f"has the role {field.role}"

    def modelled(self) -> tuple[FieldSchema, ...]:
        """What a generator learns: of a hierarchy the coarse level."""
        return tuple(_coarse(field) for field in self._fields.values() if self.is_modelled(field))

    def read(self) -> tuple[FieldSchema, ...]:
        """The columns of the file that are looked at, each with its values or its range: of a hierarchy the fine level."""
        return tuple(self._resolved[name] for name, field in self._fields.items() if field.role in {None, "derived"})

    def _read(self, relations: tuple[Relation, ...]) -> None:
        equations: list[tuple[int, Reader, Statement]] = []
        inequalities: list[tuple[int, Reader, Statement]] = []
        operands: dict[str, Operand | None] = dict.fromkeys(self._fields)
        for name, field in self._fields.items():
            if field.role is None:
                self._resolve(name, _fine(field), operands)
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
        operands[name] = _operand(field)

    def _side(self, number: int, statement: Statement) -> tuple[str, Tree]:
        """Which column an equation gives, and from what."""
        sides = [(statement.left, statement.right), (statement.right, statement.left)]
        alone = [(one[1], other) for one, other in sides if one[0] == "column"]
        alone.sort(key=lambda side: self._fields[side[0]].role != "derived")
        if not alone:
            raise ValueError(
                f"relation {number}: an equation has one column alone on one side, which follows from the others"
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
                    raise ValueError(f"relation {number}: there is no field {name!r}")
                if self._fields[name].role not in {None, "derived"}:
                    raise ValueError(
                        f"relation {number}: {name!r} is {self._fields[name].role} and has no values to compare"
                    )
            if column in waiting:
                raise ValueError(f"relation {number}: {column!r} follows from relation {waiting[column][0]} already")
            waiting[column] = (number, by, how)
        for column in waiting:
            self._resolved.pop(column, None)
        while waiting:
            ready = [column for column, (_, by, _how) in waiting.items() if not set(by) & waiting.keys()]
            if not ready:
                raise ValueError(f"relations: {', '.join(waiting)} follow from one another in a circle")
            for column in ready:
                number, by, how = waiting.pop(column)
                with _naming(number):
                    one = (
                        self._looked_up(number, how)
                        if isinstance(how, Lookup)
                        else self._computed(number, column, how, operands)
                    )
                    self.derived.append(one)
                    operands[column] = _operand(self._resolved[column])

    def _computed(self, number: int, column: str, tree: Tree, operands: dict[str, Operand | None]) -> Derived:
        field, reader = self._fields[column], Reader(operands)
        tree = reader.resolved(tree)
        by = tuple(columns_of(tree))
        if not by:
            raise ValueError(f"{column!r} follows from no column")
        span = reader.span(tree)
        if field.type not in {"date", "datetime", "integer", "number"} or field.constraints.enum is not None:
            raise ValueError(f"{column!r} follows from an expression, so it is a number, a date or a time with a range")
        if span.kind != (field.type if field.type in {"date", "datetime"} else "number"):
            raise ValueError(f"{column!r} is {field.type}, but its expression a {span.kind}")
        digits = _digits(field, span, [name for name in by if (o := operands[name]) is not None and o.digits is None])
        self._check_missing(field, by)
        if not says_a_range(field):
            field = _with_range(field, span, digits)
        largest = math.ceil(max(map(abs, field.bounds))) * 10**digits
        if max(largest * span.denominator, span.numerator * 10**digits) >= _MOST // 4:
            raise ValueError(
                f"{column!r} may become too large to be computed exactly: declare fewer decimals or a smaller range"
            )
        self._resolved[column] = field if field.type != "number" else field.model_copy(update={"decimals": digits})
        return Derived(number, column, by, tree, digits)

    def _looked_up(self, number: int, lookup: Lookup) -> Derived:
        field, entries = self._fields[lookup.column], lookup.entries
        if len(entries) > MOST_ENTRIES:
            raise ValueError(f"a table has at most {MOST_ENTRIES} entries")
        keys = [self._resolved[name] for name in lookup.keys]
        for key in keys:
            if not key.is_categorical:
                raise ValueError(
                    f"{lookup.column!r} is looked up by columns with declared categories; {key.name!r} has a range"
                )
        if any(len(entry) != len(keys) + 1 for entry in entries):
            raise ValueError(
                f"every entry of the table has {len(keys) + 1} values: {', '.join(lookup.keys)}, {lookup.column}"
            )
        known = {entry[:-1] for entry in entries}
        if len(known) != len(entries):
            raise ValueError(f"the table gives {lookup.column!r} twice for the same {', '.join(lookup.keys)}")
        for place, key in enumerate(keys):
            _check_declared(key, [entry[place] for entry in entries if entry[place] is not None])
        values = tuple(dict.fromkeys(entry[-1] for entry in entries if entry[-1] is not None))
        field = _with_categories(field, values)
        _check_declared(field, list(values))
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
                f"{field.name!r} is required, so the table needs an entry for all {expected} values of {', '.join(lookup.keys)}"
            )

    def _check_missing(self, field: FieldSchema, by: tuple[str, ...]) -> None:
        for name in by:
            if field.constraints.required and not self._resolved[name].constraints.required:
                raise ValueError(f"{field.name!r} is required, but {name!r}, from which it follows, may be missing")

    def _check_combinations(self, combination: Combinations) -> None:
        if len(set(combination.columns)) != len(combination.columns):
            raise ValueError("it names a column twice")
        if any(len(one) != len(combination.columns) for one in combination.allowed):
            raise ValueError(f"every allowed combination has {len(combination.columns)} values")
        if len(set(combination.allowed)) != len(combination.allowed):
            raise ValueError("it allows a combination twice")
        for place, name in enumerate(combination.columns):
            field = self._fields.get(name)
            if field is None or not self.is_modelled(field) or field.hierarchy is not None or not field.is_categorical:
                raise ValueError(f"{name!r} is not a column with declared categories of its own")
            _check_declared(field, [one[place] for one in combination.allowed if one[place] is not None])
            if field.constraints.required and any(one[place] is None for one in combination.allowed):
                raise ValueError(f"{name} is required, so that no value of it is missing")

    def _check_unique(self, unique: Unique) -> None:
        for name in unique.unique:
            if name not in self._fields:
                raise ValueError(f"there is no field {name!r}")
        if not any(self._fields[name].role == "identifier" for name in unique.unique):
            raise ValueError('unique columns are made anew: give one of them "role": "identifier"')


def _inequality(number: int, reader: Reader, statement: Statement) -> Inequality:
    tree = reader.compared(statement)
    if not columns_of(tree):
        raise ValueError("it compares no column")
    return Inequality(number, tree)


class _naming:  # noqa: N801 - used as a function
    """Says which relation an error is of."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, ValueError):
            raise ValueError(f"relation {self._number}: {error}") from None  # noqa: TRY004


def check_exclusions(exclusions: Sequence[Collection[str]], relations: Relations) -> None:
    """Exclusions, by the names of their columns, are of what is modelled."""
    for number, names in enumerate(exclusions, start=1):
        for name in names:
            why = relations.why_not_modelled(name)
            if why:
                raise ValueError(f"exclusion {number}: {name!r} {why}; name the columns that rows are drawn with")


def _coarse(field: FieldSchema) -> FieldSchema:
    if field.hierarchy is None:
        return field
    enum = tuple(fine_shares(field.hierarchy))
    return field.model_copy(
        update={"hierarchy": None, "constraints": field.constraints.model_copy(update={"enum": enum})}
    )


def _fine(field: FieldSchema) -> FieldSchema:
    if field.hierarchy is None:
        return field
    enum = tuple(one for shares in fine_shares(field.hierarchy).values() for one in shares)
    return field.model_copy(
        update={"hierarchy": None, "constraints": field.constraints.model_copy(update={"enum": enum})}
    )


def _operand(field: FieldSchema) -> Operand | None:
    """None of what cannot be computed with."""
    if field.type in {"string", "boolean"}:
        return None
    kind = "number" if field.type in {"integer", "number"} else field.type
    if field.categories is not None:
        exact = [Fraction(str(value)) for value in field.categories]
        digits: int | None = max(_digits_of(value) for value in exact)
        low, high = min(exact), max(exact)
        digits = digits if digits is not None and digits <= _MOST_DIGITS else None
    else:
        digits = field.decimals if field.type == "number" else 0
        low, high = (Fraction(str(end)) for end in field.bounds)
    return Operand(kind, low, high, digits, field.zone)  # type: ignore[arg-type]


def _digits_of(value: Fraction) -> int:
    return next((digits for digits in range(_MOST_DIGITS + 1) if 10**digits % value.denominator == 0), _MOST_DIGITS + 1)


def _digits(field: FieldSchema, span: Span, open_columns: list[str]) -> int:
    if not span.is_exact:
        raise ValueError(f"declare decimals for {', '.join(open_columns)}: what follows from it is computed exactly")
    if field.type != "number":
        return 0
    if field.decimals is not None:
        return field.decimals
    digits = digits_of(span)
    if digits is None or digits > _MOST_DIGITS:
        raise ValueError(f"declare decimals for {field.name}, to which it is rounded")
    return digits


def _with_range(field: FieldSchema, span: Span, digits: int) -> FieldSchema:
    """The range that its expression has, as the owner would write it."""
    unit = 10**digits
    low, high = math.floor(span.low * unit), max(math.ceil(span.high * unit), math.floor(span.low * unit) + 1)
    if field.type == "date":
        ends: tuple[Any, ...] = tuple((dt.date(1970, 1, 1) + dt.timedelta(days=day)).isoformat() for day in (low, high))
    elif field.type == "datetime":
        ends = tuple((dt.datetime(1970, 1, 1) + dt.timedelta(seconds=at)).isoformat() for at in (low, high))  # noqa: DTZ001
    else:
        ends = tuple(end if digits == 0 else end / unit for end in (low, high))
    constraints = field.constraints.model_copy(update={"minimum": ends[0], "maximum": ends[1]})
    return field.model_copy(update={"constraints": constraints})


def _with_categories(field: FieldSchema, values: tuple[Value, ...]) -> FieldSchema:
    """Where none are declared, those of the table that it is looked up in."""
    if field.constraints.enum is not None or field.type == "boolean":
        return field
    if field.type in {"date", "datetime"} or says_a_range(field) or not values:
        raise ValueError(
            f"{field.name!r} is looked up, so it has categories: a string, boolean, integer or number without a range"
        )
    document = field.model_dump(by_alias=True, exclude={"role"})
    document["constraints"]["enum"] = values
    return type(field).model_validate(document)


def _check_declared(field: FieldSchema, values: list[Value]) -> None:
    declared = {(isinstance(value, bool), value) for value in field.categories or ()}
    for value in values:
        if (isinstance(value, bool), value) not in declared:
            raise ValueError(f"{value!r} is not a declared value of {field.name}")
