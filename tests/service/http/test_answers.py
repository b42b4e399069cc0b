"""Releases of methods that return numbers: ordered, run, handed out; nothing is drawn from them. A toy makes them."""

import io
import json
import zipfile

import numpy as np
import pytest

from service.domain.table_schema import parse_table_schema
from service.methods.catalogue import CATALOGUE, ORDERS
from tests import toy_answers
from tests.service.http.conftest import SCHEMA
from tests.service.http.test_datasets_api import _assert_problem
from workers import lease as leases
from workers.generators.released import AnswersRelease
from workers.run import Attempt

ORDER = {"method": toy_answers.NAME, "epsilon": 2.0, "column": "city"}
NETWORK = {
    "method": "idpgan",
    "epsilon": 0.5,
    "steps": 2,
    "condition_on": "city",
    "networks": {"generator_hidden": [4], "critic_hidden": [4], "noise_dimension": 2},
}


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    monkeypatch.setitem(CATALOGUE, toy_answers.NAME, toy_answers.METHOD)
    monkeypatch.setitem(ORDERS, toy_answers.NAME, toy_answers.ToyOrder)


@pytest.fixture
def published(api, context, dataset_id, signing_key):  # noqa: ARG001 - what signs certificates
    def publish(order):
        reply = api.order(dataset_id, order)
        assert reply.status_code == 202, reply.text
        while str((lease := leases.claim_next(context.settings)).release_id) != reply.json()["id"]:
            pass  # an earlier order, which stays claimed
        Attempt(context, lease).run()
        return read(api, reply.json()["links"]["self"]).json()

    return publish


def read(api, path, key=None):
    return api.http.get(path, headers=key or api.reader)


def members_of(reply):
    assert (reply.status_code, reply.headers["content-type"]) == (200, "application/zip")
    with zipfile.ZipFile(io.BytesIO(reply.content)) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def test_answers_are_run_signed_and_handed_out(api, published):
    release = published(ORDER)
    assert release["state"] == "published"
    reply = read(api, release["links"]["answers"])
    assert (reply.status_code, reply.headers["content-type"]) == (200, "application/json")
    answers = reply.json()
    assert answers["column"] == "city"
    assert len(answers["counts"]) == 3
    assert sum(answers["counts"]) == pytest.approx(200, abs=30)

    members = members_of(read(api, release["links"]["generator"]))
    assert list(members) == ["answers.json", "config.json", "MODEL_CARD.md", "certificate.json"]
    assert json.loads(members["answers.json"]) == answers
    config, certificate = json.loads(members["config.json"]), json.loads(members["certificate.json"])
    assert (config["kind"], config["format"], config["schema"]["fields"][2]["name"]) == ("answers", 1, "city")
    assert certificate == read(api, release["links"]["certificate"]).json()
    assert certificate["mechanisms"][0]["releases"] == "counts of the categories of one column"
    card = members["MODEL_CARD.md"]
    assert "This ZIP holds noisy counts of the categories of one column. " in card
    for section in ("What is protected", "What is not protected", "The method", "Where it comes from", "Order"):
        assert f"\n## {section}\n" in card
    assert "ε = 2.0" in card

    acts = read(api, "/v1/audit", api.owner).json()["items"]
    lines = [(act["action"], act["object_id"], act["outcome"]) for act in acts]
    assert ("read_answers", release["id"], "done") in lines


def test_nothing_is_drawn_from_answers_and_the_refusal_says_where_they_are(api, published):
    release = published(ORDER)
    cache = api.http.app.state.samplers
    for query in ("", "?rows=0", "?format=npz"):
        refused = read(api, release["links"]["sample"] + query)
        _assert_problem(refused, 409, "not_in_release")
        body = refused.json()
        assert (body["holds"], body["at"]) == ("answers", release["links"]["answers"])
        assert body["at"] in body["detail"]
    assert not cache._samplers


@pytest.mark.slow
def test_a_generator_has_no_answers_and_the_refusal_says_where_it_is(api, published):
    release = published(NETWORK)
    refused = read(api, release["links"]["answers"])
    _assert_problem(refused, 409, "not_in_release")
    body = refused.json()
    assert (body["holds"], body["at"]) == ("generator", release["links"]["generator"])
    assert read(api, body["at"]).status_code == 200
    assert read(api, release["links"]["sample"] + "?rows=3").status_code == 200


def test_answers_are_for_keys_of_their_tenant_once_published(api, dataset_id, published):
    waiting = api.order(dataset_id, {**ORDER, "epsilon": 0.1}).json()["links"]["answers"]
    _assert_problem(read(api, waiting), 409, "not_ready")
    there = published({**ORDER, "epsilon": 1.0})["links"]["answers"]
    _assert_problem(read(api, there, api.stranger), 404, "not_found")
    _assert_problem(api.http.get(there), 401, "unauthenticated")
    assert read(api, there).status_code == 200


def test_answers_that_are_not_finite_are_not_published(published):
    release = published({**ORDER, "scale": 1e308})
    assert (release["state"], release["failure"]) == ("failed", "diverged")


@pytest.mark.parametrize("value", [(1, 2), {1: "a"}, np.float32(1.0), b"a", [{"x": {2}}]])
def test_what_json_would_change_is_a_mistake_of_the_method(value):
    release = AnswersRelease(answers={"value": value}, is_private=True, engine="none")
    with pytest.raises(TypeError, match="JSON values"):
        release.files(schema=parse_table_schema(SCHEMA), certificate={}, order={})
