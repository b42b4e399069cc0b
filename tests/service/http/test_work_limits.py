"""A quote and an order say what they take; what is over the operator's limits is refused before anything is reserved."""

import json

import pytest

from imprimatur import ApiError
from tests.conftest import SMALL_SCHEMA

ENORMOUS = {"generator_hidden": [4_096] * 8, "critic_hidden": [4_096] * 8}


def test_quotes_and_orders_say_what_they_take(client, small_csv, small_order):
    dataset = client.create_dataset(small_csv, SMALL_SCHEMA, epsilon=5.0)["id"]
    quoted = client.quote(dataset, small_order)["estimate"]
    assert quoted["seconds_on_a_cpu"] > 0
    assert quoted["memory_bytes"] > 1e8
    assert quoted["flops"] > 0
    longer = client.quote(dataset, small_order | {"steps": 10_000})["estimate"]
    assert longer["seconds_on_a_cpu"] > quoted["seconds_on_a_cpu"]
    made = client.create_release(dataset, small_order)
    assert made["estimate"] == quoted
    assert client.release(made["id"])["estimate"] == quoted


@pytest.mark.parametrize("act", ["quote", "create_release"])
def test_an_order_of_a_week_is_refused_and_costs_nothing(client, small_csv, small_order, act):
    dataset = client.create_dataset(small_csv, SMALL_SCHEMA, epsilon=5.0)["id"]
    with pytest.raises(ApiError) as refused:
        getattr(client, act)(dataset, small_order | {"steps": 100_000, "networks": ENORMOUS})
    assert (refused.value.status, refused.value.code) == (422, "too_much_work")
    values = refused.value.values
    assert values["estimate"]["seconds_on_a_cpu"] > values["limits"]["seconds"]
    assert {"steps", "networks"} <= set(values["knobs"])
    assert "smaller values of steps" in refused.value.detail
    assert client.ledger(dataset)["items"] == []
    assert client.releases(dataset) == []
    assert "seconds" in json.dumps(values)
