"""Help is quick, complete, and says how commands end."""

from __future__ import annotations

import os
import pydoc
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import imprimatur
from imprimatur.cli import server
from imprimatur.cli.application import app

COMMANDS = (
    *("up", "demo", "publish", "upload", "datasets", "erase", "expire", "budget", "ledger", "audit-log"),
    *("quote", "release", "status", "cancel", "sample", "download", "certificate", "verify"),
    *("install", "tenant create", "tenant key", "tenant list"),
    *("schema draft", "schema check", "key create", "key list", "key replace", "key revoke"),
)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "imprimatur.cli", *arguments],
        env={**os.environ, "NO_COLOR": "1", "COLUMNS": "100"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_main_help_names_commands_and_exit_codes():
    text = run("--help").stdout
    for command in {command.split()[0] for command in COMMANDS}:
        assert f" {command} " in text
    for code in (
        "0 done",
        "1 failed",
        "2 wrong usage",
        "3 refused",
        "4 not found",
        "5 bad input",
        "6 service unavailable",
    ):
        assert code in text


def test_first_steps_are_those_that_work_here(monkeypatch):
    assert "imprimatur demo" in CliRunner().invoke(app, ["--help"]).stdout
    monkeypatch.setattr(server, "installed", lambda: None)
    text = CliRunner().invoke(app, ["--help"]).stdout
    assert "demo" not in text
    assert "schema draft" not in text
    for words in ("imprimatur datasets --url", "imprimatur release DATASET", "imprimatur sample RELEASE", "Exit codes"):
        assert words in text


def test_python_help_lists_what_the_package_offers():
    assert set(imprimatur.__all__) <= set(dir(imprimatur))
    for name in set(imprimatur.__all__) - {"__version__"}:
        assert f"`{name}`" in (imprimatur.__doc__ or ""), name
    text = pydoc.plain(pydoc.render_doc(imprimatur))
    for words in ("class Client", "class ApiError", "publish("):
        assert words in text
    undocumented = [name for name, each in vars(imprimatur.Client).items() if name[0] != "_" and not each.__doc__]
    assert undocumented == []


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command):
    done = CliRunner().invoke(app, [*command.split(), "--help"])
    assert done.exit_code == 0
    assert "Usage:" in done.stdout


@pytest.mark.parametrize("module", ["imprimatur", "imprimatur.client", "imprimatur.cli", "service.cli"])
def test_imports_nothing_heavy(module):
    heavy = "{'numpy', 'polars', 'sqlalchemy', 'fastapi', 'pydantic', 'torch', 'celery', 'psycopg', 'onnxruntime'}"
    check = f"import sys, {module}; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True, timeout=600)
    assert done.stdout.strip() == "[]"
