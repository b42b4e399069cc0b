"""Public rows that are erased while a release begins from them: before they are read, while it runs, and at an attempt after that."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace

import pytest

from service.ledger import repository as ledger
from service.releases.models import Release
from tests.reservations import claim, faults_of
from workers import run
from workers.run import Attempt, StoredRows

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("signing_key")]

SMALL = {"noise_dimension": 4, "generator_hidden": [8], "critic_hidden": [8]}
IDPGAN = {"method": "idpgan", "steps": 40, "public_steps": 2, "networks": SMALL, "warm_start": {"kind": "none"}}
SIZE = {"name": "size", "type": "integer", "constraints": {"minimum": 0, "maximum": 5, "required": True}}
COLOUR = {"name": "colour", "type": "string", "constraints": {"enum": ["r", "g"], "required": True}}
SCHEMA = json.dumps({"fields": [COLOUR, SIZE]})


@pytest.fixture
def private(api):
    return api.upload(b"colour,size\n" + b"r,1\ng,2\n" * 40, schema=SCHEMA).json()["id"]


@pytest.fixture
def public(api):
    return api.upload(b"colour,size\ng,1\ng,0\nr,3\n", schema=SCHEMA, rows_are_public="true").json()["id"]


def single(public):
    return {"epsilon": 1.0, **IDPGAN, "public_dataset": public}


def choice(public):
    """The tries that begin from public rows come last, and read them by different bins."""
    begin = [
        {**IDPGAN, "steps": 2, "public_dataset": public, "networks": {**SMALL, "numeric_bins": bins}} for bins in (4, 8)
    ]
    cold = {"method": "idpgan", "steps": 2, "networks": SMALL, "warm_start": {"kind": "none"}}
    return {"method": "choose", "epsilon": 1.0, "target": "colour", "candidates": [cold, *begin]}


@pytest.fixture(params=[single, choice], ids=["idpgan", "choose"])
def release(request, api, private, public):
    reply = api.order(private, request.param(public))
    assert reply.status_code == 202, reply.text
    return uuid.UUID(reply.json()["id"])


def attempt_at(context, release):
    with context.transaction() as session:
        lease = claim(session, release)
    return Attempt(context, lease)


def erase(api, dataset):
    assert api.http.delete(f"/v1/datasets/{dataset}", headers=api.owner).status_code == 204


def end_of(context, release):
    with context.transaction() as session:
        found = session.get_one(Release, release)
        entries = ledger.entries_of_release(session, release)
        assert faults_of(session, found.dataset_id) == []
        return found.state, found.failure, entries


def reads_no_private_row(monkeypatch):
    def table(*_, **__):
        raise AssertionError("a private row is read")

    monkeypatch.setattr(StoredRows, "table", table)


def test_public_rows_that_go_before_they_are_read_cost_nothing(api, context, public, release, monkeypatch):
    """After the attempt has looked the dataset up, and found the rows its own."""
    reads_no_private_row(monkeypatch)
    attempt = attempt_at(context, release)
    real = Attempt.signing_key

    def erased_then(attempt):
        erase(api, public)
        return real(attempt)

    monkeypatch.setattr(Attempt, "signing_key", erased_then)
    attempt.run()
    state, failure, entries = end_of(context, release)
    assert (state, failure, set(entries)) == ("voided", "erased", {"reserve", "void"})


def test_rows_that_the_store_has_lost_are_charged_for_by_no_attempt(context, public, release, monkeypatch):
    reads_no_private_row(monkeypatch)
    attempt = attempt_at(context, release)
    monkeypatch.setattr(StoredRows, "are_its_own", lambda _: True)
    context.storage.delete(attempt.public.storage_key)
    with pytest.raises(run.NotFound):
        attempt.run()
    state, failure, entries = end_of(context, release)
    assert (state, failure, set(entries)) == ("reserved", None, {"reserve"})
    assert public


def test_a_release_that_has_read_them_ends_as_usual(api, context, public, release, monkeypatch):
    """Every row that any of its runs needs is at hand when it is charged."""
    real = Attempt.charge

    def erased_then(attempt):
        posted = real(attempt)
        erase(api, public)
        return posted

    monkeypatch.setattr(Attempt, "charge", erased_then)
    attempt_at(context, release).run()
    state, failure, entries = end_of(context, release)
    assert (state, failure, set(entries)) == ("published", None, {"reserve", "post"})
    certificate = api.http.get(f"/v1/releases/{release}/certificate", headers=api.reader).json()
    assert certificate["public_dataset"]["id"] == public


def test_what_ran_is_kept_where_the_public_rows_are_gone_at_the_next_attempt(
    api, context, private, public, monkeypatch
):
    """As where a person stops it: the Rényi account keeps the steps behind the checkpoint, the simple one its whole share."""
    release = uuid.UUID(api.order(private, single(public)).json()["id"])
    attempt = attempt_at(context, release)
    attempt.hooks = replace(attempt.hooks, checkpoint_every_steps=3)
    real = attempt.checkpoints.put

    def put_and_die(checkpoint):
        real(checkpoint)
        if attempt.checkpoints.steps_done(attempt.release.events):
            raise KeyboardInterrupt

    attempt.checkpoints.put = put_and_die
    with pytest.raises(KeyboardInterrupt):
        attempt.run()
    erase(api, public)
    reads_no_private_row(monkeypatch)
    again = attempt_at(context, release)
    done = again.checkpoints.steps_done(again.release.events)
    assert 0 < done < 40
    again.run()
    state, failure, entries = end_of(context, release)
    assert (state, failure, set(entries)) == ("failed", "erased", {"reserve", "post", "settle"})
    assert 0 < again.cost_after(done) == entries["settle"].renyi < entries["post"].renyi
    assert entries["settle"].simple == entries["post"].simple


def test_a_choice_that_is_taken_up_without_them_keeps_its_whole_charge(api, context, private, public, monkeypatch):
    """Which of its tries ran is no step of its list."""
    release = uuid.UUID(api.order(private, choice(public)).json()["id"])
    monkeypatch.setattr(Attempt, "make", lambda *_: None)
    attempt_at(context, release).run()
    erase(api, public)
    attempt_at(context, release).run()
    state, failure, entries = end_of(context, release)
    assert (state, failure) == ("failed", "erased")
    assert entries["settle"].renyi == entries["post"].renyi
