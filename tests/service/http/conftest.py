"""The HTTP application in this process, on the test's own database; three keys of one tenant and a stranger's."""

import json
from dataclasses import dataclass

import pytest
from fastapi.testclient import TestClient

from service.auth.service import create_tenant
from service.http.app import create_app
from service.intake import ingest
from service.platform.context import open_context

SCHEMA = {
    "fields": [
        {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 120, "required": True}},
        {"name": "income", "type": "number", "constraints": {"minimum": 0, "maximum": 1000000}},
        {"name": "city", "type": "string", "constraints": {"enum": ["Rome", "Oslo", "Bonn"], "required": True}},
        {"name": "smoker", "type": "boolean"},
        {"name": "born", "type": "date", "constraints": {"minimum": "1900-01-01", "maximum": "2026-01-01"}},
    ]
}

ROWS = [
    f"{20 + i % 60},{1000 + 17 * i},{('Rome', 'Oslo', 'Bonn')[i % 3]},{'true' if i % 2 else 'false'},19{50 + i % 50}-01-02"
    for i in range(200)
]
TABLE = "age,income,city,smoker,born\n" + "\n".join(ROWS) + "\n"


@dataclass(frozen=True)
class Api:
    """HTTP, and the keys to use it with."""

    http: TestClient
    owner: dict
    analyst: dict
    reader: dict
    stranger: dict

    def upload(self, table=TABLE, *, key=None, filename="people.csv", **fields):
        """POST /v1/datasets with sensible fields; None leaves one out."""
        data = {"schema": json.dumps(SCHEMA), "budget": json.dumps({"epsilon": 3.0}), "name": "people", **fields}
        body = table.encode() if isinstance(table, str) else table
        files = {} if body is None else {"file": (filename, body)}
        data = {name: value for name, value in data.items() if value is not None}
        return self.http.post("/v1/datasets", data=data, files=files, headers=key or self.owner)

    def order(self, dataset_id, document, *, key=None, **headers):
        return self.http.post(
            f"/v1/datasets/{dataset_id}/releases", json=document, headers={**(key or self.analyst), **headers}
        )


@pytest.fixture
def context(settings, tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return open_context(settings.model_copy(update={"scratch_dir": scratch}))


@pytest.fixture
def api(context, database, prepared_readers, monkeypatch):
    """The application on the rights of its own role; what is prepared beside it, on those of tests."""
    monkeypatch.setattr(ingest, "subprocess", prepared_readers)
    settings = context.settings.model_copy(update={"database_url": database.api_url})
    with context.transaction() as session:
        keys = {"owner": create_tenant(session, context.secrets, "ours")}
        stranger = create_tenant(session, context.secrets, "theirs")
    bearer = {name: {"Authorization": f"Bearer {key}"} for name, key in keys.items()}
    with TestClient(create_app(settings), raise_server_exceptions=False) as http:
        for scope in ("analyst", "reader"):
            made = http.post("/v1/keys", json={"name": scope, "scope": scope}, headers=bearer["owner"])
            bearer[scope] = {"Authorization": f"Bearer {made.json()['key']}"}
        yield Api(http=http, stranger={"Authorization": f"Bearer {stranger}"}, **bearer)


@pytest.fixture
def dataset_id(api):
    reply = api.upload()
    assert reply.status_code == 201, reply.text
    return reply.json()["id"]
