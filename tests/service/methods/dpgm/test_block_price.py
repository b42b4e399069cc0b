"""Prices of `dpgm` and `dpsyn`: one list whatever the number of clusters or classes, and refusals before it."""

from __future__ import annotations

import math
from typing import Any

import pytest

from service.base.errors import InvalidOrder
from service.domain.image_schema import parse_schema
from service.domain.shapes import ImageShape, TableShape
from service.methods.catalogue import CATALOGUE, check_order, parse_order
from service.methods.dpgm.order import MOST_ROUNDS
from service.methods.dpgm.price import CLUSTER_COUNTS, CLUSTER_MEANS
from service.methods.dpsyn.price import LATENT_MOMENTS
from service.methods.label_counts import LABEL_COUNTS
from service.methods.report import REPORT
from service.privacy.events import SAMPLED_STEPS, GaussianEvent, SampledStepEvent
from tests.orders import BUDGET, price_order, resolve_order

FIELDS = [{"name": "colour", "type": "string", "constraints": {"enum": ["red", "green"]}}]
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


@pytest.mark.parametrize("with_report", [False, True])
@pytest.mark.parametrize(
    ("method", "knob", "purpose"), [("dpgm", "cluster_rounds", CLUSTER_MEANS), ("dpsyn", "em_rounds", LATENT_MOMENTS)]
)
def test_as_many_rounds_as_the_order_allows_can_be_paid(
    method: str, knob: str, purpose: str, with_report: bool
) -> None:
    """More were allowed, and refused at every price without a word on which knob; a report is a release of its own."""
    report = {"report": {"share": 0.05}} if with_report else {}
    most = MOST_ROUNDS - with_report
    schema = parse_schema({"fields": FIELDS})
    fits = ordered(method, **report, **{knob: most})
    check_order(fits, schema)
    assert (purpose, most) in listed(fits)
    with pytest.raises(InvalidOrder, match=f"{knob}: .*{most}") as refused:
        check_order(ordered(method, **report, **{knob: most + 1}), schema)
    if with_report:
        assert "report" in str(refused.value)


def test_rounds_of_one_cluster_are_not_bought_whatever_their_number() -> None:
    order = ordered("dpgm", clusters=1, cluster_rounds=32, report={"share": 0.05})
    check_order(order, parse_schema({"fields": FIELDS}))
    assert listed(order) == [(CLUSTER_COUNTS, 1), (SAMPLED_STEPS, 7), (REPORT, 1)]


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
