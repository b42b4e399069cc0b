"""Tables made up with strong structure, which the real ones here lack: a chain of columns, a household survey with places in places, a parity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROWS = 20_000
CHAIN_WIDTHS = (2, 5, 12, 32)
KEPT = 0.8
"""Chance that a column of a chain follows the one before it."""

Columns = dict[str, list[Any]]
Whole = NDArray[np.int64]


def chain(columns: int = 20) -> tuple[Columns, dict[str, Any]]:
    """(columns, schema): each follows the one before it in four fifths of the rows; nineteen pairs say everything."""
    widths = chain_widths(columns)
    codes = chain_codes(np.random.default_rng(0), ROWS, widths)
    made = {f"x{place:02d}": _named("v", codes[:, place], digits=2) for place in range(columns)}
    fields = [
        _category(name, [f"v{cell:02d}" for cell in range(width)]) for name, width in zip(made, widths, strict=True)
    ]
    return made, {"fields": fields, "target": "x00"}


def chain_widths(columns: int) -> list[int]:
    return [CHAIN_WIDTHS[place % len(CHAIN_WIDTHS)] for place in range(columns)]


def chain_codes(rng: np.random.Generator, rows: int, widths: Sequence[int]) -> Whole:
    """(rows, columns): every column follows the one before it with chance KEPT, and is drawn evenly else."""
    codes = np.empty((rows, len(widths)), np.int64)
    for place, width in enumerate(widths):
        codes[:, place] = rng.integers(width, size=rows)
        if place:
            follows = rng.random(rows) < KEPT
            codes[follows, place] = codes[follows, place - 1] * 7 % width
    return codes


def survey() -> tuple[Columns, dict[str, Any]]:
    """(columns, schema): 120 towns in 25 counties in 5 regions, age and its groups, occupation and its sector, income and its bracket.

    A twelfth of the households is in arrears, by children, bracket, sector, region, house and age.
    """
    rng = np.random.default_rng(11)
    sizes = np.arange(1, 121) ** -0.8
    town = rng.choice(120, size=ROWS, p=sizes / sizes.sum())
    county = np.random.default_rng(3).permutation(120)[town] % 25
    region = county % 5
    age = np.clip(rng.normal(42 + 3 * region, 19, ROWS), 0, 99).astype(int)
    group = np.digitize(age, [18, 30, 45, 65])
    occupation = np.where(age < 18, 14, np.where(age > 66, 13, rng.choice(13, size=ROWS)))
    local = rng.random(ROWS) < 0.3
    occupation = np.where(local & (age >= 18) & (age <= 66), county * 3 % 13, occupation)
    sector = np.array([0, 0, 0, 1, 1, 2, 2, 3, 3, 3, 4, 4, 5, 6, 6])[occupation]
    earned = np.exp(rng.normal(9.6 + 0.08 * occupation % 1.2 + 0.1 * group + 0.05 * region, 0.5, ROWS)) * (age >= 18)
    income = np.minimum(earned, 250_000).round(2)
    bracket = np.digitize(income, [1, 9_000, 20_000, 35_000, 60_000])
    married = rng.random(ROWS) < np.array([0, 0.25, 0.55, 0.65, 0.6])[group]
    children = np.where(married, rng.poisson(1.4, ROWS), rng.poisson(0.3, ROWS)).clip(0, 6)
    rooms = np.clip(rng.poisson(2 + children * 0.6 + bracket * 0.4), 1, 9)
    owner = rng.random(ROWS) < 0.1 + 0.1 * bracket + 0.1 * married
    owned, rented = rng.choice(3, ROWS, p=[0.2, 0.5, 0.3]), rng.choice(3, ROWS, p=[0.6, 0.3, 0.1])
    strain = -2 + 0.5 * children - 0.5 * bracket + 0.8 * (sector == 2) + 0.6 * (region == 3) - 0.5 * owner
    arrears = rng.random(ROWS) < 1 / (1 + np.exp(-(strain + 0.02 * (60 - age))))
    named: Columns = {
        "town": _named("t", town, digits=3),
        "county": _named("c", county, digits=2),
        "region": _named("r", region),
        "age": age.tolist(),
        "age_group": [("child", "young", "middle", "older", "old")[place] for place in group],
        "occupation": _named("o", occupation, digits=2),
        "sector": _named("s", sector),
        "income": income.tolist(),
        "bracket": _named("b", bracket),
        "married": _yes(married),
        "children": children.tolist(),
        "rooms": rooms.tolist(),
        "owner": _yes(owner),
        "cars": _named("k", np.where(owner, owned, rented)),
        "arrears": _yes(arrears),
    }
    ranges = {"age": (0, 99), "children": (0, 6), "rooms": (1, 9)}
    money = {"minimum": 0, "maximum": 250_000, "required": True}
    fields = [
        {"name": name, "type": "number", "decimals": 2, "constraints": money}
        if name == "income"
        else _whole(name, *ranges[name])
        if name in ranges
        else _category(name, sorted(set(values)))
        for name, values in named.items()
    ]
    return named, {"fields": fields, "target": "arrears"}


def parity(bits: int = 5, others: int = 5) -> tuple[Columns, dict[str, Any]]:
    """(columns, schema): the label is odd where so many of the bits are. All tables of up to `bits` columns of them are even: they say nothing of it."""
    codes = np.random.default_rng(5).integers(2, size=(ROWS, bits + others))
    made: Columns = {f"x{place}": _yes(codes[:, place] == 1) for place in range(bits + others)}
    made["label"] = ["odd" if one else "even" for one in codes[:, :bits].sum(axis=1) % 2]
    return made, {"fields": [_category(name, sorted(set(values))) for name, values in made.items()], "target": "label"}


def _named(letter: str, places: Whole, *, digits: int = 1) -> list[str]:
    return [f"{letter}{place:0{digits}d}" for place in places.tolist()]


def _yes(holds: NDArray[np.bool_]) -> list[str]:
    return ["yes" if one else "no" for one in holds.tolist()]


def _category(name: str, values: list[str]) -> dict[str, Any]:
    return {"name": name, "type": "string", "constraints": {"enum": values, "required": True}}


def _whole(name: str, low: int, high: int) -> dict[str, Any]:
    return {"name": name, "type": "integer", "constraints": {"minimum": low, "maximum": high, "required": True}}
