"""Environments of their own for what others would use instead; none of it is a dependency of the project."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / ".venv" / "bench"


def interpreter_with(name: str, packages: list[str]) -> Path | None:
    """The interpreter of an environment with these packages, made at the first call; None, and a line, if that fails."""
    python = FOLDER / name / "bin" / "python"
    done = FOLDER / f"{name}.installed"
    if done.exists() and done.read_text().split() == packages:
        return python
    print(f"installing {' '.join(packages)}", flush=True)
    venv.create(FOLDER / name, with_pip=True, clear=True)
    pip = [python, "-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
    try:
        subprocess.run(pip, check=True, stderr=subprocess.DEVNULL, timeout=1_800)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        print(f"SKIPPED: {' '.join(packages)} cannot be installed here", flush=True)
        return None
    done.write_text(" ".join(packages))
    return python


def folder_with(name: str, packages: list[str]) -> Path | None:
    """A folder of these packages alone, for an interpreter that has what they depend on; None, and a line, if that fails."""
    folder, done = FOLDER / name, FOLDER / f"{name}.installed"
    if done.exists() and done.read_text().split() == packages:
        return folder
    print(f"installing {' '.join(packages)}", flush=True)
    FOLDER.mkdir(parents=True, exist_ok=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--upgrade"]
    try:
        subprocess.run([*pip, "--target", folder, *packages], check=True, stderr=subprocess.DEVNULL, timeout=600)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        print(f"SKIPPED: {' '.join(packages)} cannot be installed here", flush=True)
        return None
    done.write_text(" ".join(packages))
    return folder
