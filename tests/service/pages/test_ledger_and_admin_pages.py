"""The ledger, keys and the audit log as pages; and what an owner alone may see."""

import datetime as dt
import html
import re
import uuid

import pytest

import service.pages.budget as pages_of_budget
import service.pages.ledger as pages_of_ledger
from service.http.app import API, pages
from service.pages.ledger import history
from service.pages.words import AUDIT_ACTIONS
from tests.service.pages.spoken import english_in
from tests.service.pages.test_orders_pages import FILLED


class Line:
    def __init__(self, release, kind, simple, renyi):
        from datetime import UTC, datetime

        self.release_id, self.kind, self.simple, self.renyi = release, kind, simple, renyi
        self.created_at = datetime(2026, 1, 1, tzinfo=UTC)


def test_the_history_counts_what_is_held_after_each_line():
    first, second = uuid.uuid4(), uuid.uuid4()
    tenth = 10**8
    lines = [
        Line(first, "reserve", tenth, tenth),
        Line(first, "post", tenth, tenth),
        Line(second, "reserve", 2 * tenth, tenth),
        Line(second, "void", 2 * tenth, tenth),
        Line(first, "settle", tenth, tenth // 2),
    ]
    found = history(lines)
    assert found["simple"] == [10.0, 10.0, 30.0, 10.0, 10.0]
    assert found["renyi"] == [10.0, 10.0, 20.0, 10.0, 5.0]


def test_the_ledger_is_read_again_and_its_lines_are_shown(api, browser_of, dataset_id):
    browser = browser_of(api.reader)
    api.order(dataset_id, {"method": "marginals", "epsilon": 1.0, "pairs": "none"})
    page = browser.get(f"/datasets/{dataset_id}/ledger").text
    assert "The whole ledger (1 line) was read again" in page
    assert ">reserved<" in page
    assert 'data-lines="' in page
    assert browser_of(api.stranger).get(f"/datasets/{dataset_id}/ledger").status_code == 404


def test_more_than_the_whole_of_one_account_is_explained(api, browser_of, dataset_id, monkeypatch):
    browser = browser_of(api.reader)
    api.order(dataset_id, {"method": "marginals", "epsilon": 1.0, "pairs": "none"})
    pages = f"/datasets/{dataset_id}/ledger", f"/datasets/{dataset_id}"
    assert not any("More than 100 %" in browser.get(path).text for path in pages)
    for room in (pages_of_ledger, pages_of_budget):
        monkeypatch.setattr(room, "NANO", 10**6)  # as if the order had cost a thousand times as much
    assert all("More than 100 %" in browser.get(path).text for path in pages)


@pytest.mark.parametrize("path", ["/admin", "/admin/keys", "/admin/tenants", "/admin/audit"])
def test_administration_is_for_owners(api, browser_of, path):
    for key in (api.analyst, api.reader):
        assert browser_of(key).get(path).status_code == 403
        assert 'href="/admin"' not in browser_of(key).get("/datasets").text
    assert browser_of(api.owner).get(path).status_code == 200


def test_a_key_is_made_shown_once_used_and_revoked(api, browser_of):
    browser = browser_of(api.owner)
    page = browser.post("/admin/keys", {"name": "<b>new", "scope": "reader", "days": "30"}).text
    (secret,) = re.findall(r"<code>(imp_[\w-]+)</code>", page)
    assert "<b>new" not in page
    assert secret not in browser.get("/admin/keys").text
    new = browser_of({"Authorization": f"Bearer {secret}"})
    keys = api.http.get("/v1/keys", headers=api.owner).json()["items"]
    (made,) = [each for each in keys if each["name"] == "<b>new"]
    assert made["expires_at"]
    assert "revoked on" in browser.post(f"/admin/keys/{made['id']}/revoke").text
    assert new.get("/datasets", follow_redirects=False).status_code == 303


def test_tenants_are_the_own_one_and_the_operators_commands(api, browser_of):
    browser = browser_of(api.owner)
    assert 'href="/admin/tenants"' in browser.get("/admin").text
    page = html.unescape(browser.get("/admin/tenants", params={"name": "Station 4; rm -rf '"}).text)
    assert "imprimatur tenant create 'Station 4; rm -rf '\"'\"''" in page  # as a shell reads it
    assert "imprimatur tenant list" in page
    german = html.unescape(browser.get("/admin/tenants", headers={"Accept-Language": "de"}).text)
    assert "imprimatur tenant create 'Zweite Stelle'" in german
    assert "imprimatur tenant key 'Zweite Stelle' 'neuer Eigentümer'" in german
    assert "owner: 1, analyst: 1, reader: 1" in page
    mine = re.search(r"<dt>Id</dt><dd><code>([^<]+)</code>", page)[1]
    other = re.search(r"<dt>Id</dt><dd><code>([^<]+)</code>", browser_of(api.stranger).get("/admin/tenants").text)[1]
    assert other not in page
    assert mine != other


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "", "scope": "reader"},
        {"name": "a", "scope": "root"},
        {"name": "a", "scope": "reader", "days": "x"},
        {"name": "a", "scope": "reader", "days": "9.999"},
    ],
)
def test_a_key_that_cannot_be_made_is_said(api, browser_of, wrong):
    browser = browser_of(api.owner)
    reply = browser.post("/admin/keys", wrong, **{"Accept-Language": "de"})
    assert reply.status_code == 422
    assert 'role="alert"' in reply.text
    assert english_in(reply.text) == []


def test_a_thousand_days_may_have_a_point_between_them(api, browser_of):
    browser_of(api.owner).post("/admin/keys", {"name": "long", "scope": "reader", "days": "1.000"})
    (made,) = [one for one in api.http.get("/v1/keys", headers=api.owner).json()["items"] if one["name"] == "long"]
    begun, ends = (dt.datetime.fromisoformat(made[word]) for word in ("created_at", "expires_at"))
    assert (ends - begun).days in {999, 1000}


def test_the_last_owner_s_key_is_not_revoked(api, browser_of):
    (mine,) = [e["id"] for e in api.http.get("/v1/keys", headers=api.owner).json()["items"] if e["scope"] == "owner"]
    assert browser_of(api.owner).post(f"/admin/keys/{mine}/revoke").status_code == 409


def test_what_is_done_on_the_page_is_in_the_audit_log(api, browser_of, dataset_id):
    browser_of(api.analyst).post(f"/datasets/{dataset_id}/releases", {**FILLED, "order_key": "k"})
    page = browser_of(api.owner).get("/admin/audit").text
    assert '<span title="sign_in">sign in</span>' in page
    assert '<span title="order_release">order a release</span>' in page
    browser_of(api.reader).get("/admin")  # which is for owners
    german = browser_of(api.owner).get("/admin/audit", headers={"Accept-Language": "de"}).text
    assert '<span title="order_release">eine Veröffentlichung bestellen</span>' in german
    assert "abgelehnt <code>forbidden</code>" in german
    assert english_in(german) == []


def names_of(routers):
    for router in routers:
        for route in router.routes:
            yield from names_of([route.original_router]) if hasattr(route, "original_router") else [route.name]


def test_every_operation_has_words_for_the_audit_log():
    """But those that no key is asked for: no line can name them."""
    for_everybody = {"ask_for_key", "choose_language", "leave", "read_asset"}
    names = set(names_of((*API, pages)))
    assert names > for_everybody
    assert names - for_everybody - AUDIT_ACTIONS.keys() == set()
