"""Every method that may be ordered, one line each; and how an order finds its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel, ValidationError

from service.base.errors import InvalidOrder
from service.base.faults import sentence_of
from service.base.messages import Message
from service.base.text import did_you_mean, some_of
from service.domain.image_schema import DeclaredSchema, ImageSchema
from service.domain.open_columns import require_closed
from service.domain.shapes import ImageShape
from service.methods.auto import AutoOrder
from service.methods.facts import Facts
from service.methods.interface import Method, Modality
from service.methods.knobs import DEFAULT_NUMERIC_BINS, AnyOrder, Knobs, Order
from service.methods.report import target_of

if TYPE_CHECKING:
    from collections.abc import Sequence

NAMES = (
    "marginals",
    "mixture",
    "idpgan",
    "dpgan",
    "ganobfuscator",
    "dpacgan",
    "rdpcgan",
    "pategan",
    "image_release",
    "dpgm",
    "dpsyn",
    "gswgan",
    "queries",
    "choose",
    "declaration",
)
"""`auto` asks them in this order."""

CATALOGUE: dict[str, Method[Any]] = {name: import_module(f"service.methods.{name}").METHOD for name in NAMES}

ORDERS: dict[str, type[AnyOrder]] = {"auto": AutoOrder, **{name: method.order for name, method in CATALOGUE.items()}}

_MAKES: dict[Modality, str] = {"table": Message("tables"), "image": Message("images")}
_HOLDS: dict[Modality, str] = {"table": Message("is a table"), "image": Message("holds images")}


def method_of(order: Order) -> Method[Any]:
    """The method of an order; orders of unknown methods are not parsed."""
    return CATALOGUE[order.method]  # type: ignore[attr-defined]  # every subclass names its own


def parse_order(document: Any) -> AnyOrder:
    """Read an order; raises `InvalidOrder` naming the knob that is wrong or unknown."""
    if not isinstance(document, dict):
        raise InvalidOrder(Message('an order is a JSON object, for example {"epsilon": 4}'), where="order")
    method = document.get("method", "auto")
    if not isinstance(method, str) or method not in ORDERS:
        meant = did_you_mean(method, ORDERS) if isinstance(method, str) else ""
        raise InvalidOrder(
            Message("method: choose one of %(choices)s%(meant)s", choices=", ".join(ORDERS), meant=meant),
            where="method",
        )
    try:
        # Strict, and by way of JSON: "4" and true are no numbers, while a list is still a tuple.
        return ORDERS[method].model_validate_json(json.dumps(document), strict=True)
    except ValidationError as error:
        first, place = _first_fault(error)
        where = ".".join(str(part) for part in place) or "order"
        is_unknown = first["type"] == "extra_forbidden"
        sentence = _no_such_knob(ORDERS[method], place) if is_unknown else sentence_of(first)
        raise InvalidOrder(Message("%(where)s: %(sentence)s", where=where, sentence=sentence), where=where) from None


def _first_fault(error: ValidationError) -> tuple[Mapping[str, Any], list[int | str]]:
    """The first fault, and where it is in the order. Of a knob that may be one of several things: in the one that came furthest."""
    faults = error.errors(include_input=False, include_url=False)
    first, place = faults[0], faults[0]["loc"]
    if len(place) < 2 or first["type"] == "extra_forbidden" or not _is_alternative(place[1]):
        return first, list(place)
    first = max((fault for fault in faults if fault["loc"][0] == place[0]), key=lambda each: len(each["loc"]))
    knob, _, *rest = first["loc"]
    return first, [knob, *rest]


def _is_alternative(part: int | str) -> bool:
    """Whether this is pydantic's own name for one of several things that a knob may be."""
    of_pydantic = ("literal[", "constrained-")
    return isinstance(part, str) and (
        part.startswith(of_pydantic) or part in {each.__name__ for each in Knobs.__subclasses__()}
    )


def _no_such_knob(order: type[AnyOrder], place: Sequence[int | str]) -> str:
    """What may be ordered instead, in the place where an unknown knob is."""
    found: list[type[BaseModel]] = [order]
    *path, typed = (part for part in place if isinstance(part, str))  # places in a list say nothing
    for part in path:
        if len(found) > 1:  # several kinds, and pydantic names the one that was chosen
            found = [
                each for each in found if any(get_args(f.annotation) == (part,) for f in each.model_fields.values())
            ]
        else:
            fields = [each.model_fields[part].annotation for each in found if part in each.model_fields]
            found = [model for annotation in fields for model in _models_in(annotation)]
    if len(found) != 1:
        return Message("no such knob")
    names = [name for name in found[0].model_fields if name != "chosen_because"]
    meant = did_you_mean(str(typed), names)
    return Message("no such knob; there are: %(names)s%(meant)s", names=", ".join(names), meant=meant)


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for each in get_args(annotation) for model in _models_in(each)]


EARLIER_KNOBS = {"numeric_cells", "values_precision_share"}
"""Of orders that were stored before `tree_precision_share` stood for both. They were not charged for trees."""


def _as_ordered_today(stored: dict[str, Any]) -> dict[str, Any]:
    start = stored.get("warm_start")
    if isinstance(start, dict):
        stored = {**stored, "warm_start": _as_ordered_today(start)}
    if not EARLIER_KNOBS & stored.keys():
        return stored
    return {name: value for name, value in stored.items() if name not in EARLIER_KNOBS} | {"tree_precision_share": 0.0}


