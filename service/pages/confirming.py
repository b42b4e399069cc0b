"""The page that asks once more before anything is charged: of an order and of a question alike."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from service.datasets import service as datasets
from service.pages.budget import gauge
from service.pages.rendering import page
from service.privacy.filters import NANO

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fastapi import Request, Response

    from service.auth.sessions import SignedIn
    from service.datasets.models import Dataset
    from service.pages.declared import Open
    from service.platform.context import Context
    from service.releases.service import Quote

NOT_PASSED_ON = {"step", "csrf_token"}


@dataclass(frozen=True, slots=True)
class AskedFor:
    """What is to be confirmed."""

    document: dict[str, Any] | None = None
    """Of an order."""
    question: str | None = None
    """The kind of a question, in words."""
    to_buy: Open | None = None
    """Columns whose bounds or categories are bought."""
    public_start: str | None = None
    """The name of the dataset whose public rows an order begins from."""


def confirm_page(
    request: Request,
    visitor: SignedIn,
    dataset: Dataset,
    price: Mapping[str, Any],
    filled: Mapping[str, str],
    asked_for: AskedFor,
) -> Response:
    """What will be charged, and what cannot be undone. `price`: of `priced`.

    The form of this page carries a key of its own, so that one that is sent twice is charged once.
    """
    sent = {name: value for name, value in filled.items() if name not in NOT_PASSED_ON}
    return page(
        request,
        "confirm.html",
        signed_in=visitor,
        dataset=dataset,
        **price,
        filled=filled,
        sent={**sent, "order_key": uuid.uuid4().hex},
        document=asked_for.document,
        asked=asked_for.question,
        to_buy=asked_for.to_buy,
        public_start=asked_for.public_start,
    )


def priced(context: Context, visitor: SignedIn, dataset_id: uuid.UUID, quoted: Quote | None) -> dict[str, Any]:
    """What `quote.html` shows: the quote, and parts of the whole budget; where it does not fit, what would."""
    if quoted is None:
        return {"quoted": None, "share": None}
    accounts = (
        (quoted.price.shares.simple, quoted.remaining.simple),
        (quoted.price.shares.renyi, quoted.remaining.renyi),
    )
    cost, there = max(accounts, key=lambda each: each[1] - each[0])
    share: dict[str, float | None] = {
        "cost": cost / NANO,
        "left": max(0, there - cost) / NANO,
        "there": max(0, there) / NANO,
    }
    if not quoted.remaining.fits(quoted.price.shares):
        left = gauge(datasets.read_budget(context, visitor.principal, dataset_id), [])
        share["largest"] = None if left.is_empty else left.largest_next_epsilon
    return {"quoted": quoted, "share": share}
