"""Forecasts over HTTP: in quotes before anything is paid, warnings again in the order's reply, and `want` instead of an ε."""

from __future__ import annotations

import json

import pytest

from imprimatur import ApiError
from imprimatur.cli.ordering import place
from service.methods import turns, wants
from tests.conftest import SMALL_SCHEMA

ORDER = {"method": "marginals", "epsilon": 1.0}


@pytest.fixture
def dataset(client, small_csv):
    return client.create_dataset(small_csv, SMALL_SCHEMA, epsilon=5.0)


def test_a_quote_says_how_far_off_it_will_be_and_the_client_has_it_typed(client, dataset):
    quote = client.quote(dataset.id, ORDER)
    assert quote.forecast.one_way.off_by > 0
    assert quote.forecast.one_way.count_std.smallest <= quote.forecast.one_way.count_std.median
    assert quote.forecast.one_way.total_variation.low < quote.forecast.one_way.total_variation.high
    assert str(quote).startswith(quote.forecast.sentences[0])
    assert client.ledger(dataset.id).entries == ()


def test_an_order_that_buys_next_to_nothing_is_warned_of_in_quote_and_reply(client, dataset):
    order = {**ORDER, "epsilon": 1e-4}
    quote = client.quote(dataset.id, order)
    assert "next to nothing" in quote.warnings[0]
    made = client.create_release(dataset.id, order)
    assert made["warnings"] == list(quote.warnings)
    assert client.release(made.id)["warnings"] == list(quote.warnings)
    assert "warnings" not in made["estimate"]


def test_the_least_epsilon_is_quoted(client, dataset):
    off = client.quote(dataset.id, {**ORDER, "epsilon": 2.0}).forecast.one_way.off_by
    want = {"group": 100, "within": round(off / 100, 6), "columns": 1}
    quote = client.quote(dataset.id, want=want)
    assert quote.fits
    assert quote.wanted.epsilon == quote.price.epsilon == pytest.approx(2.0, rel=0.1)
    assert quote.forecast.one_way.off_by <= off
    named = client.quote(dataset.id, epsilon=0.5, want=want)
    assert named.price.epsilon == 0.5
    assert named.wanted.epsilon == quote.wanted.epsilon


def test_what_cannot_be_had_is_quoted_at_what_is_left(client, dataset):
    quote = client.quote(dataset.id, want={"one_way_tv": 1e-6})
    assert quote.wanted.epsilon is None
    assert quote.wanted.says.startswith("No ε that this dataset can still pay gives that. The largest is ")
    assert quote.price.epsilon == quote.wanted.largest
    assert quote.fits


def test_a_want_belongs_to_a_quote_and_says_something(client, dataset):
    with pytest.raises(ApiError) as refused:
        client.quote(dataset.id, want={"group": 5})
    assert (refused.value.status, refused.value.code) == (422, "invalid_order")
    with pytest.raises(ApiError, match="want"):
        client.create_release(dataset.id, {**ORDER, "want": {"one_way_tv": 0.1}})
    assert json.loads(json.dumps(client.ledger(dataset.id)["items"])) == []


def test_who_orders_is_warned_before_it_is_paid_and_finds_again_what_is_paid(client, dataset, capsys):
    place(client, dataset.id, {**ORDER, "epsilon": 1e-4})
    assert "warning: This order buys next to nothing" in capsys.readouterr().err
    rest = {"method": "marginals", "share": "rest"}
    made = place(client, dataset.id, rest, "again")
    capsys.readouterr()
    assert place(client, dataset.id, rest, "again").id == made.id  # it has no price any more
    assert capsys.readouterr().err == ""


def test_a_search_for_an_epsilon_is_made_in_its_key_s_turn(api, dataset_id, monkeypatch):
    seen, looked = [], wants.forecast_at
    monkeypatch.setattr(wants, "forecast_at", lambda *a: seen.append(turns.asker()) or looked(*a))

    def quote(key):
        """Past the quick routes, which would ask again for a while."""
        body = json.dumps({"method": "marginals", "want": {"one_way_tv": 0.4}})
        headers = {**key, "Content-Type": "application/json; charset=utf-8"}
        return api.http.post(f"/v1/datasets/{dataset_id}/quotes", content=body, headers=headers)

    assert quote(api.reader).status_code == 200
    (asker,) = set(seen)
    seen.clear()
    with turns.TURNS.take(asker):
        refused, others = quote(api.reader), quote(api.analyst)
    assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
    assert others.status_code == 200
    assert {(each.key == asker.key, each.tenant) for each in seen} == {(False, asker.tenant)}
