"""docs/reference/client.md, from the docstrings of what `imprimatur` exports."""

from __future__ import annotations

import inspect
import re
from typing import Any

import imprimatur

HEAD = """# The Python client, name by name

Everything that `import imprimatur` gives, from its docstrings. With examples, in the order of use: [the Python client](../client.md). Each `Async…` class has the methods of its twin, to be awaited.
"""


def render() -> str:
    """The whole page."""
    parts = [HEAD]
    for name in imprimatur.__all__:
        value = getattr(imprimatur, name)
        if name.startswith(("_", "Async")) or not (inspect.isclass(value) or inspect.isfunction(value)):
            continue
        if inspect.isfunction(value):
            parts += [f"## `{name}{_signature(value)}`\n", f"{_text(value)}\n"]
            continue
        parts += [f"## `{name}`\n", f"{_text(value)}\n"]
        rows = [f"| `{member}` | {_cell(each)} |" for member, each in _members(value)]
        if rows:
            parts.append("\n".join(["| member | what it does |", "|---|---|", *rows, ""]))
    return "\n".join(parts)


def _members(cls: type) -> list[tuple[str, Any]]:
    found = []
    for name, value in inspect.getmembers(cls):
        if name.startswith("_") or not inspect.getdoc(value):
            continue
        if inspect.isfunction(value):
            found.append((f"{name}{_signature(value)}", value))
        elif isinstance(value, property):
            found.append((name, value))
    return found


def _signature(value: Any) -> str:
    text = str(inspect.signature(value)).partition(" -> ")[0]
    text = re.sub(r"\(self(, )?", "(", text)
    return re.sub(r"'([^']*)'", r"\1", text).replace("|", "or") if len(text) < 160 else "(…)"


def _text(value: Any) -> str:
    return (inspect.getdoc(value) or "").replace("<", "&lt;")


def _cell(value: Any) -> str:
    return " ".join(_text(value).split("\n\n")[0].split()).replace("|", "\\|")
