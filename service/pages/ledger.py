"""`/datasets/{id}/ledger`: what was spent when, as a line and a table, and whether all of it still agrees."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from service.auth.dependencies import ContextOf
from service.base.errors import NotFound
from service.datasets import service as datasets
from service.ledger import log
from service.pages.doors import PageRoute, PageTurn, Reader
from service.pages.rendering import page
from service.pages.words import LEDGER
from service.privacy.filters import NANO

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.datasets.schemas import LedgerEntryReply

router = APIRouter(include_in_schema=False, route_class=PageRoute)

LINES_OF_A_PAGE = 200


@router.get("/datasets/{dataset_id}/ledger", dependencies=[PageTurn])
def read_ledger(
    request: Request,
    dataset_id: uuid.UUID,
    context: ContextOf,
    visitor: Reader,
    before: Annotated[int | None, Query(ge=1, lt=2**63)] = None,
) -> Response:
    """A page of lines, the newest first; the first one says whether the whole ledger was found in order."""
    dataset = datasets.find(context, visitor.principal, dataset_id)
    ledger = datasets.read_ledger(context, visitor.principal, dataset_id, limit=LINES_OF_A_PAGE, before=before)
    with context.transaction() as session:
        try:
            head: Any = log.newest_head(session).to_json()
        except NotFound:  # the relay has signed none yet
            head = None
    balance = ledger.balance
    spent = (balance.simple_posted + balance.simple_pending, balance.renyi_posted + balance.renyi_pending)
    return page(
        request,
        "ledger.html",
        signed_in=visitor,
        dataset=dataset,
        ledger=ledger,
        lines=list(reversed(ledger.items)),
        history=history(ledger.items) if before is None and ledger.next is None else None,
        head=head,
        nano=NANO,
        ledger_words=LEDGER,
        is_beyond=max(spent) > NANO,
    )


def history(entries: Sequence[LedgerEntryReply]) -> dict[str, list[Any]]:
    """What both accounts had spent after each line, in per cent; what is reserved counts until it is given back.

    Each line holds what its release costs from then on (`imprimatur.verify.chain.totals_of`).
    """
    costs: dict[uuid.UUID, tuple[int, int]] = {}
    lines: dict[str, list[Any]] = {"labels": [], "simple": [], "renyi": []}
    for entry in entries:
        costs[entry.release_id] = (0, 0) if entry.kind == "void" else (entry.simple, entry.renyi)
        simple, renyi = map(sum, zip(*costs.values(), strict=True))
        lines["labels"].append(entry.created_at.strftime("%Y-%m-%d %H:%M"))
        lines["simple"].append(round(simple / NANO * 100.0, 3))
        lines["renyi"].append(round(renyi / NANO * 100.0, 3))
    return lines
