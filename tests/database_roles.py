"""The roles that tests log in as: those of the processes, the one of earlier versions, and one for a test that is all of them.

Many tests play several processes in one. They use TEST_ROLE, which has the rights of the three together, and may make
tenants and the operator's lines of the audit log besides. The HTTP application, and every process of a stack, has its own role.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.local.database_access import PROCESS_ROLES

if TYPE_CHECKING:
    from service.local import Postgres

TEST_ROLE = "imprimatur_test"
OLD_ROLE = "imprimatur_app"
"""Of the version before revision 0010; without rights since 0015."""
TEST_ROLES = (*PROCESS_ROLES, OLD_ROLE, TEST_ROLE)


def create_test_roles(server: Postgres) -> None:
    """In a cluster that runs, before its databases are migrated."""
    server.create_roles(TEST_ROLES)
    with server.connect() as connection:
        connection.execute(f"GRANT {', '.join(PROCESS_ROLES)} TO {TEST_ROLE}")


def let_tests_prepare(server: Postgres, database: str) -> None:
    """In a database that is migrated."""
    with server.connect(database) as connection:
        connection.execute(f"GRANT SELECT, INSERT ON tenants TO {TEST_ROLE}")
        connection.execute(f"GRANT INSERT ON audit_events TO {TEST_ROLE}")
