"""A question from the form to its answer: by real processes, so that the answer is a real one."""

import re
import time

import httpx
import pytest
from fastapi import Request

from imprimatur import Client
from service.base.errors import InvalidOrder
from service.domain.image_schema import parse_schema
from service.pages.examples import example_condition
from service.pages.questions import question_of
from service.pages.words import KINDS
from tests.conftest import SMALL_SCHEMA, small_table

REQUEST = Request({"type": "http", "headers": [(b"accept-language", b"de")]})


@pytest.fixture(scope="module")
def asked(stack, new_tenant, tmp_path_factory):
    """A key, and its dataset: the shared one is for tests that only look."""
    key = new_tenant()
    with Client(stack.url, key) as client:
        table = small_table(tmp_path_factory.mktemp("asked") / "small.csv")
        yield key, client.create_dataset(table, SMALL_SCHEMA, epsilon=5.0)["id"]


@pytest.fixture(scope="module")
def browser(stack, asked):
    with httpx.Client(base_url=stack.url, follow_redirects=True, timeout=600) as http:
        http.post("/sign-in", data={"key": asked[0]})
        http.headers["X-CSRF-Token"] = re.search(r'name="csrf-token" content="(\w+)"', http.get("/").text)[1]
        yield http


def hidden(page):
    return dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', page))


def test_a_question_is_priced_confirmed_answered_and_then_free(browser, asked):
    here = f"/datasets/{asked[1]}"
    form = browser.get(f"{here}/ask").text
    assert "how many rows each value has" in form
    filled = {"kind": "histogram", "column": "colour", "epsilon": "0.05"}
    part = browser.post(f"{here}/ask", data=filled, headers={"HX-Request": "true"}).text
    assert "It costs" in part
    assert "stands beside the answer" in part
    assert "does not follow from the price" not in part
    (example,) = re.findall(r'name="where" value="" placeholder="([^"]+)"', form)
    counted = {"kind": "count", "where": example.replace("&gt;", ">").replace("&amp;", "&"), "epsilon": "0.05"}
    assert "It costs" in browser.post(f"{here}/ask", data=counted, headers={"HX-Request": "true"}).text
    confirm = browser.post(f"{here}/ask", data={**filled, "step": "confirm"}).text
    assert "The charge cannot be taken back" in confirm
    release = browser.post(f"{here}/queries", data=hidden(confirm))
    for _ in range(6_000):
        page = browser.get(release.url.path).text
        if "state-published" in page:
            break
        time.sleep(0.1)
    assert "Answers" in page
    assert "Download a sample" not in page
    again = browser.post(f"{here}/ask", data=filled, headers={"HX-Request": "true"}).text
    assert "asked before" in again
    assert release.url.path in again


def test_an_example_of_a_condition_is_of_the_own_columns():
    years = {"name": "years", "type": "integer", "constraints": {"minimum": 0, "maximum": 99}}
    ward = {"name": "ward", "type": "string", "constraints": {"enum": ["of the heart", "eyes"]}}
    spaced = {"name": "a b", "type": "integer", "constraints": {"minimum": 0, "maximum": 9}}
    assert example_condition(parse_schema({"fields": [spaced, ward, years]})) == "years>=50&ward=eyes"
    assert example_condition(parse_schema({"fields": [spaced]})) == "age>=65&sex=f"


def test_a_question_that_cannot_be_asked_is_said(browser, asked):
    here = f"/datasets/{asked[1]}/ask"
    for wrong in ({"kind": "mean", "column": "colour"}, {"kind": "mean"}, {"kind": "count", "where": "nonsense=1"}):
        reply = browser.post(here, data={"epsilon": "0.1", **wrong})
        assert reply.status_code == 422
        assert 'role="alert"' in reply.text


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_has_its_columns(kind):
    question = question_of(REQUEST, {"kind": kind, "column": "a", "second": "b", "epsilon": "0,5"})
    assert question["epsilon"] == 0.5
    assert ("column" in question) + ("columns" in question) == (kind != "count")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"kind": "keys"}, "column: choose one"),
        ({"kind": "cross_table"}, "column: choose one"),
        ({"kind": "cross_table", "column": "a"}, "columns: choose another one"),
        ({"kind": "cross_table", "column": "a", "second": "a"}, "columns: choose another one"),
    ],
)
def test_a_column_that_is_not_chosen_is_asked_for_in_the_words_of_the_form(wrong, said):
    with pytest.raises(InvalidOrder) as refused:
        question_of(REQUEST, {"epsilon": "0,5", **wrong})
    assert refused.value.detail == said


def test_a_reader_asks_nothing(api, browser_of, dataset_id):
    assert browser_of(api.reader).get(f"/datasets/{dataset_id}/ask").status_code == 403
    assert browser_of(api.reader).post(f"/datasets/{dataset_id}/queries", {"kind": "count"}).status_code == 403
