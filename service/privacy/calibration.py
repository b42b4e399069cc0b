"""From a list of events to its noise: the least whose PLD ε stays at or below the requested one, within 1 %.

Nothing here knows an order or a method: a list is a function of one noise multiplier.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import chain
from typing import TYPE_CHECKING

from service.base.errors import Unpriceable
from service.base.lazy import lazy
from service.base.messages import Figure, Message
from service.privacy.accounting import epsilon_of, loss_of, renyi_divergence
from service.privacy.events import Events, failures_of
from service.privacy.filters import NANO, Budget, Shares, exact, failure_divergence, renyi_cost

if TYPE_CHECKING:
    from dp_accounting import gaussian_mechanism

    from service.privacy.losses import Loss
else:
    gaussian_mechanism = lazy("dp_accounting.gaussian_mechanism")

TOLERANCE = 0.01
"""The price lies in [(1 - TOLERANCE)·ε, ε]."""

_AIM = 0.997
"""Where inside that interval the search aims: near the top, with room for the last secant step."""

_ROOM = 5e-4
"""What is left of ε, so that `is_paid`, whose δ is rounded and whose grid is another one, finds no more than was paid."""

_NEXT_TO_NOTHING = 1e-6
"""A part of the precision beside the others that leaves its own part of the release without use."""

_SLOPE_OVER = 0.1
"""Over how much of log σ the search's first slope is taken."""

SMALLEST_EPSILON, SMALLEST_DELTA = 1e-5, 1e-100
"""Below the first NOISE_RESERVE would be more than a thousandth; below the second the search for a noise level meets the ends of floating point."""
NOISE_RESERVE = 1e-8
"""Of ε, and of δ relatively: what discrete noise may cost beyond the Gaussian that the price is of (docs/privacy.md, Discrete noise)."""

MOST_RELEASES = 20
"""Of whole numbers, which cost 4.2e-10 of that at most each (`workers.mechanism.noise.LEAST_ROUNDING_VARIANCE`)."""

_NO_NOISE = Message(
    "no amount of noise that can be drawn gives this order the requested epsilon; order a larger epsilon, or for a trained "
    "generator other steps or another sampling_probability"
)

_NOTHING_LEFT = Message(
    "fixed parts of the precision leave nothing for the rest of this order, whatever its epsilon: order smaller ones (each knob "
    "with share in its name says one)"
)

EventsAt = Callable[[float], Events]
"""Noise multiplier -> the events of an order. Rising noise lowers their cost."""
EventsFor = Callable[[float, float], EventsAt]
"""(ε, δ) of a release -> the same: some have parts whose noise depends on the promise, not on the noise multiplier."""

SMALLEST_NOISE = 1e-2
LARGEST_NOISE = 1e6


def is_paid(events: Events, shares: Shares, budget: Budget, *, epsilon_scale: float) -> bool:
    """Whether a list costs no more than these shares of both accounts; computed from the list itself.

    `epsilon_scale`: the ε it was calibrated for. It sets the width of the grid, which is from above at any width.
    """
    share = Fraction(shares.simple, NANO)
    epsilon, delta = float(share * exact(budget.epsilon)), float(share * exact(budget.delta) / 2)
    if not NOISE_RESERVE < epsilon_scale < math.inf or epsilon < SMALLEST_EPSILON or delta < SMALLEST_DELTA:
        return False
    if releases_of_whole_numbers(events) > MOST_RELEASES or failures_of(events) >= delta:
        return False
    scale = math.nextafter(epsilon_scale - NOISE_RESERVE, 0.0)
    of_gaussians = epsilon_of(events, delta=delta / (1.0 + NOISE_RESERVE), epsilon_scale=scale)
    return (
        of_gaussians + NOISE_RESERVE <= epsilon
        and renyi_cost(renyi_divergence(events, budget.renyi_order), budget, failures=failures_of(events))
        <= shares.renyi
    )


def releases_of_whole_numbers(events: Events) -> int:
    """The events'; the histograms of all steps together are noisy enough to count as one."""
    return sum(event.whole_number_releases for event in events) + 1


