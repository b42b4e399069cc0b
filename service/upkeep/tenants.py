"""Tenants and the keys that no key can make: for people who have the owning role and the secret key file.

    python -m service.upkeep.tenants create NAME
    python -m service.upkeep.tenants key TENANT NAME [--scope owner]

The database is that of IMPRIMATUR_MIGRATION_DATABASE_URL. A key is printed once, on standard output, and kept nowhere.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, cast, get_args

from service.audit import repository as audit
from service.auth import repository
from service.auth import service as auth
from service.auth.principal import Scope
from service.base.errors import ImprimaturError, NotFound
from service.platform.crypto import Secrets
from service.platform.secret_roots import require_right
from service.platform.settings import get_settings
from service.upkeep.installation import owner_transaction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.auth.models import Tenant
    from service.platform.settings import Settings


def create(settings: Settings, name: str) -> str:
    """A new tenant; its first owner's key."""
    secrets = Secrets.load(settings.keyring_path)
    with owner_transaction(settings) as session:
        require_right(session, secrets)  # a key that is hashed under another root would never work
        return auth.create_tenant(session, secrets, name)


def create_key(settings: Settings, tenant: str, name: str, scope: Scope) -> str:
    """A key for a tenant that there is, for example one that has lost its last owner key. It has a line in its audit log."""
    secrets = Secrets.load(settings.keyring_path)
    with owner_transaction(settings) as session:
        require_right(session, secrets)
        tenant_id = repository.find_tenant(session, tenant)
        if tenant_id is None:
            raise NotFound(f"there is no tenant named {tenant!r}")
        made = auth.create_key(session, secrets, tenant_id, name=name, scope=scope)
        audit.add(session, audit.Line(tenant_id, "create_key", object_kind="key", object_id=made.id))
        return made.key


def tenants(settings: Settings) -> Sequence[Tenant]:
    """All of them, the oldest first."""
    with owner_transaction(settings) as session:
        return repository.list_tenants(session)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("create", help="make a tenant; prints its first owner's key").add_argument("name")
    key = commands.add_parser("key", help="make a key for a tenant that there is")
    key.add_argument("tenant")
    key.add_argument("name")
    key.add_argument("--scope", choices=get_args(Scope), default="owner")
    arguments = parser.parse_args()
    try:
        if arguments.command == "create":
            made = create(get_settings(), arguments.name)
        else:
            made = create_key(get_settings(), arguments.tenant, arguments.name, cast("Scope", arguments.scope))
    except ImprimaturError as error:
        sys.exit(f"{error.code}: {error.detail}")
    print(made)  # noqa: T201 - a command line


if __name__ == "__main__":
    main()
