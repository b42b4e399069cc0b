"""Most columns of as many rows: one budget, unless an owner says in writing that they are other people's."""

import json
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import psycopg
import pytest

import service.datasets.service as datasets
import service.releases.service as releases
from service.auth.principal import Principal
from service.base.errors import DuplicateRows
from service.datasets import repository
from service.datasets.declaration import parse_declaration
from service.intake.ingest import ingest_table
from service.intake.limits import IngestLimits
from service.intake.sealed import SealedFile
from tests.bare_rows import add_bare_key
from tests.service.http.conftest import SCHEMA, TABLE
from tests.service.http.test_audit_log import acts
from tests.service.http.test_datasets_api import _assert_problem
from tests.tiny_images import image_schema, make_images, npz

pytestmark = pytest.mark.slow

NAMES = [field["name"] for field in SCHEMA["fields"]]


def _renamed(schema=SCHEMA):
    """The table and its schema under other names; the fields as they are otherwise."""
    fields = [{**field, "name": field["name"].upper()} for field in schema["fields"]]
    return TABLE.replace(",".join(NAMES), ",".join(NAMES).upper()), json.dumps({"fields": fields})


def _shorter(table=TABLE):
    return table.rsplit("\n", 2)[0] + "\n"


def _other_people(count=200):
    random = np.random.default_rng(1)
    rows = (
        f"{random.integers(18, 90)},{random.integers(1, 10**6)},{random.choice(('Rome', 'Oslo', 'Bonn'))},"
        f"{random.choice(('true', 'false'))},19{random.integers(50, 99)}-0{random.integers(1, 9)}-02"
        for _ in range(count)
    )
    return "\n".join([",".join(NAMES), *rows]) + "\n"


def test_renamed_columns_open_no_second_budget(api, dataset_id):
    table, schema = _renamed()
    reply = api.upload(table, schema=schema)
    _assert_problem(reply, 409, "duplicate_rows")
    assert (reply.json()["dataset_id"], reply.json()["columns_match"]) == (dataset_id, True)
    assert "distinct_from" in reply.json()["detail"]
    assert api.order(dataset_id, {"method": "idpgan", "epsilon": 1}).status_code == 202
    assert api.http.delete(f"/v1/datasets/{dataset_id}", headers=api.owner).status_code == 204
    assert api.upload(table, schema=schema).json()["dataset_id"] == dataset_id, "nor after erasure"
    assert len(api.http.get("/v1/datasets", headers=api.owner).json()["items"]) == 1


def test_a_constant_column_and_new_ids_open_no_second_budget(api):
    schema, unit = json.dumps(SCHEMA), json.dumps({"column": "who", "max_rows_per_unit": 3})

    def with_ids(prefix, constant=""):
        head, *rows = TABLE.splitlines()
        lines = [f"{row},{prefix}{i // 3}{constant}" for i, row in enumerate(rows)]
        return "\n".join([f"{head},who{',year' if constant else ''}", *lines]) + "\n"

    first = api.upload(with_ids("a"), schema=schema, privacy_unit=unit)
    assert first.status_code == 201, first.text
    year = {"name": "year", "type": "integer", "constraints": {"minimum": 2000, "maximum": 2030}}
    longer = json.dumps({"fields": [*SCHEMA["fields"], year]})
    for again in (
        api.upload(with_ids("b"), schema=schema, privacy_unit=unit),
        api.upload(with_ids("b", ",2025"), schema=longer, privacy_unit=unit),
        api.upload(TABLE, schema=schema),
    ):
        _assert_problem(again, 409, "duplicate_rows")
        assert again.json()["dataset_id"] == first.json()["id"]


def test_other_people_of_one_source_and_a_row_more_or_less_have_budgets_of_their_own(api, dataset_id):
    """The last two are limits, not virtues: docs/privacy.md."""
    made = [api.upload(table) for table in (_other_people(), _shorter(), TABLE + TABLE.splitlines()[-1] + "\n")]
    assert [reply.status_code for reply in made] == [201, 201, 201]
    assert dataset_id not in {reply.json()["id"] for reply in made}


def _leaving_out(*names):
    """The schema, these columns being in the file and no part of the model."""
    fields = [
        {"name": one["name"], "type": one["type"], "role": "ignore"} if one["name"] in names else one
        for one in SCHEMA["fields"]
    ]
    return json.dumps({"fields": fields})


