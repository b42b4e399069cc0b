"""How good a declaration will be that is bought."""

from __future__ import annotations

from service.base.messages import Figure, Message
from service.methods.declaration.order import DeclarationOrder, Purchase
from service.methods.declaration.ranks import WHOLE, is_too_little, part_beyond, rows_to_be_told
from service.methods.facts import Facts
from service.methods.forecast import Forecast
from service.methods.knobs import DEFAULT_NUMERIC_BINS
from service.privacy.events import Event, Events


def forecast(order: DeclarationOrder, events: Events, facts: Facts) -> Forecast:
    """A sentence of each column; warnings where there are too few units."""
    most = facts.table(DEFAULT_NUMERIC_BINS).max_rows_per_unit
    found = [
        _of_range(purchase, event, most, facts.units)
        if purchase.ends
        else _of_categories(purchase, event, most, facts.units)
        for purchase, event in zip(order.purchases or (), events, strict=True)
    ]
    warnings = tuple(warning for _, warning in found if warning)
    return Forecast(tuple(sentence for sentence, _ in found), warnings=warnings)


def _of_categories(purchase: Purchase, event: Event, most: int, units: int) -> tuple[str, str]:
    rows = rows_to_be_told(event.parameters(), most_per_unit=most)
    name = repr(purchase.column)
    sentence = Message(
        "A value of %(column)s that fewer than about %(rows)s rows have will not be a category of its own.",
        column=name,
        rows=rows,
    )
    few = Message(
        "Hardly a value of %(column)s is in so many rows (%(rows)s of %(units)s): buy it for more.",
        column=name,
        rows=rows,
        units=units,
    )
    return sentence, few if rows > units / 2 else ""


def _of_range(purchase: Purchase, event: Event, most: int, units: int) -> tuple[str, str]:
    how = {"candidates": purchase.candidates, "epsilon": event.parameters()["epsilon"], "most_per_unit": most}
    part = part_beyond(**how, units=units) / WHOLE
    name, ends = repr(purchase.column), tuple(purchase.ends)
    values = {"part": Figure(f"{part:.1%}"), "column": name}
    sentence = (
        Message(
            "About %(part)s of the rows will lie beyond the bought minimum and the bought maximum of %(column)s, and "
            "be moved there.",
            **values,
        )
        if len(ends) > 1
        else Message(
            "About %(part)s of the rows will lie beyond the bought minimum of %(column)s, and be moved there.", **values
        )
        if ends == ("minimum",)
        else Message(
            "About %(part)s of the rows will lie beyond the bought maximum of %(column)s, and be moved there.", **values
        )
    )
    few = Message(
        "%(units)s units are too few to buy bounds of %(column)s for so little: any may come out. Buy them for more, "
        "or declare them.",
        units=units,
        column=name,
    )
    return sentence, few if is_too_little(**how, units=units) else ""