def calibrate(events_at: EventsAt, epsilon: float, delta: float) -> tuple[Events, float]:
    """Least noise with PLD ε in [(1 - TOLERANCE)·ε, ε]; returns the list and its PLD ε, what discrete noise costs included.

    Raises `Unpriceable` where no noise gives this ε.
    """
    noise_multiplier, of_gaussians = least_noise(events_at, epsilon, delta)
    events = events_at(noise_multiplier)
    if releases_of_whole_numbers(events) > MOST_RELEASES:
        raise Unpriceable(
            Message(
                "an order may release whole numbers %(most)s times at most; order fewer, as the reserve for their noise covers "
                "no more",
                most=MOST_RELEASES,
            )
        )
    return events, of_gaussians + NOISE_RESERVE


def least_noise(events_at: EventsAt, epsilon: float, delta: float) -> tuple[float, float]:
    """The noise multiplier that `calibrate` finds, and the PLD ε of its list without what discrete noise costs."""
    if epsilon < SMALLEST_EPSILON:
        raise Unpriceable(
            Message(
                "an epsilon below %(least)s is not possible: discrete noise costs %(reserve)s more than a Gaussian, which would "
                "be more than a thousandth of it; order a larger epsilon",
                least=Figure(f"{SMALLEST_EPSILON:g}"),
                reserve=Figure(f"{NOISE_RESERVE:g}"),
            )
        )
    if delta < SMALLEST_DELTA:
        raise Unpriceable(Message("this part of the budget is too small to be priced; order a larger one"))
    # One double below: the nearest double to the exact share of the budget may lie above it.
    below = math.nextafter(epsilon - NOISE_RESERVE, 0.0), math.nextafter(delta / (1.0 + NOISE_RESERVE), 0.0)
    return _least_noise(events_at, *below)


def _least_noise(events_at: EventsAt, epsilon: float, delta: float) -> tuple[float, float]:
    """The same for Gaussians: PLD ε below this one."""
    # A unit that is drawn more rarely than δ costs no ε at any noise; a search would compose lists for minutes to find out. Releases
    # of all units beside it, whose noise is not searched for, change nothing of that.
    if _chance_of_being_read(_searched(events_at)) <= delta:
        raise Unpriceable(_NO_NOISE)

    if _fixed_parts(events_at) >= gaussian_mechanism.get_sigma_gaussian((1.0 - _ROOM) * epsilon, delta) ** -2:
        raise Unpriceable(_NOTHING_LEFT)

    def epsilon_at(noise_multiplier: float) -> float:
        return loss_of(events_at(noise_multiplier), delta=delta, epsilon_scale=epsilon).epsilon(delta)

    try:
        return _search(epsilon_at, epsilon, *_central_limit(events_at, epsilon, delta))
    except Unpriceable:
        if _one_part_takes_all(events_at):
            raise Unpriceable(_NOTHING_LEFT) from None
        raise


def _searched(events_at: EventsAt) -> Events:
    """Those whose noise follows from the noise multiplier; all of them where that is none."""
    some, others = events_at(1.0), events_at(2.0)
    found = tuple(one for one, other in zip(some, others, strict=False) if one != other)
    return found or some


def _fixed_parts(events_at: EventsAt) -> float:
    """The precision of Gaussian releases whose noise does not follow from the noise multiplier; 0 where all is as it is."""
    some, searched = events_at(1.0), _searched(events_at)
    if len(searched) == len(some):
        return 0.0
    return sum(event.count * event.mechanism.precision for event in some if event not in searched)


def _one_part_takes_all(events_at: EventsAt) -> bool:
    """Whether at the largest noise one event still has next to all of the precision: that of another is a fixed part of the rest."""
    sizes = [sum(event.sizes()) for event in events_at(LARGEST_NOISE)]
    return min(sizes) < _NEXT_TO_NOTHING * max(sizes)


def _chance_of_being_read(events: Events) -> float:
    """Probability that a unit is in any draw of the list: 1 - Π (1 - q)^count."""
    if any(event.sampling_probability >= 1.0 for event in events):
        return 1.0
    return -math.expm1(sum(event.count * math.log1p(-event.sampling_probability) for event in events))


