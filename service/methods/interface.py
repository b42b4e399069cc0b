"""What a method is to the rest of the service: `Method`, one value per folder beside this file.

Its other half is the class `Run` in `workers/methods/<the same name>`, which reads private rows and is imported by workers alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar
from uuid import UUID

from service.base.messages import Message
from service.domain.image_schema import DeclaredSchema
from service.methods.facts import Facts
from service.methods.forecast import Forecast
from service.methods.knobs import Order
from service.methods.work import Work
from service.privacy.calibration import EventsAt
from service.privacy.events import Events

Modality = Literal["table", "image"]
"""What a dataset holds."""

UNKNOWN = Message("How far off counts will be does not follow from the price of this method.")

O = TypeVar("O", bound=Order)  # noqa: E741 - the order of a method


@dataclass(frozen=True)
class Measured:
    """What one kind of private release is, for the certificate."""

    what: str
    of_one_unit: str
    """How far one unit moves it, in the norm of the event's kind; `{rows}` stands for the most rows of a unit that are used."""


@dataclass(frozen=True)
class Card:
    """What people are told about a method: in certificates, on model cards, at `/v1/methods`, in docs/orders.md."""

    summary: str
    """One sentence: what it does."""
    makes: str
    """What the published ZIP holds: the rest of a sentence that begins with "This ZIP holds"."""
    source: str
    """Who described it, and where."""
    paper_holds: str
    """Whether the published privacy analysis holds, and what is done instead where it does not."""
    releases: Mapping[str, Measured] = field(default_factory=dict)
    """Purpose of an event -> what is released. Every purpose of the method's events is in it."""
    cannot_learn: str = ""
    """What no budget makes it learn, in a sentence or two; empty: nothing that is known of."""


@dataclass(frozen=True)
class Method(Generic[O]):
    """Everything but the run itself. All functions are pure and read no row."""

    name: str
    takes: frozenset[Modality]
    order: type[O]
    check: Callable[[O, DeclaredSchema], None]
    """Refuses, by `InvalidOrder`, what this schema cannot give the method; before any price."""
    resolve: Callable[[O, Facts], O]
    """Fills in what the order leaves open. Called once for an order that is placed; resolving again changes nothing."""
    events: Callable[[O, float, float], EventsAt]
    """(resolved order, ε, δ) -> noise multiplier -> events: the one place where their sequence is written."""
    estimate: Callable[[O, Facts], Work]
    """How much a resolved order is to compute and to hold: at most, where that depends on what noise will say."""
    card: Card
    returns: Literal["generator", "answers"] = "generator"
    """What is published: something that rows or images are drawn from, or numbers."""
    takes_parts_of_images: bool = False
    """Whether one unit may be a part of one image (`pixel_unit` of a schema); for the others it is an image at least."""
    has_declared_unit: Callable[[O, DeclaredSchema], bool] = lambda _order, _schema: True
    """Whether a resolved order that names a unit names the schema's. Workers ask before they charge: the order may have been written by who checks
    nothing, and for a smaller unit the same events have less noise."""
    buys_declaration: bool = False
    """Whether it is for datasets that leave bounds or categories open, and for no others; of its like there is one."""
    forecast: Callable[[O, Events, Facts], Forecast] = lambda _order, _events, _facts: Forecast((UNKNOWN,))
    """(resolved order, its events, facts): how far off what is published will be, for quotes, cards and certificates."""
    also_reads: Callable[[O], UUID | None] = lambda _order: None
    """The dataset, declared public, that an order reads besides its own. Asked where an order is placed, by workers and for certificates;
    they check that it may be read, and nothing else looks for it in an order."""
    public_bins: Callable[[Any], frozenset[int]] = lambda order: frozenset({order.numeric_bins})
    """By how many bins of a numeric field it reads that dataset, where it is a table. Workers read it so before they charge."""
    offer: Callable[[Any, Facts], str | None] = lambda _order, _facts: None
    """Why `auto` may take this method for such an order and such data; None: it may not. The first in the catalogue is taken."""

    @property
    def run(self) -> str:
        """Where workers find the run: the names of module and class."""
        return f"workers.methods.{self.name}.run:Run"
