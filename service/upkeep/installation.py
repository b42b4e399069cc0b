"""Make a service ready for its first start: migrations, secret key file, signing key, first owner. Harmless to repeat.

`imprimatur up` does this by itself; on many machines run `imprimatur install` (or `python -m service.upkeep.installation`)
once before the rest, and after every new version. With --check it looks at every step and changes nothing.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import text

from service.auth.service import create_first_owner
from service.base.errors import ImprimaturError, Tampered, WrongSecretKey
from service.ledger import signing_keys
from service.platform.crypto import Secrets
from service.platform.database import migrate, transaction
from service.platform.keyring import Keyring, replace_file
from service.platform.secret_roots import ADVICE, in_use, register, require_right
from service.platform.settings import get_settings
from service.platform.signing import SigningKey
from service.upkeep.checks import Places, as_text, check, is_complete
from service.upkeep.roles import make_logins, owner_url

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy.orm import Session

    from service.platform.settings import Settings


def install(settings: Settings, key_file: Path, passwords: Path | None = None) -> bool:
    """Bring everything up to date; True when this made the first owner, whose API key is then in `key_file`.

    `passwords`: a folder where each process's role has its password, or gets one.
    """
    migrate(owner_url(settings))
    if passwords is not None:
        make_logins(owner_url(settings), passwords)
    secrets = install_secrets(settings)
    install_signing_key(settings, secrets)
    # The key is written before the transaction ends: a crash in between leaves a key that does not work and no tenant,
    # and the next run makes both anew. The other way round would lose the only key.
    with owner_transaction(settings) as session:
        key = create_first_owner(session, secrets)
        if key is not None:
            replace_file(key_file, f"{key}\n".encode())
    return key is not None


def install_secrets(settings: Settings) -> Secrets:
    """The secret key file: made for an empty database, and otherwise checked to be the one its data were made with.

    A database that has data and no file gets no new one: every API key would look unknown, and every row be lost.
    Raises `WrongSecretKey`, and has changed nothing.
    """
    path = settings.keyring_path
    with owner_transaction(settings) as session:
        session.execute(text("LOCK TABLE secret_roots IN SHARE ROW EXCLUSIVE MODE"))
        has_data = bool(session.scalar(text("SELECT count(*) FROM tenants")))
        if not path.exists() and has_data:
            raise WrongSecretKey(f"The secret key file {path} is missing, and this database has data: {ADVICE}.")
        secrets = Secrets.load_or_create(path)
        require_right(session, secrets)
        if has_data and not any(in_use(session).values()):
            _require_opens(session, secrets)
        if not in_use(session)["wrapping"]:
            register(session, secrets.ring)
    write_worker_part(settings, secrets.ring)
    return secrets


def _require_opens(session: Session, secrets: Secrets) -> None:
    """An installation from before the roots had names: the file must open the data keys there are."""
    found = session.execute(text("SELECT id, wrapped_data_key FROM datasets WHERE wrapped_data_key IS NOT NULL"))
    for row in found:
        try:
            secrets.unwrap_data_key(bytes(row.wrapped_data_key), row.id)
        except Tampered:
            raise WrongSecretKey(f"The secret key file is not the one this database was made with: {ADVICE}.") from None


def write_worker_part(settings: Settings, ring: Keyring) -> None:
    """A worker unwraps data keys, and knows nothing of API keys or fingerprints."""
    part = Keyring(wrapping=ring.wrapping).to_bytes()
    path = settings.worker_keyring_path
    if not path.exists() or path.read_bytes() != part:
        replace_file(path, part)


def install_signing_key(settings: Settings, secrets: Secrets) -> None:
    """Make the signing key if there is none, and check that its file holds the newest one.

    A service that was there before the signing key file has signed with a key of its master secret.
    """
    with owner_transaction(settings) as session:
        was_there = bool(session.scalar(text("SELECT count(*) FROM tenants")))
        seed = secrets.first_signing_seed
        predecessor = SigningKey(seed) if was_there and seed is not None else None
        signing_keys.install(session, settings, predecessor)


def replace_signing_key(settings: Settings, *, lost: bool = False) -> SigningKey:
    """Make a new signing key in place of the one in the file."""
    with owner_transaction(settings) as session:
        return signing_keys.replace(session, settings, lost=lost)


@contextmanager
def owner_transaction(settings: Settings) -> Iterator[Session]:
    """One transaction of the role that owns the database."""
    with transaction(settings.model_copy(update={"database_url": owner_url(settings)})) as session:
        yield session


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--key-file", type=Path, help="where the first owner's API key goes, mode 0600")
    parser.add_argument("--passwords", type=Path, help="folder for the passwords of the three roles, mode 0600 each")
    parser.add_argument(
        "--check", action="store_true", help="look at every step, change nothing; exit status 1 if one is missing"
    )
    parser.add_argument("--url", help="with --check: the address of the API")
    parser.add_argument(
        "--replace-signing-key", action="store_true", help="make a new signing key, endorsed by the old"
    )
    parser.add_argument("--lost", action="store_true", help="the old signing key is lost: nothing endorses the new one")
    arguments = parser.parse_args()
    if not (arguments.check or arguments.replace_signing_key or arguments.key_file):
        parser.error("say --key-file FILE, --check or --replace-signing-key")
    try:
        sys.exit(_carry_out(arguments))
    except ImprimaturError as error:
        sys.exit(f"{error.code}: {error.detail}")


def _carry_out(arguments: argparse.Namespace) -> int:
    settings = get_settings()
    if arguments.check:
        findings = check(settings, Places(arguments.key_file, arguments.passwords, arguments.url))
        print(as_text(findings))  # noqa: T201 - a command line
        return 0 if is_complete(findings) else 1
    if arguments.replace_signing_key:
        print(f"new signing key: {replace_signing_key(settings, lost=arguments.lost).public_key}")  # noqa: T201
        return 0
    made = install(settings, arguments.key_file, arguments.passwords)
    print(f"first owner's API key: {arguments.key_file}" if made else "up to date")  # noqa: T201
    return 0


if __name__ == "__main__":
    main()
