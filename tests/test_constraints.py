"""constraints.txt pins every dependency of both pyproject.toml by version alone."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
LINES = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]


def name_of(requirement: str) -> str:
    return re.match(r"[A-Za-z0-9._-]+", requirement).group().lower().replace("_", "-")


def test_holds_exact_versions_and_nothing_else():
    for line in LINES:
        assert re.fullmatch(r"[a-z0-9-]+==[0-9][0-9A-Za-z.]*( ; .+)?", line), line
    assert "torch==2.13.0" in LINES


def test_pins_every_requirement():
    wanted = set()
    for file in ("pyproject.toml", "imprimatur/pyproject.toml"):
        project = tomllib.loads((ROOT / file).read_text())["project"]
        extras = project["optional-dependencies"].values()
        wanted |= {name_of(requirement) for group in (project["dependencies"], *extras) for requirement in group}
    # The client is installed from the same tree; pip-tools never pins setuptools, which builds and is no part of what runs.
    assert wanted - {"imprimatur", "setuptools"} <= {name_of(line) for line in LINES}
    assert "imprimatur" not in {name_of(line) for line in LINES}
