# ruff: noqa: INP001 - no package
"""`python examples/clinic_visits.py`: writes clinic_visits.csv. Every row is made up by a random number generator; no person is in it.

The file is untidy on purpose, as exports of real systems are. The tutorial (docs/tutorial.md) says what to do about each fault.
"""

from __future__ import annotations

import csv
import random
from datetime import date, timedelta
from pathlib import Path

PATIENTS = 1_400
VISITS = 2_000
POSTCODES = {"01067": 5, "01069": 4, "01097": 3, "01127": 2, "01159": 2, "01187": 1}
DEPARTMENTS = {"medicine": 5, "surgery": 4, "heart": 3, "children": 2}
FIRST_DAY = date(2023, 1, 2)
NOTES = ["", "", "", "came with a relative", "call back next week", "allergic to penicillin", "prefers mornings"]


def drawn(rng: random.Random, shares: dict[str, int]) -> str:
    return rng.choices(list(shares), list(shares.values()))[0]


def day(rng: random.Random, moment: date) -> str:
    """Most clerks write 17.04.2023; a few rows come from another system, which writes 2023-04-17."""
    return moment.isoformat() if rng.random() < 0.06 else f"{moment:%d.%m.%Y}"


def visit(rng: random.Random, patient: dict[str, str | int]) -> list[object]:
    age = int(patient["age"])
    weight = 10 + 3.2 * age if age < 18 else rng.gauss(78, 13)
    pressure = round(rng.gauss(105 + 0.45 * age + (8 if patient["smoker"] == "yes" else 0), 12))
    again = rng.random() < 0.08 + 0.004 * age + (0.15 if pressure > 150 else 0)
    return [
        patient["id"],
        patient["email"],
        patient["postcode"],
        age,
        patient["smoker"],
        "children" if age < 18 else drawn(rng, DEPARTMENTS | {"children": 0}),
        day(rng, FIRST_DAY + timedelta(days=rng.randrange(728))),
        f"{weight:.1f}".replace(".", ","),
        "999" if rng.random() < 0.05 else pressure,
        rng.choice(NOTES),
        "yes" if again else "no",
    ]


def table(seed: int) -> list[list[object]]:
    rng = random.Random(seed)  # noqa: S311 - made up, not secret
    patients = [
        {
            "id": f"P{number:05d}",
            "email": f"patient{number}@example.org",
            "postcode": drawn(rng, POSTCODES),
            "age": min(97, max(1, round(rng.gauss(52, 21)))),
            "smoker": rng.choices(["yes", "no", ""], [24, 72, 4])[0],
        }
        for number in rng.sample(range(10_000, 99_999), PATIENTS)
    ]
    who = [*patients, *rng.choices(patients[:400], k=VISITS - PATIENTS)]
    rows = [visit(rng, patient) for patient in who]
    rng.shuffle(rows)
    return rows


def write(path: Path, seed: int) -> None:
    names = ["patient_id", "email", "postcode", "age", "smoker", "department", "visit", "weight", "pressure", "note"]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=";", lineterminator="\n")
        writer.writerow([*names, "readmitted"])
        writer.writerows(table(seed))


if __name__ == "__main__":
    write(Path(__file__).with_suffix(".csv"), seed=7)
