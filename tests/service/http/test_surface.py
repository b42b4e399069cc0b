"""What the outside of the API shows: headers of every reply, refusals that leave a trace, names of hosts, pages and metrics."""

import http.client
import json
import logging
import re
import socket
from urllib.parse import quote

import httpx
import pytest
from fastapi.testclient import TestClient
from prometheus_client import CollectorRegistry

from service.http import refusals
from service.http.app import create_app
from service.http.security_headers import BASE
from tests.private_servers import api_process
from tests.service.http.test_datasets_api import _assert_problem

ORDER = {"method": "idpgan", "epsilon": 0.5, "steps": 4}
STRANGER = {"Authorization": "Bearer imp_not-a-key-of-anybody"}


@pytest.fixture
def served(context):
    """The same service under other settings."""

    def make(**settings):
        return TestClient(
            create_app(context.settings.model_copy(update=settings)),
            raise_server_exceptions=False,
            follow_redirects=False,
        )

    return make


@pytest.fixture
def lines(caplog):
    """What the log of refusals says, as documents; each is one line of ASCII."""
    caplog.set_level(logging.WARNING, logger=refusals.__name__)

    def read():
        said = [record.getMessage() for record in caplog.records if record.name == refusals.__name__]
        assert all(text.isascii() and text.isprintable() for text in said)
        return [json.loads(text) for text in said]

    return read


# -- headers --------------------------------------------------------------------------------------------------------


def test_no_reply_goes_without_the_headers(api, dataset_id):
    """Quick routes, the framework's, streams, refusals of each layer, and what was not expected."""
    release = api.order(dataset_id, ORDER)
    quick = f"/v1/datasets/{dataset_id}/quotes"
    replies = {
        "quick": api.http.post(quick, json=ORDER, headers=api.owner),
        "quick, refused": api.http.post(quick, json={"epsilon": -1}, headers=api.owner),
        "quick, no key": api.http.get(f"/v1/datasets/{dataset_id}/budget"),
        "framework": api.http.get("/v1/datasets", headers=api.reader),
        "no key": api.http.get("/v1/datasets"),
        "no address": api.http.get("/v1/nothing"),
        "no method": api.http.patch("/v1/keys", headers=api.owner),
        "too large": api.http.post(quick, content=b"x" * (2 << 20), headers=api.owner),
        "head too large": api.http.get("/healthz", headers={"X-Long": "x" * 40_000}),
        "upload, refused": api.upload("age\nx\n"),
        "upload with events": api.upload(key={**api.owner, "Accept": "text/event-stream"}),
        "order": release,
        "page": api.http.get("/"),
        "docs": api.http.get("/docs"),
        "openapi": api.http.get("/openapi.json"),
        "metrics": api.http.get("/metrics"),
        "health": api.http.get("/healthz"),
        "no content": api.http.request("DELETE", f"/v1/datasets/{dataset_id}", headers=api.owner),
    }
    api.http.app.state.rate_limits = None  # now everything that looks at a key breaks
    replies["our fault"] = api.http.get("/v1/methods", headers=api.reader)
    assert replies["our fault"].status_code == 500
    pages = {"page", "docs"}
    for name, reply in replies.items():
        for header, value in BASE.items():
            assert header.decode() in reply.headers, name
            if name not in pages:
                assert reply.headers[header.decode()] == value.decode(), (name, header)
        assert "frame-ancestors 'none'" in reply.headers["content-security-policy"], name
        assert "strict-transport-security" not in reply.headers, name


def test_a_stream_of_events_has_the_headers(stack, client, api_key, small_csv, small_schema, small_order):
    dataset = client.create_dataset(small_csv, small_schema, epsilon=3.0)["id"]
    release = client.create_release(dataset, small_order)["id"]
    key = {"Authorization": f"Bearer {api_key}"}
    with httpx.stream("GET", f"{stack.url}/v1/releases/{release}/events", headers=key) as stream:
        assert stream.status_code == 200
        assert {header.decode() for header in BASE} <= set(stream.headers)
        assert "server" not in stream.headers
    client.cancel(release)


