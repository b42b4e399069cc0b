"""Bounds and categories that an owner does not declare: bought by a release of their own, before anything else is ordered."""

import csv
import io
import json
import uuid

import pytest
from sqlalchemy import text

from service.datasets.models import Dataset
from service.upkeep.installation import owner_transaction
from tests.service.http.conftest import SCHEMA, TABLE
from tests.service.http.test_datasets_api import _assert_problem
from workers import lease as leases
from workers.run import Attempt

pytestmark = pytest.mark.slow

OPEN = {
    "fields": [
        {"name": "age", "type": "integer", "constraints": {"required": True}, "infer": {"epsilon": 2.0}},
        {"name": "income", "type": "number", "decimals": 0, "constraints": {"minimum": 0}, "infer": {"epsilon": 2.0}},
        {"name": "city", "type": "string", "constraints": {"required": True}, "infer": {"epsilon": 3.0}},
        {"name": "smoker", "type": "boolean"},
        {"name": "born", "type": "date", "infer": {"epsilon": 2.0}},
    ]
}
TOTAL = 9.0
PURCHASE = {"method": "declaration"}
ROWS = [
    f"{20 + i % 60},{1000 + 17 * i},{('Rome', 'Oslo', ' Bonn')[i % 3] if i else 'Atlantis'},{'true' if i % 2 else 'false'},19{50 + i % 50}-01-02"
    for i in range(
        12_000
    )  # so many that any bound far outside is chosen once in 4 billion times (2,701 candidates, e^-30 each)
]
PEOPLE = "age,income,city,smoker,born\n" + "\n".join(ROWS) + "\n"


def uploaded(api, schema=OPEN, table=PEOPLE, **fields):
    reply = api.upload(table, schema=json.dumps(schema), **{"budget": json.dumps({"epsilon": 20.0}), **fields})
    assert reply.status_code == 201, reply.text
    return reply.json()


@pytest.fixture
def dataset(api, signing_key):  # noqa: ARG001 - what signs certificates
    return uploaded(api)


def read(api, dataset):
    return api.http.get(f"/v1/datasets/{dataset['id']}", headers=api.reader).json()


def ledger(api, dataset):
    entries = api.http.get(f"/v1/datasets/{dataset['id']}/ledger", headers=api.reader).json()
    assert entries["verified"]
    return [entry["kind"] for entry in entries["items"]]


def carried_out(api, context, release):
    while str((lease := leases.claim_next(context.settings)).release_id) != release["id"]:
        pass
    Attempt(context, lease).run()
    return api.http.get(f"/v1/releases/{release['id']}", headers=api.reader).json()


def bought(api, context, dataset):
    ordered = api.order(dataset["id"], PURCHASE)
    assert ordered.status_code == 202, ordered.text
    made = carried_out(api, context, ordered.json())
    assert made["state"] == "published", made
    return made


def fields_of(dataset):
    return {field["name"]: field for field in dataset["schema"]["fields"]}


def test_nothing_is_known_of_an_open_column_before_it_is_bought(api, dataset):
    assert dataset["schema"] == OPEN
    assert dataset["notices"] == []
    assert [(one["column"], one["words"], one["release"]) for one in dataset["bought"]] == [
        ("age", ["minimum", "maximum"], None),
        ("income", ["maximum"], None),
        ("city", ["enum"], None),
        ("born", ["minimum", "maximum"], None),
    ]
    for path, body in (
        ("releases", {"epsilon": 1.0}),
        ("quotes", {"method": "marginals", "epsilon": 1.0}),
        ("quotes", {"want": {"two_way_tv": 0.05}}),
        ("queries", {"kind": "count", "where": "age>=30", "epsilon": 1.0}),
    ):
        refused = api.http.post(f"/v1/datasets/{dataset['id']}/{path}", json=body, headers=api.analyst)
        _assert_problem(refused, 409, "declaration_needed")
        assert refused.json()["columns"] == ["age", "income", "city", "born"]
        assert refused.json()["epsilon"] == TOTAL
        assert '{"method": "declaration"}' in refused.json()["detail"]
    assert ledger(api, dataset) == []


