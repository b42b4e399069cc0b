"""What the service answers, and what its calls take, as types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

RowFormat = Literal["csv", "parquet", "jsonl", "arrow"]
ImageFormat = Literal["npz", "zip", "png"]
SampleFormat = RowFormat | ImageFormat
Json = dict[str, Any]


class Dataset(TypedDict):
    """A table and its budget, as the owner sees it; never its rows."""

    id: str
    name: str
    units: int
    epsilon: float
    delta: float
    schema: Json
    privacy_unit: Json | None
    state: str
    created_at: str
    rows_expire_at: str | None
    warnings: NotRequired[list[str]]  # an older service sends none
    declared_at: str
    notices: NotRequired[list[str]]


class Account(TypedDict):
    """Nano-shares of one account; the whole budget is 1,000,000,000."""

    posted: int
    pending: int
    remaining: int
    order: NotRequired[float]


class Budget(TypedDict):
    """What is spent and what is left."""

    epsilon: float
    delta: float
    accounts: dict[str, Account]
    remaining_share: float
    epsilon_spent: float
    largest_next_epsilon: float


class Entry(TypedDict):
    """One line of a dataset's ledger."""

    seq: int
    kind: str
    release_id: str
    simple: int
    renyi: int
    created_at: str
    hash: str
    previous_hash: str


class LedgerBalance(TypedDict):
    """The balance at the moment of the entries."""

    simple_pending: int
    simple_posted: int
    renyi_pending: int
    renyi_posted: int
    entry_count: int
    head_hash: str


class Ledger(TypedDict):
    """All lines, the balance they belong to, and whether the service itself finds them whole."""

    dataset_id: str
    items: list[Entry]
    balance: LedgerBalance
    verified: bool
    faults: list[str]


class Price(TypedDict):
    """What an order costs."""

    epsilon: float
    delta: float
    shares: dict[str, int]


class Estimate(TypedDict):
    """What carrying out an order takes, within a small factor."""

    seconds_on_a_cpu: float
    seconds_on_a_gpu: float | None
    memory_bytes: int
    flops: float


class Quote(TypedDict):
    """An order with every knob resolved, its price, and whether it fits now."""

    order: Json
    price: Price
    steps: int
    first_noise_multiplier: float | None
    last_noise_multiplier: float | None
    fits: bool
    remaining: dict[str, int]
    estimate: NotRequired[Estimate]  # an older service sends none
    warnings: NotRequired[list[str]]


class Release(TypedDict):
    """One order on its way from reserved to published, failed or voided."""

    id: str
    dataset_id: str
    state: str
    order: Json
    price: Price
    priority: NotRequired[int]  # an older service sends none
    estimate: NotRequired[Estimate | None]
    progress: Json
    certificate: Json | None
    failure: str | None
    created_at: str
    links: dict[str, str]


class Accepted(TypedDict, total=False):
    """What an owner takes on their word."""

    accept_draft: bool
    accept_undeclared: Sequence[str]


class Declaration(Accepted, total=False):
    """What an upload may declare besides its schema and ε."""

    delta: float | None
    name: str | None
    privacy_unit: Mapping[str, Any] | None
    distinct_from: Sequence[str]


class DatasetOptions(Declaration, total=False):
    """Keywords of `Client.create_dataset`."""

    rows_expire_at: str | None


class PublishOptions(Declaration, total=False):
    """Keywords of `Client.publish`."""

    rows: int
    format: SampleFormat | None
    wait_seconds: int
    priority: int | None
