"""The price of `pategan`: Gaussian noise on all votes of a step, whatever they are; nothing in it knows a row."""

from __future__ import annotations

import math

import pytest
from dp_accounting.gaussian_mechanism import get_epsilon_gaussian, get_sigma_gaussian

from service.base.errors import InvalidOrder
from service.domain.image_schema import parse_schema
from service.methods.catalogue import check_order, parse_order
from service.methods.interface import Modality
from service.methods.pategan.order import PateganOrder
from service.methods.pategan.price import events
from service.methods.pategan.resolve import default_teachers
from service.privacy.accounting import epsilon_of
from tests.catalogue import SCHEMAS, case_of, ordered


def order_of(steps: int, votes: int) -> PateganOrder:
    return PateganOrder(method="pategan", epsilon=1.0, steps=steps, votes_per_step=votes, teachers=10)


@pytest.mark.parametrize(("epsilon", "noise", "votes"), [(1.0, 50.0, 179), (10.0, 50.0, 10_004), (1.0, 200.0, 2_874)])
def test_so_many_votes_with_so_much_noise_cost_what_they_are_known_to(epsilon: float, noise: float, votes: int) -> None:
    """One vote a step, noise s on each: s/√Q is the noise multiplier of all together."""
    listed = events(order_of(votes, 1), epsilon, 1e-5)(noise)
    assert epsilon_of(listed, delta=1e-5) == pytest.approx(epsilon, rel=0.01)
    assert get_epsilon_gaussian(noise / math.sqrt(votes), 1e-5) == pytest.approx(epsilon, rel=0.01)


def test_a_batch_costs_what_its_votes_cost_one_by_one() -> None:
    """b votes with noise σ√b each are one Gaussian of multiplier σ."""
    batch = events(order_of(20, 25), 1.0, 1e-5)(4.0)
    alone = events(order_of(500, 1), 1.0, 1e-5)(4.0 * math.sqrt(25))
    assert epsilon_of(batch, delta=1e-5) == pytest.approx(epsilon_of(alone, delta=1e-5), rel=1e-3)
    sigma = float(get_sigma_gaussian(epsilon_of(batch, delta=1e-5), 1e-5))
    assert sigma == pytest.approx(4.0 / math.sqrt(20), rel=0.01)


def test_all_steps_are_priced_and_teachers_do_not_change_the_price() -> None:
    cases = [case_of("pategan", "table", steps=30, teachers=teachers) for teachers in (2, 100)]
    assert cases[0].events == cases[1].events
    (votes,) = cases[0].events[1:]
    assert (votes.count, votes.sampling_probability, votes.private_steps) == (30, 1.0, 30)


@pytest.mark.parametrize(("units", "teachers"), [(1, 1), (29, 2), (4_000, 400), (10**7, 2_000)])
def test_teachers_by_the_number_of_units(units: int, teachers: int) -> None:
    assert default_teachers(units) == teachers


def test_no_more_teachers_than_units() -> None:
    with pytest.raises(InvalidOrder, match="there are 400; order fewer"):
        case_of("pategan", "table", teachers=401)
    with pytest.raises(InvalidOrder, match="pair_products"):
        case_of("pategan", "table", networks={"pair_products": 4})


@pytest.mark.parametrize(("method", "holds"), [("pategan", "table"), ("gswgan", "image")])
def test_an_optimizer_that_a_run_does_not_have_is_refused(method: str, holds: Modality) -> None:
    """It was taken, and Adam ran."""
    with pytest.raises(InvalidOrder, match="adam only"):
        check_order(parse_order(ordered(method, optimizer={"kind": "sgd"})), parse_schema(SCHEMAS[holds]))
