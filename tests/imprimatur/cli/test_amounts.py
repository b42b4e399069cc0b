"""Amounts are ε and shares; the ledger's integers stay inside."""

from __future__ import annotations

import datetime as dt
import json

import pytest

from imprimatur.cli import amounts
from imprimatur.cli.ages import age
from imprimatur.cli.output import Failure
from imprimatur.errors import ApiError

ACCOUNT = {"posted": 250_000_001, "pending": 0, "remaining": 749_999_999}


def integers_of(document):
    """All whole numbers above 1,000 in a document."""
    if isinstance(document, dict):
        return [found for each in document.values() for found in integers_of(each)]
    if isinstance(document, list):
        return [found for each in document for found in integers_of(each)]
    return [document] if isinstance(document, int) and document > 1_000 else []


def test_a_budget_is_in_epsilon_and_shares_exact_to_the_last_digit():
    found = amounts.budget(
        {
            "epsilon": 5.0,
            "accounts": {"simple": dict(ACCOUNT), "renyi": {**ACCOUNT, "order": 12}},
            "epsilon_spent": 1.25,
        }
    )
    assert found["accounts"]["simple"]["posted_share"] == 0.250000001
    assert found["accounts"]["simple"]["posted_epsilon"] == pytest.approx(1.250000005)
    assert found["accounts"]["renyi"]["order"] == 12
    assert integers_of(found) == []


def test_a_ledger_a_quote_and_a_release_have_no_integers_of_the_ledger():
    entry = {"seq": 1, "kind": "post", "simple": 800_000_000, "renyi": 100_000_000, "hash": "ab"}
    balance = {
        "simple_pending": 0,
        "simple_posted": 800_000_000,
        "renyi_pending": 0,
        "renyi_posted": 1,
        "entry_count": 2,
    }
    listed = amounts.ledger({"items": [entry], "balance": balance}, 5.0)
    assert listed["items"][0]["simple_epsilon"] == pytest.approx(4.0)
    assert (listed["balance"]["simple_posted_share"], listed["balance"]["entry_count"]) == (0.8, 2)
    price = {"epsilon": 4.0, "delta": 1e-6, "shares": {"simple": 800_000_000, "renyi": 100_000_000}}
    quoted = amounts.quote({"price": price, "remaining": {"simple": 200_000_000, "renyi": 1_000_000_000}})
    assert quoted["price"]["shares"] == {"simple_share": 0.8, "renyi_share": 0.1}
    assert integers_of([listed, quoted]) == []


def test_a_refusal_of_the_budget_is_in_shares():
    sent = {"simple": 10**9, "renyi": 3}
    refused = Failure.of(ApiError(409, "budget_exhausted", "…", {"remaining": sent, "requested": sent}))
    assert integers_of(json.loads(json.dumps(refused.values))) == []
    assert refused.values["requested"]["simple_share"] == 1.0


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.2, "now"),
        (59, "59 s ago"),
        (200, "3 min ago"),
        (7_300, "2 h ago"),
        (3 * 86_400, "3 days ago"),
        (400 * 86_400, "2025-10-24"),
    ],
)
def test_ages_are_in_words(seconds, said):
    now = dt.datetime(2026, 11, 28, 12, 0, tzinfo=dt.UTC)
    assert age((now - dt.timedelta(seconds=seconds)).isoformat(), now) == said
