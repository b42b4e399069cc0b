"""Noise decay: the paper's three formulas, piecewise constant, fixed before training."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.privacy.schedules import (
    MAX_LEVELS,
    ConstantNoise,
    ExponentialDecay,
    PeriodicDecay,
    PolynomialDecay,
    noise_levels,
)

DECAYS = st.one_of(
    st.just(ConstantNoise()),
    st.builds(ExponentialDecay, rate=st.floats(0.0, 3.0), warm_up_epochs=st.integers(0, 20)),
    st.builds(PeriodicDecay, factor=st.floats(0.1, 1.0), period_epochs=st.integers(1, 50)),
    st.builds(PolynomialDecay, end_ratio=st.floats(0.05, 1.0), power=st.floats(0.1, 4.0)),
)


@settings(deadline=None)
@given(DECAYS, st.integers(1, 5_000), st.floats(1e-4, 0.05))
def test_every_step_has_one_level_and_noise_never_grows(decay, steps, q):
    levels = noise_levels(decay, steps=steps, sampling_probability=q)
    assert sum(count for _, count in levels) == steps
    assert 1 <= len(levels) <= MAX_LEVELS
    values = [level for level, _ in levels]
    assert values[0] == 1.0
    assert values == sorted(values, reverse=True)


def test_exponential_decay_follows_its_formula_epoch_by_epoch():
    levels = noise_levels(ExponentialDecay(rate=0.1), steps=100, sampling_probability=0.1)
    assert [level for level, _ in levels] == pytest.approx([math.exp(-0.1 * epoch) for epoch in range(10)])
    assert [count for _, count in levels] == [10] * 10


def test_periodic_decay_drops_at_each_period():
    levels = noise_levels(PeriodicDecay(factor=0.5, period_epochs=3), steps=90, sampling_probability=0.1)
    assert levels == ((1.0, 30), (0.5, 30), (0.25, 30))


def test_polynomial_decay_ends_at_its_end():
    levels = noise_levels(
        PolynomialDecay(end_ratio=0.2, power=2.0, period_epochs=5), steps=100, sampling_probability=0.1
    )
    assert levels[-1][0] == pytest.approx(0.2)
    assert levels[1][0] == pytest.approx(0.8 * 0.8**2 + 0.2)


def test_warm_up_holds_the_first_level():
    levels = noise_levels(ExponentialDecay(rate=0.1, warm_up_epochs=4), steps=100, sampling_probability=0.1)
    assert levels[0] == (1.0, 50)


def test_a_long_run_stays_on_its_floor():
    levels = noise_levels(ExponentialDecay(rate=1.0, floor=0.2), steps=1_000, sampling_probability=0.1)
    assert levels[-1][0] == 0.2
    assert levels[0][0] == 1.0
