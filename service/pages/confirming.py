"""The page that asks once more before anything is charged: of an order and of a question alike."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from service.pages.rendering import page
from service.privacy.filters import NANO

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fastapi import Request, Response

    from service.auth.sessions import SignedIn
    from service.datasets.models import Dataset
    from service.pages.declared import Open
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
    quoted: Quote | None,
    filled: Mapping[str, str],
    asked_for: AskedFor,
) -> Response:
    """What will be charged, and what cannot be undone.

    The form of this page carries a key of its own, so that one that is sent twice is charged once.
    """
    sent = {name: value for name, value in filled.items() if name not in NOT_PASSED_ON}
    return page(
        request,
        "confirm.html",
        signed_in=visitor,
        dataset=dataset,
        quoted=quoted,
        share=None if quoted is None else shares_of(quoted),
        filled=filled,
        sent={**sent, "order_key": uuid.uuid4().hex},
        document=asked_for.document,
        asked=asked_for.question,
        to_buy=asked_for.to_buy,
        public_start=asked_for.public_start,
    )


def shares_of(quoted: Quote) -> dict[str, float]:
    """Of the whole budget: what it costs in the cheaper account, and what is left there afterwards."""
    accounts = (
        (quoted.price.shares.simple, quoted.remaining.simple),
        (quoted.price.shares.renyi, quoted.remaining.renyi),
    )
    cost, left = max(accounts, key=lambda each: each[1] - each[0])
    return {"cost": cost / NANO, "left": max(0, left - cost) / NANO}
