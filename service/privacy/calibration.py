"""From an order to its price: the least noise whose PLD ε stays at or below the requested one, within 1 %."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from service.errors import InvalidOrder, Unpriceable
from service.lazy import lazy
from service.privacy.accounting import epsilon_of, loss_of, renyi_divergence
from service.privacy.caching import computed_once
from service.privacy.choices import resolve_order
from service.privacy.events import (
    MARGINALS,
    ONE_WAY_TABLES,
    PAIR_SCORES,
    SHARED_VALUES,
    Event,
    Events,
    GaussianEvent,
    SampledStepEvent,
    events_to_json,
)
from service.privacy.filters import NANO, Budget, Shares, exact, renyi_cost, simple_cost
from service.privacy.mixture import mixture_events, mixture_of
from service.privacy.orders import (
    SMALLEST_SHARE,
    AdaptiveThresholds,
    AutoOrder,
    IdpganOrder,
    MarginalsOrder,
    MixtureOrder,
    Order,
    TablesFirst,
)
from service.privacy.schedules import noise_levels

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

_SLOPE_OVER = 0.1
"""Over how much of log σ the search's first slope is taken."""

SMALLEST_EPSILON, SMALLEST_DELTA = 1e-5, 1e-100
"""Below the first NOISE_RESERVE would be more than a thousandth; below the second the search for a noise level meets the ends of floating point."""
LARGEST_COST = 2**62
"""Nano-shares; the ledger counts in 64 bits."""
_UNPRICED = {"epsilon": None, "share": None, "chosen_because": None}
"""What the noise of a list does not depend on, ε apart: orders that differ in it alone share a cached price."""

NOISE_RESERVE = 1e-8
"""Of ε, and of δ relatively: what discrete noise may cost beyond the Gaussian that the price is of (docs/privacy.md, Discrete noise)."""

MOST_RELEASES = 20
"""Of whole numbers, which cost 4.2e-10 of that at most each (`workers.mechanism.noise.LEAST_ROUNDING_VARIANCE`)."""

_NO_NOISE = "no amount of noise that can be drawn gives this order the requested epsilon; order more of it, or of a trained generator other steps or sampling_probability"

SMALLEST_NOISE = 1e-2
LARGEST_NOISE = 1e6


