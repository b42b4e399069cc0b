"""What the service answers, as frozen classes, and what calls take, as types.

An answer's fields are attributes, with dates as `datetime`. The reply as it came, with fields that only a newer service
has, is `raw`, and the answer itself is a read-only mapping of it: `quote.price.epsilon` is `quote["price"]["epsilon"]`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypedDict

from imprimatur.forecasts import Forecast, Wanted
from imprimatur.formats import ImageFormat, RowFormat, SampleFormat
from imprimatur.model import Json, Model, Readers

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ImageFormat", "Json", "Model", "Readers", "RowFormat", "SampleFormat"]


def moment(text: str) -> dt.datetime:
    """RFC 3339."""
    return dt.datetime.fromisoformat(text)


@dataclass(frozen=True, eq=False)
class Account(Model):
    """Nano-shares of one account; the whole budget is 1,000,000,000."""

    posted: int
    pending: int
    remaining: int
    order: float | None = None


@dataclass(frozen=True, eq=False)
class Accounts(Model):
    """Both accounts; an order needs room in one of them."""

    simple: Account
    renyi: Account

    _read: ClassVar[Readers] = {"simple": Account.of, "renyi": Account.of}


@dataclass(frozen=True, eq=False)
class Budget(Model):
    """What was promised, what is spent and what is left."""

    epsilon: float
    delta: float
    accounts: Accounts
    remaining_share: float
    epsilon_spent: float
    largest_next_epsilon: float

    _read: ClassVar[Readers] = {"accounts": Accounts.of}

    def __str__(self) -> str:
        used = {
            name: (account.posted + account.pending) / (account.posted + account.pending + account.remaining or 1)
            for name, account in (("basic", self.accounts.simple), ("Rényi", self.accounts.renyi))
        }
        return (
            f"ε = {self.epsilon:g}, δ = {self.delta:.3g}: {_accounts_in_words(used)} The next release may have ε = "
            f"{self.largest_next_epsilon:.4g} at most."
        )

    @property
    def remaining_epsilon(self) -> float:
        """The largest ε that one more release may have. Several small ones may come to more: composition is not a sum."""
        return self.largest_next_epsilon


def _accounts_in_words(used: Mapping[str, float]) -> str:
    """For example: basic 75 % used, Rényi 27 %: an order needs room in one.

    used: part of each account that is posted or reserved.
    """
    (first, part), *others = used.items()
    said = ", ".join([f"{first} {part:.0%} used", *(f"{name} {part:.0%}" for name, part in others)])
    return f"{said.replace('%', ' %')}: an order needs room in one."


@dataclass(frozen=True, eq=False)
class Entry(Model):
    """One line of a dataset's ledger."""

    seq: int
    kind: str
    release_id: str
    simple: int
    renyi: int
    created_at: dt.datetime
    hash: str
    previous_hash: str

    _read: ClassVar[Readers] = {"created_at": moment}


@dataclass(frozen=True, eq=False)
class LedgerBalance(Model):
    """The balance at the moment of the entries."""

    simple_pending: int
    simple_posted: int
    renyi_pending: int
    renyi_posted: int
    entry_count: int
    head_hash: str


@dataclass(frozen=True, eq=False)
class Ledger(Model):
    """All lines, the balance they belong to, and whether the service itself finds them whole."""

    dataset_id: str
    entries: tuple[Entry, ...]
    balance: LedgerBalance
    verified: bool
    faults: list[str]

    _read: ClassVar[Readers] = {"balance": LedgerBalance.of}

    @classmethod
    def of(cls, raw: Json, **more: Any) -> Self:
        return super().of(raw, entries=tuple(Entry.of(each) for each in raw["items"]), **more)


@dataclass(frozen=True, eq=False)
class Shares(Model):
    """Nano-shares of both accounts."""

    simple: int
    renyi: int


@dataclass(frozen=True, eq=False)
class Price(Model):
    """What an order costs."""

    epsilon: float
    delta: float
    shares: Shares

    _read: ClassVar[Readers] = {"shares": Shares.of}


@dataclass(frozen=True, eq=False)
class Estimate(Model):
    """What carrying out an order takes, within a small factor."""

    seconds_on_a_cpu: float
    seconds_on_a_gpu: float | None
    memory_bytes: int
    flops: float


