"""An order that names another dataset says so to all who must check that it may be read."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, get_args

import pytest
from pydantic import BaseModel

from service.base.errors import InvalidOrder
from service.domain.image_schema import parse_schema
from service.methods.catalogue import CATALOGUE, check_order, parse_order

if TYPE_CHECKING:
    from collections.abc import Iterator

ID = uuid.UUID(int=7)


def ids_in(annotation: Any, name: str) -> Iterator[str]:
    """Knobs that take an id, by their places in an order."""
    if annotation is uuid.UUID:
        yield name
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for inner, field in annotation.model_fields.items():
            yield from ids_in(field.annotation, f"{name}.{inner}" if name else inner)
    else:
        for part in get_args(annotation):
            yield from ids_in(part, name)


TAKE_AN_ID = sorted((name, knob) for name, method in CATALOGUE.items() for knob in ids_in(method.order, ""))
ITS_OWN = [each for each in TAKE_AN_ID if "." not in each[1]]


def test_the_look_for_ids_finds_them() -> None:
    assert {("idpgan", "public_dataset"), ("dpgan", "public_dataset"), ("ganobfuscator", "public_dataset")} <= {
        *ITS_OWN
    }
    assert {*TAKE_AN_ID} - {*ITS_OWN} == {("choose", f"{knob}.public_dataset") for knob in ("candidates", "trials")}


@pytest.mark.parametrize(("name", "knob"), ITS_OWN)
def test_an_order_that_names_another_dataset_says_so(name: str, knob: str) -> None:
    order = parse_order({"method": name, "epsilon": 1.0, knob: str(ID)})
    assert CATALOGUE[name].also_reads(order) == ID


def test_orders_within_an_order_name_the_same_one() -> None:
    fields = [{"name": name, "type": "boolean", "constraints": {"required": True}} for name in "ab"]
    schema = parse_schema({"fields": fields, "target": "a"})
    first = {"method": "idpgan", "public_dataset": str(ID)}
    other = {"method": "idpgan", "public_dataset": str(uuid.UUID(int=8))}
    order = parse_order({"method": "choose", "epsilon": 1.0, "candidates": [{"method": "idpgan"}, first, first]})
    check_order(order, schema)
    assert CATALOGUE["choose"].also_reads(order) == ID
    order = parse_order({"method": "choose", "epsilon": 1.0, "candidates": [first, other]})
    with pytest.raises(InvalidOrder, match=r"candidates\.1\.public_dataset: .* name the same one"):
        check_order(order, schema)
    order = parse_order({"method": "choose", "epsilon": 1.0, "candidates": [{"method": "idpgan"}]})
    hidden = order.model_copy(update={"trials": (parse_order({**other, "epsilon": 1.0}),)})
    assert CATALOGUE["choose"].also_reads(hidden) == uuid.UUID(int=8), "by whomever it was written"


@pytest.mark.parametrize("name", CATALOGUE)
def test_an_order_that_names_none_reads_none(name: str) -> None:
    fields = CATALOGUE[name].order.model_fields
    order = CATALOGUE[name].order.model_construct(
        **{knob: () if field.is_required() else field.default for knob, field in fields.items()}
    )
    assert CATALOGUE[name].also_reads(order) is None
