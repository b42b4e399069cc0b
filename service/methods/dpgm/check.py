"""How many rounds an order of `dpgm` or `dpsyn` may buy: each is a release of whole numbers, of which the reserve for noise covers so many."""

from __future__ import annotations

from service.base.errors import InvalidOrder
from service.base.messages import Message
from service.domain.image_schema import DeclaredSchema
from service.methods.dpgm.order import MOST_ROUNDS, AutoencoderOrder, DpgmOrder


def check(order: DpgmOrder, schema: DeclaredSchema) -> None:
    """Refuse rounds of k-means that could be paid at no noise."""
    del schema
    check_rounds(order, order.rounds, knob="cluster_rounds")


def check_rounds(order: AutoencoderOrder, rounds: int, *, knob: str) -> None:
    """Refuse more rounds than can be bought beside the counts, and the report where one is ordered."""
    if rounds <= MOST_ROUNDS - 1:
        return
    if order.report is not None:
        raise InvalidOrder(
            Message(
                "%(knob)s: with a `report`, %(most)s rounds are the most; order fewer, or leave out `report`",
                knob=knob,
                most=MOST_ROUNDS - 1,
            ),
            where=knob,
        )
    if rounds > MOST_ROUNDS:
        raise InvalidOrder(
            Message("%(knob)s: %(most)s rounds are the most; order fewer", knob=knob, most=MOST_ROUNDS), where=knob
        )