@dataclass(frozen=True)
class Price:
    """What one release costs: its own (ε, δ) by PLD, its shares of both accounts, and the list it will execute."""

    epsilon: float
    delta: float
    shares: Shares
    events: Events
    pld_epsilon: float
    renyi_divergence: float

    @cached_property
    def as_json(self) -> dict[str, Any]:
        """The document kept with the release. Prices are cached, and a long list of events is slow to write: once."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "pld_epsilon": self.pld_epsilon,
            "renyi_divergence": self.renyi_divergence,
            "shares": {"simple": self.shares.simple, "renyi": self.shares.renyi},
            "events": events_to_json(self.events),
        }

    @cached_property
    def json_text(self) -> str:
        return json.dumps(self.as_json)


def price_order(order: Order | AutoOrder, *, units: int, budget: Budget) -> Price:
    """Price an order from the order, n and the dataset's budget alone; reads no private row.

    A release with share s of the budget is calibrated to be (s·ε, s·δ/2)-DP.
    """
    return _price(resolve_order(order, units=units), budget)


@computed_once(capacity=4_096)
def _price(order: Order, budget: Budget) -> Price:
    share = _requested_share(order, budget)
    epsilon = float(share * exact(budget.epsilon))
    delta = float(share * exact(budget.delta) / 2)
    if epsilon < SMALLEST_EPSILON:
        raise Unpriceable(
            f"an epsilon below {SMALLEST_EPSILON:g} cannot be kept: what discrete noise costs beyond a Gaussian ({NOISE_RESERVE:g}) would be"
            " more than a thousandth of it; ask for more"
        )
    if delta < SMALLEST_DELTA:
        raise Unpriceable("so little of the budget cannot be priced; ask for more")
    # One double below: the nearest double to the exact share of the budget may lie above it.
    below = math.nextafter(epsilon - NOISE_RESERVE, 0.0), math.nextafter(delta / (1.0 + NOISE_RESERVE), 0.0)
    events, of_gaussians = _calibrate(order.model_copy(update=_UNPRICED), *below)
    if _releases_of_whole_numbers(events) > MOST_RELEASES:
        raise Unpriceable(
            f"an order may release whole numbers {MOST_RELEASES} times at most; what is reserved for their noise covers no more"
        )
    pld_epsilon = of_gaussians + NOISE_RESERVE
    divergence = renyi_divergence(events, budget.renyi_order)
    shares = Shares(simple=simple_cost(share), renyi=renyi_cost(divergence, budget))
    if max(shares.simple, shares.renyi) > LARGEST_COST:
        raise Unpriceable("this order costs more than any budget holds")
    return Price(epsilon, delta, shares, events, pld_epsilon, divergence)


def is_paid(events: Events, shares: Shares, budget: Budget, *, epsilon_scale: float) -> bool:
    """Whether a list costs no more than these shares of both accounts; computed from the list itself.

    `epsilon_scale`: the ε it was calibrated for. It sets the width of the grid, which is from above at any width.
    """
    share = Fraction(shares.simple, NANO)
    epsilon, delta = float(share * exact(budget.epsilon)), float(share * exact(budget.delta) / 2)
    if not NOISE_RESERVE < epsilon_scale < math.inf or epsilon < SMALLEST_EPSILON or delta < SMALLEST_DELTA:
        return False
    if _releases_of_whole_numbers(events) > MOST_RELEASES:
        return False
    scale = math.nextafter(epsilon_scale - NOISE_RESERVE, 0.0)
    of_gaussians = epsilon_of(events, delta=delta / (1.0 + NOISE_RESERVE), epsilon_scale=scale)
    return (
        of_gaussians + NOISE_RESERVE <= epsilon
        and renyi_cost(renyi_divergence(events, budget.renyi_order), budget) <= shares.renyi
    )


def _releases_of_whole_numbers(events: Events) -> int:
    """The events'; the histograms of all steps together are noisy enough to count as one."""
    return sum(event.whole_number_releases for event in events) + 1


def largest_epsilon(
    order: Order | AutoOrder, *, units: int, budget: Budget, simple_left: int, renyi_left: int
) -> float:
    """Largest ε (to about 1 %) that an order with these knobs may ask for and still fit one of the accounts."""
    by_simple = float(Fraction(max(0, simple_left), NANO) * exact(budget.epsilon))
    if renyi_left <= 0 or by_simple >= budget.epsilon:
        return by_simple
    resolved = resolve_order(order, units=units).model_copy(update=_UNPRICED)
    return max(by_simple, _largest_epsilon_by_renyi(resolved, budget, renyi_left))


def idpgan_events(
    order: IdpganOrder, *, noise_multiplier: float, label_noise_multiplier: float, start: Events = ()
) -> Events:
    """The list of an IDPGAN order whose first step has gradient noise multiplier σ_0 (docs/privacy.md, One private step).

    start: the releases of what it begins with, tables or a mixture, which say how frequent labels are too.
    """
    if order.sampling_probability is None:
        raise InvalidOrder("sampling_probability must be resolved before pricing")
    events: list[Event] = list(start)
    if order.condition_on is not None and not start:
        events.append(GaussianEvent("label_counts", label_noise_multiplier))
    levels = noise_levels(order.noise_decay, steps=order.steps, sampling_probability=order.sampling_probability)
    thresholds = order.thresholds
    step = 0
    for level, count in levels:
        sigma = noise_multiplier * level
        end = step + count
        while step < end:
            length, with_histogram = _run_length(thresholds, step, end)
            histogram = sigma * thresholds.noise_ratio if with_histogram else None  # type: ignore[union-attr]
            events.append(SampledStepEvent(order.sampling_probability, sigma, histogram, length))
            step += length
    return tuple(events)


