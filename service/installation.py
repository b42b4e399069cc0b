"""Make a service ready for its first start: migrations, master secret, first owner. Harmless to repeat.

`imprimatur up` does this by itself; on many machines run `python -m service.installation` once before the rest.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from service.auth.service import create_first_owner
from service.crypto import Secrets
from service.db import migrate, transaction
from service.settings import get_settings

if TYPE_CHECKING:
    from service.settings import Settings


def install(settings: Settings, key_file: Path) -> bool:
    """Bring everything up to date; True when this made the first owner, whose API key is then in `key_file`."""
    migrate(settings.migration_database_url or settings.database_url)
    master = Secrets.load_or_create(settings.secret_key_file)
    # The key is written before the transaction ends: a crash in between leaves a key that does not work and no tenant,
    # and the next run makes both anew. The other way round would lose the only key.
    with transaction(settings) as session:
        key = create_first_owner(session, master)
        if key is not None:
            write_private(key_file, key)
    return key is not None


def write_private(path: Path, text: str) -> None:
    """Write a file that only we can read, whole or not at all."""
    unfinished = path.with_name(path.name + ".unfinished")
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text + "\n")
    unfinished.replace(path)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--key-file", type=Path, required=True, help="where the first owner's API key goes, mode 0600")
    arguments = parser.parse_args()
    made = install(get_settings(), arguments.key_file)
    print(f"first owner's API key: {arguments.key_file}" if made else "up to date")  # noqa: T201 - a command line


if __name__ == "__main__":
    main()
