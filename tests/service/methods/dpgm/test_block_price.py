"""Prices of `dpgm` and `dpsyn`: one list whatever the number of clusters or classes, and refusals before it."""

from __future__ import annotations

import math
from typing import Any

import pytest

from service.base.errors import InvalidOrder
from service.domain.shapes import ImageShape, TableShape
from service.methods.catalogue import CATALOGUE, parse_order
from service.methods.dpgm.order import MOST_ROUNDS
from service.methods.dpgm.price import CLUSTER_COUNTS, CLUSTER_MEANS
from service.methods.dpsyn.price import LATENT_MOMENTS
from service.methods.label_counts import LABEL_COUNTS
from service.privacy.events import SAMPLED_STEPS, GaussianEvent, SampledStepEvent
from tests.orders import BUDGET, price_order, resolve_order

TABLE = TableShape({"colour": 3, "size": 8, "weight": 12}, target="colour")


def ordered(method: str, **knobs: Any) -> Any:
    return parse_order({"method": method, "epsilon": 2.0, "steps": 7, **knobs})


def listed(order: Any) -> list[tuple[str, int]]:
    events = price_order(order, units=5_000, budget=BUDGET).events
    purposes: list[tuple[str, int]] = []
    for event in events:
        if purposes and purposes[-1][0] == event.purpose:
            purposes[-1] = event.purpose, purposes[-1][1] + event.count
        else:
            purposes.append((event.purpose, event.count))
    return purposes


def test_each_round_and_each_step_is_on_the_list() -> None:
    found = listed(ordered("dpgm", clusters=4, cluster_rounds=3))
    assert found == [(CLUSTER_MEANS, 3), (CLUSTER_COUNTS, 1), (SAMPLED_STEPS, 7)]
    assert listed(ordered("dpgm", clusters=1)) == [(CLUSTER_COUNTS, 1), (SAMPLED_STEPS, 7)]
    found = listed(ordered("dpsyn", em_rounds=5))
    assert found == [(LABEL_COUNTS, 1), (SAMPLED_STEPS, 7), (LATENT_MOMENTS, 5)]


@pytest.mark.parametrize(("method", "knob"), [("dpgm", "cluster_rounds"), ("dpsyn", "em_rounds")])
def test_as_many_rounds_as_the_knob_allows_can_be_paid(method: str, knob: str) -> None:
    """32 and 64 were allowed, and refused at every price without a word on which knob."""
    rounds = CLUSTER_MEANS if method == "dpgm" else LATENT_MOMENTS
    assert (rounds, MOST_ROUNDS) in listed(ordered(method, **{knob: MOST_ROUNDS}))
    with pytest.raises(InvalidOrder, match=f"{knob}: Input should be less than or equal to {MOST_ROUNDS}"):
        ordered(method, **{knob: MOST_ROUNDS + 1})


def test_clusters_and_gaussians_are_free() -> None:
    few, many = (price_order(ordered("dpgm", clusters=k), units=5_000, budget=BUDGET) for k in (2, 64))
    assert few.events == many.events
    few, many = (price_order(ordered("dpsyn", gaussians=k), units=5_000, budget=BUDGET) for k in (1, 32))
    assert few.events == many.events


@pytest.mark.parametrize(
    ("method", "purpose", "share", "rounds"),
    [("dpgm", CLUSTER_MEANS, 0.1, 5), ("dpsyn", LATENT_MOMENTS, 0.3, 8), ("dpgm", CLUSTER_COUNTS, 0.02, 1)],
)
def test_what_is_no_step_has_its_share_of_the_precision(method: str, purpose: str, share: float, rounds: int) -> None:
    order = resolve_order(ordered(method), units=5_000, shape=TABLE)
    events = CATALOGUE[method].events(order, 2.0, 1e-6)(3.0)
    own = [event for event in events if event.purpose == purpose]
    assert len(own) == rounds
    whole = [event.noise_multiplier * math.sqrt(share / rounds) for event in own if isinstance(event, GaussianEvent)]
    labels = next(event for event in events if event.purpose in {LABEL_COUNTS, CLUSTER_COUNTS})
    assert isinstance(labels, GaussianEvent)
    assert whole == pytest.approx([labels.noise_multiplier * math.sqrt(0.02)] * rounds)
    (steps,) = [event for event in events if isinstance(event, SampledStepEvent)]
    assert (steps.gradient_noise_multiplier, steps.count) == (3.0, 7)
    assert steps.sampling_probability == pytest.approx(512 / 5_000)


@pytest.mark.parametrize("method", ["dpgm", "dpsyn"])
def test_what_these_networks_cannot_make_is_refused(method: str) -> None:
    with pytest.raises(InvalidOrder, match="images of at most"):
        resolve_order(ordered(method), units=5_000, shape=ImageShape(64, 64, 1, 10))
    with pytest.raises(InvalidOrder, match="at most 64 values"):
        resolve_order(ordered(method, condition_on="town"), units=5_000, shape=TableShape({"town": 65, "size": 3}))
    with pytest.raises(InvalidOrder, match="a column beside the condition"):
        resolve_order(ordered(method), units=5_000, shape=TableShape({"colour": 3}, target="colour"))
    assert resolve_order(ordered(method), units=5_000, shape=TABLE).condition_on == "colour"
    assert resolve_order(ordered(method, purpose="tables"), units=5_000, shape=TABLE).condition_on is None
