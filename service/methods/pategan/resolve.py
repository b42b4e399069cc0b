"""What an order of `pategan` leaves open: the condition, and how many teachers there are."""

from __future__ import annotations

from service.base.errors import InvalidOrder
from service.base.messages import Message
from service.domain.image_schema import DeclaredSchema
from service.methods.conditions import condition_of
from service.methods.facts import Facts
from service.methods.pategan.order import MOST_DEFAULT_TEACHERS, UNITS_OF_A_TEACHER, PateganOrder


def check(order: PateganOrder, _schema: DeclaredSchema) -> None:
    """Student and generator have Adam, and the student sees records as they are: products of pairs are the critic's of other methods."""
    if order.optimizer.kind != "adam":
        raise InvalidOrder(Message("optimizer.kind: pategan has adam only"), where="optimizer.kind")
    if order.networks.pair_products:
        raise InvalidOrder(
            Message("networks.pair_products: the student of this method has none"), where="networks.pair_products"
        )


def resolve(order: PateganOrder, facts: Facts) -> PateganOrder:
    """Settle what the order leaves open by the declaration and the number of units."""
    teachers = order.teachers or default_teachers(facts.units)
    if teachers > facts.units:
        raise InvalidOrder(
            Message("teachers: each needs a unit at least, and there are %(units)s; order fewer", units=facts.units),
            where="teachers",
        )
    condition = condition_of(order, facts.table(order.numeric_bins))
    return order.model_copy(update={"teachers": teachers, "condition_on": condition})


def default_teachers(units: int) -> int:
    """How many teachers so many units get where the order does not say."""
    return max(1, min(MOST_DEFAULT_TEACHERS, units // UNITS_OF_A_TEACHER))
