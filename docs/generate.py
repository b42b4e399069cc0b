"""Writes the pages that are made from the code: `python -m docs.generate`. A test keeps them equal to it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from docs.generators import api, client, commands, errors, methods, orders

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER = Path(__file__).parent
PAGES: dict[str, Callable[[], str]] = {
    "orders.md": orders.render,
    "reference/api.md": api.render,
    "reference/client.md": client.render,
    "reference/commands.md": commands.render,
    "reference/errors.md": errors.render,
    "reference/methods.md": methods.render,
}


def main() -> None:
    """Write all of them."""
    for name, render in PAGES.items():
        path = FOLDER / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    main()