def marginals_events(order: MarginalsOrder, *, noise_multiplier: float) -> Events:
    """Gaussian releases from all units that together are one of this noise multiplier: Σ 1/σ_i² = 1/σ².

    Each is joint over all its tables, whose noise is shared out by the worker; so the list depends on neither columns
    nor n (docs/privacy.md, Lemma 4). One where all pairs are measured, two where their cells are grouped by counts or where
    single columns alone are measured within a condition; three where scores say which pairs are measured; one more where values are
    looked for that many rows share.
    """
    if order.pairs == "auto":
        raise InvalidOrder("pairs must be resolved before pricing")
    shares = _shares_before_pairs(order)
    values = order.values_precision_share or 0.0
    shares[MARGINALS] = 1.0 - sum(shares.values()) - values
    if shares[MARGINALS] < SMALLEST_SHARE:
        raise InvalidOrder("the precision shares leave nothing for the tables that all of them are for")
    if values > 0.0:
        shares[SHARED_VALUES] = values
    return tuple(GaussianEvent(purpose, noise_multiplier / math.sqrt(share)) for purpose, share in shares.items())


def _shares_before_pairs(order: MarginalsOrder) -> dict[str, float]:
    """Of the precision, by purpose: what is released before it is known what else is."""
    if not order.looks_at_single_columns_first:
        return {}
    shares = {ONE_WAY_TABLES: order.grouping_precision_share}
    if order.pairs == "none" or (order.pairs == "chosen" and order.pairs_within == "table"):
        shares = {ONE_WAY_TABLES: order.all_rows_precision_share}
    elif order.pairs == "chosen":
        shares = {ONE_WAY_TABLES: order.selection_precision_share}
    if order.pairs == "chosen":
        shares[PAIR_SCORES] = order.selection_precision_share
    elif order.pairs == "few_or_all":
        shares[PAIR_SCORES] = order.few_precision_share
    return shares


def _run_length(thresholds: Any, step: int, end: int) -> tuple[int, bool]:
    """How many steps from `step` look alike, and whether they carry a histogram (at every multiple of every_steps)."""
    if not isinstance(thresholds, AdaptiveThresholds):
        return end - step, False
    every = thresholds.every_steps
    if every == 1:
        return end - step, True
    if step % every == 0:
        return 1, True
    return min(end - step, every - step % every), False


def _events_by_noise(order: Order, epsilon: float, delta: float) -> Callable[[float], Events]:
    """σ -> the list of an order for a release of this (ε, δ)."""
    if isinstance(order, MixtureOrder):
        mixture = order
        return lambda noise_multiplier: mixture_events(mixture, noise_multiplier=noise_multiplier)
    if isinstance(order, MarginalsOrder):
        marginals = order
        return lambda noise_multiplier: marginals_events(marginals, noise_multiplier=noise_multiplier)
    idpgan, label_noise, start = order, _label_noise(order, epsilon, delta), _start_events(order, epsilon, delta)
    return lambda noise_multiplier: idpgan_events(
        idpgan, noise_multiplier=noise_multiplier, label_noise_multiplier=label_noise, start=start
    )


def _requested_share(order: Order | AutoOrder, budget: Budget) -> Fraction:
    if order.epsilon is not None:
        share = exact(order.epsilon) / exact(budget.epsilon)
    elif isinstance(order.share, float):
        share = exact(order.share)
    else:
        raise InvalidOrder("share 'rest' must be resolved against the ledger before pricing")
    return share


