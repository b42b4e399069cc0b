"""What a promise (ε, δ) for n units says: which δ it may have, and what its readers must be told. All of it is public."""

from __future__ import annotations

from service.base.errors import InvalidInput
from service.base.messages import Figure, Listed, Message, sentences, whole

LARGE_EPSILON = 10.0
"""Above it a promise is accepted and its readers are warned."""

SUSPICIOUS_DELTA = 1e-5
SMALLEST_DEFAULT_DELTA, LARGEST_DEFAULT_DELTA = 1e-12, 1e-6
SMALLEST_DELTA = 1e-15
"""Below it prices are lost in the rounding of doubles (docs/privacy.md, Limits)."""

NIST = "NIST SP 800-226 (Guidelines for Evaluating Differential Privacy Guarantees, 2025)"
PUBLIC_ROWS = Message(
    "The rows of this dataset are declared public: orders on other datasets may train on them without a charge. Orders on this "
    "dataset are charged as on any other, but their ε protects no unit."
)
MEANING_OF_TEN = Message(
    "At ε = 10 the odds on whether somebody is in the data may move from 1 : 1 to 22,026 : 1, which is a right guess in "
    "99.995 % of cases: for the most exposed unit that promises next to nothing."
)


def default_delta(units: int) -> float:
    """min(1e-6, 1/n²), at least 1e-12, and never more than may be asked for."""
    return min(largest_delta(units), max(SMALLEST_DEFAULT_DELTA, min(LARGEST_DEFAULT_DELTA, 1.0 / units**2)))


def largest_delta(units: int) -> float:
    """1/(10 n): at 1/n, to publish one unit as it is would keep the promise."""
    return 1.0 / (10 * units)


def choose_delta(asked: float | None, units: int) -> float:
    """What was asked for, or the default; `InvalidInput` where it is too large for n or too small for prices."""
    if asked is None:
        return default_delta(units)
    if asked > largest_delta(units):
        raise InvalidInput(
            Message(
                "budget: delta must be at most 1/(10 units), which is %(largest)s: at 1/units, publishing one random unit as it is would keep "
                "the promise. Leave delta out for the default, %(default)s",
                largest=_figure(largest_delta(units)),
                default=_figure(default_delta(units)),
            ),
            where="budget.delta",
        )
    if asked < SMALLEST_DELTA:
        raise InvalidInput(
            Message(
                "budget: delta must be at least %(least)s: at a smaller one prices cannot be computed in double precision. Leave delta out "
                "for the default, %(default)s",
                least=_figure(SMALLEST_DELTA),
                default=_figure(default_delta(units)),
            ),
            where="budget.delta",
        )
    return asked


def check_epsilon(epsilon: float, largest: float) -> None:
    """Refuse a budget above the operator's limit, before a row is read."""
    if epsilon > largest:
        raise InvalidInput(
            sentences(
                Message("budget: epsilon must be at most %(largest)s here.", largest=_figure(largest)),
                MEANING_OF_TEN,
                Message("The operator of this service can raise the limit with the setting IMPRIMATUR_MAX_EPSILON"),
            ),
            where="budget.epsilon",
        )


def statement_warnings(
    *, epsilon: float, delta: float, units: int, release_epsilon: float | None = None, rows_are_public: bool = False
) -> list[str]:
    """What must be said beside a dataset's promise, and beside the ε of one release of it. Sentences, for people."""
    warnings: list[str] = [PUBLIC_ROWS] if rows_are_public else []
    if epsilon > LARGE_EPSILON:
        warnings.append(
            sentences(
                Message(
                    "ε = %(epsilon)s for everything that is released from this dataset is above 10.",
                    epsilon=Figure(f"{epsilon:g}"),
                ),
                MEANING_OF_TEN,
            )
        )
    if release_epsilon is not None and release_epsilon > LARGE_EPSILON:
        alone = Message("ε = %(epsilon)s for this release alone is above 10.", epsilon=Figure(f"{release_epsilon:g}"))
        warnings.append(sentences(alone, MEANING_OF_TEN))
    if delta > default_delta(units):
        warnings.append(_large_delta(delta, units))
    elif delta * units**2 > 1.0 and units > LARGEST_DEFAULT_DELTA**-0.5:
        warnings.append(
            Message(
                "δ = %(delta)s is the least that is chosen by default, and above 1/n² for %(units)s units, which "
                "%(source)s prefers.",
                delta=_figure(delta),
                units=whole(units),
                source=NIST,
            )
        )
    if delta < SMALLEST_DEFAULT_DELTA:
        warnings.append(
            Message(
                "δ = %(delta)s is below %(least)s. Prices of small parts of such a budget, and of trained generators, may be lost in the "
                "rounding of doubles; their orders are refused as unpriceable.",
                delta=_figure(delta),
                least=_figure(SMALLEST_DEFAULT_DELTA),
            )
        )
    return warnings


def _large_delta(delta: float, units: int) -> str:
    said = Message(
        "δ = %(delta)s is above the default for %(units)s units, %(default)s. A mechanism that publishes each unit as it is with "
        "probability δ would keep this promise, and would publish one or more of them with a probability of up to %(probability)s.",
        delta=_figure(delta),
        units=whole(units),
        default=_figure(default_delta(units)),
        probability=Figure(f"{units * delta:.2g}"),
    )
    advice = []
    if delta > SUSPICIOUS_DELTA:
        advice.append(Message("calls a δ above %(limit)s suspicious", limit=_figure(SUSPICIOUS_DELTA)))
    if delta > 1.0 / units**2:
        advice.append(Message("prefers one of at most 1/n², here %(limit)s", limit=_figure(1.0 / units**2)))
    if not advice:
        return said
    return sentences(said, Message("%(source)s %(advice)s.", source=NIST, advice=Listed(Message(" and "), advice)))


def _figure(value: float) -> Figure:
    return Figure(f"{value:.3g}")
