"""Uploads through HTTP: what is kept, what is refused, and that a refusal keeps nothing."""

import io
import json
import math
import uuid

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from service.platform.storage import Storage
from tests.service.http.conftest import ROWS, SCHEMA, TABLE

pytestmark = pytest.mark.slow

MARKER = "Zzmarker"


def test_an_upload_gets_a_dataset_and_a_fresh_budget(api):
    reply = api.upload()
    assert reply.status_code == 201
    body = reply.json()
    assert body["units"] == 200
    assert (body["delta"], body["warnings"]) == (1e-6, [])
    assert body["state"] == "ready"
    assert body["schema"]["fields"][0]["name"] == "age"
    assert reply.headers["location"] == f"/v1/datasets/{body['id']}"
    budget = api.http.get(f"/v1/datasets/{body['id']}/budget", headers=api.reader).json()
    assert budget["epsilon"] == 3.0
    assert budget["accounts"]["simple"] == {"posted": 0, "pending": 0, "remaining": 10**9}
    assert budget["accounts"]["renyi"]["remaining"] == 10**9
    assert budget["accounts"]["renyi"]["order"] >= 2
    assert (budget["remaining_share"], budget["epsilon_spent"], budget["largest_next_epsilon"]) == (1.0, 0.0, 3.0)


def test_a_large_promise_is_kept_with_its_warnings(api):
    """In the reply to the upload, wherever the dataset is read again, and in a quote."""
    made = api.upload(budget='{"epsilon": 11, "delta": 0.0005}').json()
    of_epsilon, of_delta = made["warnings"]
    assert of_epsilon.startswith("ε = 11 for everything")
    assert "22,026 : 1" in of_epsilon
    assert "calls a δ above 1e-05 suspicious and prefers one of at most 1/n², here 2.5e-05" in of_delta
    here = f"/v1/datasets/{made['id']}"
    assert api.http.get(here, headers=api.reader).json()["warnings"] == made["warnings"]
    listed = api.http.get("/v1/datasets", headers=api.reader).json()["items"]
    assert [dataset["warnings"] for dataset in listed] == [made["warnings"]]
    for epsilon, count in ((1.0, 2), (10.5, 3)):
        order = {"method": "marginals", "epsilon": epsilon, "steps": 10}
        quote = api.http.post(f"{here}/quotes", json=order, headers=api.reader).json()
        of_promises = [
            each for each in quote["warnings"] if not each.startswith(("This order buys", "Relations among"))
        ]
        assert len(of_promises) == count, of_promises
        assert set(made["warnings"]) <= set(of_promises)


def test_the_operator_says_how_large_an_epsilon_may_be(api, context):
    from fastapi.testclient import TestClient

    from service.http.app import create_app

    refused = api.upload(budget='{"epsilon": 25}')
    _assert_problem(refused, 422, "invalid_input")
    assert refused.json()["where"] == "budget.epsilon"
    assert "IMPRIMATUR_MAX_EPSILON" in refused.json()["detail"]
    fields = {"schema": json.dumps(SCHEMA), "budget": '{"epsilon": 25}'}
    published = api.http.post(
        "/v1/publish",
        data={**fields, "order": '{"method": "marginals", "epsilon": 1}'},
        files={"file": ("p.csv", TABLE)},
        headers=api.owner,
    )
    _assert_problem(published, 422, "invalid_input")
    _assert_nothing_kept(api, context)
    generous = context.settings.model_copy(update={"max_epsilon": 25.0})
    with TestClient(create_app(generous)) as http:
        made = http.post("/v1/datasets", data=fields, files={"file": ("p.csv", TABLE)}, headers=api.owner)
    assert (made.status_code, made.json()["epsilon"]) == (201, 25.0)
    assert made.json()["warnings"][0].startswith("ε = 25 for everything")