def test_what_one_declaration_leaves_out_and_another_models_opens_no_second_budget_in_a_tenant(api):
    """With other cells in what is left out, so that no whole file is the same. What others leave out, no stranger can test."""
    halves = ("age", "smoker", "city"), ("income", "born")
    people = _other_people()
    first = api.upload(people, schema=_leaving_out(*halves[1]))
    assert first.status_code == 201, first.text
    head, *rows = people.splitlines()
    altered = "\n".join([head, *(f"{20 + len(row) % 9},{row.split(',', 1)[1]}" for row in rows), ""])
    again = {"table": altered, "schema": _leaving_out(*halves[0])}
    refused = api.upload(**again)
    _assert_problem(refused, 409, "duplicate_rows")
    assert (refused.json()["dataset_id"], refused.json()["columns_match"]) == (first.json()["id"], True)
    assert api.upload(**again, key=api.stranger).status_code == 201


def test_a_column_that_is_modelled_by_another_declaration_later_is_recognised_in_every_tenant(api):
    people = _other_people()
    made = api.upload(people, schema=_leaving_out("income", "born"))
    put = api.http.put(
        f"/v1/datasets/{made.json()['id']}/declaration",
        json={"schema": json.loads(_leaving_out("age", "smoker", "city"))},
        headers=api.owner,
    )
    assert put.status_code == 200, put.text
    rows = people.splitlines()[1:]
    alone = "\n".join(["income,born", *(f"{row.split(',')[1]},{row.split(',')[4]}" for row in rows), ""])
    fields = [field for field in SCHEMA["fields"] if field["name"] in {"income", "born"}]
    for key in (api.owner, api.stranger):
        _assert_problem(api.upload(alone, schema=json.dumps({"fields": fields}), key=key), 409, "duplicate_rows")


def test_a_stranger_learns_neither_which_nor_how_much(api, dataset_id):
    table, schema = _renamed()
    exact, near = api.upload(key=api.stranger), api.upload(table, schema=schema, key=api.stranger)
    documents = [reply.json() for reply in (exact, near)]
    for document in documents:
        assert (document["code"], document.get("dataset_id"), document.get("columns_match")) == (
            "duplicate_rows",
            None,
            None,
        )
    assert documents[0]["detail"] == documents[1]["detail"]
    claim = api.upload(table, schema=schema, key=api.stranger, distinct_from=json.dumps([dataset_id]))
    _assert_problem(claim, 404, "not_found")


def test_an_owner_may_say_that_rows_are_other_peoples_and_the_audit_log_keeps_it(api, dataset_id):
    table, schema = _renamed()
    before = acts(api)
    reply = api.upload(table, schema=schema, distinct_from=json.dumps([dataset_id]))
    assert reply.status_code == 201, reply.text
    second = reply.json()["id"]
    assert acts(api)[len(before) :] == [
        ("create_dataset", "dataset", second, "done"),
        ("declare_distinct", "dataset", dataset_id, "done"),
    ]
    lines = api.http.get("/v1/audit", params={"limit": 2}, headers=api.owner).json()["items"]
    assert lines[0]["request_id"] == lines[1]["request_id"]
    third = api.upload(table.replace("true", "false", 1), schema=schema, distinct_from=json.dumps([dataset_id]))
    assert (third.status_code, third.json()["dataset_id"]) == (409, second), "one that is not named refuses"
    both = json.dumps([dataset_id, second])
    assert api.upload(table.replace("true", "false", 1), schema=schema, distinct_from=both).status_code == 201


def test_whole_rows_are_the_same_whatever_an_owner_says(api, dataset_id):
    reply = api.upload(distinct_from=json.dumps([dataset_id]))
    _assert_problem(reply, 409, "duplicate_rows")
    assert (reply.json()["dataset_id"], "columns_match" in reply.json()) == (dataset_id, False)
    assert "declare_distinct" not in {action for action, *_ in acts(api)}


@pytest.mark.parametrize("wrong", ["", "x", "[1]", "{}", '"x"', json.dumps([str(uuid.uuid4())] * 101)])
def test_what_distinct_from_must_be(api, wrong):
    _assert_problem(api.upload(distinct_from=wrong), 422, "invalid_input")


