"""Orders, quotes, refusals, cancellation and the budget, through HTTP; no worker runs here."""

import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from service.http import app
from service.releases import service
from tests.service.http.test_datasets_api import _assert_problem

ORDER = {"method": "idpgan", "epsilon": 1.5, "steps": 50}


def budget(api, dataset_id):
    return api.http.get(f"/v1/datasets/{dataset_id}/budget", headers=api.reader).json()


def test_an_order_is_priced_reserved_and_described(api, dataset_id):
    reply = api.order(dataset_id, ORDER)
    assert reply.status_code == 202
    release = reply.json()
    assert reply.headers["location"] == f"/v1/releases/{release['id']}"
    assert release["state"] == "reserved"
    assert release["price"]["epsilon"] == 1.5
    assert release["price"]["delta"] == pytest.approx(1e-6 / 2 / 2)
    assert release["price"]["shares"]["simple"] == 500_000_000
    assert release["progress"] == {"step": 0, "steps": 50, "phase": "queued"}
    assert release["order"]["sampling_probability"] == 0.25
    assert release["order"]["noise_decay"]["kind"] == "exponential"
    assert release["certificate"] is None
    assert release["failure"] is None
    after = budget(api, dataset_id)
    assert after["accounts"]["simple"] == {"posted": 0, "pending": 500_000_000, "remaining": 500_000_000}
    assert after["epsilon_spent"] == pytest.approx(1.5)
    assert api.http.get("/v1/releases", headers=api.reader).json()["items"] == [release]
    entries = api.http.get(f"/v1/datasets/{dataset_id}/ledger", headers=api.reader).json()
    assert [entry["kind"] for entry in entries["items"]] == ["reserve"]
    assert entries["verified"] is True


def test_a_quote_is_the_price_and_reserves_nothing(api, dataset_id):
    quote = api.http.post(f"/v1/datasets/{dataset_id}/quotes", json=ORDER, headers=api.reader).json()
    assert quote["fits"] is True
    assert quote["first_noise_multiplier"] > quote["last_noise_multiplier"] > 0
    assert budget(api, dataset_id)["accounts"]["simple"]["pending"] == 0
    assert api.order(dataset_id, ORDER).json()["price"] == quote["price"]


@pytest.mark.parametrize("order", [{"epsilon": 3.0}, {"share": 1.0}, {"share": "rest"}])
def test_an_order_for_the_whole_of_a_fresh_budget_fits(api, dataset_id, order):
    reply = api.order(dataset_id, {"method": "idpgan", "steps": 50, **order})
    assert reply.status_code == 202, reply.text
    assert reply.json()["price"]["shares"]["simple"] == 10**9
    assert reply.json()["price"]["epsilon"] == 3.0


def test_what_does_not_fit_is_refused_with_numbers_and_changes_nothing(api, dataset_id):
    assert api.order(dataset_id, {**ORDER, "epsilon": 2.9}).status_code == 202
    before = budget(api, dataset_id)
    reply = api.order(dataset_id, {**ORDER, "epsilon": 2.0})
    _assert_problem(reply, 409, "budget_exhausted")
    body = reply.json()
    assert set(body["remaining"]) == set(body["requested"]) == {"simple", "renyi"}
    assert body["requested"]["simple"] == 666_666_667
    assert body["remaining"]["simple"] == before["accounts"]["simple"]["remaining"]
    assert budget(api, dataset_id) == before
    assert len(api.http.get("/v1/releases", headers=api.reader).json()["items"]) == 1


def test_the_largest_next_epsilon_can_be_ordered(api, dataset_id):
    assert api.order(dataset_id, {"method": "idpgan", "epsilon": 1.0}).status_code == 202
    largest = budget(api, dataset_id)["largest_next_epsilon"]
    assert largest >= 2.0
    assert api.order(dataset_id, {"method": "idpgan", "epsilon": largest}).status_code == 202


def test_small_orders_outlast_simple_addition_through_the_renyi_account(api, dataset_id):
    admitted = 0
    while api.order(dataset_id, {**ORDER, "epsilon": 0.3}).status_code == 202:
        admitted += 1
    assert admitted > 10
    after = budget(api, dataset_id)
    assert after["accounts"]["simple"]["pending"] > 10**9
    assert after["accounts"]["renyi"]["pending"] <= 10**9
    assert after["epsilon_spent"] <= 3.0


def test_the_rest_is_the_rest(api, dataset_id):
    assert api.order(dataset_id, ORDER).status_code == 202
    reply = api.order(dataset_id, {"method": "idpgan", "share": "rest", "condition_on": "city", "steps": 50})
    assert reply.status_code == 202, reply.text
    assert reply.json()["price"]["epsilon"] >= 1.5


