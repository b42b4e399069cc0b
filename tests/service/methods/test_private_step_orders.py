"""Knobs of the private step: the price list stays what it was, or has one charged event more."""

from __future__ import annotations

from typing import Any

import pytest

from service.base.errors import InvalidOrder
from service.domain.shapes import ImageShape, TableShape
from service.methods.catalogue import parse_order
from service.methods.pricing import price_order
from service.privacy.events import GaussianEvent
from service.privacy.filters import open_budget
from tests.orders import resolve_order

BUDGET = open_budget(4.0, 1e-5)
IMAGE, TABLE = ImageShape(8, 8, 1, 3), TableShape({"a": 3, "b": 4})
FREE: dict[str, dict[str, Any]] = {
    "tanh": {"critic_activation": {"kind": "tanh"}},
    "tempered sigmoid": {"critic_activation": {"kind": "tempered_sigmoid", "scale": 1.5, "offset": 0.5}},
    "pre_clip_noise": {"pre_clip_noise": 0.01},
    "sparse": {"sparse": {"share": 0.3}},
    "memory": {"memory": {"share": 0.2}},
    "scale": {"scale": {}},
    "subspace": {"subspace": {"rank": 4}},
    "importance": {"importance": {"groups": 3}},
    "all that go together": {
        "critic_activation": {"kind": "tanh"},
        "pre_clip_noise": 0.01,
        "memory": {},
        "sparse": {"chosen_by": "weights"},
    },
}
BOUGHT = {"importance": {"relevance": "bought", "precision_share": 0.05}}


def resolved(method: str, shape: ImageShape | TableShape, **knobs: Any) -> Any:
    ordered = {"method": method, "epsilon": 2.0, "steps": 20, **knobs}
    if method == "idpgan":
        ordered |= {"warm_start": {"kind": "none"}}
    return resolve_order(parse_order(ordered), units=5_000, shape=shape, budget=BUDGET)


@pytest.mark.parametrize("method", ["idpgan", "dpgan", "ganobfuscator", "dpacgan", "rdpcgan"])
@pytest.mark.parametrize("name", FREE)
def test_a_knob_leaves_the_price_order_as_it_is(name: str, method: str) -> None:
    shape = TABLE if method == "rdpcgan" else IMAGE
    plain = price_order(resolved(method, shape), BUDGET)
    priced = price_order(resolved(method, shape, private_step=FREE[name]), BUDGET)
    assert priced.events == plain.events
    assert priced == plain


@pytest.mark.parametrize("method", ["idpgan", "dpgan", "ganobfuscator", "rdpcgan"])
def test_bought_relevance_is_one_event_more_within_the_same_epsilon(method: str) -> None:
    plain = price_order(resolved(method, TABLE), BUDGET)
    order = resolved(method, TABLE, private_step=BOUGHT)
    priced = price_order(order, BUDGET)
    (bought,) = [event for event in priced.events if event not in plain.events and isinstance(event, GaussianEvent)]
    assert bought.purpose == "relevance"
    assert len(priced.events) == len(plain.events) + 1
    assert priced.events[-1].gradient_noise_multiplier > plain.events[-1].gradient_noise_multiplier  # type: ignore[union-attr]


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(InvalidOrder, match="a step has one of"):
        parse_order({"method": "dpgan", "epsilon": 1.0, "private_step": {"sparse": {}, "scale": {}}})
    with pytest.raises(InvalidOrder, match="perceptrons"):
        resolved("dpgan", IMAGE, image_networks={"layers": "convolutions"}, private_step=FREE["importance"])
    with pytest.raises(InvalidOrder, match="begin from nothing"):
        resolve_order(
            parse_order({"method": "idpgan", "epsilon": 1.0, "warm_start": {"kind": "tables"}, "private_step": BOUGHT}),
            units=5_000,
            shape=TABLE,
            budget=BUDGET,
        )


def test_an_order_without_the_knobs_is_what_it_was() -> None:
    assert parse_order({"method": "dpgan", "epsilon": 1.0}).private_step is None  # type: ignore[attr-defined]
