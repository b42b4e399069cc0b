"""The declared schema of a table, in the Frictionless *Table Schema* form.

Everything here is public knowledge, stated by the owner before any row is read: columns, types, categories, bounds.
A schema that leaves a domain open (a string without `enum`, a number without bounds) is refused, because the only
other source of that domain would be the private rows (docs/privacy.md, What is visible).

Source: https://specs.frictionlessdata.io/table-schema/ ; `exclusions` are our extension for what statisticians call structural
zeros. One column is in `field_schema.py`, what holds between columns in `relations.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from service.base.errors import InvalidSchema
from service.base.messages import Listed, Message, fault_of
from service.domain.dialect import Dialect, null_sequence_is_missing
from service.domain.field_schema import Condition, Constraints, FieldSchema
from service.domain.relations import MAX_RELATIONS, Relation, mentions
from service.domain.spellings import Marks, values_of_markers
from service.domain.table_words import (
    WordRefused,
    check_exact,
    check_markers,
    place_of,
    sentence_about,
    without_idle_words,
)
from service.domain.understood import Relations, check_exclusions

MAX_FIELDS = 1_000
MAX_EXCLUSIONS = 200
MAX_PROTECTED = 16

UNIT_COLUMN = "__unit__"
"""Of a canonical table: whose row it is. No field may have its name."""

Exclusion = Annotated[dict[str, Condition], Field(min_length=2)]
"""No row meets all of these conditions, by column."""


class TableSchema(BaseModel):
    """A declared table: the fields in order, and how missing values are written in text."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    fields: Annotated[tuple[FieldSchema, ...], Field(min_length=1, max_length=MAX_FIELDS)]
    missing_values: Annotated[Marks, Field(alias="missingValues")] = ("",)
    schema_uri: Annotated[str | None, Field(alias="$schema")] = None
    title: str | None = None
    description: str | None = None
    target: str | None = None
    """The categorical field that people will want to predict; our extension. Orders are conditional on it by default."""
    protected: Annotated[tuple[str, ...], Field(max_length=MAX_PROTECTED)] = ()
    """Categorical fields by whose values the owner's report says how good classifiers are (docs/reports.md); our extension."""
    exclusions: Annotated[tuple[Exclusion, ...], Field(max_length=MAX_EXCLUSIONS)] = ()
    """What no row has; our extension. A file with such a row is refused, and no synthetic row is one."""
    relations: Annotated[tuple[Relation, ...], Field(max_length=MAX_RELATIONS)] = ()
    """What holds between columns in every row; our extension."""
    dialect: Dialect | None = None
    """How the file is written; our place for it, Frictionless' words."""

    _null_sequence = model_validator(mode="before")(null_sequence_is_missing)
    _markers = field_validator("missing_values", mode="before")(values_of_markers)

    @model_validator(mode="after")
    def _unique_names(self) -> TableSchema:
        names = self.names
        if len(set(names)) != len(names):
            raise ValueError(Message("two fields have the same name"))
        return self

    @model_validator(mode="after")
    def _open_fields_stand_alone(self) -> TableSchema:
        """What is said of a column by its values needs values that are declared."""
        is_open = {field.name for field in self.fields if field.infer is not None}
        said: dict[str, set[str | None]] = {
            "target": {self.target},
            "protected": set(self.protected),
            "exclusions": {name for exclusion in self.exclusions for name in exclusion},
            "relations": {name for name in is_open for one in self.relations if mentions(one, name)},
        }
        for word, names in said.items():
            for name in sorted(is_open & names):
                raise ValueError(
                    Message(
                        "%(word)s: %(name)s says infer, and nothing is known of its values before they are bought; declare "
                        "its bounds or categories, or leave it out of %(word)s",
                        word=word,
                        name=repr(name),
                    )
                )
        return self

    @model_validator(mode="after")
    def _relations_make_sense(self) -> TableSchema:
        relations = Relations(self.fields, self.relations)
        modelled = relations.modelled()
        if not modelled:
            raise ValueError(
                Message("at least one field must be modelled: it has no role and does not follow from others")
            )
        if self.target is not None and self.field(self.target) and self.target not in {one.name for one in modelled}:
            raise ValueError(_why_no_target(self.target, relations))
        check_exclusions([list(one) for one in self.exclusions], relations)
        return self

    @model_validator(mode="after")
    def _target_is_categorical(self) -> TableSchema:
        field = None if self.target is None else self.field(self.target)
        if self.target is not None and field is None:
            raise ValueError(Message("target: there is no field %(target)s", target=repr(self.target)))
        if field is not None and not field.is_categorical:
            raise ValueError(Message("target: choose a field with declared categories (an enum or a boolean)"))
        return self

    @model_validator(mode="after")
    def _protected_are_categories(self) -> TableSchema:
        modelled = {field.name for field in self.understood.modelled()}
        for name in self.protected:
            field = self.field(name)
            if field is None:
                raise ValueError(Message("protected: there is no field %(name)s", name=repr(name)))
            if not field.is_categorical or name not in modelled:
                raise ValueError(
                    Message("protected: %(name)s is not a modelled field with declared categories", name=repr(name))
                )
            if name == self.target:
                raise ValueError(Message("protected: %(name)s is the target; name fields beside it", name=repr(name)))
        if len(set(self.protected)) != len(self.protected):
            raise ValueError(Message("protected: a field is named twice"))
        return self

    @model_validator(mode="after")
    def _exclusions_are_of_fields(self) -> TableSchema:
        for number, exclusion in enumerate(self.exclusions, start=1):
            for name, condition in exclusion.items():
                field = self.field(name)
                if field is None:
                    raise ValueError(
                        Message("exclusion %(number)s: there is no field %(name)s", number=number, name=repr(name))
                    )
                try:
                    field.check_condition(condition)
                except ValueError as error:
                    raise ValueError(
                        Message("exclusion %(number)s: %(fault)s", number=number, fault=fault_of(error))
                    ) from None
        return self

    @cached_property
    def understood(self) -> Relations:
        """The relations of the schema, checked."""
        return Relations(self.fields, self.relations)

    @cached_property
    def modelled(self) -> TableSchema:
        """What a generator learns: no columns with a role, none that follow from others, of a hierarchy the coarse level."""
        fields = self.understood.modelled()
        return self if fields == self.fields else self.model_copy(update={"fields": fields, "relations": ()})

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> TableSchema:
        """A copy that thinks anew of what it says."""
        copied = super().model_copy(update=update, deep=deep)
        for name in ("understood", "modelled"):
            copied.__dict__.pop(name, None)
        return copied

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.fields)

    def field(self, name: str) -> FieldSchema | None:
        return next((f for f in self.fields if f.name == name), None)

    def missing_values_of(self, field: FieldSchema) -> tuple[str, ...]:
        """How a missing value of the field is written, the way that synthetic rows have first."""
        return self.missing_values if field.missing_values is None else field.missing_values

    @property
    def own_missing_values(self) -> dict[str, tuple[str, ...]]:
        """The missing values of the fields that have their own, by name."""
        return {field.name: field.missing_values for field in self.fields if field.missing_values is not None}

    def as_json(self) -> dict[str, Any]:
        """The declaration as the owner would write it."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)


def _why_no_target(name: str, relations: Relations) -> str:
    """And what to write instead."""
    derived = next((one for one in relations.derived if one.column == name), None)
    if derived is None:
        return Message(
            "target: %(name)s is not modelled, as it has a role: choose a field without one, or take the role away",
            name=repr(name),
        )
    is_looked_up = derived.tree is None
    why = Message("is looked up in a table") if is_looked_up else Message("follows from others")
    instead: str = Message("a column without a relation")
    if is_looked_up:
        instead = Listed(Message(" or "), map(repr, derived.by))
    return Message(
        "target: %(name)s is not modelled, as it %(why)s: choose %(instead)s, from which it follows in every row, or "
        "take its relation away and declare its categories",
        name=repr(name),
        why=why,
        instead=instead,
    )


def parse_table_schema(document: Any) -> TableSchema:
    """Read a declared schema; raises `InvalidSchema` naming the column and the rule."""
    try:
        schema = TableSchema.model_validate(without_idle_words(document))
        for field in schema.understood.read():
            check_exact(field.declared_values)
            check_markers(
                field.declared_values, schema.missing_values_of(field), are_own=field.missing_values is not None
            )
    except WordRefused as error:
        raise InvalidSchema(Message("schema: %(fault)s", fault=fault_of(error)), where=error.where) from None
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where, place = ".".join(str(part) for part in first["loc"]), place_of(document, first["loc"])
        sentence = sentence_about(first, _words_beside(first["loc"]))
        raise InvalidSchema(
            Message("schema: %(fault)s", fault=Listed(": ", filter(None, (place, sentence)))),
            where=where or "schema",
        ) from None
    return schema


def _words_beside(location: Sequence[str | int]) -> list[str]:
    """The words that may stand where a fault is."""
    model: type[BaseModel] = TableSchema
    if location[:1] == ("fields",):
        model = Constraints if "constraints" in location else FieldSchema
    return [field.alias or name for name, field in model.model_fields.items()]
