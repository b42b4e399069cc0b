"""Entry of the process that reads an upload: `python -m service.intake.sandboxed service.intake.child`.

What it reads of the disk is limited first. Libraries start threads of their own when they are imported, and Landlock
binds only those that are started after it. The rest follows in `service.intake.child.main`, when all is imported.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path

from service.intake import sandbox


def main() -> None:
    """Import the module that is named, under Landlock, and let its `main` go on."""
    found = importlib.util.find_spec(sys.argv[1])
    if found is None or found.origin is None:
        raise ModuleNotFoundError(sys.argv[1])
    begun = sandbox.begin(Path(found.origin).parent)
    importlib.import_module(sys.argv[1]).main(begun)
    sys.stdout.flush()
    # Not by the interpreter's own end: it waits for threads of a parser that read ahead, which wait for the interpreter.
    os._exit(0)


if __name__ == "__main__":
    main()
