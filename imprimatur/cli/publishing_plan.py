"""What `publish` was asked for: a declared table, and what is to be left of its release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Declared:
    """A table, and what its owner says of it."""

    file: Path
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
    """That nobody needs to be asked."""
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

    @property
    def to_stdout(self) -> bool:
        return self.output is None or str(self.output) == "-"
