"""Which questions a declaration can answer."""

from __future__ import annotations

import math

from service.base.errors import InvalidOrder
from service.base.messages import Message, fault_of
from service.base.text import did_you_mean, some_of
from service.domain.field_schema import FieldSchema, ValueRange
from service.domain.image_schema import DeclaredSchema, ImageSchema
from service.domain.table_schema import TableSchema
from service.methods.queries.axes import axis_of
from service.methods.queries.lattice import lattice_of
from service.methods.queries.order import (
    ArgMax,
    CrossTable,
    Histogram,
    Keys,
    Mean,
    Median,
    Quantiles,
    QueriesOrder,
    Question,
    Sum,
    Where,
)
from service.privacy.calibration import MOST_RELEASES

MOST_CELLS = 100_000
MOST_ANSWERS = 200_000
"""Numbers in all answers of an order."""
LARGEST_KEY = 2**62


def check(order: QueriesOrder, schema: DeclaredSchema) -> None:
    """Refuse what the declared columns cannot answer."""
    if isinstance(schema, ImageSchema):
        return
    if order.condition_on is not None or order.purpose is not None:
        where = "condition_on" if order.condition_on is not None else "purpose"
        raise InvalidOrder(
            Message("%(where)s: questions make no rows; leave it out, or give a question a `where`", where=where),
            where=where,
        )
    numbers = 0
    for place, question in enumerate(order.questions):
        asking = _Asking(f"questions.{place}", schema.modelled)
        for condition in question.where:
            asking.check_condition(condition)
        numbers += asking.cells(question)
    if numbers > MOST_ANSWERS:
        raise InvalidOrder(
            Message(
                "questions: %(numbers)s numbers in one order; %(most_answers)s are the most",
                numbers=numbers,
                most_answers=MOST_ANSWERS,
            ),
            where="questions",
        )
    if sum(getattr(question, "noise", None) == "gaussian" for question in order.questions) >= MOST_RELEASES:
        raise InvalidOrder(
            Message(
                "questions: fewer than %(most_releases)s of one order can have Gaussian noise; take geometric noise "
                "for the others",
                most_releases=MOST_RELEASES,
            ),
            where="questions",
        )


class _Asking:
    """One question, and the columns that it may ask about."""

    def __init__(self, where: str, schema: TableSchema) -> None:
        self._where, self._schema = where, schema

    def cells(self, question: Question) -> int:
        """How many numbers the answer has at most; refuses what the columns cannot answer."""
        fields = [self._field(name) for name in question.columns_asked]
        if len({field.name for field in fields}) < len(fields):
            raise self._refusal(Message("a column is named twice"))
        if isinstance(question, Sum | Mean | Quantiles | Median):
            self._check_range(fields[0], question)
        if isinstance(question, Histogram | CrossTable | ArgMax):
            cells = math.prod(axis_of(field, question.bins).size for field in fields)
            if cells > MOST_CELLS:
                raise self._refusal(
                    Message(
                        "%(cells)s cells; %(most)s are the most: fewer bins or columns, or `keys`",
                        cells=cells,
                        most=MOST_CELLS,
                    )
                )
            return cells
        if isinstance(question, Keys) and math.prod(key_size(field) for field in fields) > LARGEST_KEY:
            raise self._refusal(Message("these columns have too many combinations; take fewer columns"))
        return len(question.probabilities) if isinstance(question, Quantiles) else 1

    def check_condition(self, condition: Where) -> None:
        field = self._field(condition.column)
        meant = condition.values if condition.values is not None else value_range(condition)
        try:
            field.check_condition(meant)
        except ValueError as error:
            raise self._refusal(Message("where: %(fault)s", fault=fault_of(error))) from None

    def _check_range(self, field: FieldSchema, question: Question) -> None:
        if field.is_categorical:
            fitting = [each.name for each in self._schema.fields if not each.is_categorical]
            raise self._refusal(
                Message(
                    "%(column)s has declared values, not a range; %(instead)s",
                    column=field.name,
                    instead=Message("choose one of %(choices)s", choices=some_of(fitting))
                    if fitting
                    else Message("ask for its histogram"),
                )
            )
        if isinstance(question, Sum) and field.type not in {"integer", "number"}:
            raise self._refusal(
                Message(
                    "%(column)s holds moments, which have no sum; ask for the mean or for quantiles", column=field.name
                )
            )
        if isinstance(question, Median) and (question.where or not field.constraints.required):
            raise self._refusal(
                Message(
                    "median: rows that do not count would stand at the middle of the range; take a required column "
                    "and no `where`, or ask for quantiles with probability 0.5"
                )
            )

    def _field(self, name: str) -> FieldSchema:
        field = self._schema.field(name)
        if field is None:
            names = self._schema.names
            raise self._refusal(
                Message(
                    "there is no column %(name)s to ask about; choose one of %(names)s%(meant)s",
                    name=repr(name),
                    names=some_of(names),
                    meant=did_you_mean(name, names),
                )
            )
        return field

    def _refusal(self, sentence: str) -> InvalidOrder:
        return InvalidOrder(Message("%(where)s: %(sentence)s", where=self._where, sentence=sentence), where=self._where)


def value_range(condition: Where) -> ValueRange:
    """The range of a condition in the words of declarations."""
    return ValueRange(minimum=condition.minimum, maximum=condition.maximum)


def key_size(field: FieldSchema) -> int:
    """Values that a column may have, as `keys` tells them apart; a missing one is one more."""
    known = lattice_of(field).size if field.categories is None else len(field.categories)
    return known + 1
