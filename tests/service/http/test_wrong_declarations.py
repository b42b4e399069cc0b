"""What is refused before rows have a budget: a draft, a row as header, a schema that fits nothing; and how rows get free again."""

import json
import uuid

import pytest

from service.upkeep.sweep import sweep
from tests.service.http.test_datasets_api import _assert_problem
from tests.service.http.test_redeclaration import ORDER, PEOPLE, RIGHT, SEX, WRONG, charge, put, upload

pytestmark = pytest.mark.slow

DRAFT = {"description": "DRAFT, made by reading the private data."}


@pytest.mark.parametrize("part", ["schema", "field"])
def test_a_draft_is_refused_until_it_is_accepted(api, part):
    draft = RIGHT | DRAFT if part == "schema" else {"fields": [RIGHT["fields"][0] | DRAFT, RIGHT["fields"][1]]}
    refused = api.upload(PEOPLE, schema=json.dumps(draft))
    _assert_problem(refused, 422, "draft_schema")
    assert refused.json()["columns"] == ([] if part == "schema" else ["sex"])
    for wrong in ("false", "1", '"true"', "null"):
        reply = api.upload(PEOPLE, schema=json.dumps(draft), accept_draft=wrong)
        _assert_problem(reply, 422, "draft_schema", "invalid_input")
    made = upload(api, PEOPLE, draft, accept_draft="true")
    _assert_problem(put(api, made["id"], schema=draft), 422, "draft_schema")
    assert put(api, made["id"], schema=draft, accept_draft=True).status_code == 200
    assert put(api, made["id"], schema=RIGHT).status_code == 200
    assert put(api, made["id"], accept_draft=True).status_code == 422, "that alone declares nothing"


def test_a_draft_is_refused_where_rows_are_published_at_once(api):
    fields = {"schema": json.dumps(RIGHT | DRAFT), "budget": '{"epsilon": 3}', "order": json.dumps(ORDER)}
    reply = api.http.post("/v1/publish", data=fields, files={"file": ("t.csv", PEOPLE.encode())}, headers=api.owner)
    _assert_problem(reply, 422, "draft_schema")


def test_a_schema_that_fits_no_cell_of_a_column_is_refused_with_counts(api):
    refused = api.upload(PEOPLE, schema=json.dumps(WRONG))
    _assert_problem(refused, 422, "invalid_file")
    problem = refused.json()["problems"][0]
    assert (problem["column"], problem["count"]) == ("sex", 200)
    assert "200 of 200 cells" in refused.json()["detail"]
    narrow = {
        "fields": [RIGHT["fields"][0], {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 1}}]
    }
    both = api.upload(PEOPLE, schema=json.dumps({"fields": [WRONG["fields"][0], narrow["fields"][1]]}))
    assert [one["column"] for one in both.json()["problems"]] == ["sex", "age"]
    _assert_problem(api.upload(PEOPLE, schema=json.dumps(narrow), accept_undeclared=SEX), 422, "invalid_file")
    assert upload(api, PEOPLE, narrow, accept_undeclared='["age"]')["notices"]


@pytest.mark.parametrize("wrong", ["sex", '"sex"', "[1]", '{"sex": true}'])
def test_what_is_accepted_is_a_list_of_columns(api, wrong):
    _assert_problem(api.upload(PEOPLE, schema=json.dumps(WRONG), accept_undeclared=wrong), 422, "invalid_input")


def test_a_row_in_the_first_line_is_refused_and_not_quoted(api):
    rows = "Mercury,41\n" + "\n".join(f"{['Mercury', 'Venus'][i % 2]},{20 + i % 60}" for i in range(200))
    fields = [
        {"name": "Mercury", "type": "string", "constraints": {"enum": ["Mercury", "Venus"]}},
        {"name": "41", "type": "integer", "constraints": {"minimum": 0, "maximum": 120}},
    ]
    refused = api.upload(rows, schema=json.dumps({"fields": fields}))
    _assert_problem(refused, 422, "invalid_file")
    assert "first line looks like a row" in refused.json()["detail"]
    assert "Mercury" not in refused.text


def test_rows_that_nothing_was_ordered_from_may_be_uploaded_anew_once_erased(api):
    wrong = upload(api, PEOPLE, WRONG, accept_undeclared=SEX)
    cancelled = api.order(wrong["id"], ORDER).json()
    assert api.http.post(f"/v1/releases/{cancelled['id']}/cancel", headers=api.owner).status_code == 200
    _assert_problem(api.upload(PEOPLE, schema=json.dumps(RIGHT)), 409, "duplicate_rows")
    assert api.http.delete(f"/v1/datasets/{wrong['id']}", headers=api.owner).status_code == 204
    again = upload(api, PEOPLE, RIGHT)
    assert again["id"] != wrong["id"]
    assert api.http.get(f"/v1/datasets/{wrong['id']}/ledger", headers=api.owner).json()["verified"] is True


def test_rows_with_an_open_order_or_a_charge_keep_their_budget_after_erasure(api, context):
    made = upload(api, PEOPLE, RIGHT)
    order = api.order(made["id"], ORDER).json()
    assert api.http.delete(f"/v1/datasets/{made['id']}", headers=api.owner).status_code == 204
    _assert_problem(api.upload(PEOPLE, schema=json.dumps(RIGHT)), 409, "duplicate_rows")
    api.http.post(f"/v1/releases/{order['id']}/cancel", headers=api.owner)
    _assert_problem(api.upload(PEOPLE, schema=json.dumps(RIGHT)), 409, "duplicate_rows")
    others = PEOPLE.replace("20", "90")
    charged = upload(api, others, RIGHT, distinct_from=json.dumps([made["id"]]))
    charge(context, api.order(charged["id"], ORDER).json()["id"])
    assert api.http.delete(f"/v1/datasets/{charged['id']}", headers=api.owner).status_code == 204
    reply = api.upload(others, schema=json.dumps(RIGHT))
    _assert_problem(reply, 409, "duplicate_rows")
    assert reply.json()["dataset_id"] == charged["id"]


def test_rows_whose_date_has_come_are_free_too_if_nothing_was_ordered(api, context):
    made = upload(api, PEOPLE, RIGHT)
    with context.transaction() as session:
        from sqlalchemy import text

        session.execute(
            text("UPDATE datasets SET rows_expire_at = now() WHERE id = :dataset"), {"dataset": uuid.UUID(made["id"])}
        )
    sweep(context)
    assert upload(api, PEOPLE, RIGHT)["id"] != made["id"]
