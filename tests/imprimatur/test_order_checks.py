"""What the service says of an order is asked before any row is sent, by `imprimatur.publish` and by the command."""

from __future__ import annotations

import json
import uuid
from dataclasses import fields

import httpx
import polars as pl
import pytest

import imprimatur
from imprimatur.errors import InvalidInput
from imprimatur.order_checks import check_order
from imprimatur.replies import Dataset
from service.http.methods import _described
from service.methods.auto import AutoOrder
from service.methods.catalogue import CATALOGUE

SCHEMA = {"fields": [{"name": "well", "type": "boolean"}]}
IMAGES = {"type": "image"}
PUBLIC, PRIVATE = str(uuid.UUID(int=1)), str(uuid.UUID(int=2))
METHODS = [each.model_dump() for each in _described().items]
NONE = r"{} takes no public rows, and nothing was uploaded; of tables these do: idpgan, dpgan, ganobfuscator"
REFUSED = {
    "a method that there is not": ({"method": "idpgam"}, "method", "there is no method 'idpgam'"),
    "one of images": ({"method": "mixture"}, "method", "mixture does not make tables; choose one of auto, marginals"),
    "a knob that it has not": ({"method": "idpgan", "stepz": 3}, "stepz", "did you mean steps"),
    "a knob that no method has": ({"stepz": 3}, "stepz", "orders of auto have no knob 'stepz'"),
    "one that takes no public rows": (
        {"method": "marginals", "public_dataset": PUBLIC},
        "method",
        NONE.format("marginals"),
    ),
    "a candidate that takes none": (
        {
            "method": "choose",
            "candidates": [{"method": "idpgan"}, {"method": "marginals", "public_dataset": PUBLIC}],
        },
        "candidates.1.method",
        NONE.format("marginals"),
    ),
    "rows that are not public": (
        {"method": "idpgan", "public_dataset": PRIVATE},
        "public_dataset",
        "was not declared public",
    ),
}


class Service:
    """Methods and datasets as the service has them; everything that it is asked is kept."""

    def __init__(self, methods=METHODS):
        self.methods, self.asked = methods, []

    def __call__(self, request):
        self.asked.append((request.method, request.url.path))
        if request.url.path == "/v1/methods":
            return httpx.Response(200, json={"items": self.methods})
        if request.method == "GET" and request.url.path.startswith("/v1/datasets/"):
            dataset_id = request.url.path.rpartition("/")[2]
            known = {"id": dataset_id, "name": "a", "rows_are_public": dataset_id == PUBLIC}
            return httpx.Response(200, json={each.name: None for each in fields(Dataset) if each.name != "raw"} | known)
        return httpx.Response(500, json={"code": "too_far", "detail": "it was sent"})


@pytest.fixture
def service():
    return Service()


@pytest.fixture
def client(service, monkeypatch):
    real, transport = httpx.Client, httpx.MockTransport(service)
    monkeypatch.setattr(httpx, "Client", lambda **options: real(**{**options, "transport": transport}))
    with imprimatur.Client("http://127.0.0.1:9", "imp_key", retries=0) as opened:
        yield opened


@pytest.mark.parametrize(("order", "where", "said"), REFUSED.values(), ids=REFUSED)
def test_what_the_service_would_refuse_is_refused_before_a_row_is_sent(client, service, order, where, said):
    table = pl.DataFrame({"well": [True, False]})
    with pytest.raises(InvalidInput, match=said) as refused:
        imprimatur.publish(table, SCHEMA, {"epsilon": 1.0, **order}, rows_are_units=True, client=client)
    assert refused.value.values["where"] == where
    assert {method for method, _ in service.asked} == {"GET"}


def test_public_rows_for_a_method_that_takes_none_are_not_uploaded(client, service):
    table = pl.DataFrame({"well": [True, False]})
    order = {"epsilon": 1.0, "method": "marginals"}
    with pytest.raises(InvalidInput, match=NONE.format("marginals")):
        imprimatur.publish(table, SCHEMA, order, public=table, rows_are_units=True, client=client)
    assert service.asked == [("GET", "/v1/methods")]


def test_what_may_be_ordered_passes(client, service):
    passing = [
        {"epsilon": 1.0, "method": "auto"},
        {"method": "marginals", "share": "rest"},
        {"method": "idpgan", "public_dataset": PUBLIC, "steps": 4},
        {"method": "choose", "candidates": [{"method": "dpgan", "public_dataset": PUBLIC}]},
        {"method": "choose", "candidates": [{"public_dataset": PUBLIC}]},  # refused by the service, which says why
    ]
    check_order(client, passing[0], SCHEMA)
    assert service.asked == [], "nothing in it can be wrong"
    for order in passing:
        check_order(client, order, SCHEMA)
    for method in (None, "auto", "idpgan"):
        check_order(client, {} if method is None else {"method": method}, SCHEMA, brings_public=True)
    check_order(client, {"steps": 4, "public_steps": 2}, SCHEMA, brings_public=True)
    check_order(client, {"method": "mixture"}, IMAGES)


def test_an_older_service_says_by_its_knobs_what_takes_public_rows(client, service):
    service.methods = [{k: v for k, v in each.items() if k != "takes_public_rows"} for each in METHODS]
    check_order(client, {"method": "dpgan"}, SCHEMA, brings_public=True)
    with pytest.raises(InvalidInput, match=NONE.format("marginals")):
        check_order(client, {"method": "marginals"}, SCHEMA, brings_public=True)


def test_what_auto_takes_every_method_has(client):
    for knob in AutoOrder.model_fields.keys() - {"chosen_because"}:
        assert all(knob in method.order.model_fields for method in CATALOGUE.values())
        check_order(client, {knob: None}, SCHEMA)


def test_the_command_asks_before_it_uploads(client, service, tmp_path, monkeypatch):
    from contextlib import nullcontext

    from typer.testing import CliRunner

    from imprimatur.cli import publishing
    from imprimatur.cli.application import app

    (tmp_path / "rows.csv").write_text("well\ntrue\nfalse\n")
    (tmp_path / "s.json").write_text(json.dumps(SCHEMA))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(publishing, "connect_or_start", lambda *_: nullcontext(client))
    monkeypatch.setattr(publishing, "find_target", lambda *_: ("http://127.0.0.1:9", "imp_key"))
    typed = ["publish", "rows.csv", "-s", "s.json", "--epsilon", "1", "-o", "out.csv"]
    told = CliRunner().invoke(app, [*typed, "--method", "marginals", "--public-start", PUBLIC])
    assert isinstance(told.exception, InvalidInput), told.output
    assert str(told.exception.detail).startswith("marginals takes no public rows")
    assert service.asked == [("GET", "/v1/methods")]
