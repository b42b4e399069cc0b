"""An order is placed; where the budget refuses it, the refusal says what would fit."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from imprimatur.cli.datasets import print_warnings
from imprimatur.cli.output import rounded_down

if TYPE_CHECKING:
    from collections.abc import Mapping

    from imprimatur.client import Client
    from imprimatur.replies import Release


def place(
    client: Client,
    dataset_id: str,
    order: Mapping[str, Any],
    idempotency_key: str | None = None,
    *,
    priority: int | None = None,
    name: str | None = None,
) -> Release:
    """The release that was made of an order. What its quote warns of is said on standard error first."""
    from imprimatur.errors import ApiError

    with suppress(
        ApiError
    ):  # an order that was placed before may have no price any more, and is still found by its key
        quoted = client.quote(dataset_id, order)
        if quoted.fits:  # else the refusal is all that matters
            print_warnings(quoted)
    try:
        return client.create_release(dataset_id, order, idempotency_key=idempotency_key, priority=priority, name=name)
    except ApiError as refused:
        if refused.code != "budget_exhausted":
            raise
        try:
            largest = client.budget(dataset_id)["largest_next_epsilon"]
        except ApiError:  # the refusal matters more
            raise refused from None
        fits = f"at most ε = {rounded_down(largest)} would fit" if largest > 0 else "no release would fit any more"
        values = {**refused.values, "largest_next_epsilon": largest}
        raise ApiError(refused.status, refused.code, f"{refused.detail}; {fits}", values) from None