def test_publishing_says_what_must_be_said_in_a_header(api):
    fields = {"schema": json.dumps(SCHEMA), "order": '{"method": "marginals", "epsilon": 1}'}
    for budget, rows in (('{"epsilon": 12}', ROWS), ('{"epsilon": 2}', ROWS[1:])):
        table = "age,income,city,smoker,born\n" + "\n".join(rows) + "\n"
        data = {**fields, "budget": budget}
        reply = api.http.post("/v1/publish", data=data, files={"file": ("p.csv", table)}, headers=api.owner)
        assert reply.status_code == 202
        dataset = api.http.get(f"/v1/datasets/{reply.headers['x-dataset-id']}", headers=api.reader).json()
        said = json.loads(reply.headers.get("x-warnings", "[]"))
        assert said[: len(dataset["warnings"])] == dataset["warnings"]
        assert any("buys little" in each for each in said), "200 rows at ε = 1"
        assert len(dataset["warnings"]) == (1 if "12" in budget else 0)


@pytest.mark.usefixtures("dataset_id")
def test_rows_are_stored_encrypted(context):
    stored = [context.storage.get(key) for key in context.storage.list("datasets")]
    assert len(stored) == 2  # the rows, and the upload as it came
    assert not any(b"Rome" in content or b"PAR1" in content for content in stored)


def test_parquet_is_the_same_table(api):
    frame = pl.read_csv(io.StringIO(TABLE), try_parse_dates=True)
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    assert api.upload(buffer.getvalue()).status_code == 201
    again = api.upload(TABLE)
    assert again.status_code == 409
    assert again.json()["code"] == "duplicate_rows"


def _parquet(frame):
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


def _csv(frame, **options):
    return frame.write_csv(**options)


TYPED = pl.read_csv(io.StringIO(TABLE), try_parse_dates=True)
TEXTS = pl.read_csv(io.StringIO(TABLE), infer_schema=False)
SAME_ROWS = {
    "as they are, under another name": lambda: TABLE,
    "in another order": lambda: _csv(TEXTS.sample(fraction=1.0, shuffle=True, seed=7)),
    "with the columns in another order": lambda: _csv(TEXTS.select(reversed(TEXTS.columns))),
    "as Parquet": lambda: _parquet(TYPED),
    "as Parquet of texts": lambda: _parquet(TEXTS),
    "as Parquet, all in another order": lambda: _parquet(TYPED.reverse().select(reversed(TYPED.columns))),
    "with numbers as 1017.0": lambda: _csv(TYPED.cast({"age": pl.Float64, "income": pl.Float64})),
    "with numbers as 1.017000e3": lambda: _csv(TYPED.cast({"income": pl.Float64}), float_scientific=True),
    "with numbers as +001017": lambda: _csv(TEXTS.with_columns(pl.format("+00{}", "income").alias("income"))),
    "with every cell quoted and other line ends": lambda: _csv(TEXTS, quote_style="always", line_terminator="\r\n"),
    "behind a byte order mark": lambda: "\ufeff" + TABLE,
}


def test_the_same_file_keeps_its_budget_whatever_is_declared_to_be_missing(api):
    """Nor have the same values a second one that are written otherwise."""
    fields = [field | {"constraints": field.get("constraints", {}) | {"required": False}} for field in SCHEMA["fields"]]

    def upload(table, *missing):
        return api.upload(table, schema=json.dumps({"fields": fields, "missingValues": ["", *missing]}))

    first = upload(TABLE.replace("Rome", "-9"), "-9")
    assert first.status_code == 201, first.text
    for known in (
        upload(TABLE.replace("Rome", "-9")),
        upload(TABLE.replace("Rome", "-9"), "-9", "-8"),
        upload(TABLE.replace("Rome", "")),
        upload(TABLE.replace("Rome", "?"), "?", "-1017"),
    ):
        assert (known.status_code, known.json()["code"]) == (409, "duplicate_rows")
        assert known.json()["dataset_id"] == first.json()["id"]
        assert "columns_match" not in known.json()
    changed = upload(TABLE.replace("Rome", "-8"), "-9")
    assert (changed.status_code, changed.json()["columns_match"]) == (409, True)