@dataclass(frozen=True, eq=False)
class Quote(Model):
    """An order with every knob resolved, its price, whether it fits now, and how exact its result will be."""

    order: Json
    price: Price
    steps: int
    first_noise_multiplier: float | None
    last_noise_multiplier: float | None
    fits: bool
    remaining: Shares
    estimate: Estimate | None = None  # an older service sends none
    warnings: tuple[str, ...] = ()
    forecast: Forecast | None = None  # an older service sends none
    wanted: Wanted | None = None
    bought: tuple[Json, ...] = ()
    """Columns whose bounds or categories were bought from the rows, or are to be."""

    _read: ClassVar[Readers] = {
        "bought": tuple,
        "price": Price.of,
        "remaining": Shares.of,
        "estimate": Estimate.of,
        "warnings": tuple,
        "forecast": Forecast.of,
        "wanted": Wanted.of,
    }

    def __str__(self) -> str:
        """The sentences first; then what it costs."""
        fits = "it fits" if self.fits else "it does not fit what is left"
        price = f"ε = {self.price.epsilon:.4g}, δ = {self.price.delta:.3g}; {fits}."
        said = [str(each) for each in (self.wanted, self.forecast) if each is not None]
        return "\n".join([*said, *(f"Warning: {each}" for each in self.warnings), price])


@dataclass(frozen=True, eq=False)
class Dataset(Model):
    """A table and its budget, as the owner sees it; never its rows."""

    id: str
    name: str
    units: int
    epsilon: float
    delta: float
    schema: Json
    privacy_unit: Json | None
    state: str
    created_at: dt.datetime
    rows_expire_at: dt.datetime | None = None
    declared_at: dt.datetime | None = None
    bought: tuple[Json, ...] = ()
    """Columns whose bounds or categories are bought from the rows: for how much, and by which release (None: still to be)."""
    rows_are_public: bool = False
    warnings: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    """What the upload did to cells; in the reply to an upload only."""

    _read: ClassVar[Readers] = {
        "created_at": moment,
        "rows_expire_at": moment,
        "declared_at": moment,
        "bought": tuple,
        "warnings": tuple,
        "notices": tuple,
    }


@dataclass(frozen=True, eq=False)
class Stage(Model):
    """How far a release has come: the field `progress` of the reply."""

    phase: str
    step: int = 0
    steps: int = 0


@dataclass(frozen=True, eq=False)
class Release(Model):
    """One order on its way from reserved to published, failed or voided, as it was when the service was asked."""

    id: str
    dataset_id: str
    state: str
    order: Json
    price: Price
    created_at: dt.datetime
    stage: Stage
    certificate: Json | None = None
    failure: str | None = None
    name: str | None = None
    priority: int | None = None  # an older service sends none
    estimate: Estimate | None = None
    warnings: tuple[str, ...] = ()
    links: Mapping[str, str] = field(default_factory=dict, repr=False)

    _read: ClassVar[Readers] = {"price": Price.of, "created_at": moment, "estimate": Estimate.of, "warnings": tuple}

    @classmethod
    def of(cls, raw: Json, **more: Any) -> Self:
        return super().of(raw, stage=Stage.of(raw["progress"]), **more)

    @property
    def has_ended(self) -> bool:
        """Published, failed or voided."""
        return self.state in ENDED


ENDED = ("published", "failed", "voided")


class Accepted(TypedDict, total=False):
    """What an owner takes on their word."""

    accept_draft: bool
    accept_undeclared: Sequence[str]


class Declaration(TypedDict, total=False):
    """What an upload may declare besides its schema and ε."""

    delta: float | None
    name: str | None
    privacy_unit: Mapping[str, Any] | None
    distinct_from: Sequence[str]


class DatasetOptions(Declaration, Accepted, total=False):
    """Keywords of `Client.create_dataset`."""

    rows_expire_at: str | None
    rows_are_public: bool


class PublishOptions(Declaration, Accepted, total=False):
    """Keywords of `Client.publish`."""

    rows: int
    rows_are_units: bool
    format: SampleFormat | None
    wait_seconds: int
    priority: int | None
