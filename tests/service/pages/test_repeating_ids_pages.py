"""A column that may say whose row it is, and repeats: who says that each row is another person says so knowing it."""

import json
import re

import pytest

from service.pages.apart import FEW, repeating_of
from tests.service.pages.test_upload_walk import WAYS, all_public, owner, send, values_of

__all__ = ["owner"]

KNOWN = "I know that the same value of patient_id stands in several rows."
UNKNOWN = (
    "I have made sure of patient_id, of which the draft could not tell whether the same value stands in several rows."
)


def visits(patients, rows, name="patient_id"):
    return f"{name},age\n" + "".join(f"P{n % patients:06},{20 + n % 60}\n" for n in range(rows))


def alert(page):
    return page.text.split('role="alert"')[1].split("</p>")[0]


def sent(page, **more):
    return {**values_of(page.text), **all_public(page.text), **WAYS, "step": "continue", **more}


def test_one_row_each_is_not_believed_where_an_id_repeats(api, owner):
    page = send(owner, visits(50, 200))
    assert KNOWN in page.text
    typed = {"c1.low": "17", "c1.high": "101"}
    refused = owner.post(page.url.path, sent(page, **typed))
    assert refused.status_code == 422
    assert "&#39;patient_id&#39;: the same value stands in several rows" in alert(refused)
    kept = values_of(refused.text)
    assert {name: kept[name] for name in typed} == typed
    assert (kept["several"], kept["declared"]) == ("no", "on")
    assert "apart" not in kept
    address = page.url.path.replace("declare", "budget")
    assert owner.get(address).url.path == page.url.path
    budget = owner.post(page.url.path, sent(refused, apart="on"))
    assert budget.url.path == address
    done = owner.post(address, {**values_of(budget.text), "step": "publish"})
    assert "Published" in done.text, done.text
    (dataset,) = api.http.get("/v1/datasets", headers=api.reader).json()["items"]
    assert dataset["privacy_unit"] is None
    for word in ("apart", "repeat", "several"):
        assert word not in json.dumps(dataset["schema"])


def test_the_tick_stays_as_it_was_and_a_person_column_needs_none(api, owner):
    page = send(owner, visits(50, 200))
    saved = owner.post(page.url.path, sent(page, apart="on", step="save"))
    assert values_of(saved.text)["apart"] == "on"
    unit = {"several": "yes", "column": "patient_id", "most": "4"}
    form = sent(saved, **unit)
    del form["apart"]
    budget = owner.post(page.url.path, form)
    assert budget.url.path.endswith("/budget"), alert(budget)
    owner.post(budget.url.path, {**values_of(budget.text), "step": "publish"})
    (dataset,) = api.http.get("/v1/datasets", headers=api.owner).json()["items"]
    assert dataset["privacy_unit"] == {"column": "patient_id", "max_rows_per_unit": 4}


def test_what_has_too_many_different_values_to_tell_is_asked_too(owner):
    page = send(owner, visits(10_020, 10_020))
    assert UNKNOWN in page.text
    refused = owner.post(page.url.path, sent(page))
    assert "&#39;patient_id&#39;: there are too many different values to tell" in alert(refused)
    assert owner.post(page.url.path, sent(refused, apart="on")).url.path.endswith("/budget")


def test_the_tick_stays_short_where_many_columns_repeat(owner):
    names = [f"person_{letter}_id" for letter in "abcdefgh"]
    rows = [",".join(f"P{n % 50:06}" for _ in names) for n in range(200)]
    page = send(owner, "\n".join([",".join(names), *rows])).text
    assert f"the same value of {', '.join(names[:FEW])} and 4 more stands in several rows." in page
    (fold,) = re.findall(r'<details data-shown-for="no">(.*?)</details>', page, re.DOTALL)
    assert "All 8 columns: person_a_id …" in fold
    assert ", ".join(names) in fold


@pytest.mark.parametrize(
    "table",
    [
        visits(200, 200),  # each value once
        visits(5, 200, "region_id"),  # few categories, each of many rows
        "town,age\n" + "".join(f"{('Bonn', 'Oslo', 'Rome')[n % 3]},{20 + n % 60}\n" for n in range(200)),
    ],
    ids=["different", "categories", "another name"],
)
def test_where_nothing_may_repeat_nothing_is_asked(owner, table):
    page = send(owner, table)
    assert 'name="apart"' not in page.text


def test_a_draft_of_an_earlier_version_asks_nothing():
    assert repeating_of({"kind": "table"}) == ([], [])
