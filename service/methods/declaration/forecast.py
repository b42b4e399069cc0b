"""How good a declaration will be that is bought."""

from __future__ import annotations

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
    sentence = f"A value of {name} that fewer than about {rows} rows have will not be a category of its own."
    few = f"Hardly a value of {name} is in so many rows ({rows} of {units}): buy it for more."
    return sentence, few if rows > units / 2 else ""


def _of_range(purchase: Purchase, event: Event, most: int, units: int) -> tuple[str, str]:
    how = {"candidates": purchase.candidates, "epsilon": event.parameters()["epsilon"], "most_per_unit": most}
    part = part_beyond(**how, units=units) / WHOLE
    name, ends = repr(purchase.column), " and the bought ".join(purchase.ends)
    sentence = f"About {part:.1%} of the rows will lie beyond the bought {ends} of {name}, and be moved there."
    few = f"{units} units are too few to buy bounds of {name} for so little: any may come out. Buy them for more, or declare them."
    return sentence, few if is_too_little(**how, units=units) else ""
