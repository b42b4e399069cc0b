"""Amounts of the two accounts for people and programs: ε, and shares of the whole budget; never the ledger's integers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

UNIT = 1_000_000_000
"""The whole budget in the ledger's integers."""
ACCOUNTS = ("simple", "renyi")
PARTS = ("posted", "pending", "remaining")


def in_words(amount: int, account: str, epsilon: float) -> str:
    """An amount in nano-shares for a person: in the simple account as ε, in the Rényi account as a percentage of it."""
    share = amount / UNIT
    return f"ε = {share * epsilon:.4g}" if account == "simple" else f"{share:.2%}"


def both(amounts: Mapping[str, int], epsilon: float | None) -> dict[str, float]:
    """Shares of both accounts, exact to the ledger's last digit, and the ε of the simple one where the whole is known."""
    found = {f"{account}_share": amounts[account] / UNIT for account in ACCOUNTS}
    return found if epsilon is None else found | {"simple_epsilon": amounts["simple"] / UNIT * epsilon}


def budget(found: Mapping[str, Any]) -> dict[str, Any]:
    """A budget for a program."""
    epsilon = found["epsilon"]
    accounts = {}
    for name, account in found["accounts"].items():
        amounts: dict[str, Any] = {f"{part}_share": account[part] / UNIT for part in PARTS}
        if name == "simple":
            amounts |= {f"{part}_epsilon": account[part] / UNIT * epsilon for part in PARTS}
        accounts[name] = amounts | {key: value for key, value in account.items() if key not in PARTS}
    return {**found, "accounts": accounts}


def ledger(found: Mapping[str, Any], epsilon: float) -> dict[str, Any]:
    """A ledger for a program; who wants to compute hashes again asks the API, or `imprimatur verify`."""
    items = [
        {**{key: value for key, value in entry.items() if key not in ACCOUNTS}, **both(entry, epsilon)}
        for entry in found["items"]
    ]
    balance: dict[str, Any] = {}
    for key, value in found["balance"].items():
        is_amount = key.partition("_")[0] in ACCOUNTS
        balance[f"{key}_share" if is_amount else key] = value / UNIT if is_amount else value
    return {**found, "items": items, "balance": balance}


def quote(found: Mapping[str, Any]) -> dict[str, Any]:
    """A quote for a program."""
    return {**release(found), "remaining": both(found["remaining"], None)}


def release(found: Mapping[str, Any]) -> dict[str, Any]:
    """A release, or anything with a price, for a program. The certificate in it stays as it was signed."""
    price = found["price"]
    if "shares" not in price:
        return dict(found)
    return {**found, "price": {**price, "shares": both(price["shares"], None)}}


def refusal(values: Mapping[str, Any]) -> dict[str, Any]:
    """What a refusal says besides its sentence."""
    said = dict(values)
    for name in ("remaining", "requested"):
        amounts = said.get(name)
        if isinstance(amounts, Mapping) and all(isinstance(amounts.get(account), int) for account in ACCOUNTS):
            said[name] = both(amounts, None)
    return said
