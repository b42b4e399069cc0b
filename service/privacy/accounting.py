"""What a list of events costs: privacy-loss distribution for the (ε, δ) of one release, Rényi divergence for the ledger.

The first is losses.py, the second mechanisms.py, of Gaussians dp_accounting's. Adjacency: zero-out one unit (`REPLACE_SPECIAL`). Nothing here sees data. Every number that leaves this module is
finite and not negative, or `Unpriceable` is raised: dp_accounting itself only warns on a negative divergence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from service.base.errors import Unpriceable
from service.base.lazy import lazy
from service.base.messages import Message
from service.privacy.events import Event, Events, accounted, failures_of
from service.privacy.failures import LossWithFailures
from service.privacy.losses import LargestLoss, Loss, loss_from_above
from service.privacy.mechanisms import FLOAT_SLACK, composed_divergences, every_way, largest_loss
from service.privacy.renyi import CONVERSION_ORDERS, RenyiLoss

if TYPE_CHECKING:
    import dp_accounting
else:
    dp_accounting = lazy("dp_accounting")

if TYPE_CHECKING:
    ADJACENCY = dp_accounting.NeighboringRelation.REPLACE_SPECIAL


def __getattr__(name: str) -> object:
    """`ADJACENCY`, a value of the library that is not imported yet."""
    if name == "ADJACENCY":
        return dp_accounting.NeighboringRelation.REPLACE_SPECIAL
    raise AttributeError(name)


LEAST_DELTA_LEFT = 1e-3
"""A loss is computed most exactly at the δ that failures leave, or at this part of δ where they leave less."""

RENYI_ORDERS: tuple[int, ...] = (*range(2, 65), *(2**power for power in range(7, 17)))
"""Grid from which a dataset's one order α* is fixed when it is created.

Whole numbers only: there the divergence of the sampled Gaussian is a finite sum, while dp_accounting's series for
fractional orders does not converge at large q and small σ.
"""


def loss_of(events: Events, *, delta: float, epsilon_scale: float = 1.0) -> Loss:
    """The composed privacy loss of a list, from above: most exact near this δ, and on a grid that fits this ε.

    With releases in parts, the largest of the losses of all lists that one unit may be in. Where these are too many, or an event has no
    loss distribution, what Rényi divergences of the whole list say.
    """
    failures = failures_of(events)
    if failures > 0.0:
        left = max(delta - failures, delta * LEAST_DELTA_LEFT)
        return LossWithFailures(_loss_without_failures(events, delta=left, epsilon_scale=epsilon_scale), failures)
    return _loss_without_failures(events, delta=delta, epsilon_scale=epsilon_scale)


def _loss_without_failures(events: Events, *, delta: float, epsilon_scale: float) -> Loss:
    listed = accounted(events)
    try:
        ways = every_way(listed)
        if ways is None:
            divergences = renyi_divergences(events, CONVERSION_ORDERS)
            return RenyiLoss.of(CONVERSION_ORDERS, divergences, largest=largest_loss(listed))
        losses = tuple(loss_from_above(way, delta=delta, epsilon_scale=epsilon_scale) for way in ways)
        return losses[0] if len(losses) == 1 else LargestLoss(losses)
    except (OverflowError, ValueError, MemoryError, ArithmeticError) as error:
        raise Unpriceable(Message("the privacy loss of this order is too large to compute")) from error


def has_loss_distribution(events: Events) -> bool:
    """Whether `loss_of` composes loss distributions; else Rényi divergences alone say what a list costs."""
    return every_way(accounted(events)) is not None


def epsilon_of(events: Events, *, delta: float, epsilon_scale: float = 1.0) -> float:
    """Smallest ε, up to what rounding upwards adds, for which the list is (ε, δ)-DP."""
    return _checked(loss_of(events, delta=delta, epsilon_scale=epsilon_scale).epsilon(delta), "ε")


def renyi_divergences(events: Sequence[Event], orders: Sequence[int]) -> list[float]:
    """Rényi divergence ρ(α) of the whole list at each order, the larger of both directions."""
    listed = accounted(events)
    try:
        divergences = composed_divergences(listed, orders)
    except (OverflowError, ValueError, ArithmeticError) as error:
        raise Unpriceable(Message("the Rényi divergence of this order cannot be computed")) from error
    slack = FLOAT_SLACK * sum(count * one.compositions for one, count in listed)
    # Checked before the slack is added: a negative divergence must not hide under it.
    return [_checked(value, "Rényi divergence") + slack for value in divergences]


def renyi_divergence(events: Sequence[Event], order: int) -> float:
    """ρ(α) at the dataset's own order."""
    return renyi_divergences(events, [order])[0]


def first_steps(events: Events, steps: int) -> Events:
    """The list cut after `steps` private steps: what has really run when a person stops a release early."""
    kept: list[Event] = []
    left = steps
    for event in events:
        if not event.private_steps:
            kept.append(event)
            continue
        if left <= 0:
            break
        count = min(left, event.private_steps)
        kept.append(event.cut(count))
        left -= count
    return tuple(kept)


def _checked(value: float, what: str) -> float:
    if not math.isfinite(value) or value < 0.0:
        raise Unpriceable(f"the {what} of this order is not a finite, non-negative number")
    return value