def parse_resolved_order(document: Any) -> Order:
    """Read an order as it was stored, after `auto` was resolved, maybe by an earlier version."""
    order = parse_order(_as_ordered_today(document) if isinstance(document, dict) else document)
    if not isinstance(order, Order):
        raise InvalidOrder(Message("this order has not been resolved"), where="method")
    return order


def check_order(order: AnyOrder, schema: DeclaredSchema) -> None:
    """Refuse an order that these data cannot be released by."""
    holds: Modality = "image" if isinstance(schema, ImageSchema) else "table"
    if not (isinstance(order, Order) and method_of(order).buys_declaration):
        require_closed(schema)
    if isinstance(order, Order):
        if order.chosen_because is not None:
            raise InvalidOrder(Message("chosen_because: `method: auto` fills this in"), where="chosen_because")
        method = method_of(order)
        _check_takes(method, schema, holds)
        method.check(order, schema)
        if method.returns == "answers":
            _refuse_reports(order, Message("this method returns answers, not rows"))
    if isinstance(schema, ImageSchema):
        _check_against_images(order)
    else:
        _check_condition(order, schema)
        if order.held_out is not None:
            target_of(order, schema)
        if order.accept is not None and order.accept.two_way_tv is not None and len(schema.modelled.fields) < 2:
            raise InvalidOrder(
                Message("accept.two_way_tv: one column has no pairs; give accept.one_way_tv"), where="accept.two_way_tv"
            )


def _check_takes(method: Method[Any], schema: DeclaredSchema, holds: Modality) -> None:
    if holds not in method.takes:
        makes = _MAKES[next(iter(method.takes))]
        fitting = ", ".join(["auto", *(name for name, each in CATALOGUE.items() if holds in each.takes)])
        raise InvalidOrder(
            Message(
                "method: this one makes %(makes)s, and the dataset %(holds)s; choose one of %(fitting)s",
                makes=makes,
                holds=_HOLDS[holds],
                fitting=fitting,
            ),
            where="method",
        )
    if isinstance(schema, ImageSchema) and schema.pixel_unit is not None and not method.takes_parts_of_images:
        fitting = ", ".join(name for name, each in CATALOGUE.items() if each.takes_parts_of_images)
        raise InvalidOrder(
            Message(
                "method: this one protects whole images, and the schema's pixel_unit declares parts of them; choose "
                "%(fitting)s",
                fitting=fitting,
            ),
            where="method",
        )


def check_makes_rows(order: AnyOrder) -> None:
    """Refuse, before anything is charged, a method that leaves nothing to draw rows from."""
    if isinstance(order, Order) and method_of(order).returns == "answers":
        raise InvalidOrder(
            Message(
                "method: this one returns answers, not rows; upload the dataset, order a release of it and read its "
                "answers"
            ),
            where="method",
        )


def _refuse_reports(order: AnyOrder, why: str) -> None:
    for knob in ("owner_report", "report"):
        if getattr(order, knob):
            raise InvalidOrder(Message("%(knob)s: %(why)s; leave it out", knob=knob, why=why), where=knob)


def _check_against_images(order: AnyOrder) -> None:
    if order.condition_on is not None:
        raise InvalidOrder(Message("condition_on: images are always made by class; leave it out"), where="condition_on")
    if order.purpose is not None:
        raise InvalidOrder(Message("purpose: images have one only; leave it out"), where="purpose")
    _refuse_reports(order, Message("reports are made of tables only"))


def _check_condition(order: AnyOrder, schema: DeclaredSchema) -> None:
    if order.condition_on is None or isinstance(schema, ImageSchema):
        return
    field = schema.field(order.condition_on)
    if field is not None and field.is_categorical:
        return
    fitting = [each.name for each in schema.fields if each.is_categorical]
    choose = (
        Message("choose one of %(choices)s", choices=some_of(fitting))
        if fitting
        else Message("leave it out: no field of this dataset has categories")
    )
    if field is None:
        meant = did_you_mean(order.condition_on, fitting)
        raise InvalidOrder(
            Message(
                "condition_on: the schema has no field %(condition_on)s; %(choose)s%(meant)s",
                condition_on=repr(order.condition_on),
                choose=choose,
                meant=meant,
            ),
            where="condition_on",
        )
    raise InvalidOrder(
        Message(
            "condition_on: a field with declared categories (an enum or a boolean) is needed; %(choose)s", choose=choose
        ),
        where="condition_on",
    )


def with_method(order: AnyOrder, facts: Facts) -> Order:
    """An order of a method: itself, or for `auto` that of the first method that offers itself, with the reason."""
    if isinstance(order, Order):
        return order
    for name, method in CATALOGUE.items():
        because = method.offer(order, facts)
        if because is not None and (method.takes_parts_of_images or not _of_parts(facts)):
            named = order.model_dump(exclude={"method"})
            chosen: Order = method.order(method=name, chosen_because=because, **named)
            return chosen
    raise InvalidOrder(Message("method: none of the methods makes such data"), where="method")


def _of_parts(facts: Facts) -> bool:
    """Whether one unit is a part of an image."""
    shape = facts.shape(DEFAULT_NUMERIC_BINS)
    return isinstance(shape, ImageShape) and shape.unit_pixels is not None
