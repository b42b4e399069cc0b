"""What a generator of images begins with: a mixture, measured first, as by `method: mixture`."""

from __future__ import annotations

from service.domain.shapes import ImageShape
from service.methods.facts import Facts
from service.methods.idpgan.knobs import MixtureFirst
from service.methods.idpgan.order import IdpganOrder
from service.methods.mixture.order import MixtureOrder
from service.methods.mixture.resolve import affordable_cells


def resolve_start(order: IdpganOrder, facts: Facts, shape: ImageShape) -> IdpganOrder:
    """Fill in the number of cells of the mixture, by what is spent on it."""
    start = order.mixture_first
    if start is None:
        return order
    if start.upright is None and shape.channels > 1:
        # Images in colour are no handwriting, as for `method: mixture`.
        start = start.model_copy(update={"upright": False})
    if start.cells is not None:
        return order.model_copy(update={"warm_start": start})
    priced = mixture_of(start).model_copy(update={"epsilon": order.epsilon, "share": order.share})
    cells = affordable_cells(priced, facts, shape, precision_share=start.precision_share)
    return order.model_copy(update={"warm_start": start.model_copy(update={"cells": cells})})


def mixture_of(start: MixtureFirst) -> MixtureOrder:
    """What is measured before the first step; its ε is that of the whole release and says nothing here."""
    return MixtureOrder(method="mixture", share="rest", cells=start.cells, upright=start.upright)
