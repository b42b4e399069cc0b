"""Landlock: from now on this process reads what lies in a few folders, and writes, connects to and signals nothing.

Descriptors that are open already stay usable. Source: https://docs.kernel.org/userspace-api/landlock.html
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446
"""The same numbers on every processor."""
_ASK_VERSION = 1
_PATH_BENEATH = 1
_READ_FILE, _READ_FOLDER = 1 << 2, 1 << 3
_RIGHTS = {1: 13, 2: 14, 3: 15, 5: 16}
"""Version of the interface -> how many rights on files it knows; all of them are taken away."""
_NETWORK = 0b11
"""Binding and connecting TCP, from version 4 on."""
_SCOPES = 0b11
"""Abstract Unix sockets, and signals to processes outside, from version 6 on."""


def version() -> int:
    """The version of the kernel's interface; 0 where it has none."""
    if sys.platform != "linux":
        return 0
    return max(0, int(ctypes.CDLL(None).syscall(_CREATE, None, 0, _ASK_VERSION)))


def restrict(readable: Iterable[Path]) -> bool:
    """Restrict this thread and those it starts, for good. False where the kernel refuses; needs no_new_privs."""
    number = version()
    if number < 1:
        return False
    kernel = ctypes.CDLL(None)
    rights = (1 << max(bits for since, bits in _RIGHTS.items() if since <= number)) - 1
    fields = [rights] + [_NETWORK] * (number >= 4) + [_SCOPES] * (number >= 6)
    attributes = struct.pack(f"={len(fields)}Q", *fields)
    rules = kernel.syscall(_CREATE, attributes, len(attributes), 0)
    if rules < 0:
        return False
    try:
        for path in readable:
            _allow_reading(kernel, rules, path)
        return bool(kernel.syscall(_RESTRICT, rules, 0) == 0)
    finally:
        os.close(rules)


def _allow_reading(kernel: ctypes.CDLL, rules: int, path: Path) -> None:
    """What cannot be opened cannot be read anyway."""
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        rights = _READ_FILE | (_READ_FOLDER if path.is_dir() else 0)
        kernel.syscall(_ADD_RULE, rules, _PATH_BENEATH, struct.pack("=Qi", rights, place), 0)
    finally:
        os.close(place)
