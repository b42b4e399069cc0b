"""Which declaration can be chosen by, and which candidates."""

from __future__ import annotations

from service.base.errors import InvalidOrder
from service.base.messages import Message
from service.base.text import did_you_mean, some_of
from service.domain.image_schema import DeclaredSchema, ImageSchema
from service.domain.table_schema import TableSchema
from service.methods.choose.methods import METHODS, public_dataset_of
from service.methods.choose.order import Candidate, ChooseOrder
from service.methods.conditions import nothing_to_predict

NONE_FITS = Message("no field of this dataset has any")


def check(order: ChooseOrder, schema: DeclaredSchema) -> None:
    """Refuse what has no column to predict, what may not be ordered, and candidates that the declaration cannot give."""
    if isinstance(schema, ImageSchema):
        return
    if order.trials is not None:
        raise InvalidOrder(Message("trials: this is filled in; leave it out"), where="trials")
    for knob in ("condition_on", "purpose"):
        if getattr(order, knob) is not None:
            raise InvalidOrder(
                Message("%(knob)s: say it in each candidate, and leave it out here", knob=knob), where=knob
            )
    _check_category(schema, order.target or schema.target, "target", needed=True)
    for place, candidate in enumerate(order.candidates):
        _check_candidate(candidate, schema, f"candidates.{place}")
    _check_one_public(order)


def _check_one_public(order: ChooseOrder) -> None:
    """A certificate names one public dataset, so that all candidates that begin from one begin from the same."""
    named = public_dataset_of(order)
    for place, candidate in enumerate(order.candidates):
        if METHODS[candidate.method].also_reads(candidate) not in {None, named}:
            where = f"candidates.{place}.public_dataset"
            raise InvalidOrder(
                Message("%(where)s: candidates that begin from a public dataset name the same one", where=where),
                where=where,
            )


def _check_candidate(candidate: Candidate, schema: TableSchema, where: str) -> None:
    if candidate.chosen_because is not None:
        raise InvalidOrder(Message("%(where)s: chosen_because may not be ordered", where=where), where=where)
    for knob in ("report", "accept", "owner_report"):
        if getattr(candidate, knob):
            raise InvalidOrder(
                Message(
                    "%(where)s.%(knob)s: of the release as a whole; say it beside `candidates`", where=where, knob=knob
                ),
                where=where,
            )
    method = METHODS[candidate.method]
    _check_category(schema, candidate.condition_on, f"{where}.condition_on", needed=False)
    try:
        method.check(candidate, schema)
    except InvalidOrder as error:
        raise InvalidOrder(
            Message("%(where)s: %(sentence)s", where=where, sentence=error.detail), where=where
        ) from None


def _check_category(schema: TableSchema, name: str | None, where: str, *, needed: bool) -> None:
    fitting = [field.name for field in schema.modelled.fields if field.is_categorical]
    if name is None and not needed:
        return
    if name is None:
        choose = Message("name one of %(choices)s", choices=some_of(fitting)) if fitting else NONE_FITS
        raise nothing_to_predict(where, choose)
    if name not in fitting:
        choose = (
            Message("choose one of %(choices)s%(meant)s", choices=some_of(fitting), meant=did_you_mean(name, fitting))
            if fitting
            else NONE_FITS
        )
        raise InvalidOrder(
            Message(
                "%(where)s: %(name)s is not a column with declared categories; %(choose)s",
                where=where,
                name=repr(name),
                choose=choose,
            ),
            where=where,
        )
