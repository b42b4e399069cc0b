"""The database of a data directory, for commands that change the service itself."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from imprimatur.cli.connection import running_in
from imprimatur.cli.output import Exit, Failure

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from service.platform.settings import Settings


@contextmanager
def owned_database(data: Path) -> Iterator[Settings]:
    """The owner's settings: of the service that runs there, else of its Postgres, started for this alone and migrated."""
    from service.local import EmbeddedStack
    from service.platform.database import migrate
    from service.upkeep.roles import owner_url

    stack = EmbeddedStack(data, 0)
    if running_in(data) is not None:
        yield stack.settings()
    elif (data / "postgres").is_dir():
        with stack.database_alone() as settings:
            migrate(owner_url(settings))
            yield settings
    else:
        raise Failure(f"there is no service in {data}", Exit.UNAVAILABLE, "unreachable")
