"""What a promise (ε, δ) for n units says: which δ it may have, and what its readers must be told. All of it is public."""

from __future__ import annotations

from service.base.errors import InvalidInput

LARGE_EPSILON = 10.0
"""Above it a promise is accepted and its readers are warned."""

SUSPICIOUS_DELTA = 1e-5
SMALLEST_DEFAULT_DELTA, LARGEST_DEFAULT_DELTA = 1e-12, 1e-6
SMALLEST_DELTA = 1e-15
"""Below it prices are lost in the rounding of doubles (docs/privacy.md, Limits)."""

NIST = "NIST SP 800-226 (Guidelines for Evaluating Differential Privacy Guarantees, 2025)"
PUBLIC_ROWS = (
    "The rows of this dataset are declared public: orders on other datasets may train on them without a charge. Orders on this "
    "dataset are charged as on any other, but their ε protects no unit."
)
MEANING_OF_TEN = (
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
            f"budget: delta must be at most 1/(10 units), which is {largest_delta(units):.3g}: at 1/units, publishing one random unit "
            f"as it is would keep the promise. Leave delta out for the default, {default_delta(units):.3g}",
            where="budget.delta",
        )
    if asked < SMALLEST_DELTA:
        raise InvalidInput(
            f"budget: delta must be at least {SMALLEST_DELTA:g}: at a smaller one prices cannot be computed in double precision. "
            f"Leave delta out for the default, {default_delta(units):.3g}",
            where="budget.delta",
        )
    return asked


def check_epsilon(epsilon: float, largest: float) -> None:
    """Refuse a budget above the operator's limit, before a row is read."""
    if epsilon > largest:
        raise InvalidInput(
            f"budget: epsilon must be at most {largest:g} here. {MEANING_OF_TEN} The operator of this service can raise the limit with "
            "the setting IMPRIMATUR_MAX_EPSILON",
            where="budget.epsilon",
        )


def statement_warnings(
    *, epsilon: float, delta: float, units: int, release_epsilon: float | None = None, rows_are_public: bool = False
) -> list[str]:
    """What must be said beside a dataset's promise, and beside the ε of one release of it. Sentences, for people."""
    warnings = [PUBLIC_ROWS] if rows_are_public else []
    if epsilon > LARGE_EPSILON:
        warnings.append(
            f"ε = {epsilon:g} for everything that is released from this dataset is above 10. {MEANING_OF_TEN}"
        )
    if release_epsilon is not None and release_epsilon > LARGE_EPSILON:
        warnings.append(f"ε = {release_epsilon:g} for this release alone is above 10. {MEANING_OF_TEN}")
    if delta > default_delta(units):
        warnings.append(_large_delta(delta, units))
    elif delta * units**2 > 1.0 and units > LARGEST_DEFAULT_DELTA**-0.5:
        warnings.append(
            f"δ = {delta:.3g} is the least that is chosen by default, and above 1/n² for {units:,} units, which {NIST} prefers."
        )
    if delta < SMALLEST_DEFAULT_DELTA:
        warnings.append(
            f"δ = {delta:.3g} is below {SMALLEST_DEFAULT_DELTA:g}. Prices of small parts of such a budget, and of trained generators, "
            "may be lost in the rounding of doubles; their orders are refused as unpriceable."
        )
    return warnings


def _large_delta(delta: float, units: int) -> str:
    said = (
        f"δ = {delta:.3g} is above the default for {units:,} units, {default_delta(units):.3g}. A mechanism that publishes each unit as it "
        f"is with probability δ would keep this promise, and would publish one or more of them with a probability of up to {units * delta:.2g}."
    )
    advice = [f"calls a δ above {SUSPICIOUS_DELTA:g} suspicious"] if delta > SUSPICIOUS_DELTA else []
    if delta > 1.0 / units**2:
        advice.append(f"prefers one of at most 1/n², here {1.0 / units**2:.3g}")
    return f"{said} {NIST} {' and '.join(advice)}." if advice else said
