"""Tables made up of skewed money, with far wider declared ranges than rows fill: what columns of numbers are in use."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.tables.made_up import Columns

ROWS = 12_000
WIDEST = 2_000_000

Table = tuple[Columns, dict[str, Any]]
Numbers = NDArray[np.float64]


def payments() -> Table:
    """Lognormal amounts, fees that are nothing or a part of them, round tips."""
    rng, kind = _begun(1)
    amount = np.exp(rng.normal(3.5 + kind, 1.2, ROWS))
    fee = np.where(rng.random(ROWS) < 0.7, 0.0, amount * rng.uniform(0.01, 0.03, ROWS))
    tip = np.where(rng.random(ROWS) < 0.6, 0.0, rng.choice([1.0, 2.0, 5.0, 10.0], ROWS))
    return _table(
        kind, {"amount": amount, "fee": fee, "tip": tip}, {"amount": (0, WIDEST), "fee": (0, 50_000), "tip": (0, 1_000)}
    )


def shop() -> Table:
    """A dozen exact prices, few pieces, a discount in whole tens."""
    rng, kind = _begun(2)
    prices = np.array([0.99, 1.49, 2.99, 4.99, 7.5, 9.99, 14.95, 19.99, 24.99, 49.99, 99.0, 249.0])
    place = np.clip(rng.binomial(11, 0.2 + 0.1 * kind), 0, 11)
    pieces = rng.geometric(0.6, ROWS).astype(float)
    total = prices[place] * pieces * (1 - rng.choice([0, 0, 0, 0.1, 0.2], ROWS))
    return _table(
        kind,
        {"price": prices[place], "pieces": pieces, "total": total},
        {"price": (0, 10_000), "pieces": (0, 1_000), "total": (0, 100_000)},
    )


def accounts() -> Table:
    """Balances on both sides of nothing, a limit in round hundreds, an overdraft of most that is nothing."""
    rng, kind = _begun(3)
    balance = np.sinh(rng.normal(0.8 * kind - 0.4, 1.6, ROWS)) * 900
    limit = rng.choice([0, 500, 1_000, 2_500, 10_000], ROWS, p=[0.3, 0.2, 0.25, 0.15, 0.1]).astype(float)
    salary = np.exp(rng.normal(7.6 + 0.2 * kind, 0.5, ROWS))
    return _table(
        kind,
        {"balance": balance, "limit": limit, "overdraft": np.maximum(0.0, -balance), "salary": salary},
        dict.fromkeys(("balance", "overdraft"), (-WIDEST, WIDEST)) | {"limit": (0, 1_000_000), "salary": (0, WIDEST)},
    )


def claims() -> Table:
    """Claims: most are nothing, others have a heavy tail; a deductible; a reserve."""
    rng, kind = _begun(4)
    claimed = np.where(rng.random(ROWS) < 0.75 - 0.1 * kind, 0.0, 400 * rng.pareto(1.5, ROWS))
    deductible = rng.choice([150.0, 300.0, 500.0, 1_000.0], ROWS, p=[0.4, 0.3, 0.2, 0.1])
    reserve = claimed * rng.uniform(0.5, 1.5, ROWS)
    return _table(
        kind,
        {
            "claimed": claimed,
            "deductible": deductible,
            "paid": np.maximum(0.0, claimed - deductible),
            "reserve": reserve,
        },
        {},
        (0, WIDEST),
    )


def ledger() -> Table:
    """A dozen columns of money, each declared as ±2,000,000.00."""
    rng, kind = _begun(5)
    size = rng.normal(0, 1, ROWS)
    columns = {}
    for place in range(12):
        amount = np.exp(rng.normal(4 + place / 3, 0.4 + place / 8, ROWS) + 0.5 * size)
        sign = np.where(rng.random(ROWS) < (0.0, 0.1, 0.5)[place % 3], -1.0, 1.0)
        columns[f"m{place:02d}"] = np.where(rng.random(ROWS) < (0.0, 0.4, 0.1, 0.7)[place % 4], 0.0, sign * amount)
    return _table(kind, columns, {}, (-WIDEST, WIDEST))


def _begun(seed: int) -> tuple[np.random.Generator, NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    return rng, rng.choice(3, ROWS, p=[0.5, 0.3, 0.2])


def _table(
    kind: NDArray[np.int64],
    money: dict[str, Numbers],
    ranges: dict[str, tuple[int, int]],
    else_: tuple[int, int] = (0, WIDEST),
) -> Table:
    columns: Columns = {"kind": [("a", "b", "c")[one] for one in kind.tolist()]}
    fields: list[dict[str, Any]] = [
        {"name": "kind", "type": "string", "constraints": {"enum": ["a", "b", "c"], "required": True}}
    ]
    for name, values in money.items():
        low, high = ranges.get(name, else_)
        columns[name] = np.clip(values, low, high).round(2).tolist()
        bounds = {"minimum": low, "maximum": high, "required": True}
        fields.append({"name": name, "type": "number", "decimals": 2, "constraints": bounds})
    return columns, {"fields": fields, "target": "kind"}


TABLES = {"payments": payments, "shop": shop, "accounts": accounts, "claims": claims, "ledger": ledger}