def test_from_upload_to_rows(api, context, dataset):
    quote = api.http.post(f"/v1/datasets/{dataset['id']}/quotes", json=PURCHASE, headers=api.reader).json()
    assert (quote["price"]["epsilon"], quote["fits"]) == (TOTAL, True)
    assert [one["release"] for one in quote["bought"]] == [None] * 4
    assert any("'city'" in sentence for sentence in quote["forecast"]["sentences"])
    made = bought(api, context, dataset)
    assert ledger(api, dataset) == ["reserve", "post"]
    assert made["price"]["epsilon"] == TOTAL
    after = read(api, dataset)
    fields = fields_of(after)
    assert not any("infer" in field for field in fields.values())
    assert fields["city"]["constraints"] == {"enum": ["Bonn", "Oslo", "Rome", "other"], "required": True}
    assert fields["income"]["constraints"]["minimum"] == 0
    low, high = (fields["age"]["constraints"][end] for end in ("minimum", "maximum"))
    assert 10 <= low < high <= 100
    assert "1900" < fields["born"]["constraints"]["minimum"] < fields["born"]["constraints"]["maximum"] < "2010"
    assert all(one["release"] == made["id"] and one["events"] for one in after["bought"])
    assert after["declared_at"] > dataset["declared_at"]
    answers = api.http.get(made["links"]["answers"], headers=api.reader).json()["bought"]
    assert [one["column"] for one in answers] == ["age", "income", "city", "born"]
    release = carried_out(api, context, api.order(dataset["id"], {"method": "marginals", "epsilon": 5.0}).json())
    assert release["state"] == "published", release
    sample = api.http.get(release["links"]["sample"], params={"n": 500}, headers=api.reader)
    rows = list(csv.DictReader(io.StringIO(sample.text)))
    assert {row["city"] for row in rows} <= {"Bonn", "Oslo", "Rome", "other"}
    assert all(low <= int(row["age"]) <= high for row in rows)
    certificate = release["certificate"]
    assert {one["column"]: one["release"] for one in certificate["bought"]} == dict.fromkeys(
        ("age", "income", "city", "born"), made["id"]
    )
    assert "bought from the rows" in certificate["schema_source"]
    quote = api.http.post(f"/v1/datasets/{dataset['id']}/quotes", json={"epsilon": 1.0}, headers=api.reader).json()
    assert [one["release"] for one in quote["bought"]] == [made["id"]] * 4


def test_it_is_bought_once(api, context, dataset):
    first = api.order(dataset["id"], PURCHASE)
    assert first.status_code == 202, first.text
    _assert_problem(api.order(dataset["id"], PURCHASE), 409, "already_ordered")
    assert ledger(api, dataset) == ["reserve"]
    api.http.post(first.json()["links"]["cancel"], headers=api.analyst)
    bought(api, context, dataset)
    again = api.order(dataset["id"], PURCHASE)
    _assert_problem(again, 422, "invalid_order")
    assert "bought already" in again.json()["detail"]
    assert ledger(api, dataset) == ["reserve", "void", "reserve", "post"]
    same = api.upload(PEOPLE, schema=json.dumps(OPEN), budget=json.dumps({"epsilon": 20.0}))
    assert (same.status_code, same.json()["same_declaration"]) == (409, True)


@pytest.mark.parametrize("step", ["publish", "declare"])
def test_an_attempt_that_dies_after_the_purchase_is_followed_by_one_with_the_same_answer(
    api, context, dataset, monkeypatch, step
):
    release, seen = api.order(dataset["id"], PURCHASE).json(), []
    publish, make_visible = Attempt.publish, Attempt._make_visible

    def dies(attempt, made, posted):
        seen.append(made.answers)
        if step == "publish":
            raise RuntimeError("dies before anything is stored")
        publish(attempt, made, posted)

    def dies_later(attempt, *given):
        make_visible(attempt, *given)
        raise RuntimeError("dies before the commit")

    monkeypatch.setattr(Attempt, "publish", dies)
    monkeypatch.setattr(Attempt, "_make_visible", dies_later)
    lease = leases.claim_next(context.settings)
    with pytest.raises(RuntimeError, match="dies"):
        Attempt(context, lease).run()
    assert read(api, dataset)["schema"] == OPEN
    with context.transaction() as session:
        leases.give_back(session, lease, spent=True)
    monkeypatch.undo()
    made = carried_out(api, context, release)
    assert made["state"] == "published"
    assert api.http.get(made["links"]["answers"], headers=api.reader).json() == json.loads(json.dumps(seen[0]))
    assert ledger(api, dataset) == ["reserve", "post"]


