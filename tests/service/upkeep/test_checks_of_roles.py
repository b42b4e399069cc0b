"""`imprimatur install --check` of what roles can do to themselves, and of what Postgres lets everybody do."""

import psycopg
import pytest

from service.upkeep.checks import Places, check
from service.upkeep.installation import install


@pytest.fixture
def installed(settings, tmp_path):
    install(settings, tmp_path / "admin.key")
    return settings


def found(settings):
    return {each.step: each for each in check(settings, Places())}


def test_settings_that_a_role_gave_itself_are_noticed(installed, database):
    assert found(installed)["roles' settings"].state == "ok"
    of_roles = {"imprimatur_api": database.api_url, "imprimatur_worker": database.worker_url}
    changes = {"imprimatur_api": "search_path = pg_temp", "imprimatur_worker": "statement_timeout = 1"}
    where = {"imprimatur_api": "", "imprimatur_worker": f" IN DATABASE {database.name}"}
    try:
        for role, url in of_roles.items():
            with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
                connection.execute(f"ALTER ROLE {role}{where[role]} SET {changes[role]}")
        finding = found(installed)["roles' settings"]
    finally:  # roles are the whole cluster's
        with psycopg.connect(database.owner_url.replace("+psycopg", ""), autocommit=True) as connection:
            for role in of_roles:
                connection.execute(f"ALTER ROLE {role}{where[role]} RESET ALL")
    assert finding.state == "missing"
    for words in (
        "imprimatur_api: search_path",
        "imprimatur_worker: statement_timeout",
        "ALTER ROLE imprimatur_api RESET ALL",
        f"ALTER ROLE imprimatur_worker IN DATABASE {database.name} RESET ALL",
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