def test_distinct_from_names_datasets_of_the_own_tenant(api):
    _assert_problem(api.upload(distinct_from=json.dumps([str(uuid.uuid4())])), 404, "not_found")


def test_publish_takes_distinct_from(api, dataset_id):
    table, schema = _renamed()
    fields = {"schema": schema, "budget": '{"epsilon": 3}', "order": '{"method": "idpgan", "epsilon": 1, "steps": 5}'}

    def publish(**more):
        files = {"file": ("t.csv", table.encode())}
        return api.http.post("/v1/publish", data=fields | more, files=files, headers=api.owner)

    _assert_problem(publish(), 409, "duplicate_rows")
    assert publish(distinct_from=json.dumps([dataset_id])).status_code == 202


@pytest.fixture
def publish(api):
    def send(key="one", order='{"method": "marginals", "epsilon": 1}', budget='{"epsilon": 3}'):
        headers = api.owner if key is None else {**api.owner, "Idempotency-Key": key}
        fields = {"schema": json.dumps(SCHEMA), "budget": budget, "order": order}
        return api.http.post("/v1/publish", data=fields, files={"file": ("t.csv", TABLE)}, headers=headers)

    return send


def test_publish_sent_again_with_its_key_answers_with_the_release_of_the_first_time(api, publish):
    """The reply was lost on its way; without this the caller has paid and is told that the rows are known."""
    first, again = publish(), publish()
    assert (first.status_code, again.status_code) == (202, 202)
    assert again.json()["id"] == first.json()["id"]
    assert again.headers["x-dataset-id"] == first.headers["x-dataset-id"]
    _assert_problem(publish(order='{"method": "marginals", "epsilon": 2}'), 409, "idempotency_conflict")
    budgets = ('{"epsilon": 5}', '{"epsilon": 3, "delta": 1e-9}')
    for other in ({"key": "two"}, {"key": None}, *({"budget": budget} for budget in budgets)):
        _assert_problem(publish(**other), 409, "duplicate_rows")
    assert len(api.http.get("/v1/releases", headers=api.reader).json()["items"]) == 1


def test_publish_sent_again_goes_on_where_the_first_request_stopped(api, publish, monkeypatch):
    """It ended between dataset and order: the rows are known, and nothing was ordered."""
    with monkeypatch.context() as broken:
        broken.setattr(releases, "order_release", Mock(side_effect=RuntimeError))
        assert publish().status_code == 500
    (dataset,) = api.http.get("/v1/datasets", headers=api.reader).json()["items"]
    for other in ({"key": "two"}, {"key": None}, {"budget": '{"epsilon": 5}'}):
        _assert_problem(publish(**other), 409, "duplicate_rows")
    conflict = publish(order='{"method": "marginals", "epsilon": 2}')
    _assert_problem(conflict, 409, "idempotency_conflict")
    assert conflict.json()["dataset_id"] == dataset["id"]
    made, again = publish(), publish()
    assert (made.status_code, made.headers["x-dataset-id"]) == (202, dataset["id"]), made.text
    assert again.json()["id"] == made.json()["id"]
    assert len(api.http.get("/v1/releases", headers=api.reader).json()["items"]) == 1


@pytest.mark.parametrize(
    ("order", "status", "code"),
    [
        ({"method": "marginals", "epsilon": 5}, 409, "budget_exhausted"),
        (
            {"method": "idpgan", "epsilon": 1, "steps": 10**6, "networks": {"critic_hidden": [4096] * 3}},
            422,
            "too_much_work",
        ),
    ],
)
def test_publish_of_an_order_that_would_be_refused_makes_no_dataset(api, context, publish, order, status, code):
    refused = publish(order=json.dumps(order))
    _assert_problem(refused, status, code)
    assert "dataset_id" not in refused.json()
    if code == "budget_exhausted":
        assert "an epsilon of at most 3" in refused.json()["detail"]
        assert "a budget of at least epsilon 5" in refused.json()["detail"]
    assert list(context.storage.list("datasets")) == []
    assert api.http.get("/v1/datasets", headers=api.reader).json()["items"] == []
    assert publish(order='{"method": "marginals", "share": "rest"}').status_code == 202, "the key and the rows are free"


