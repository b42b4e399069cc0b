"""Which δ a budget may have, which ε needs the operator, and what is said beside a promise: from ε, δ and n alone."""

from __future__ import annotations

import math

import pytest

from service.base.errors import InvalidInput
from service.privacy.statements import (
    MEANING_OF_TEN,
    check_epsilon,
    choose_delta,
    default_delta,
    largest_delta,
    statement_warnings,
)


@pytest.mark.parametrize(
    ("units", "delta"),
    [
        (1, 1e-6),
        (200, 1e-6),
        (1_000, 1e-6),
        (1_001, 1 / 1_001**2),
        (32_561, 1 / 32_561**2),
        (1_000_000, 1e-12),
        (10**8, 1e-12),
    ],
)
def test_the_default_is_the_smaller_of_a_millionth_and_one_over_n_squared(units, delta):
    assert default_delta(units) == pytest.approx(delta, rel=1e-12)
    assert choose_delta(None, units) == default_delta(units)


def test_the_default_may_always_be_asked_for_and_is_warned_of_above_a_million_units_alone():
    for units in (*range(1, 2_000), *(10**power + more for power in range(3, 14) for more in (-1, 0, 1))):
        delta = default_delta(units)
        assert delta <= largest_delta(units)
        assert choose_delta(delta, units) == delta
        warnings = statement_warnings(epsilon=1.0, delta=delta, units=units)
        assert delta < 1e-12 or len(warnings) == (units > 10**6), "the floor of the default is above 1/n² there"


@pytest.mark.parametrize("units", [1, 3, 7, 30, 200, 32_561, 10**7])
def test_delta_is_accepted_up_to_one_over_ten_n_and_down_to_what_has_prices(units):
    largest = 1 / (10 * units)
    assert choose_delta(largest, units) == largest
    with pytest.raises(InvalidInput, match=r"at most 1/\(10 units\)"):
        choose_delta(math.nextafter(largest, 1.0), units)
    assert choose_delta(1e-15, units) == 1e-15
    with pytest.raises(InvalidInput, match="at least 1e-15"):
        choose_delta(math.nextafter(1e-15, 0.0), units)


def test_an_epsilon_above_the_limit_is_refused_with_what_the_operator_can_set_and_why():
    check_epsilon(20.0, 20.0)
    with pytest.raises(InvalidInput) as refused:
        check_epsilon(math.nextafter(20.0, 21.0), 20.0)
    assert "at most 20" in refused.value.detail
    assert "IMPRIMATUR_MAX_EPSILON" in refused.value.detail
    assert MEANING_OF_TEN in refused.value.detail
    check_epsilon(30.0, 30.0)


def test_what_epsilon_ten_means_is_what_its_formula_gives():
    odds = math.exp(10.0)
    assert f"{math.floor(odds):,} : 1" in MEANING_OF_TEN
    assert f"{100 * odds / (1 + odds):.3f} %" in MEANING_OF_TEN


def test_above_ten_the_dataset_and_the_release_are_each_warned_of():
    promise = {"delta": 1e-6, "units": 500}
    assert statement_warnings(epsilon=10.0, release_epsilon=10.0, **promise) == []
    (of_all,) = statement_warnings(epsilon=10.5, release_epsilon=10.0, **promise)
    assert of_all.startswith("ε = 10.5 for everything")
    assert MEANING_OF_TEN in of_all
    _, of_this = statement_warnings(epsilon=20.0, release_epsilon=12.0, **promise)
    assert of_this.startswith("ε = 12 for this release alone")
    assert MEANING_OF_TEN in of_this


def test_a_delta_above_the_default_is_warned_of_with_what_it_is_above():
    def said(delta: float, units: int) -> str:
        (warning,) = statement_warnings(epsilon=1.0, delta=delta, units=units)
        return warning

    both = said(1 / 2_000, 200)
    assert "above the default for 200 units, 1e-06" in both
    assert "probability of up to 0.1." in both
    assert "calls a δ above 1e-05 suspicious and prefers one of at most 1/n², here 2.5e-05" in both
    squared = said(3e-6, 32_561)
    assert "prefers one of at most 1/n², here 9.43e-10" in squared
    assert "suspicious" not in squared
    suspicious = said(2e-5, 200)  # at most 1/n²
    assert "suspicious" in suspicious
    assert "1/n²" not in suspicious
    neither = said(5e-6, 200)
    assert "above the default" in neither
    assert "NIST" not in neither


def test_a_delta_whose_prices_may_be_lost_is_warned_of():
    (warning,) = statement_warnings(epsilon=1.0, delta=1e-14, units=200)
    assert "below 1e-12" in warning
    assert "unpriceable" in warning
