"""The `imprimatur` command without a process of its own, whose start takes longer than most of what it does.

Exit code, output and errors are those of the console script: the same `main`, on streams that are no terminal.
"""

from __future__ import annotations

import io
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

import pytest


def run_here(*arguments: object, said: str = "") -> subprocess.CompletedProcess[str]:
    """`imprimatur ARGUMENTS`, with what somebody types."""
    from imprimatur.cli import main

    command = ["imprimatur", *map(str, arguments)]
    output, errors = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    code: Any = 0
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(output), redirect_stderr(errors):
        patch.setattr(sys, "argv", command)
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(said.encode()), encoding="utf-8"))
        patch.setenv("NO_COLOR", "1")
        try:
            main()
        except SystemExit as end:
            code = end.code
    written = [stream.buffer.getvalue().decode() for stream in (output, errors)]  # type: ignore[attr-defined]
    return subprocess.CompletedProcess(command, int(code or 0), *written)