def test_browsers_are_bound_to_tls_where_it_is_in_front(served):
    reply = served(behind_tls=True).get("/v1/datasets")
    assert int(re.search(r"max-age=(\d+)", reply.headers["strict-transport-security"])[1]) >= 31_536_000


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_a_page_carries_out_what_it_was_sent_with_and_nothing_else(api, path):
    page = api.http.get(path)
    assert page.status_code == 200
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for directive in ("object-src 'none'", "base-uri 'none'", "form-action 'self'", "frame-ancestors 'none'"):
        assert directive in policy
    assert "script-src 'self'; style-src 'self';" in policy
    assert not re.search(r"<style|<script(?! src=)", page.text), "the policy would not carry it out"
    assert not re.search(r"(?:src|href)=\"(?:https?:)?//", page.text), "nothing comes from elsewhere"
    assert not re.search(r"\son\w+=|\sstyle=", page.text), "the policy would not carry it out"


def test_what_is_no_request_gets_the_headers_too(context, tmp_path):
    with api_process(context.settings, tmp_path / "api.log") as url:
        with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=30) as connection:
            connection.sendall(b"\x16\x03\x01 nothing that HTTP knows\r\n\r\n")
            head = b"".join(iter(lambda: connection.recv(4096), b"")).lower()
        assert head.startswith(b"http/1.1 400")
        for header in BASE:
            assert b"\r\n" + header + b": " in head


# -- hosts and addresses --------------------------------------------------------------------------------------------


def test_no_redirect_and_no_link_leads_to_the_callers_host(api, dataset_id):
    """Starlette redirects a last slash too many to whatever Host was named."""
    for path in ("/v1/datasets/", "/v1/keys/", "/docs/", "/healthz/", f"/v1/datasets/{dataset_id}/"):
        reply = api.http.get(path, headers={**api.owner, "Host": "evil.example"}, follow_redirects=False)
        assert reply.status_code == 404, path
    order = api.order(dataset_id, ORDER, Host="evil.example")
    assert order.headers["location"].startswith("/v1/releases/")
    for reply in (order, api.http.get("/openapi.json", headers={"Host": "evil.example"})):
        assert "evil.example" not in reply.text + str(reply.headers)


def test_only_names_on_the_list_are_answered_to(served):
    with served(allowed_hosts="a.example, 127.0.0.1") as http:
        for host in ("a.example", "A.example:8443", "127.0.0.1:1"):
            assert http.get("/healthz", headers={"Host": host}).status_code == 200, host
        for host in ("evil.example", "a.example.evil.example", "a.example:x", "", ":80"):
            _assert_problem(http.get("/healthz", headers={"Host": host}), 421, "unknown_host")


FORGED = ("X-Forwarded-For", "X-Real-IP", "Forwarded")


def _knocks(url, count, header=None):
    codes = []
    for number in range(count):
        connection = http.client.HTTPConnection("127.0.0.1", int(url.rpartition(":")[2]), timeout=30)
        value = f"for=10.0.0.{number}" if header == "Forwarded" else f"10.0.0.{number}"
        connection.request("GET", "/v1/datasets", headers={} if header is None else {header: value})
        codes.append(connection.getresponse().status)
        connection.close()
    return codes


@pytest.mark.slow
def test_a_forged_address_evades_no_limit(context, tmp_path):
    settings = context.settings.model_copy(update={"rate_limit_failures_per_minute": 4})
    for header in FORGED:
        with api_process(settings, tmp_path / "api.log") as url:
            assert _knocks(url, 6, header) == [401] * 4 + [429] * 2, header
    lines = [json.loads(line) for line in (tmp_path / "api.log").read_text().splitlines() if line.startswith("{")]
    assert {line["address"] for line in lines} == {"127.0.0.1"}


def test_a_forged_address_evades_no_limit_where_the_option_was_forgotten(context, tmp_path):
    settings = context.settings.model_copy(update={"rate_limit_failures_per_minute": 4})
    with api_process(settings, tmp_path / "api.log", forgotten="--no-proxy-headers") as url:
        assert _knocks(url, 6, "X-Forwarded-For") == [401] * 4 + [429] * 2