def test_the_same_idempotency_key_makes_one_release(api, dataset_id):
    with ThreadPoolExecutor(16) as pool:
        replies = list(pool.map(lambda _: api.order(dataset_id, ORDER, **{"Idempotency-Key": "k-1"}), range(50)))
    assert {reply.status_code for reply in replies} == {202}
    assert len({reply.json()["id"] for reply in replies}) == 1
    assert budget(api, dataset_id)["accounts"]["simple"]["pending"] == 500_000_000
    other = api.order(dataset_id, {**ORDER, "epsilon": 1.0}, **{"Idempotency-Key": "k-1"})
    _assert_problem(other, 409, "idempotency_conflict")


def test_a_cancel_before_the_charge_gives_everything_back(api, dataset_id):
    release = api.order(dataset_id, ORDER).json()
    reply = api.http.post(f"/v1/releases/{release['id']}/cancel", headers=api.analyst)
    assert (reply.status_code, reply.json()["state"]) == (200, "voided")
    assert budget(api, dataset_id)["accounts"]["simple"] == {"posted": 0, "pending": 0, "remaining": 10**9}
    again = api.http.post(f"/v1/releases/{release['id']}/cancel", headers=api.analyst)
    _assert_problem(again, 409, "not_cancellable")
    entries = api.http.get(f"/v1/datasets/{dataset_id}/ledger", headers=api.reader).json()["items"]
    assert [entry["kind"] for entry in entries] == ["reserve", "void"]


def test_artefacts_wait_for_publication(api, dataset_id):
    release = api.order(dataset_id, ORDER).json()
    for artefact in ("sample", "generator", "certificate"):
        reply = api.http.get(f"/v1/releases/{release['id']}/{artefact}", headers=api.reader)
        _assert_problem(reply, 409, "not_ready")
        assert reply.json()["state"] == "reserved"


BAD_ORDERS = {
    "no price": {"method": "idpgan"},
    "two prices": {"method": "idpgan", "epsilon": 1, "share": 0.5},
    "epsilon zero": {"method": "idpgan", "epsilon": 0},
    "epsilon negative": {"method": "idpgan", "epsilon": -2},
    "epsilon 1e308": {"method": "idpgan", "epsilon": 1e308},
    "epsilon text": {"method": "idpgan", "epsilon": "4"},
    "share above one": {"method": "idpgan", "share": 1.01},
    "unknown method": {"method": "ctgan", "epsilon": 1},
    "unknown knob": {"method": "idpgan", "epsilon": 1, "seed": 7},
    "unknown nested knob": {"method": "idpgan", "epsilon": 1, "thresholds": {"kind": "fixed", "clip": 1}},
    "sampling above one": {"method": "idpgan", "epsilon": 1, "sampling_probability": 1.1},
    "condition on nothing": {"method": "idpgan", "epsilon": 1, "condition_on": "zodiac"},
    "condition on a number": {"method": "idpgan", "epsilon": 1, "condition_on": "income"},
    "unpriceable": {"method": "idpgan", "epsilon": 1e-9, "sampling_probability": 1.0, "steps": 1_000_000},
}


def test_a_bad_order_is_refused_and_nothing_is_reserved(api, dataset_id, subtests):
    for name, order in BAD_ORDERS.items():
        with subtests.test(name):
            for path in ("releases", "quotes"):
                reply = api.http.post(f"/v1/datasets/{dataset_id}/{path}", json=order, headers=api.analyst)
                _assert_problem(reply, 422, "invalid_order", "unpriceable", "invalid_input")
            assert budget(api, dataset_id)["accounts"]["simple"]["pending"] == 0
            assert api.http.get("/v1/releases", headers=api.reader).json()["items"] == []


def test_an_unknown_knob_is_named_beside_those_that_there_are(api, dataset_id):
    reply = api.order(dataset_id, {"epsilon": 1, "colum": "size"})
    _assert_problem(reply, 422, "invalid_order")
    assert reply.json()["detail"].startswith("colum: no such knob; there are: epsilon, share, condition_on")


def test_a_body_that_is_no_order_is_refused(api, dataset_id, subtests):
    headers = {**api.analyst, "Content-Type": "application/json"}
    for body in (b"", b"{", b"[]", b"null", b'{"method": "idpgan", "epsilon": NaN}', b"\xff", b"[" * 9000):
        with subtests.test(body[:40]):
            reply = api.http.post(f"/v1/datasets/{dataset_id}/releases", content=body, headers=headers)
            _assert_problem(reply, 422, "invalid_input", "invalid_order")