def _search(epsilon_at: Callable[[float], float], target: float, guess: float, slope: float) -> tuple[float, float]:
    """Find noise whose ε lies just below `target`: secant steps on log-log axes, kept inside a shrinking bracket.

    slope: of log ε over log σ at the guess.
    """
    low, high = math.log(SMALLEST_NOISE), math.log(LARGEST_NOISE)
    aim = math.log(target * _AIM)
    point = min(max(math.log(guess), low), high)
    last: tuple[float, float] | None = None
    for _ in range(60):
        reached = epsilon_at(math.exp(point))
        if math.isnan(reached) or reached < 0.0:
            break
        if (1.0 - TOLERANCE) * target <= reached <= (1.0 - _ROOM) * target:
            return math.exp(point), reached
        low, high = (point, high) if reached > (1.0 - _ROOM) * target else (low, point)
        if high - low < 1e-9:
            break
        if 0.0 < reached < math.inf:
            here = (point, math.log(reached))
            if last is not None and here[0] != last[0]:
                slope = min(-1e-2, (here[1] - last[1]) / (here[0] - last[0]))
            last = here
            proposal = point + (aim - here[1]) / slope
        else:
            proposal = (low + high) / 2.0
        point = proposal if low < proposal < high else (low + high) / 2.0
    raise Unpriceable(_NO_NOISE)


def _central_limit(events_at: Callable[[float], Events], epsilon: float, delta: float) -> tuple[float, float]:
    """A first σ_0, and how steeply log ε falls there along log σ_0, at least like 1/σ_0.

    From the Gaussian limit of composition (Bu et al. 2020): Σ count·q²(e^{1/σ²} - 1) = 1/σ_G². Only where the search begins; the price
    itself never rests on it.
    """
    precision = gaussian_mechanism.get_sigma_gaussian(epsilon, delta) ** -2

    def limit(log_noise: float) -> float:
        return sum(chain.from_iterable(event.sizes() for event in events_at(math.exp(log_noise))))

    guess = _bisect(lambda x: limit(x) - precision, math.log(SMALLEST_NOISE), math.log(LARGEST_NOISE))
    near = (guess - _SLOPE_OVER / 2, guess + _SLOPE_OVER / 2)
    above, below = (gaussian_mechanism.get_epsilon_gaussian(limit(x) ** -0.5, delta) for x in near)
    slope = (math.log(below) - math.log(above)) / _SLOPE_OVER if 0.0 < below < above else -1.0
    return math.exp(guess), min(slope, -1.0)


def largest_epsilon(events_for: EventsFor, budget: Budget, renyi_left: int) -> float:
    """The ε of the release whose ρ(α*) just fits what is left, in nano-shares, less 1 % so that its own calibration fits too."""
    room = renyi_left / NANO * budget.renyi_capacity * (1.0 - TOLERANCE / 10.0)
    epsilon = budget.epsilon * renyi_left / NANO
    for _ in range(3):  # the noise of some releases depends on the ε that is sought; two rounds settle it
        delta = budget.account_delta * epsilon / budget.epsilon
        events_at = events_for(epsilon, delta)

        def excess(log_noise: float, events_at: EventsAt = events_at) -> float:
            events = events_at(math.exp(log_noise))
            return charged_divergence(events, budget) - room

        log_noise = _bisect(excess, math.log(SMALLEST_NOISE), math.log(LARGEST_NOISE))
        loss = loss_of(events_at(math.exp(log_noise)), delta=delta, epsilon_scale=epsilon)

        def surplus(share: float, loss: Loss = loss) -> float:
            return loss.epsilon(share * budget.account_delta) - share * budget.epsilon

        found = _bisect(surplus, 1e-6, 1.0) * budget.epsilon
        depends_on_epsilon = events_for(found, delta)(1.0) != events_at(1.0)
        epsilon = found
        if not depends_on_epsilon:
            break
    return epsilon * (1.0 - TOLERANCE)


def charged_divergence(events: Events, budget: Budget) -> float:
    """What the Rényi account is charged for a list: its divergence, and what its failures cost."""
    failures = failures_of(events)
    charge = failure_divergence(failures, budget) if failures > 0.0 else 0.0
    return renyi_divergence(events, budget.renyi_order) + charge


def _bisect(falling: Callable[[float], float], low: float, high: float) -> float:
    """Root of a falling function to one part in a million, from the side where it is not positive."""
    while high - low > 1e-6 * max(1e-3, abs(high)):
        middle = (low + high) / 2.0
        low, high = (middle, high) if falling(middle) > 0.0 else (low, middle)
    return high
