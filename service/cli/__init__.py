"""What the server adds to the `imprimatur` command: an `imprimatur.cli.server.Server`, named by an entry point.

Imports nothing until it is called.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from imprimatur.cli.output import Failure
    from imprimatur.cli.target import Target

COMMANDS = {
    "up": ("Start", "service.cli.local:up"),
    "demo": ("Start", "service.cli.local:demo"),
    "install": ("Start", "service.cli.operators:install"),
    "tenant": ("Start", "service.cli.operators:app"),
    "schema": ("The owner's table", "service.cli.schemas:app"),
    "key replace-signing": ("", "service.cli.local:replace_signing_key"),
    "keys": ("", "service.cli.rotation:app"),
}


@contextmanager
def started(data: Path) -> Iterator[Target]:
    """A service in a data directory that lives as long as this."""
    import os

    from imprimatur.cli.output import echo, note, notes
    from imprimatur.cli.target import Target
    from service.local import EmbeddedStack

    with notes().status("Starting") as status:
        stack = EmbeddedStack(
            data,
            0,
            on_part=lambda part: status.update(f"Starting: {part}"),
            on_leftover=lambda said: echo(said, err=True),
        )
        running = ExitStack()
        running.enter_context(stack)
    with running:
        note(f"Embedded service on {stack.url}, data in {os.path.relpath(stack.directory)}")
        yield Target(stack.url, stack.admin_key)


def create_tenant(data: Path, name: str) -> str:
    """A new tenant and its first owner key. For people who have the owner's settings or the data directory; no API key can do it."""
    from service.cli.operators import owner_settings
    from service.upkeep import tenants

    return tenants.create(owner_settings(data), name)


def failure_of(error: Exception) -> Failure | None:
    """An expected error of the server as the end of a command."""
    from imprimatur.cli.output import Exit, Failure
    from service.base.errors import ImprimaturError, InvalidInput
    from service.local.errors import CannotStart

    if isinstance(error, ImprimaturError):
        exit_code = Exit.BAD_INPUT if isinstance(error, InvalidInput) else Exit.FAILURE
        return Failure(error.detail, exit_code, error.code, **error.values)
    if isinstance(error, CannotStart):
        return Failure(str(error), Exit.UNAVAILABLE, "cannot_start")
    return None