def test_a_worker_reads_no_row_of_what_is_not_declared(api, context, signing_key):  # noqa: ARG001 - as above
    """Someone who writes releases into the database gets no further than that."""
    dataset = uploaded(api, SCHEMA, TABLE)
    order = api.order(dataset["id"], {"method": "marginals", "epsilon": 1.0}).json()
    with owner_transaction(context.settings) as session:
        session.get_one(Dataset, uuid.UUID(dataset["id"])).schema = OPEN
    ended = carried_out(api, context, order)
    assert (ended["state"], ended["failure"]) == ("voided", "declaration_needed")
    assert ledger(api, dataset) == ["reserve", "void"]


def test_a_purchase_that_is_not_needed_any_more_is_not_charged(api, context, dataset):
    order = api.order(dataset["id"], PURCHASE).json()
    with owner_transaction(context.settings) as session:
        session.get_one(Dataset, uuid.UUID(dataset["id"])).schema = SCHEMA
    ended = carried_out(api, context, order)
    assert (ended["state"], ended["failure"]) == ("voided", "already_declared")
    assert ledger(api, dataset) == ["reserve", "void"]


def test_the_database_lets_a_purchase_change_what_was_bought_and_nothing_else(api, context, dataset):
    order = api.order(dataset["id"], PURCHASE).json()
    lease = leases.claim_next(context.settings)
    found = {
        "age": {"minimum": 10, "maximum": 90},
        "income": {"maximum": 9_000},
        "city": {"enum": ["other"]},
        "born": {"minimum": "1900-01-01", "maximum": "2000-01-01"},
    }

    def declared(change=lambda _: None, release=order["id"]):
        document = json.loads(json.dumps(OPEN))
        for field in document["fields"]:
            if "infer" in field:
                words = found[field["name"]]
                epsilon = field.pop("infer")["epsilon"]
                field["constraints"] = field.get("constraints", {}) | words
                field["bought"] = {"epsilon": epsilon, "release": release, "words": [*words], "events": []}
        change(document)
        with context.transaction() as session:
            return session.execute(
                text("SELECT dataset_declare(:id, :token, CAST(:schema AS jsonb))"),
                {"id": lease.release_id, "token": lease.token, "schema": json.dumps(document)},
            ).scalar_one()

    assert declared() == "refused"  # nothing was charged
    with context.transaction() as session:
        leases.charge(session, lease)
    for change in (
        lambda document: document["fields"][3].update(type="integer"),
        lambda document: document["fields"].pop(),
        lambda document: document["fields"][0].update(name="years"),
        lambda document: document["fields"][0].pop("bought"),
        lambda document: document["fields"][1]["constraints"].update(minimum=5),
        lambda document: document["fields"][4].update(infer={"epsilon": 1.0}),
        lambda document: document.update(title="other"),
    ):
        assert declared(change) == "refused"
    assert declared(release=str(uuid.uuid4())) == "refused"
    assert declared() == "done"
    assert declared() == "refused"


def test_what_an_owner_cannot_declare(api, dataset):
    lied = json.loads(json.dumps(SCHEMA))
    lied["fields"][0]["bought"] = {"epsilon": 1.0, "release": "x", "words": ["minimum"], "events": []}
    refused = api.upload(TABLE, schema=json.dumps(lied))
    _assert_problem(refused, 422, "invalid_schema")
    assert "the service writes this" in refused.json()["detail"]
    other = api.upload(TABLE, schema=json.dumps(OPEN | {"target": "city"}))
    assert "target: 'city' says infer" in other.json()["detail"]
    dear = api.order(dataset["id"], {**PURCHASE, "epsilon": 1.0})
    _assert_problem(dear, 422, "invalid_order")
    assert "the schema gives these purchases 9 in all" in dear.json()["detail"]


def test_cells_of_open_columns_are_checked_for_their_type_alone(api):
    refused = api.upload(PEOPLE.replace("\n20,", "\nyoung,", 1), schema=json.dumps(OPEN))
    _assert_problem(refused, 422, "invalid_file")
    assert refused.json()["column"] == "age"
    broken = api.upload(PEOPLE.replace("Oslo", '"Oslo\nby the sea"', 1), schema=json.dumps(OPEN))
    _assert_problem(broken, 422, "invalid_file")
    assert broken.json()["column"] == "city"