def test_the_proxy_that_is_named_tells_the_address(context, tmp_path):
    update = {"rate_limit_failures_per_minute": 4, "trusted_proxies": "10.9.0.0/16,127.0.0.1"}
    with api_process(context.settings.model_copy(update=update), tmp_path / "api.log") as url:
        assert _knocks(url, 6, "X-Forwarded-For") == [401] * 6
    lines = [json.loads(line) for line in (tmp_path / "api.log").read_text().splitlines() if line.startswith("{")]
    assert lines[5]["address"] == "10.0.0.5"


# -- refusals -------------------------------------------------------------------------------------------------------


def test_refusals_at_the_door_leave_a_line_each_and_are_counted(api, dataset_id, lines):
    key = "imp_a-guess-that-must-not-be-in-a-log"
    api.http.get(f"/v1/datasets/{dataset_id}/budget", headers={"Authorization": f"Bearer {key}"})  # a quick route
    api.http.get("/v1/datasets", headers={"Authorization": f"Bearer {key}"})
    api.http.get("/v1/keys")
    forbidden = api.http.get("/v1/keys", headers=api.reader)
    guessed = api.http.get(f"/v1/datasets/{dataset_id}", headers=api.stranger)
    api.http.get("/v1/%0a%0dinvented%20line", headers=api.reader)
    api.upload("age\nx\n")  # refused for its rows: told to its owner alone
    said = lines()
    assert [(line["status"], line["code"], line["reason"], line["route"]) for line in said] == [
        (401, "unauthenticated", "unknown", "/v1/datasets/{dataset_id}/budget"),
        (401, "unauthenticated", "unknown", "/v1/datasets"),
        (401, "unauthenticated", "missing", "/v1/keys"),
        (403, "forbidden", None, "/v1/keys"),
        (404, "not_found", None, "/v1/datasets/{dataset_id}"),
        (404, "not_found", None, "unmatched"),
    ]
    assert said[0]["failed_key"] == said[1]["failed_key"] is not None
    assert len(said[0]["failed_key"]) == 8
    assert said[2]["failed_key"] is None
    assert [line["request_id"] for line in said[3:5]] == [r.headers["x-request-id"] for r in (forbidden, guessed)]
    keys = api.http.get("/v1/keys", headers=api.owner).json()["items"]
    assert said[3]["key_id"] == next(item["id"] for item in keys if item["scope"] == "reader")
    assert {line["address"] for line in said} == {"testclient"}
    text = api.http.get("/metrics").text
    for line in (
        'imprimatur_authentication_failures_total{reason="unknown"} 2.0',
        'imprimatur_authentication_failures_total{reason="missing"} 1.0',
        'imprimatur_refusals_total{code="unauthenticated"} 3.0',
        'imprimatur_refusals_total{code="forbidden"} 1.0',
        'imprimatur_refusals_total{code="not_found"} 2.0',
    ):
        assert line in text
    assert "invalid_file" not in text


def test_no_line_holds_a_key(api, dataset_id, lines, caplog):
    """Good keys, bad ones, and ones in the wrong place."""
    keys = [reply["Authorization"].partition(" ")[2] for reply in (api.owner, api.reader, api.stranger, STRANGER)]
    for key in keys:
        for headers in ({"Authorization": f"Bearer {key}"}, {"Authorization": key}, {"X-Api-Key": key, "Cookie": key}):
            api.http.get("/v1/nothing", headers=headers)
            api.http.get(f"/v1/{key}?key={key}", headers=headers)
            api.http.get(f"/v1/datasets/{dataset_id}/budget", headers=headers)
            api.http.request(key[:20], f"/{key}", headers=headers)
    assert len(lines()) >= 20
    for key in keys:
        for part in (key[4:], key[4:16], key[-10:]):
            assert part not in caplog.text


def test_a_caller_begins_no_line_of_their_own(api, lines, caplog):
    """Line feeds, terminal sequences and marks that turn text around, in path, method, header and key."""
    evil = '"}\n{"event": "forged"} \x1b[2J \u202e'
    sent = evil.encode()  # TestClient hands over what no server would let through
    api.http.get(f"/v1/{quote(evil)}", headers={"Authorization": b"Bearer " + sent, "User-Agent": sent})
    api.http.get("/v1/keys", headers={"Authorization": b"Bearer " + sent, "X-Forwarded-For": sent})
    api.http.request("FORGED", "/v1/keys", headers=api.owner)
    said = lines()
    assert [line["method"] for line in said] == ["GET", "GET", "OTHER"]
    assert "forged" not in caplog.text.lower()


