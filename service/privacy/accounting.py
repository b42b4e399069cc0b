"""What a list of events costs: privacy-loss distribution for the (ε, δ) of one release, Rényi divergence for the ledger.

The first is losses.py, the second dp_accounting. Adjacency: zero-out one unit (`REPLACE_SPECIAL`). Nothing here sees data. Every number that leaves this module is
finite and not negative, or `Unpriceable` is raised: dp_accounting itself only warns on a negative divergence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from service.base.errors import Unpriceable
from service.base.lazy import lazy
from service.privacy.events import Event, Events, SampledStepEvent, to_dp_event
from service.privacy.losses import Loss, loss_from_above

if TYPE_CHECKING:
    import dp_accounting
    from dp_accounting import rdp
else:
    dp_accounting = lazy("dp_accounting")
    rdp = lazy("dp_accounting.rdp")

if TYPE_CHECKING:
    ADJACENCY = dp_accounting.NeighboringRelation.REPLACE_SPECIAL


def __getattr__(name: str) -> object:
    """`ADJACENCY`, a value of the library that is not imported yet."""
    if name == "ADJACENCY":
        return dp_accounting.NeighboringRelation.REPLACE_SPECIAL
    raise AttributeError(name)


RENYI_ORDERS: tuple[int, ...] = (*range(2, 65), *(2**power for power in range(7, 17)))
"""Grid from which a dataset's one order α* is fixed when it is created.

Whole numbers only: there the divergence of the sampled Gaussian is a finite sum, while dp_accounting's series for
fractional orders does not converge at large q and small σ.
"""

FLOAT_SLACK = 4e-15
"""Added to ρ(α) for every composition, so that rounding in doubles never lowers a cost.

dp_accounting's sums of doubles were up to 2e-16 a step below the true divergence (against 60 digits, α to 4096): over a
million steps that is a nano-share.
"""


def loss_of(events: Events, *, delta: float, epsilon_scale: float = 1.0) -> Loss:
    """The composed privacy loss of a list, from above: most exact near this δ, and on a grid that fits this ε."""
    try:
        return loss_from_above(events, delta=delta, epsilon_scale=epsilon_scale)
    except (OverflowError, ValueError, MemoryError, ArithmeticError) as error:
        raise Unpriceable("the privacy loss of this order is too large to compute") from error


def epsilon_of(events: Events, *, delta: float, epsilon_scale: float = 1.0) -> float:
    """Smallest ε, up to what rounding upwards adds, for which the list is (ε, δ)-DP."""
    return _checked(loss_of(events, delta=delta, epsilon_scale=epsilon_scale).epsilon(delta), "ε")


def renyi_divergences(events: Sequence[Event], orders: Sequence[int]) -> list[float]:
    """Rényi divergence ρ(α) of the whole list at each order, the larger of both directions."""
    accountant = rdp.RdpAccountant(list(orders), dp_accounting.NeighboringRelation.REPLACE_SPECIAL)
    try:
        accountant.compose(to_dp_event(events))
    except (OverflowError, ValueError, ArithmeticError) as error:
        raise Unpriceable("the Rényi divergence of this order cannot be computed") from error
    slack = FLOAT_SLACK * sum(event.count for event in events)
    # Checked before the slack is added: a negative divergence must not hide under it.
    return [_checked(float(value), "Rényi divergence") + slack for value in accountant.rdp]


def renyi_divergence(events: Sequence[Event], order: int) -> float:
    """ρ(α) at the dataset's own order."""
    return renyi_divergences(events, [order])[0]


def first_steps(events: Events, steps: int) -> Events:
    """The list cut after `steps` private steps: what has really run when a person stops a release early."""
    kept: list[Event] = []
    left = steps
    for event in events:
        if not isinstance(event, SampledStepEvent):
            kept.append(event)
            continue
        if left <= 0:
            break
        count = min(left, event.count)
        kept.append(
            SampledStepEvent(
                event.sampling_probability,
                event.gradient_noise_multiplier,
                event.histogram_noise_multiplier,
                count,
            )
        )
        left -= count
    return tuple(kept)


def _checked(value: float, what: str) -> float:
    if not math.isfinite(value) or value < 0.0:
        raise Unpriceable(f"the {what} of this order is not a finite, non-negative number")
    return value
