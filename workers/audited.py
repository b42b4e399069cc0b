"""What the last audit of the mechanisms has shown, and whether it was of the code that runs here.

`audit_summary.json` is written by `python -m bench.audit`. It is read when a process starts: a broken one stops a worker
before anything is charged.
"""

from __future__ import annotations

import hashlib
import json
import math
from importlib import resources
from pathlib import Path
from typing import Any

import service.privacy
from imprimatur.version import VERSION

PAGE = "docs/audits.md"
SUMMARY = "audit_summary.json"
SOURCES = (".py", ".c", ".h")


def code_digest() -> str:
    """SHA-256 over the sources that draw, clip, add up, add noise and price: names and contents, in order of the names."""
    workers, privacy = Path(__file__).parent, Path(service.privacy.__path__[0])
    named = {
        f"{folder.name}/{path.relative_to(folder).as_posix()}": path
        for folder in (workers / "mechanism", workers / "numerics", privacy)
        for path in folder.rglob("*")
        if path.suffix in SOURCES
    }
    digest = hashlib.sha256()
    for name in sorted(named):
        digest.update(f"{name} {hashlib.sha256(named[name].read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def audit_statement(summary: dict[str, Any], *, running_digest: str, running_version: str = VERSION) -> dict[str, Any]:
    """The audit as a certificate tells it: what it attacked, the most that was proved, and of which code."""
    attacks = summary["attacks"]
    best = max(attacks, key=lambda attack: math.inf if attack["ratio"] is None else float(attack["ratio"]))
    holds = all(attack["ratio"] is not None and attack["ratio"] <= 1.0 for attack in attacks)
    same_code = summary["code_digest"] == running_digest
    return {
        "date": summary["date"],
        "code_version": summary["code_version"],
        "code_digest": summary["code_digest"],
        "same_code": same_code,
        "attacks": len(attacks),
        "confidence": summary["confidence"],
        "largest_ratio": None if best["ratio"] is None else round(best["ratio"], 3),
        "largest_ratio_of": best["name"],
        "holds": holds,
        "says": " ".join((_result(attacks, best, holds=holds), _of_which_code(summary, running_version, same_code))),
        "page": PAGE,
    }


def _result(attacks: list[dict[str, Any]], best: dict[str, Any], *, holds: bool) -> str:
    if not holds:
        return "An attack proved more than is claimed: do not rely on ε before this is understood."
    return (
        f"None of {len(attacks)} attacks proved a larger ε than is claimed; the largest lower bound is {best['ratio']:.2f} "
        f"of its claim ({best['name']})."
    )


def _of_which_code(summary: dict[str, Any], running_version: str, same_code: bool) -> str:
    if same_code:
        return (
            f"The audit of {summary['date']} was of the mechanisms that made this release (version {running_version})."
        )
    return (
        f"The audit of {summary['date']} was of version {summary['code_version']}, whose mechanisms are not byte for byte "
        f"those that made this release (version {running_version})."
    )


AUDIT = audit_statement(
    json.loads(resources.files("workers").joinpath(SUMMARY).read_text(encoding="utf-8")), running_digest=code_digest()
)
"""Of the code of this process."""
