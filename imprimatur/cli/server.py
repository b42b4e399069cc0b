"""What the server's distribution adds to the command, where it is installed; where it is not, a sentence that says so.

A module that the entry points of the group `imprimatur.commands` name is a `Server`. It is imported when `--help` lists
commands, when a command is none of the client's, and when one needs a service on this machine.
"""

from __future__ import annotations

import functools
import importlib
from contextlib import AbstractContextManager
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import typer
from typer.core import TyperGroup

from imprimatur.cli.output import Exit, Failure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from imprimatur.cli.target import Target

GROUP = "imprimatur.commands"
INSTALL = "pip install 'imprimatur-server[embedded,worker]'"
KNOWN = ("up", "demo", "install", "tenant", "schema", "key replace-signing", "keys")
"""Commands of the server that are named in the sentence where it is not installed."""


class Server(Protocol):
    """The module that the server's entry point names."""

    @property
    def COMMANDS(self) -> Mapping[str, tuple[str, str]]:  # noqa: N802 - a constant of a module
        """The server's commands by the words that call them: the panel of `--help`, and `module:attribute` of a function or a Typer app."""

    def started(self, data: Path) -> AbstractContextManager[Target]:
        """A service in a data directory that lives as long as this."""

    def create_tenant(self, data: Path, name: str) -> str:
        """A new tenant in the database of a data directory, or of the owner's settings; its first owner key."""

    def failure_of(self, error: Exception) -> Failure | None:
        """An expected error of the server as the end of a command."""


@functools.cache
def installed() -> Server | None:
    """The server, if it is here: by its entry point, or beside this package in a checkout that was never installed."""
    for entry in entry_points(group=GROUP):
        return cast("Server", entry.load())
    if (Path(__file__).parents[2] / "service" / "cli" / "__init__.py").is_file():
        return cast("Server", importlib.import_module("service.cli"))
    return None


def needed(what: str) -> Server:
    """The server, or a `Failure` that says what to install."""
    server = installed()
    if server is None:
        raise missing(what)
    return server


def missing(what: str) -> Failure:
    """The failure of a command that needs the server where it is not installed."""
    return Failure(f"{what} needs the server: {INSTALL}", Exit.UNAVAILABLE, "server_not_installed")


class Commands(TyperGroup):
    """A group that the server may have commands for."""

    _asked = False

    def list_commands(self, ctx: Any) -> list[str]:
        self._ask_the_server(ctx)
        return super().list_commands(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        found = super().get_command(ctx, cmd_name)
        if found is None:
            self._ask_the_server(ctx)
            found = super().get_command(ctx, cmd_name)
        return found

    def _ask_the_server(self, ctx: Any) -> None:
        if self._asked:
            return
        self._asked = True
        server, own = installed(), dict(self.commands)
        within = "" if ctx.parent is None else f"{ctx.info_name} "
        calls = KNOWN if server is None else tuple(server.COMMANDS)
        names = {call.removeprefix(within): call for call in calls if call.startswith(within)}
        added = {name: _built(name, call, server) for name, call in names.items() if " " not in name}
        self.commands = {**own, **added} if within else {**added, **own}


def _built(name: str, call: str, server: Server | None) -> Any:
    if server is None:
        return _stub(name, call)
    panel, place = server.COMMANDS[call]
    module, _, attribute = place.partition(":")
    target = getattr(importlib.import_module(module), attribute)
    if isinstance(target, typer.Typer):
        command: Any = typer.main.get_group(target)
    else:
        command = _command(target)
    command.name, command.rich_help_panel = name, panel or None
    return command


def _stub(name: str, call: str) -> Any:
    def refuse() -> None:
        raise missing(f"`imprimatur {call}`")

    settings = {"ignore_unknown_options": True, "allow_extra_args": True}
    return _command(refuse, name, context_settings=settings, add_help_option=False, hidden=True)


def _command(function: Callable[..., None], name: str | None = None, **settings: Any) -> Any:
    app = typer.Typer(add_completion=False, rich_markup_mode="rich")
    app.command(name, **settings)(function)
    return typer.main.get_command(app)
