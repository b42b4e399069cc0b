"""`/v1/methods`: what may be ordered, from the catalogue alone. No row and no dataset is read."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, Field

from service.auth.dependencies import Reader
from service.methods.catalogue import CATALOGUE
from service.methods.interface import Modality

PUBLIC_DATASET = "public_dataset"
"""The knob of orders that begin from public rows; `also_reads` of their methods reads it."""

router = APIRouter(prefix="/v1", tags=["methods"])


class MethodReply(BaseModel):
    """One method."""

    name: str
    takes: Annotated[list[Modality], Field(description="What a dataset must hold.")]
    summary: str
    returns: Annotated[
        Literal["generator", "answers"], Field(description="Something that rows or images are drawn from, or numbers.")
    ]
    takes_public_rows: Annotated[
        bool,
        Field(
            description="Whether its orders may begin from a dataset declared public (`public_dataset`). Orders of `choose` name it in their "
            "candidates."
        ),
    ]
    makes: Annotated[str, Field(description="What the published ZIP holds.")]
    source: Annotated[str, Field(description="Who described it, and where.")]
    paper_holds: Annotated[
        str, Field(description="Whether its published privacy analysis holds, and what is done instead.")
    ]
    cannot_learn: Annotated[str, Field(description="What no budget makes it learn; empty where nothing is known of.")]
    order: Annotated[
        dict[str, Any], Field(description="JSON schema of its orders: every knob, its default and its meaning.")
    ]


class MethodList(BaseModel):
    """Every method, in the order in which `method: auto` asks them."""

    items: list[MethodReply]


@router.get("/methods")
def list_methods(_: Reader) -> MethodList:
    """What may be ordered: each method with what it takes and makes, and the JSON schema of its knobs."""
    return _described()


@cache
def _described() -> MethodList:
    """The catalogue never changes while a process runs."""
    return MethodList(
        items=[
            MethodReply(
                name=name,
                takes=sorted(method.takes),
                summary=method.card.summary,
                returns=method.returns,
                takes_public_rows=PUBLIC_DATASET in method.order.model_fields,
                makes=method.card.makes,
                source=method.card.source,
                paper_holds=method.card.paper_holds,
                cannot_learn=method.card.cannot_learn,
                order=method.order.model_json_schema(),
            )
            for name, method in CATALOGUE.items()
        ]
    )