@pytest.mark.parametrize(("limit", "of"), [("open_orders_per_key", "key"), ("open_orders_per_tenant", "tenant")])
def test_publish_over_the_limit_of_open_orders_makes_no_dataset(api, dataset_id, context, monkeypatch, limit, of):
    assert api.order(dataset_id, {"epsilon": 1}, key=api.owner).status_code == 202
    monkeypatch.setattr(
        api.http.app.state, "context", replace(context, settings=context.settings.model_copy(update={limit: 1}))
    )
    table, schema = _renamed()
    fields = {"schema": schema, "budget": '{"epsilon": 3}', "order": '{"epsilon": 1}'}
    more = {"distinct_from": json.dumps([dataset_id])}
    reply = api.http.post(
        "/v1/publish", data=fields | more, files={"file": ("t.csv", table.encode())}, headers=api.owner
    )
    _assert_problem(reply, 429, "too_many_open_orders")
    assert (reply.json()["of"], reply.json().get("dataset_id")) == (of, None)
    assert len(api.http.get("/v1/datasets", headers=api.reader).json()["items"]) == 1


def test_publish_with_a_key_that_ordered_something_else_makes_no_dataset(api, dataset_id):
    assert api.order(dataset_id, {"epsilon": 1}, key=api.owner, **{"Idempotency-Key": "one"}).status_code == 202
    table, schema = _renamed()
    fields = {"schema": schema, "budget": '{"epsilon": 3}', "order": '{"epsilon": 1}'}
    more = {"distinct_from": json.dumps([dataset_id])}
    reply = api.http.post(
        "/v1/publish",
        data=fields | more,
        files={"file": ("t.csv", table.encode())},
        headers={**api.owner, "Idempotency-Key": "one"},
    )
    _assert_problem(reply, 409, "idempotency_conflict")
    assert len(api.http.get("/v1/datasets", headers=api.reader).json()["items"]) == 1


def test_the_same_pictures_with_other_labels_and_classes_have_one_budget(api):
    pixels, labels = make_images()
    first = api.upload(npz(pixels, labels), schema=json.dumps(image_schema())).json()["id"]
    for labels_again, classes in (((labels + 1) % 3, 3), (labels * 0, ["all"])):
        schema = json.dumps(image_schema(classes=classes))
        again = api.upload(npz(pixels[::-1], labels_again), schema=schema, distinct_from=json.dumps([first]))
        assert (again.status_code, again.json().get("dataset_id")) == (409, first)


def test_rows_from_before_there_were_column_fingerprints_are_recognised_whole(api, settings, dataset_id):
    with psycopg.connect(settings.migration_database_url.replace("+psycopg", "")) as connection:
        connection.execute("DELETE FROM dataset_column_fingerprints")
    assert api.upload().json()["dataset_id"] == dataset_id
    table, schema = _renamed()
    assert api.upload(table, schema=schema).status_code == 201


def test_of_two_uploads_at_once_one_is_refused(api, context, tmp_path, monkeypatch):
    """Neither sees the other where it looks first; both look again, one after the other."""
    assert api.reader
    tenant = uuid.UUID(hex="0" * 32)
    with context.transaction() as session:
        session.connection().exec_driver_sql(f"INSERT INTO tenants (id, name) VALUES ('{tenant}', 't')")
    declarations, tables, uploads = [], [], []
    for table, schema in ((TABLE, json.dumps(SCHEMA)), _renamed()):
        uploads.append(SealedFile.create(tmp_path))
        uploads[-1].append(table.encode())
        declarations.append(
            parse_declaration(schema=schema, budget='{"epsilon": 1}', name=None, privacy_unit=None, rows_expire_at=None)
        )
        tables.append(
            ingest_table(
                uploads[-1],
                declarations[-1].schema,
                privacy_unit=None,
                limits=IngestLimits(),
                scratch_dir=tmp_path,
                fingerprint_key=context.secrets.fingerprint_key,
            )
        )
    both_have_looked = threading.Barrier(2, timeout=600)
    lock = repository.lock_fingerprints

    def lock_after_both(session):
        both_have_looked.wait()
        lock(session)

    monkeypatch.setattr(repository, "lock_fingerprints", lock_after_both)
    monkeypatch.setattr(datasets, "ingest_table", lambda upload, *_, **__: tables[uploads.index(upload)])

    with context.transaction() as session:
        key = add_bare_key(session, tenant)

    def create(number):
        principal = Principal(tenant, key, "owner", "create_dataset")
        try:
            return datasets.create(context, principal, uploads[number], declarations[number])
        except DuplicateRows as error:
            return error

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(create, (0, 1))
    refused = [outcome for outcome in (first, second) if isinstance(outcome, DuplicateRows)]
    assert len(refused) == 1, (first, second)
    assert refused[0].values["columns_match"] is True
    assert len(list(context.storage.list("datasets"))) == 2, "rows and upload of one"


