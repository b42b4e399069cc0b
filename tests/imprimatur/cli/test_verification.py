"""`imprimatur verify` against a service that lies: what it serves was real once, then somebody rewrote it."""

import copy
import datetime as dt
import uuid

from imprimatur import Client
from imprimatur.cli.verification import verify_ledger
from imprimatur.verify.chain import entry_hash, totals_of
from tests.imprimatur.verify.test_chain import Line


class Liar:
    """A client of a service that answers with these documents."""

    def __init__(self, ledger, releases):
        self.documents = ledger, releases

    def ledger(self, _):
        return self.documents[0]

    def releases(self, _):
        return self.documents[1]


def truth(stack, published):
    with Client(stack.url, published.api_key) as client:
        return copy.deepcopy(client.ledger(published.dataset_id).raw), client.releases(published.dataset_id)


def rehash(ledger):
    """The whole history anew from its contents: chain, head, count and amounts agree."""
    lines, previous = [], bytes(32)
    for seq, item in enumerate(ledger["items"], 1):
        fields = {
            "dataset_id": uuid.UUID(ledger["dataset_id"]),
            "seq": seq,
            "release_id": uuid.UUID(item["release_id"]),
            "kind": item["kind"],
            "simple": item["simple"],
            "renyi": item["renyi"],
            "created_at": dt.datetime.fromisoformat(item["created_at"]),
            "previous_hash": previous,
        }
        previous = entry_hash(**fields)
        item.update(seq=seq, previous_hash=fields["previous_hash"].hex(), hash=previous.hex())
        lines.append(Line(**fields, hash=previous))
    totals = totals_of(lines)
    amounts = {name: getattr(totals, name) for name in totals.__dataclass_fields__}
    ledger["balance"] = {**amounts, "entry_count": len(lines), "head_hash": previous.hex()}


def test_the_truth_verifies(stack, published):
    """It is consistent, and no more: all of it comes from the service."""
    checks = verify_ledger(Liar(*truth(stack, published)), published.dataset_id)
    assert (checks.faults, checks.result, checks.verified) == ([], "consistent", False)
    assert {word for word, _ in checks.held} == {"consistent"}


def test_a_history_rewritten_as_a_whole_lacks_what_certificates_name(stack, published):
    ledger, releases = truth(stack, published)
    forged = copy.deepcopy(ledger)
    for item in forged["items"]:
        item["renyi"] //= 2
    rehash(forged)
    checks = verify_ledger(Liar(forged, releases), published.dataset_id)
    named = [r["certificate"]["ledger_entry"]["seq"] for r in releases if r["certificate"]]
    assert named
    expected = ", ".join(map(str, named))
    assert checks.faults == [f"certificates name entries that the ledger does not hold as they were: {expected}"]


def test_a_cut_history_and_an_edited_balance_are_named(stack, published):
    ledger, releases = truth(stack, published)
    cut = {**ledger, "items": ledger["items"][:-1]}
    faults = verify_ledger(Liar(cut, releases), published.dataset_id).faults
    assert f"entry {len(ledger['items'])} is missing at the end" in faults
    edited = {**ledger, "balance": {**ledger["balance"], "renyi_posted": 1}}
    faults = verify_ledger(Liar(edited, releases), published.dataset_id).faults
    assert faults == [f"renyi_posted is 1 but the entries add up to {ledger['balance']['renyi_posted']}"]
