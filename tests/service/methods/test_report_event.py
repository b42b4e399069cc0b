"""The report's event: on the price list of every method, last, and paid by what was ordered."""

import pytest

from service.base.errors import InvalidOrder
from service.domain.table_schema import parse_table_schema
from service.methods.catalogue import check_order, method_of, parse_order
from service.methods.report import REPORT, split
from service.privacy.calibration import is_paid
from service.privacy.filters import open_budget
from tests.orders import price_order, resolve_order

BUDGET = open_budget(4.0, 1e-6)
ORDERS = (
    {"method": "marginals", "epsilon": 1.0},
    {"method": "idpgan", "epsilon": 2.0, "steps": 20},
)


def priced(document):
    order = resolve_order(parse_order(document), units=10_000)
    return order, price_order(order, units=10_000, budget=BUDGET)


@pytest.mark.parametrize("document", ORDERS, ids=lambda document: document["method"])
def test_it_is_the_last_event_and_the_whole_costs_what_was_ordered(document):
    _, plain = priced(document)
    order, price = priced({**document, "report": {"share": 0.1}})
    own, report = split(price.events)
    assert split(plain.events) == (plain.events, ())
    assert [event.purpose for event in report] == [REPORT]
    assert [event.purpose for event in own] == [event.purpose for event in plain.events]
    assert price.shares.simple == plain.shares.simple
    assert 0.97 * document["epsilon"] <= price.pld_epsilon <= document["epsilon"]
    assert is_paid(price.events, price.shares, BUDGET, epsilon_scale=document["epsilon"])
    assert own != method_of(order).events(order, price.epsilon, price.delta)(1.0)
    dearer = [event for event, other in zip(own, plain.events, strict=True) if event != other]
    assert dearer, "what the method releases must have more noise than without a report"


def test_a_list_without_it_would_not_pay_for_a_measurement():
    _, price = priced({**ORDERS[0], "report": {"share": 0.1}})
    _, plain = priced(ORDERS[0])
    assert not is_paid((*plain.events, split(price.events)[1][0]), plain.shares, BUDGET, epsilon_scale=1.0)


@pytest.mark.parametrize(
    ("knobs", "where"),
    [
        ({"accept": {"two_way_tv": 0.1}}, "order"),
        ({"accept": {}, "report": {}}, "accept"),
        ({"report": {"share": 0.0}}, "report.share"),
        ({"report": {"share": 0.6}}, "report.share"),
        ({"report": {}, "accept": {"two_way_tv": 0.0}}, "accept.two_way_tv"),
        ({"report": {"shares": 0.1}}, "report.shares"),
    ],
)
def test_what_says_nothing_is_refused(knobs, where):
    with pytest.raises(InvalidOrder) as raised:
        parse_order({"epsilon": 1.0, **knobs})
    assert raised.value.values["where"] == where


def test_one_column_has_no_pairs_to_accept():
    schema = parse_table_schema({"fields": [{"name": "a", "type": "boolean"}]})
    with pytest.raises(InvalidOrder, match="no pairs"):
        check_order(parse_order({"epsilon": 1.0, "report": {}, "accept": {"two_way_tv": 0.1}}), schema)
    check_order(parse_order({"epsilon": 1.0, "report": {}, "accept": {"one_way_tv": 0.1}}), schema)
