"""The folder of this person's settings of the command."""

from __future__ import annotations

import os
from pathlib import Path


def config_folder() -> Path:
    """The folder that holds this person's settings of the command."""
    named = os.environ.get("IMPRIMATUR_CONFIG")
    if named:
        return Path(named)
    usual = os.environ.get("XDG_CONFIG_HOME")
    return (Path(usual) if usual else Path.home() / ".config") / "imprimatur"
