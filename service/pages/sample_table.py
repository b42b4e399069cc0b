"""Made-up rows to try the service with. They are made anew for everybody who asks.

A fixed table would have its budget once in an installation: the second tenant that tried it would be told that these rows
have a budget already.
"""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

from service.base.messages import Message

ROWS = 1_000
NAME = Message("Sample: visits of an outpatient clinic (made up)")

_FIRST_DAY, _DAYS = dt.date(2025, 1, 1), 365
_DEPARTMENTS = {
    # weight, mean age, minutes of waiting, mean cost
    "general medicine": (30, 48, 25, 60),
    "orthopaedics": (20, 55, 40, 140),
    "cardiology": (15, 66, 35, 210),
    "dermatology": (15, 40, 20, 75),
    "paediatrics": (20, 8, 15, 55),
}
_INSURANCE = ("statutory", "private", "none")

SCHEMA: dict[str, Any] = {
    "title": NAME,
    "target": "returned within 30 days",
    "fields": [
        {
            "name": "day",
            "type": "date",
            "constraints": {"minimum": "2025-01-01", "maximum": "2025-12-31", "required": True},
        },
        {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 110, "required": True}},
        {"name": "sex", "type": "string", "constraints": {"enum": ["f", "m", "x"], "required": True}},
        {"name": "department", "type": "string", "constraints": {"enum": sorted(_DEPARTMENTS), "required": True}},
        {"name": "insurance", "type": "string", "constraints": {"enum": list(_INSURANCE)}},
        {"name": "waiting minutes", "type": "integer", "constraints": {"minimum": 0, "maximum": 240}},
        {
            "name": "cost",
            "type": "number",
            "decimals": 2,
            "constraints": {"minimum": 0, "maximum": 2000, "required": True},
        },
        {"name": "returned within 30 days", "type": "boolean", "constraints": {"required": True}},
    ],
}


def sample_rows(seed: int) -> list[list[str]]:
    """The rows as text, in the order of the schema's fields."""
    chance = random.Random(seed)  # noqa: S311 - made-up rows, nothing that is kept from anybody
    return [_row(chance) for _ in range(ROWS)]


def sample_csv(rows: list[list[str]]) -> str:
    """The rows as CSV with a header; no cell needs quotes."""
    header = ",".join(field["name"] for field in SCHEMA["fields"])
    return "\n".join([header, *map(",".join, rows)]) + "\n"


def _row(chance: random.Random) -> list[str]:
    names = list(_DEPARTMENTS)
    department = chance.choices(names, [_DEPARTMENTS[name][0] for name in names])[0]
    _, mean_age, mean_wait, mean_cost = _DEPARTMENTS[department]
    age = min(110, max(0, round(chance.gauss(mean_age, 5 if department == "paediatrics" else 16))))
    insurance = "" if chance.random() < 0.02 else chance.choices(_INSURANCE, (85, 12, 3))[0]
    wait = round(chance.gammavariate(2.0, mean_wait / 2.0) * (0.6 if insurance == "private" else 1.0))
    cost = min(2_000.0, chance.lognormvariate(0.0, 0.5) * mean_cost * (1.4 if insurance == "private" else 1.0))
    returned = chance.random() < 0.05 + age / 600
    return [
        (_FIRST_DAY + dt.timedelta(days=chance.randrange(_DAYS))).isoformat(),
        str(age),
        chance.choices(("f", "m", "x"), (51, 48, 1))[0],
        department,
        insurance,
        "" if chance.random() < 0.03 else str(min(240, wait)),
        f"{cost:.2f}",
        "true" if returned else "false",
    ]
