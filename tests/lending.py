"""Environments of their own for what others install, without an index: packages are links to what is installed here."""

from __future__ import annotations

import importlib.metadata
import os
import venv
from typing import TYPE_CHECKING

from packaging.requirements import Requirement

if TYPE_CHECKING:
    from pathlib import Path


def empty_room(folder: Path) -> tuple[Path, Path]:
    """An environment with nothing in it: its Python and its site-packages."""
    venv.create(folder, symlinks=True)
    return folder / "bin" / "python", next(folder.glob("lib/python*/site-packages"))


def bare_environment() -> dict[str, str]:
    """The variables of this process, less those that lead Python back here."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}


def lend(name: str, packages: Path) -> None:
    """Puts a distribution, and what it says it needs, where `pip install` would: links to what is installed here."""
    distribution = importlib.metadata.distribution(name)
    for part in {file.parts[0] for file in distribution.files or ()} - {".."}:
        if not (packages / part).exists():
            (packages / part).symlink_to(distribution.locate_file(part))
    lend_requirements(distribution.requires or (), packages)


def lend_requirements(lines: list[str] | tuple[str, ...], packages: Path, extra: str = "") -> None:
    """What these requirements ask for, with one extra or none."""
    for line in lines:
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            lend(requirement.name, packages)
