"""A toy method that returns numbers instead of a generator: noisy counts of one column's categories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import torch

from service.methods.interface import Card, Measured, Method
from service.methods.knobs import Order
from service.methods.work import coded_rows
from service.privacy.events import GaussianEvent
from workers.checkpoints import Checkpoint
from workers.generators.released import AnswersRelease
from workers.mechanism.label_counts import label_counts
from workers.mechanism.noise import release_counts

if TYPE_CHECKING:
    from service.methods.facts import Facts
    from service.privacy.calibration import EventsAt
    from workers.hooks import Hooks
    from workers.mechanism.secure_random import SecureRandom
    from workers.plan import Plan
    from workers.sources import Source

NAME = "toy_counts"
COUNTS = "toy_counts"


class ToyOrder(Order):
    """Counts of a column's categories."""

    method: Literal["toy_counts"]
    column: str
    scale: float = 1.0
    """Counts are multiplied by it, so that a test can make answers that are not finite."""


def events(_order: ToyOrder, _epsilon: float, _delta: float) -> EventsAt:
    return lambda noise_multiplier: (GaussianEvent(COUNTS, noise_multiplier),)


def resolve(order: ToyOrder, _facts: Facts) -> ToyOrder:
    return order


class ToyMethod(Method[ToyOrder]):
    """Its run is in this module."""

    @property
    def run(self) -> str:
        return f"{__name__}:Run"


METHOD = ToyMethod(
    name=NAME,
    takes=frozenset({"table"}),
    order=ToyOrder,
    check=lambda _order, _schema: None,
    resolve=resolve,
    events=events,
    estimate=lambda _order, facts: coded_rows(float(facts.units), 1, 0),
    card=Card(
        summary="The categories of one column are counted with noise.",
        makes="noisy counts of the categories of one column",
        source="Dwork and Roth 2014",
        paper_holds="That of one Gaussian release.",
        releases={COUNTS: Measured("counts of the categories of one column", "{rows} in all counts")},
    ),
)


class Run:
    """One noisy histogram."""

    def __init__(
        self, order: ToyOrder, plan: Plan, source: Source, randomness: SecureRandom, _device: torch.device
    ) -> None:
        self.order, self.plan, self.randomness = order, plan, randomness
        self.table, self.domain = source.table(numeric_bins=8)
        self.place = self.domain.index(order.column)
        self.noisy = torch.zeros(0)

    def measure(self) -> None:
        noise_multiplier = self.plan.take_gaussian(COUNTS)
        width = self.domain.widths[self.place]
        counts = label_counts(self.table.codes[:, self.place], categories=width)
        (self.noisy,) = release_counts(
            counts, noise_stds=[noise_multiplier], noise_multiplier=noise_multiplier, randomness=self.randomness
        )

    def checkpoint(self) -> Checkpoint:
        return Checkpoint({"noisy": self.noisy}, {"position": self.plan.position})

    def restore(self, checkpoint: Checkpoint) -> None:
        self.plan.resume(checkpoint.values["position"])
        self.noisy = checkpoint.tensors["noisy"]

    def finish(self, hooks: Hooks) -> AnswersRelease:
        hooks.on_progress(self.order.progress_steps)
        counts = [count * self.order.scale for count in self.noisy.tolist()]
        return AnswersRelease(
            answers={"column": self.order.column, "counts": counts},
            is_private=self.randomness.is_private,
            engine="none: noisy counts",
        )