def test_the_same_rows_say_whether_they_are_declared_alike(api, dataset_id):
    """In its own tenant only, and of the declaration alone: not of its spelling, its name or its ε."""
    income = {**SCHEMA["fields"][1], "constraints": {**SCHEMA["fields"][1]["constraints"], "required": False}}
    spelled_out = {"fields": [SCHEMA["fields"][0], income, *SCHEMA["fields"][2:]]}
    for declared, same in (
        ({}, True),
        ({"name": "another", "budget": '{"epsilon": 1}'}, True),
        ({"schema": json.dumps(spelled_out)}, True),
        ({"schema": json.dumps(SCHEMA | {"target": "city"})}, False),
    ):
        known = api.upload(**declared).json()
        assert (known["code"], known["dataset_id"], known["same_declaration"]) == ("duplicate_rows", dataset_id, same)
    assert "same_declaration" not in api.upload(key=api.stranger).json()


def test_the_same_rows_keep_their_budget_in_every_form_even_after_erasure(api, dataset_id):
    """Each form, before and after the first upload is erased; from a stranger it learns no id. Parquet first, too."""

    def assert_known(reply, known, form):
        assert (reply.status_code, reply.json()["code"], reply.json().get("dataset_id")) == (
            409,
            "duplicate_rows",
            known,
        ), form

    for form, write in SAME_ROWS.items():
        assert_known(api.upload(write(), name=form, filename=f"{uuid.uuid4()}.data"), dataset_id, form)
    assert_known(api.upload(TABLE, key=api.stranger), None, "a stranger's")
    assert api.order(dataset_id, {"method": "idpgan", "epsilon": 1}).status_code == 202
    assert api.http.delete(f"/v1/datasets/{dataset_id}", headers=api.owner).status_code == 204
    for form in ("in another order", "as Parquet", "with numbers as 1.017000e3"):
        assert_known(api.upload(SAME_ROWS[form](), name=form), dataset_id, form)
        assert_known(api.upload(SAME_ROWS[form](), key=api.stranger), None, form)
    assert api.http.get("/v1/datasets", headers=api.stranger).json() == {"items": [], "next": None}
    assert len(api.http.get("/v1/datasets", headers=api.owner).json()["items"]) == 1


def test_erasure_destroys_rows_and_key_and_leaves_the_ledger(api, context, dataset_id):
    assert api.http.delete(f"/v1/datasets/{dataset_id}", headers=api.owner).status_code == 204
    assert api.http.delete(f"/v1/datasets/{dataset_id}", headers=api.owner).status_code == 204
    assert list(context.storage.list("datasets")) == []
    assert api.http.get(f"/v1/datasets/{dataset_id}", headers=api.reader).json()["state"] == "erased"
    assert api.http.get(f"/v1/datasets/{dataset_id}/ledger", headers=api.reader).json()["verified"] is True
    reply = api.order(dataset_id, {"method": "idpgan", "epsilon": 1})
    assert (reply.status_code, reply.json()["code"]) == (410, "erased")


def test_a_privacy_unit_counts_units_not_rows(api):
    table = "who,age\n" + "\n".join(f"person{i % 40},{20 + i % 60}" for i in range(200))
    schema = {"fields": [SCHEMA["fields"][0]]}
    unit = json.dumps({"column": "who", "max_rows_per_unit": 3})
    reply = api.upload(table, schema=json.dumps(schema), privacy_unit=unit)
    assert reply.status_code == 201, reply.text
    assert reply.json()["units"] == 40
    assert "200" not in reply.text.replace(reply.json()["id"], "")


def _rows(*replacements):
    return "age,income,city,smoker,born\n" + "\n".join([*replacements, *ROWS])