def _numbers(names, columns):
    return "\n".join([",".join(names), *(",".join(map(str, row)) for row in zip(*columns, strict=True))]) + "\n"


def _schema_of_numbers(names, largest, **more):
    fields = [
        {"name": name, "type": "integer", "constraints": {"minimum": 0, "maximum": most}}
        for name, most in zip(names, largest, strict=True)
    ]
    return {"fields": fields, **more}


def _redeclare(api, dataset, schema, table=None):
    url = f"/v1/datasets/{dataset}/declaration"
    if table is None:
        return api.http.put(url, json={"schema": schema}, headers=api.owner)
    return api.http.put(
        url, data={"schema": json.dumps(schema)}, files={"file": ("t.csv", table.encode())}, headers=api.owner
    )


def test_a_decoy_does_not_become_the_rows_of_another_dataset(api):
    """Cells that are declared missing are exchanged by a new declaration: the decoy's would be the real ones then."""
    random = np.random.default_rng(0)
    digits, codes = random.integers(1, 9, (6, 400)), random.integers(10**6, 10**8, (3, 400))
    first, second = [f"a{i}" for i in range(9)], [f"b{i}" for i in range(9)]
    largest = [9] * 6 + [10**9] * 3
    made = api.upload(_numbers(first, [*digits, *codes]), schema=json.dumps(_schema_of_numbers(first, largest)))
    assert made.status_code == 201
    blanked = _schema_of_numbers(second, largest)
    for field in blanked["fields"][:6]:
        field["missingValues"] = ["", *map(str, range(1, 9))]
    decoy = _numbers(second, [*random.integers(1, 9, (6, 400)), *codes])
    taken = api.upload(decoy, schema=json.dumps(blanked)).json()["id"]
    real = _numbers(second, [*digits, *codes])
    assert _redeclare(api, taken, blanked, real).json()["code"] == "other_rows"
    assert _redeclare(api, taken, _schema_of_numbers(second, largest)).status_code == 200, "its own rows it may declare"


def test_rows_that_an_owner_told_apart_stay_apart_under_another_declaration(api):
    random = np.random.default_rng(0)
    columns = random.integers(0, 10**6, (6, 400))
    names, largest = [f"a{i}" for i in range(6)], [10**7] * 6
    first = api.upload(_numbers(names, columns), schema=json.dumps(_schema_of_numbers(names, largest))).json()["id"]
    near = _numbers(names, [*columns[:5], columns[5] + 1])
    schema = _schema_of_numbers(names, largest)
    assert api.upload(near, schema=json.dumps(schema)).status_code == 409
    told_apart = api.upload(near, schema=json.dumps(schema), distinct_from=json.dumps([first]))
    assert told_apart.status_code == 201
    assert _redeclare(api, told_apart.json()["id"], {**schema, "missingValues": ["", "-"]}).status_code == 200


def test_the_order_of_columns_in_a_file_sent_again_does_not_hide_any(api):
    random = np.random.default_rng(1)
    columns = random.integers(0, 10**6, (6, 400))
    names = [f"c{i}" for i in range(6)]
    loose, tight = [10**7] * 6, [10**7] * 3 + [600_000] * 3
    made = api.upload(_numbers(names, columns), schema=json.dumps(_schema_of_numbers(names, loose))).json()["id"]
    order = [3, 4, 5, 0, 1, 2]
    resent = _numbers([names[i] for i in order], columns[order])
    assert _redeclare(api, made, _schema_of_numbers(names, tight), resent).status_code == 200
    changed = [*columns[:3], *np.where(columns[3:] > 600_000, columns[3:] + 7, columns[3:])]
    others = [name.upper() for name in names]
    reply = api.upload(_numbers(others, changed), schema=json.dumps(_schema_of_numbers(others, tight)))
    _assert_problem(reply, 409, "duplicate_rows")