@computed_once(capacity=4_096)
def _calibrate(order: Order, epsilon: float, delta: float) -> tuple[Events, float]:
    """Least σ_0 with PLD ε in [(1 - TOLERANCE)·ε, ε]; returns the list and its PLD ε. Cached: prices never change."""
    events_at = _events_by_noise(order, epsilon, delta)

    # Whoever is drawn more rarely than δ costs no ε at any noise; a search would compose lists for minutes to find out.
    if _chance_of_being_read(events_at(1.0)) <= delta:
        raise Unpriceable(_NO_NOISE)

    def epsilon_at(noise_multiplier: float) -> float:
        return loss_of(events_at(noise_multiplier), delta=delta, epsilon_scale=epsilon).epsilon(delta)

    noise_multiplier, reached = _search(epsilon_at, epsilon, *_central_limit(events_at, epsilon, delta))
    return events_at(noise_multiplier), reached


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
        return sum(event.count * event.mechanism.size for event in events_at(math.exp(log_noise)))

    guess = _bisect(lambda x: limit(x) - precision, math.log(SMALLEST_NOISE), math.log(LARGEST_NOISE))
    near = (guess - _SLOPE_OVER / 2, guess + _SLOPE_OVER / 2)
    above, below = (gaussian_mechanism.get_epsilon_gaussian(limit(x) ** -0.5, delta) for x in near)
    slope = (math.log(below) - math.log(above)) / _SLOPE_OVER if 0.0 < below < above else -1.0
    return math.exp(guess), min(slope, -1.0)


def _label_noise(order: IdpganOrder, epsilon: float, delta: float) -> float:
    """σ of the label counts: a fixed part of the precision 1/σ² that one Gaussian release of this (ε, δ) would have."""
    return float(gaussian_mechanism.get_sigma_gaussian(epsilon, delta) / math.sqrt(order.label_precision_share))


def _start_events(order: IdpganOrder, epsilon: float, delta: float) -> Events:
    """What is bought before the first step, tables or a mixture: a fixed part of that precision, like the labels'."""
    precision = gaussian_mechanism.get_sigma_gaussian(epsilon, delta) ** -2
    if order.mixture_first is not None:
        noise_multiplier = (precision * order.mixture_first.precision_share) ** -0.5
        return mixture_events(mixture_of(order.mixture_first), noise_multiplier=float(noise_multiplier))
    if order.tables_order is not None and isinstance(order.warm_start, TablesFirst):
        noise_multiplier = (precision * order.warm_start.precision_share) ** -0.5
        return marginals_events(order.tables_order, noise_multiplier=float(noise_multiplier))
    return ()


@computed_once(capacity=4_096)
def _largest_epsilon_by_renyi(order: Order, budget: Budget, renyi_left: int) -> float:
    """The ε of the release whose ρ(α*) just fits, less 1 % so that its own calibration surely fits too."""
    room = renyi_left / NANO * budget.renyi_capacity * (1.0 - TOLERANCE / 10.0)
    epsilon = budget.epsilon * renyi_left / NANO
    for _ in range(3):  # the noise of label counts and tables depends on the ε that is sought; two rounds settle it
        delta = budget.account_delta * epsilon / budget.epsilon
        events_at = _events_by_noise(order, epsilon, delta)

        def excess(log_noise: float, events_at: Callable[[float], Events] = events_at) -> float:
            return renyi_divergence(events_at(math.exp(log_noise)), budget.renyi_order) - room

        log_noise = _bisect(excess, math.log(SMALLEST_NOISE), math.log(LARGEST_NOISE))
        loss = loss_of(events_at(math.exp(log_noise)), delta=delta, epsilon_scale=epsilon)

        def surplus(share: float, loss: Loss = loss) -> float:
            return loss.epsilon(share * budget.account_delta) - share * budget.epsilon

        epsilon = _bisect(surplus, 1e-6, 1.0) * budget.epsilon
        buys_first = isinstance(order, IdpganOrder) and (
            order.tables_order or order.mixture_first or order.condition_on
        )
        if not buys_first:
            break
    return epsilon * (1.0 - TOLERANCE)


def _bisect(falling: Callable[[float], float], low: float, high: float) -> float:
    """Root of a falling function to one part in a million, from the side where it is not positive."""
    while high - low > 1e-6 * max(1e-3, abs(high)):
        middle = (low + high) / 2.0
        low, high = (middle, high) if falling(middle) > 0.0 else (low, middle)
    return high
