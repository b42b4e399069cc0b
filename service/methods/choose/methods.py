"""The methods whose orders may be candidates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from service.methods import idpgan, marginals
from service.methods.interface import Method

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from service.methods.choose.order import ChooseOrder

METHODS: dict[str, Method[Any]] = {each.name: each for each in (marginals.METHOD, idpgan.METHOD)}


def public_dataset_of(order: ChooseOrder) -> UUID | None:
    """The dataset that candidates begin from: the first one named."""
    return next((named for _, named in _beginning(order)), None)


def public_bins_of(order: ChooseOrder) -> frozenset[int]:
    """Of all candidates that begin from it."""
    return frozenset(each.numeric_bins for each, _ in _beginning(order))


def _beginning(order: ChooseOrder) -> Iterator[tuple[Any, UUID]]:
    for each in (*order.candidates, *(order.trials or ())):
        named = METHODS[each.method].also_reads(each)
        if named is not None:
            yield each, named
