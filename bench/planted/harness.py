"""Plant one bug in a copy of the tree, run the tests that should notice, tell which one did."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COPIED = (
    "imprimatur",
    "service",
    "workers",
    "tests",
    "bench",
    "migrations",
    "docker",
    "docker-compose.yml",
    "pyproject.toml",
)
TIMEOUT_SECONDS = 600.0
"""Of the tests of one bug. A mistake that only makes them hang is not caught: the run of all tests would not say where."""
HEALTHY_SECONDS = 1_800.0
"""Of all the tests together, before anything is planted."""

Edit = tuple[str, str, str]
"""(file, text that occurs there exactly once, what it becomes)"""


@dataclass(frozen=True)
class Bug:
    """One mistake as edits of the source, and the quickest tests that must notice it."""

    name: str
    edits: tuple[Edit, ...]
    tests: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """`caught_by` is the first failing test, or None where all passed or the tests did not even run."""

    caught_by: str | None
    seconds: float
    output: str


def copy_tree(folder: Path) -> Path:
    """A copy to plant in; the checkout itself is never touched."""
    tree = folder / "tree"
    tree.mkdir()
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tree / name, ignore=shutil.ignore_patterns("__pycache__", "results", "runs", ".*"))
        else:
            shutil.copy(source, tree / name)
    return tree


def planted(text: str, old: str, new: str, where: str) -> str:
    if text.count(old) != 1:
        raise ValueError(f"{where}: the text to replace occurs {text.count(old)} times; bring bench/planted up to date")
    return text.replace(old, new)


def try_bug(tree: Path, bug: Bug) -> Outcome:
    """Apply the edits, run the tests, put the files back."""
    originals = {file: (tree / file).read_text(encoding="utf-8") for file, _, _ in bug.edits}
    try:
        for file, old, new in bug.edits:
            text = (tree / file).read_text(encoding="utf-8")
            (tree / file).write_text(planted(text, old, new, f"{bug.name}, {file}"), encoding="utf-8")
        return run_tests(tree, bug.tests)
    finally:
        for file, text in originals.items():
            (tree / file).write_text(text, encoding="utf-8")


def run_tests(tree: Path, tests: Iterable[str], *, timeout_seconds: float = TIMEOUT_SECONDS) -> Outcome:
    """Exit status 1 is a failed test; anything else (a syntax error, no such test) is not a catch."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "IMPRIMATUR_"))}
    # The copy, for servers that tests start as well: they migrate the database.
    environment |= {"PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(tree)}
    command = [sys.executable, "-m", "pytest", "-x", "-rf", "--tb=line", "-p", "no:cacheprovider", *tests]
    started = time.monotonic()
    try:
        done = subprocess.run(
            command,
            cwd=tree,
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout_seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Outcome(None, time.monotonic() - started, f"no end after {timeout_seconds:.0f} s")
    failed = re.search(r"^FAILED (\S+?)(?: - |$|\[)", done.stdout, re.MULTILINE)
    caught_by = failed.group(1) if done.returncode == 1 and failed else None
    return Outcome(caught_by, time.monotonic() - started, done.stdout + done.stderr)


def imports_from(tree: Path) -> str:
    """Where `workers` comes from when tests run in the copy; guards against an installed checkout shadowing it."""
    command = [sys.executable, "-c", "import workers, service; print(workers.__file__, service.__file__)"]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=True)
    return done.stdout
