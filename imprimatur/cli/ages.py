"""How long ago something was."""

from __future__ import annotations

import datetime as dt

UNITS = (("s", 60), ("min", 60), ("h", 48), ("days", 365))


def age(moment: str, now: dt.datetime | None = None) -> str:
    """A moment of the service in words: `3 min ago`."""
    past = dt.datetime.fromisoformat(moment)
    passed = max(0.0, ((now or dt.datetime.now(dt.UTC)) - past).total_seconds())
    for unit, most in UNITS:
        if passed < most:
            return "now" if unit == "s" and passed < 1 else f"{int(passed)} {unit} ago"
        passed /= 24 if unit == "h" else 60
    return past.date().isoformat()
