"""`imprimatur install --check` of what roles can do to themselves, and of what Postgres lets everybody do."""

import psycopg
import pytest

from service.local.database_access import API_ROLE, SUPERUSER, WORKER_ROLE
from service.upkeep.checks import Places, check
from service.upkeep.installation import install
from tests.private_servers import private_postgres


@pytest.fixture
def installed(settings, tmp_path):
    install(settings, tmp_path / "admin.key")
    return settings


def found(settings):
    return {each.step: each for each in check(settings, Places())}


def test_settings_that_a_role_gave_itself_are_noticed(settings, tmp_path):
    """On a cluster of its own: roles are the whole cluster's, and a search path would be every other test's, too."""
    with private_postgres(tmp_path / "private") as postgres:
        urls = {role: postgres.server.url("imprimatur", role) for role in (SUPERUSER, API_ROLE, WORKER_ROLE)}
        own = settings.model_copy(update={"database_url": urls[API_ROLE], "migration_database_url": urls[SUPERUSER]})
        install(own, tmp_path / "admin.key")
        assert found(own)["roles' settings"].state == "ok"
        for role, statement in (
            (API_ROLE, f"ALTER ROLE {API_ROLE} SET search_path = pg_temp"),
            (WORKER_ROLE, f"ALTER ROLE {WORKER_ROLE} IN DATABASE imprimatur SET statement_timeout = 1"),
        ):
            with psycopg.connect(urls[role].replace("+psycopg", ""), autocommit=True) as connection:
                connection.execute(statement)
        finding = found(own)["roles' settings"]
    assert finding.state == "missing"
    for words in (
        "imprimatur_api: search_path",
        "imprimatur_worker: statement_timeout",
        "ALTER ROLE imprimatur_api RESET ALL",
        "ALTER ROLE imprimatur_worker IN DATABASE imprimatur RESET ALL",
    ):
        assert words in finding.detail


def test_rights_of_everybody_are_noticed(installed, database):
    """A copy of a database, or a restored dump, has the rights on a database that Postgres gives."""
    assert "REVOKE TEMPORARY" in found(installed)["rights of all"].detail
    with psycopg.connect(database.owner_url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(f"REVOKE TEMPORARY ON DATABASE {database.name} FROM PUBLIC")
        assert found(installed)["rights of all"].state == "ok"
        connection.execute("GRANT EXECUTE ON FUNCTION lo_create(oid) TO PUBLIC")
        finding = found(installed)["rights of all"]
    assert (finding.state, "REVOKE EXECUTE ON FUNCTION lo_create(oid) FROM PUBLIC" in finding.detail) == (
        "unknown",
        True,
    )
