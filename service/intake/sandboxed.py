"""Entry of the process that reads an upload: `python -m service.intake.sandboxed service.intake.child`.

What it reads of the disk is limited first. Libraries start threads of their own when they are imported, and Landlock
binds only those that are started after it. The rest follows in `service.intake.child.main`, when all is imported.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from service.intake import sandbox

if TYPE_CHECKING:
    from types import ModuleType


def main() -> None:
    """Import the module that is named, under Landlock, and let its `main` go on."""
    try:
        module, begun = _imported(sys.argv[1])
    except BaseException as error:  # noqa: BLE001 - a library that cannot start its threads panics
        # No job has been read yet, so the text can name no cell.
        sys.stdout.write(json.dumps({"not_started": f"{type(error).__name__}: {error}"}) + "\n")
    else:
        module.main(begun)
    sys.stdout.flush()
    # Not by the interpreter's own end: it waits for threads of a parser that read ahead, which wait for the interpreter.
    os._exit(0)


def _imported(name: str) -> tuple[ModuleType, sandbox.Begun]:
    found = importlib.util.find_spec(name)
    if found is None or found.origin is None:
        raise ModuleNotFoundError(name)
    begun = sandbox.begin(Path(found.origin).parent)
    return importlib.import_module(name), begun


if __name__ == "__main__":
    main()