def test_a_failure_of_ours_does_not_log_the_path(api, caplog):
    api.http.app.state.rate_limits = None
    reply = api.http.get("/v1/datasets?x=%0aFORGED", headers=api.owner)
    assert reply.status_code == 500
    (record,) = [r for r in caplog.records if r.name == "service.requests.problems"]
    assert record.getMessage().startswith("a request of /v1/datasets failed with AttributeError\n")
    assert "FORGED" not in caplog.text


def test_a_flood_is_counted_and_not_written(served, lines):
    http = served(rate_limit_failures_per_minute=1e6)
    for _ in range(3 * refusals.LINES_PER_MINUTE_OF_AN_ADDRESS):
        http.get("/v1/datasets")
    said = len(lines())
    assert refusals.LINES_PER_MINUTE_OF_AN_ADDRESS <= said < 2 * refusals.LINES_PER_MINUTE_OF_AN_ADDRESS
    count = (
        f'imprimatur_authentication_failures_total{{reason="missing"}} {3.0 * refusals.LINES_PER_MINUTE_OF_AN_ADDRESS}'
    )
    assert count in http.get("/metrics").text


def test_many_addresses_do_not_fill_the_log_either():
    log, written = refusals.RefusalLog(CollectorRegistry()), []
    handler = logging.Handler()
    handler.emit = written.append
    refusals.logger.addHandler(handler)
    try:
        for number in range(4 * refusals.LINES_PER_MINUTE):
            address = f"10.{number >> 8}.{number & 255}.1"
            log.note({"type": "http", "method": "GET", "client": (address, 1), "state": {}}, 401)
    finally:
        refusals.logger.removeHandler(handler)
    assert refusals.LINES_PER_MINUTE <= len(written) < 2 * refusals.LINES_PER_MINUTE


def test_methods_that_are_none_make_no_series(api):
    for number in range(50):
        api.http.request(f"BREW{number}", "/v1/datasets")
    text = api.http.get("/metrics").text
    assert "BREW" not in text
    assert 'method="OTHER"' in text


def test_too_many_guesses_are_an_authentication_failure_too(served, lines):
    http = served(rate_limit_failures_per_minute=2)
    for _ in range(3):
        http.get("/v1/datasets", headers=STRANGER)
    assert [(line["status"], line["reason"]) for line in lines()] == [(401, "unknown")] * 2 + [(429, "too_often")]


# -- what is there by default -----------------------------------------------------------------------------------------


def test_by_default_nothing_is_described_or_measured_for_strangers(context):
    fields = type(context.settings).model_fields
    defaults = {name: fields[name].default for name in ("serve_docs", "metrics", "trusted_proxies", "behind_tls")}
    assert defaults == {"serve_docs": False, "metrics": "off", "trusted_proxies": "", "behind_tls": False}
    http = TestClient(create_app(context.settings.model_copy(update=defaults)))
    for path in ("/docs", "/redoc", "/openapi.json", "/metrics", "/docs/oauth2-redirect"):
        _assert_problem(http.get(path), 404, "not_found")
    assert "/docs" not in http.get("/").text


def test_metrics_for_who_has_the_token(served, tmp_path, lines):
    token = tmp_path / "metrics.token"
    token.write_text("t" * 40 + "\n")
    http = served(metrics="token", metrics_token_file=token)
    assert (
        "imprimatur_http_requests_total" in http.get("/metrics", headers={"Authorization": "Bearer " + "t" * 40}).text
    )
    for wrong in ({}, {"Authorization": "Bearer " + "t" * 39}, {"Authorization": "Basic " + "t" * 40}, STRANGER):
        _assert_problem(http.get("/metrics", headers=wrong), 401, "unauthenticated")
    assert [line["reason"] for line in lines()] == ["missing", "unknown", "unknown", "unknown"]
    for bad in (None, tmp_path / "short"):
        (tmp_path / "short").write_text("t")
        with pytest.raises(ValueError, match="METRICS_TOKEN_FILE"):
            served(metrics="token", metrics_token_file=bad)