def test_a_reader_may_not_order_or_cancel(api, dataset_id):
    _assert_problem(api.order(dataset_id, ORDER, key=api.reader), 403, "forbidden")
    release = api.order(dataset_id, ORDER).json()
    _assert_problem(api.http.post(f"/v1/releases/{release['id']}/cancel", headers=api.reader), 403, "forbidden")


def test_ids_that_are_none_and_paths_that_are_none(api):
    _assert_problem(api.http.get("/v1/datasets/42", headers=api.reader), 422, "invalid_input")
    _assert_problem(api.http.get(f"/v1/datasets/{uuid.uuid4()}", headers=api.reader), 404, "not_found")
    _assert_problem(api.http.get("/v1/nothing", headers=api.reader), 404, "not_found")
    _assert_problem(api.http.put("/v1/datasets", headers=api.reader), 405, "method_not_allowed")


def test_metrics_do_not_say_whether_rows_were_refused(api):
    """Whether a file fits a schema is a function of its rows, and no key is asked for here."""
    assert api.upload().status_code == 201
    assert api.upload().status_code == 409
    assert api.upload("age\nx\n").status_code == 422
    assert api.upload(key={"Authorization": "Bearer imp_none"}).status_code == 401
    lines = [
        line for line in api.http.get("/metrics").text.splitlines() if line.startswith("imprimatur_http_requests_total")
    ]
    uploads = [line for line in lines if 'method="POST",route="/v1/datasets"' in line]
    assert sorted(line.split("status=")[1] for line in uploads) == ['"401"} 1.0', '"answered"} 3.0']


def test_probes_metrics_and_page(api):
    assert api.http.get("/healthz").json() == {"status": "ok"}
    ready = api.http.get("/readyz")
    assert ready.status_code == 503
    working = {"api": "ok", "database": "ok", "storage": "ok", "secrets": "ok"}
    assert ready.json()["parts"] == working | {"relay": "quiet", "worker": "quiet"}
    assert 'route="/healthz"' in api.http.get("/metrics").text
    page = api.http.get("/")
    assert page.status_code == 200
    assert "Imprimatur" in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]


def test_a_silent_database_fails_closed(api, context):
    from fastapi.testclient import TestClient

    from service.http.app import create_app

    gone = context.settings.model_copy(update={"database_url": "postgresql+psycopg://nobody@/none?host=/nonexistent"})
    with TestClient(create_app(gone), raise_server_exceptions=False) as http:
        reply = http.get("/v1/datasets", headers=api.reader)
        _assert_problem(reply, 503, "unavailable")
        assert reply.headers["retry-after"] == "5"
        assert http.get("/readyz").json()["parts"]["database"] == "down"


def test_samples_are_expected_once_a_release_is_ordered_or_there_is_one_at_the_start(
    api, dataset_id, context, monkeypatch
):
    expected = []
    monkeypatch.setattr(app, "expect_samples", lambda: expected.append("at the start"))
    monkeypatch.setattr(service, "expect_samples", lambda: expected.append("by an order"))
    app._warm_up(context)
    assert expected == []
    assert api.order(dataset_id, {"epsilon": 1.0}).status_code == 202
    app._warm_up(context)
    assert expected == ["by an order"]
    monkeypatch.setattr(app, "any_published", lambda _: True)
    app._warm_up(context)
    assert expected == ["by an order", "at the start"]


def test_without_a_method_one_is_chosen_and_says_why(api, dataset_id):
    path = f"/v1/datasets/{dataset_id}/quotes"
    quote = api.http.post(path, json={"epsilon": 1.0}, headers=api.reader).json()
    assert quote["order"]["method"] == "marginals"
    assert quote["order"]["chosen_because"].startswith("marginals: ")
    assert quote["steps"] == quote["order"]["steps"]
    assert quote["last_noise_multiplier"] > 0
    assert api.http.post(path, json={"method": "auto", "epsilon": 1.0}, headers=api.reader).json() == quote
    first = api.order(dataset_id, {"epsilon": 1.0}, **{"Idempotency-Key": "auto-1"})
    again = api.order(dataset_id, {"epsilon": 1.0}, **{"Idempotency-Key": "auto-1"})
    assert first.json() == again.json()
    assert first.json()["order"] == quote["order"]
    assert first.json()["price"] == quote["price"]
    rest = api.order(dataset_id, {"share": "rest"})
    assert rest.json()["order"]["method"] == "marginals"
    assert rest.status_code == 202, rest.text


def test_the_reason_is_not_for_the_customer_to_write(api, dataset_id):
    reply = api.order(dataset_id, {"method": "marginals", "epsilon": 1.0, "chosen_because": "it is best"})
    _assert_problem(reply, 422, "invalid_order")
    reply = api.order(dataset_id, {"epsilon": 1.0, "steps": 50})
    _assert_problem(reply, 422, "invalid_order")
