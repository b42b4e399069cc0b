"""What certificates say of an audit: `workers/audit_summary.json`, from the document that `python -m bench.audit` writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from imprimatur.version import VERSION
from workers.audited import SUMMARY, code_digest

PATH = Path(__file__).parents[2] / "workers" / SUMMARY
CONFIDENCE = 0.95
ATTACKED = code_digest()
"""Taken before the first attack: what is edited while an audit runs was not audited."""


def summarise(document: dict[str, Any], *, digest: str | None) -> dict[str, Any]:
    """Claim and lower bound of every attack on our own mechanisms, and which code was attacked."""
    return {
        "date": document["date"],
        "code_version": VERSION,
        "code_digest": digest,
        "confidence": CONFIDENCE,
        "delta": document["delta"],
        "attacks": [
            {
                "name": finding["name"],
                "epsilon_claimed": finding["epsilon_claimed"],
                "epsilon_lower": finding["epsilon_lower"],
                # None: an output that is impossible without the unit, which no ε allows.
                "ratio": None
                if finding["epsilon_lower"] is None
                else finding["epsilon_lower"] / finding["epsilon_claimed"],
            }
            for finding in document["ours"]
        ],
    }


def write_summary(document: dict[str, Any], path: Path = PATH) -> None:
    """Called at the end of a full audit."""
    text = json.dumps(summarise(document, digest=ATTACKED), indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")