BAD_FILES = {
    "empty": b"",
    "header only": b"age,income,city,smoker,born\n",
    "one row": "\n".join(TABLE.splitlines()[:2]).encode(),
    "other header": TABLE.replace("income", "salary", 1).encode(),
    "missing column": b"age,city\n" + b"\n".join([b"30,Rome"] * 5),
    "undeclared column": b"age,income,city,smoker,born,zodiac\n" + b"\n".join([b"30,1,Rome,true,1990-01-01,lion"] * 5),
    "duplicate column": b"age,age,income,city,smoker,born\n" + b"\n".join([b"30,31,1,Rome,true,1990-01-01"] * 5),
    "wrong type": _rows(f"{MARKER},1,Rome,true,1990-01-01").encode(),
    "wrong date": _rows(f"30,1,Rome,true,{MARKER}").encode(),
    "not UTF-8": _rows("30,1,Rome,true,1990-01-01").encode() + "31,1,Zürich,true,1990-01-01\n".encode("latin-1"),
    "NUL": _rows("30,1,Ro\x00me,true,1990-01-01").encode(),
    "NaN": _rows("30,nan,Rome,true,1990-01-01").encode(),
    "infinity": _rows("30,inf,Rome,true,1990-01-01").encode(),
    "ragged": _rows("30,1,Rome").encode(),
    "required is missing": _rows(",1,Rome,true,1990-01-01").encode(),
    "undeclared category in a required column": _rows(f"30,1,{MARKER},true,1990-01-01").encode(),
    "neither CSV nor Parquet": bytes(range(256)) * 40,
    "broken Parquet": b"PAR1" + bytes(1000) + b"PAR1",
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_is_refused_clearly_and_nothing_is_kept(api, context, name):
    reply = api.upload(BAD_FILES[name])
    _assert_problem(reply, 422, "invalid_file")
    _assert_nothing_kept(api, context)


BAD_FIELDS = {
    "no schema": {"schema": None},
    "schema is no JSON": {"schema": "{"},
    "schema leaves a domain open": {"schema": json.dumps({"fields": [{"name": "age", "type": "integer"}]})},
    "schema of a wrong type": {"schema": json.dumps({"fields": [{"name": "age", "type": "complex"}]})},
    "no budget": {"budget": None},
    "epsilon zero": {"budget": '{"epsilon": 0}'},
    "epsilon negative": {"budget": '{"epsilon": -1}'},
    "epsilon NaN": {"budget": '{"epsilon": NaN}'},
    "epsilon infinite": {"budget": '{"epsilon": Infinity}'},
    "epsilon 1e308": {"budget": '{"epsilon": 1e308}'},
    "epsilon text": {"budget": '{"epsilon": "many"}'},
    "epsilon tiny": {"budget": '{"epsilon": 1e-9, "delta": 1e-15}'},
    "delta one": {"budget": '{"epsilon": 1, "delta": 1}'},
    "delta above one": {"budget": '{"epsilon": 1, "delta": 1.5}'},
    "delta above 1/(10 units)": {"budget": '{"epsilon": 1, "delta": 0.000501}'},
    "delta too small for prices": {"budget": '{"epsilon": 1, "delta": 9e-16}'},
    "epsilon above the operator's limit": {"budget": '{"epsilon": 20.01}'},
    "delta zero": {"budget": '{"epsilon": 1, "delta": 0}'},
    "delta NaN": {"budget": '{"epsilon": 1, "delta": NaN}'},
    "unknown budget field": {"budget": '{"epsilon": 1, "gamma": 1}'},
    "budget is a list": {"budget": "[]"},
    "deep JSON": {"budget": "[" * 100_000},
    "unknown field": {"colour": "red"},
    "privacy unit without a column": {"privacy_unit": "{}"},
    "privacy unit not in the file": {"privacy_unit": '{"column": "who", "max_rows_per_unit": 2}'},
    "name unprintable": {"name": "a\x07b"},
}


@pytest.mark.parametrize("name", BAD_FIELDS)
def test_a_bad_field_is_refused_clearly_and_nothing_is_kept(api, context, name):
    reply = api.upload(**BAD_FIELDS[name])
    _assert_problem(reply, 422, "invalid_input", "invalid_schema", "invalid_file")
    _assert_nothing_kept(api, context)


def test_a_missing_file_and_a_plain_body_are_refused(api, context):
    fields = {"schema": json.dumps(SCHEMA), "budget": '{"epsilon": 1}'}
    _assert_problem(api.http.post("/v1/datasets", data=fields, headers=api.owner), 422, "invalid_input")
    _assert_problem(api.http.post("/v1/datasets", json={}, headers=api.owner), 422, "invalid_input")
    truncated = api.http.post(
        "/v1/datasets",
        content=b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nage',
        headers={**api.owner, "Content-Type": "multipart/form-data; boundary=x"},
    )
    _assert_problem(truncated, 422, "invalid_input")
    _assert_nothing_kept(api, context)


def test_the_size_limit_holds_while_the_body_streams(api, context):
    from fastapi.testclient import TestClient

    from service.http.app import create_app

    small = context.settings.model_copy(update={"upload_limit_bytes": 10_000})
    sent = 0

    def body():
        nonlocal sent
        yield b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'
        for _ in range(1_000):
            sent += 1
            yield b"1,2,3\n" * 1_000

    headers = {**api.owner, "Content-Type": "multipart/form-data; boundary=x"}
    with TestClient(create_app(small)) as http:
        declared = http.post("/v1/datasets", content=b"x" * 20_000, headers=headers)
        streamed = http.post("/v1/datasets", content=body(), headers=headers)
    for reply in (declared, streamed):
        _assert_problem(reply, 413, "too_large")
        assert reply.json()["limit_bytes"] == 10_000
    _assert_nothing_kept(api, context)


def test_a_parquet_bomb_is_refused(api, context):
    rows = 20_000_000
    column = pa.array(np.ones(rows, dtype=np.int64))
    buffer = io.BytesIO()
    pq.write_table(pa.table({"age": column, "size": column}), buffer, row_group_size=rows)
    assert len(buffer.getvalue()) < 200_000
    age = SCHEMA["fields"][0]
    schema = json.dumps({"fields": [age, {**age, "name": "size"}]})
    _assert_problem(api.upload(buffer.getvalue(), schema=schema), 413, "too_large")
    _assert_nothing_kept(api, context)


def test_notices_count_what_is_outside_the_declared_domain_for_the_owner_alone(api):
    table = _rows("130,1,Rome,true,1990-01-01", "131,1,Rome,true,1990-01-01")
    made = api.upload(table).json()
    assert any("age" in notice and "2" in notice for notice in made["notices"])
    assert "notices" not in api.http.get(f"/v1/datasets/{made['id']}", headers=api.reader).json()


@pytest.mark.parametrize("scope", ["analyst", "reader"])
def test_only_an_owner_uploads_or_erases(api, dataset_id, scope):
    key = getattr(api, scope)
    _assert_problem(api.upload(TABLE.replace("Rome", "Oslo", 1), key=key), 403, "forbidden")
    _assert_problem(api.http.delete(f"/v1/datasets/{dataset_id}", headers=key), 403, "forbidden")


@pytest.mark.parametrize("header", [None, "Bearer", "Bearer nonsense", "Basic abc", "Bearer imp_" + "x" * 43])
def test_no_key_or_a_wrong_one_is_not_let_in(api, header):
    headers = {} if header is None else {"Authorization": header}
    reply = api.http.get("/v1/datasets", headers=headers)
    _assert_problem(reply, 401, "unauthenticated")
    assert reply.headers["www-authenticate"] == "Bearer"


def test_a_revoked_key_stops_at_once(api):
    keys = api.http.get("/v1/keys", headers=api.owner).json()["items"]
    reader = next(key for key in keys if key["scope"] == "reader")
    assert api.http.delete(f"/v1/keys/{reader['id']}", headers=api.owner).status_code == 204
    _assert_problem(api.http.get("/v1/datasets", headers=api.reader), 401, "unauthenticated")
    _assert_problem(api.http.delete(f"/v1/keys/{uuid.uuid4()}", headers=api.owner), 404, "not_found")


def _assert_problem(reply, status, *codes):
    assert reply.status_code == status, reply.text
    assert reply.headers["content-type"] == "application/problem+json"
    body = reply.json()
    assert body["code"] in codes, body
    assert body["status"] == status
    assert len(body["detail"]) > 10
    assert MARKER not in reply.text
    assert not any(isinstance(value, float) and math.isnan(value) for value in body.values())


def _assert_nothing_kept(api, context: object):
    storage: Storage = context.storage
    assert list(storage.list()) == []
    assert list(context.settings.scratch_dir.iterdir()) == []
    assert api.http.get("/v1/datasets", headers=api.owner).json() == {"items": [], "next": None}
