"""The chain over an audit log: what the database computed is computed here again, and every change is found."""

import copy

import psycopg
import pytest

from imprimatur.verify.audit import GENESIS, verify_audit
from service.audit import repository
from service.platform.database import transaction
from service.platform.settings import Settings
from tests.service.http.conftest import api, context  # noqa: F401 - fixtures

STRANGE = 'quotes " and \\ and \n and \x01 and ü and 💡'


@pytest.fixture
def log(api, context, database):  # noqa: F811 - the fixtures themselves
    """Lines of several requests as the API gives them, placed by the relay's role."""
    for _ in range(3):
        api.http.get("/v1/audit", headers=api.analyst)
    with psycopg.connect(context.settings.migration_database_url.replace("+psycopg", "")) as connection:
        connection.execute(
            "INSERT INTO audit_events (tenant_id, action, outcome, request_id) "
            "SELECT tenant_id, %s, 'done', gen_random_uuid() FROM audit_events LIMIT 1",
            (STRANGE[:99],),
        )
    relay = context.settings.model_copy(update={"database_url": database.relay_url})
    assert isinstance(relay, Settings)
    with transaction(relay) as session:
        assert repository.integrate(session) >= 5
    return api.http.get("/v1/audit?limit=1000", headers=api.owner).json()["items"]


def test_a_log_of_the_service_verifies(log, api):  # noqa: F811
    found = verify_audit(log)
    assert (found.faults, found.without_place) == ([], 0)
    assert found.seq == found.lines == len(log) >= 5
    assert any(line["action"].startswith("quotes") for line in log)
    assert found.hash == next(line["place"]["hash"] for line in log if line["place"]["seq"] == found.seq)
    api.http.get("/v1/keys/none", headers=api.reader)
    api.http.post("/v1/keys", json={"name": "k", "scope": "reader"}, headers=api.owner)
    later = verify_audit(api.http.get("/v1/audit?limit=1000", headers=api.owner).json()["items"])
    assert (later.faults, later.seq, later.without_place > 0) == ([], found.seq, True)


@pytest.mark.parametrize("field", ["action", "outcome", "key_id", "object_id", "object_kind", "request_id", "at", "id", "unrecorded"])  # fmt: skip
def test_a_changed_line_is_found(log, field):
    changed = copy.deepcopy(log)
    line = changed[1]
    line[field] = {"at": "2001-01-01T00:00:00Z", "id": 99_999, "unrecorded": 7}.get(field, "other")
    assert verify_audit(changed).faults == [f"place {line['place']['seq']}: its line was changed"]


def test_a_line_that_is_removed_or_put_between_is_found(log):
    inner = sorted(log, key=lambda line: line["place"]["seq"])
    assert verify_audit(inner[:2] + inner[3:]).faults == ["place 3: its line is missing"]
    moved = copy.deepcopy(inner)
    moved[1]["place"], moved[2]["place"] = moved[2]["place"], moved[1]["place"]
    assert verify_audit(moved).faults
    assert verify_audit(inner[1:]).faults == ["place 1: its line is missing"]


def test_an_empty_log_is_whole():
    found = verify_audit([])
    assert (found.lines, found.seq, found.hash, found.faults) == (0, 0, GENESIS, [])
