"""docs/reference/commands.md, from the commands themselves."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import typer

from imprimatur.cli.application import EXIT_CODES, app

if TYPE_CHECKING:
    from collections.abc import Iterator

HEAD = """# The commands

Every command with its options, as `imprimatur COMMAND --help` shows them. How they belong together: [the command line](../command_line.md).
"""
COMMON = ("--help", "--install-completion", "--show-completion")


def render() -> str:
    """The whole page."""
    root = typer.main.get_command(app)
    parts = [HEAD, "## Exit codes\n", *(f"- {line}" for line in _exit_codes()), ""]
    for path, command in _commands(root, ("imprimatur",), None):
        parts.append(f"## `{' '.join(path)}`\n")
        parts.append(f"{_prose(command.help or '')}\n")
        rows = list(_rows(command))
        if rows:
            parts.append("\n".join(["| option | default | what it does |", "|---|---|---|", *rows, ""]))
    return "\n".join(parts)


def _commands(command: Any, path: tuple[str, ...], parent: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    if not hasattr(command, "list_commands"):
        yield path, command
        return
    context = typer.Context(command, info_name=path[-1], parent=parent)
    for name in command.list_commands(context):
        each = command.get_command(context, name)
        if each is not None and not each.hidden:
            yield from _commands(each, (*path, name), context)


def _rows(command: Any) -> Iterator[str]:
    for each in command.params:
        if each.param_type_name == "argument":
            name = (each.metavar or each.name or "").upper()
            yield f"| `{name}` | {'' if each.required else 'may be left out'} | {_cell(getattr(each, 'help', '') or '')} |"
        elif each.opts[0] not in COMMON and not each.hidden:
            names = ", ".join(f"`{name}`" for name in each.opts + each.secondary_opts)
            value = "" if each.is_flag or each.default is None or callable(each.default) else f"`{each.default}`"
            yield f"| {names} | {value or '–'} | {_cell(each.help or '')} |"


def _exit_codes() -> list[str]:
    text = re.sub(r"\[/?\w+\]", "", EXIT_CODES)
    return [part.strip() for line in text.splitlines()[1:] for part in line.split("·") if part.strip()]


def _prose(text: str) -> str:
    text = re.sub(r"\[/?[a-z ]+\]", "", text).replace("\b", "").replace("\f", "")
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n") if part.strip())


def _cell(text: str) -> str:
    return _prose(text).replace("\n\n", " ").replace("|", "\\|").replace("<", "&lt;")
