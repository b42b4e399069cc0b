"""The methods whose orders may be candidates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from service.methods import idpgan, marginals
from service.methods.interface import Method

if TYPE_CHECKING:
    from uuid import UUID

    from service.methods.choose.order import ChooseOrder

METHODS: dict[str, Method[Any]] = {each.name: each for each in (marginals.METHOD, idpgan.METHOD)}


def public_dataset_of(order: ChooseOrder) -> UUID | None:
    """The dataset that candidates begin from: the first one named."""
    tried = (*order.candidates, *(order.trials or ()))
    named = (METHODS[each.method].also_reads(each) for each in tried)
    return next((each for each in named if each is not None), None)
