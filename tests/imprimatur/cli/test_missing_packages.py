"""A package that is not installed is one line that says what to install, whatever the command."""

from __future__ import annotations

import subprocess
import sys

import pytest

HIDDEN = "import sys; sys.modules[{module!r}] = None; from imprimatur.cli import main; main()"


def run(module, *arguments, cwd):
    """The command in a process where a module cannot be imported."""
    return subprocess.run(
        [sys.executable, "-c", HIDDEN.format(module=module), *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.mark.parametrize(
    ("module", "arguments", "install"),
    [
        ("httpx", ("datasets", "--url", "http://127.0.0.1:9"), "imprimatur'"),
        (
            "duckdb",
            ("upload", "-s", "{}", "--epsilon", "1", "--from", "x.duckdb", "--table", "t"),
            "imprimatur[sources]",
        ),
        ("obstore", ("upload", "-s", "{}", "--epsilon", "1", "--from", "s3://b/x.csv"), "imprimatur[sources]"),
        ("cryptography", ("verify", "c.json"), "imprimatur[verify]"),
        ("polars", ("schema", "draft", "t.csv"), "imprimatur-server[embedded,worker]"),
        ("sqlalchemy", ("up", "--data", "d"), "imprimatur-server[embedded,worker]"),
    ],
)
def test_what_is_missing_is_said_in_one_line(tmp_path, module, arguments, install):
    (tmp_path / "t.csv").write_text("a\n1\n2\n")
    (tmp_path / "c.json").write_text('{"format": 3}')
    (tmp_path / "x.duckdb").write_bytes(b"")
    named = () if "--url" in arguments or arguments[0] != "upload" else ("--url", "http://127.0.0.1:9", "--key", "k")
    done = run(module, *arguments, *named, cwd=tmp_path)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    (line,) = [line for line in done.stderr.splitlines() if "pip install" in line]
    assert install in line
