"""What a release is charged at: the order α* that its dataset was given when it was created, and no other."""

from __future__ import annotations

import pytest
from dp_accounting import rdp

from service.methods.idpgan.order import IdpganOrder
from service.privacy.accounting import ADJACENCY, RENYI_ORDERS
from service.privacy.events import to_dp_event
from service.privacy.filters import NANO, open_budget, renyi_capacity
from tests.orders import price_order


def test_the_order_is_the_datasets_own_even_where_another_is_cheaper() -> None:
    """A filter holds for an order fixed in advance; the best of all orders, chosen per release, is not one."""
    budget = open_budget(1.0, 1e-6)
    order = IdpganOrder.model_validate(
        {
            "method": "idpgan",
            "share": 1.0,
            "steps": 20,
            "sampling_probability": 0.005,
            "thresholds": {"kind": "fixed"},
            "noise_decay": {"kind": "constant"},
        }
    )
    price = price_order(order, units=50_000, budget=budget)
    accountant = rdp.RdpAccountant(list(RENYI_ORDERS), ADJACENCY)
    accountant.compose(to_dp_event(price.events))
    shares = {}
    for alpha, divergence in zip(RENYI_ORDERS, accountant.rdp, strict=True):
        room = renyi_capacity(1.0, budget.conversion_delta, alpha)  # the rest of half of δ is kept for failures
        if room > 0.0:
            shares[alpha] = divergence / room * NANO
    own = shares[budget.renyi_order]
    assert price.shares.renyi == pytest.approx(own, rel=1e-6)
    # The test can fail: another order would have been cheaper by more than rounding.
    assert min(shares.values()) < 0.99 * own
