"""What `publish` was asked for: a declared table, and what is to be left of its release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Declared:
    """A table, and what its owner says of it."""

    private_file: Path | None
    """Of this machine, where it is one: no output may replace it."""
    source: str | None
    """Else where the table lives."""
    schema: dict[str, Any]
    epsilon: float
    delta: float | None
    name: str
    privacy_unit: dict[str, Any] | None
    distinct_from: list[str]
    given_epsilon: float | None = None
    """Of the budget, where it was named; else it is the order's."""
    is_named: bool = False
    """By its owner; else after the file."""
    is_agreed: bool = False
    """That no person needs to be asked."""
    accept_draft: bool = False
    accept_undeclared: Sequence[str] = ()


@dataclass(frozen=True)
class Wanted:
    """What is to be left of the release."""

    rows: int
    output: Path | None
    draw: dict[str, Any]
    generator: Path | None
    certificate: Path | None
    explanation: Path | None = None
    priority: int | None = None
    name: str | None = None
    again: bool = False
    to: str | None = None
    """A database or an object store, instead of a file."""
    to_table: str = ""

    @property
    def to_stdout(self) -> bool:
        return self.to is None and (self.output is None or str(self.output) == "-")

    @property
    def shown_output(self) -> str | None:
        """The destination as it may be shown: without a password."""
        if self.to is not None:
            from imprimatur.addresses import Place

            return Place.of(self.to).shown
        return None if self.output is None else str(self.output)
