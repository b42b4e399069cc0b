"""Files and folders of the data directory: for their owner alone, whatever the umask is, and whatever they were before."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import IO

FILE_MODE = 0o600
FOLDER_MODE = 0o700
UMASK = 0o077
"""Of the children, which write files of their own."""


def make_private_folder(folder: Path) -> None:
    """Make the folder and those above it that are missing; one that is there is closed to others."""
    if not folder.is_dir():
        if not folder.parent.is_dir():
            make_private_folder(folder.parent)
        folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
    else:
        with suppress(PermissionError):  # somebody else's, who has given it to us to use
            folder.chmod(FOLDER_MODE)


def append_private(path: Path) -> IO[bytes]:
    """The file, open at its end."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, FILE_MODE)
    with suppress(PermissionError):
        os.fchmod(descriptor, FILE_MODE)
    return os.fdopen(descriptor, "ab")


def write_private(path: Path, text: str) -> None:
    """Replace the file, whole or not at all."""
    unfinished = path.with_name(path.name + ".unfinished")
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    unfinished.replace(path)
