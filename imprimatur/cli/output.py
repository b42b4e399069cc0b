"""What a person sees, what a program sees, and how a command ends."""

from __future__ import annotations

import json
import sys
from decimal import ROUND_FLOOR, Context
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import typer

from imprimatur.cli import amounts
from imprimatur.visible import visible

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

    from imprimatur.errors import ApiError

EITHER_ACCOUNT = "An order fits if one of the two accounts has room: one adds up the ε of all releases, the other composes their noise."
WIDE = 200
"""Columns when no person watches: identifiers must not be cut."""


class Exit(IntEnum):
    """Documented in `imprimatur --help`."""

    OK = 0
    FAILURE = 1
    USAGE = 2
    OVER_BUDGET = 3
    NOT_FOUND = 4
    BAD_INPUT = 5
    UNAVAILABLE = 6
    SELF_SIGNED = 7
    CONSISTENT = 8


class Failure(Exception):
    """A command ends here, with a sentence and an exit code."""

    def __init__(self, detail: str, exit_code: Exit = Exit.FAILURE, code: str = "failure", **values: Any) -> None:
        super().__init__(detail)
        self.detail = detail
        self.exit_code = exit_code
        self.code = code
        self.values = values

    @classmethod
    def of(cls, error: ApiError) -> Failure:
        """The service's answer as the end of a command."""
        return cls(error.detail, _exit_code(error.status, error.code), error.code, **amounts.refusal(error.values))


def console() -> Console:
    """Results: standard output."""
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else WIDE)


def notes() -> Console:
    """Everything that is not the result: standard error."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, width=None if sys.stderr.isatty() else WIDE)


def note(sentence: str) -> None:
    """A remark for a person; nothing when standard error is not a terminal."""
    if sys.stderr.isatty():
        notes().print(_escaped(sentence), style="dim")


def print_json(document: Any) -> None:
    """The result for a program, on standard output."""
    text = json.dumps(document, ensure_ascii=False, indent=2 if sys.stdout.isatty() else None, default=dict)
    typer.echo(visible(text, keep="\n"))


def echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    """A text with names of other people in it. A program gets it as it is, a person sees what would not be seen."""
    is_seen = err or sys.stdout.isatty()
    typer.echo(visible(text, keep="\n\t") if is_seen else text, err=err, nl=nl)


def print_table(title: str | None, headings: tuple[str, ...], rows: list[tuple[Any, ...]], whole: str = "") -> None:
    """Rows under headings; numbers to the right. The column under `whole` is never folded, however narrow the screen."""
    from rich import box
    from rich.table import Table

    table = Table(title=title and _escaped(title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for heading, *column in zip(headings, *rows, strict=True) if rows else ((h,) for h in headings):
        numbers = all(isinstance(cell, int | float) or str(cell).endswith("%") for cell in column) and bool(column)
        table.add_column(
            _escaped(heading), justify="right" if numbers else "left", overflow="fold", no_wrap=heading == whole
        )
    for row in rows:
        table.add_row(*(_escaped(cell) for cell in row))
    console().print(table)


def print_pairs(pairs: Mapping[str, Any]) -> None:
    """One name and value per line."""
    width = max(len(name) for name in pairs)
    for name, value in pairs.items():
        console().print(f"[dim]{_escaped(f'{name:<{width}}')}[/dim]  {_escaped(value)}", soft_wrap=True)


def print_next(*commands: str) -> None:
    """What to try next, after the result for a person."""
    for number, command in enumerate(commands):
        console().print(f"[dim]{'      ' if number else 'next: '}{_escaped(command)}[/dim]", soft_wrap=True)


def print_failure(failure: Failure, *, as_json: bool) -> None:
    """The end of a command that did not work, on standard error."""
    if as_json:
        document = {
            **failure.values,
            "code": failure.code,
            "detail": failure.detail,
            "exit_code": int(failure.exit_code),
        }
        typer.echo(visible(json.dumps(document, ensure_ascii=False, default=str)), err=True)
        return
    screen = notes()
    detail = _escaped(failure.detail, keep="\n")  # which may show the end of a log
    screen.print(f"[bold red]{_escaped(failure.code)}[/bold red]  {detail}", soft_wrap=True)
    for name, value in failure.values.items():
        screen.print(
            f"  {_escaped(name)}: {_escaped(json.dumps(value, ensure_ascii=False, default=str))}", soft_wrap=True
        )


def rounded_down(epsilon: float) -> str:
    """Four digits of an ε that still fits when it is ordered as it is shown."""
    return f"{float(Context(prec=4, rounding=ROUND_FLOOR).create_decimal(repr(epsilon))):.4g}"


def _escaped(value: Any, *, keep: str = "") -> str:
    """The value as it is: neither markup of rich nor a terminal sequence."""
    from rich.markup import escape

    return escape(visible(str(value), keep=keep))


def _exit_code(status: int, code: str) -> Exit:
    if code == "budget_exhausted":
        return Exit.OVER_BUDGET
    if status in {401, 403, 404, 410}:
        return Exit.NOT_FOUND
    if code in {"not_ready", "not_cancellable"} or 500 <= status < 503:
        return Exit.FAILURE
    if status == 0 or status >= 503:
        return Exit.UNAVAILABLE
    return Exit.BAD_INPUT
