"""Whether a stored order is one that its dataset takes; asked before it is charged, since who writes to the database need not have asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.domain.open_columns import open_fields
from service.methods.catalogue import method_of

if TYPE_CHECKING:
    from service.datasets.models import Dataset
    from service.methods.knobs import Order


def misfit(order: Order, dataset: Dataset) -> str | None:
    """Why nothing of this order may be read, as a code; None where it fits.

    What the schema leaves open is bought first, and once. An order for another unit than the budget's has too little noise for
    what it reserved, which its list of events cannot show.
    """
    schema, method = dataset.declared_schema, method_of(order)
    is_open = bool(open_fields(schema))
    if is_open != method.buys_declaration:
        return "declaration_needed" if is_open else "already_declared"
    return None if method.has_declared_unit(order, schema) else "underpaid"
