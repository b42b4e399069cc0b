"""Requests and replies about datasets."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from service.datasets.models import Dataset
from service.domain.open_columns import bought_columns
from service.domain.unit_words import protected_units
from service.methods.knobs import MAX_EPSILON
from service.platform.paging import NEXT
from service.privacy.statements import statement_warnings


class BudgetRequest(BaseModel):
    """The promise for everything ever released from a dataset. δ defaults to min(1e-6, 1/n²)."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    epsilon: Annotated[float, Field(gt=0.0, le=MAX_EPSILON)]
    delta: Annotated[float | None, Field(gt=0.0, lt=1.0)] = None


class DatasetChange(BaseModel):
    """What of a dataset may change after its upload: its rows may get a deletion date, or an earlier one."""

    model_config = ConfigDict(extra="forbid")

    rows_expire_at: AwareDatetime


class BoughtReply(BaseModel):
    """Of one column, the constraints that are bought from the rows instead of declared (`infer`), charged to this dataset."""

    column: str
    words: list[Literal["minimum", "maximum", "enum"]]
    epsilon: Annotated[float, Field(description="Its part of the price of the order `declaration`.")]
    release: Annotated[str | None, Field(description="What bought it; null while it is to be bought.")]
    events: Annotated[list[dict[str, Any]], Field(description="Of the price list that was charged.")]


class DatasetReply(BaseModel):
    """What everybody in the tenant may know of a dataset: all of it declared or public."""

    id: uuid.UUID
    name: str
    units: int
    epsilon: float
    delta: float
    schema_: Annotated[dict[str, Any], Field(serialization_alias="schema")]
    privacy_unit: dict[str, Any] | None
    bought: Annotated[
        list[BoughtReply], Field(description="Columns whose bounds or categories are not the owner's word.")
    ]
    state: Literal["ready", "erased"]
    created_at: dt.datetime
    rows_expire_at: Annotated[dt.datetime | None, Field(description="When the rows and their key are destroyed.")]
    warnings: Annotated[
        list[str], Field(description="What must be said beside this promise; from ε, δ, n and what is declared.")
    ]
    declared_at: Annotated[dt.datetime, Field(description="When the declaration was made, or last replaced.")]
    rows_are_public: Annotated[
        bool, Field(description="The owner's word at the upload; orders may begin from the rows without a charge.")
    ]

    @classmethod
    def of(cls, dataset: Dataset) -> DatasetReply:
        return cls(**_fields(dataset))


class NewDatasetReply(DatasetReply):
    """The reply to the owner's upload; the notices depend on rows and are shown here only, to the owner."""

    notices: list[str]

    @classmethod
    def with_notices(cls, dataset: Dataset, notices: list[str]) -> NewDatasetReply:
        return cls(**_fields(dataset), notices=notices)


class DatasetList(BaseModel):
    """The tenant's datasets, newest first."""

    items: list[DatasetReply]
    next: Annotated[str | None, Field(description=NEXT)]


class SimpleAccount(BaseModel):
    """Nano-shares (billionths of the budget) under basic composition: the ε of all releases are added up."""

    posted: int
    pending: int
    remaining: int


class RenyiAccount(SimpleAccount):
    """Nano-shares of the budget at the dataset's fixed Rényi order: the noise of all releases is composed, which many small ones gain by."""

    order: int


class Accounts(BaseModel):
    """Both accounts count the same releases; an order needs room in one of them.

    At 750,000,000 of `simple` and 270,000,000 of `renyi` used: basic 75 % used, Rényi 27 %.
    """

    simple: SimpleAccount
    renyi: RenyiAccount


class BudgetReply(BaseModel):
    """What was promised, what is spent, what one more release may still ask for."""

    epsilon: float
    delta: float
    accounts: Accounts
    remaining_share: Annotated[float, Field(description="The larger of both accounts' remaining shares, 0 to 1.")]
    epsilon_spent: Annotated[float, Field(description="The smaller of what the two accounts prove to be spent.")]
    largest_next_epsilon: Annotated[float, Field(description="An order of `method: auto` with this ε fits.")]


class LedgerEntryReply(BaseModel):
    """One line of the ledger."""

    model_config = ConfigDict(from_attributes=True)

    seq: int
    release_id: uuid.UUID
    kind: Literal["reserve", "post", "void", "settle"]
    simple: int
    renyi: int
    created_at: dt.datetime
    previous_hash: str
    hash: str


class LedgerBalanceReply(BaseModel):
    """The balance at the moment of the entries: what they must add up to, how many they are, the last one's hash."""

    simple_pending: int
    simple_posted: int
    renyi_pending: int
    renyi_posted: int
    entry_count: int
    head_hash: str


class LedgerReply(BaseModel):
    """A page of a dataset's lines, in order, its balance, and what a check of all lines and the balance found."""

    dataset_id: uuid.UUID
    items: list[LedgerEntryReply]
    balance: LedgerBalanceReply
    verified: Annotated[bool | None, Field(description="Of all lines, whatever the page; null on later pages.")]
    faults: list[str]
    next: Annotated[int | None, Field(description=NEXT)]


def warnings_of(dataset: Dataset) -> list[str]:
    """What must be said beside the dataset's promise."""
    return statement_warnings(
        epsilon=dataset.epsilon,
        delta=dataset.delta,
        units=protected_units(dataset.image_schema, dataset.units),
        rows_are_public=dataset.rows_are_public,
    )


def _fields(dataset: Dataset) -> dict[str, Any]:
    return {
        "id": dataset.id,
        "name": dataset.name,
        "units": dataset.units,
        "epsilon": dataset.epsilon,
        "delta": dataset.delta,
        "schema_": dataset.schema,
        "privacy_unit": dataset.privacy_unit,
        "bought": [BoughtReply(**one) for one in bought_columns(dataset.declared_schema)],
        "state": dataset.state,
        "created_at": dataset.created_at,
        "rows_expire_at": dataset.rows_expire_at,
        "warnings": warnings_of(dataset),
        "declared_at": dataset.declared_at or dataset.created_at,
        "rows_are_public": dataset.rows_are_public,
    }
