"""What a checkpoint shows is recorded, and so paid for, before anybody can see the checkpoint."""

import pytest
import torch

from service.base.errors import Unavailable
from service.ledger import repository as ledger_repository
from service.platform.context import open_context
from service.platform.database import transaction
from service.platform.storage import Storage
from service.privacy.events import GaussianEvent, SampledStepEvent, events_to_json
from service.privacy.filters import Shares, open_budget
from service.releases.models import Release
from tests.bare_rows import add_bare_dataset, add_bare_release
from tests.reservations import claim, reserve
from workers import lease as leases
from workers.checkpoints import Checkpoint
from workers.finished import Finished
from workers.run import Attempt

EVENTS = (GaussianEvent("label_counts", 8.0), SampledStepEvent(0.5, 4.0, 8.0, 20))
BUDGET = open_budget(3.0, 1e-6)
COST = Shares(900_000_000, 900_000_000)
TAKEN, STEPS = 6, 5
"""Events behind the checkpoint, of which the first is no step."""


@pytest.fixture
def attempt(settings, database):
    """Of a charged release, on the rights of a worker."""
    with transaction(settings) as session:
        tenant, dataset = add_bare_dataset(
            session,
            epsilon=BUDGET.epsilon,
            delta=BUDGET.delta,
            renyi_order=BUDGET.renyi_order,
            renyi_capacity=BUDGET.renyi_capacity,
        )
        price = {"events": events_to_json(EVENTS), "epsilon": 1.0}
        order = {"method": "idpgan", "epsilon": 1.0}
        release = add_bare_release(session, tenant, dataset, COST, order_=order, price=price, steps=20)
        reserve(session, dataset, release, COST)
    context = open_context(settings.model_copy(update={"database_url": database.worker_url}))
    with context.transaction() as session:
        lease = claim(session, release)
    made = Attempt(context, lease)
    made.charge()
    return made


def checkpoint(position=TAKEN):
    return Checkpoint({"weights": torch.zeros(2)}, {"position": position}).to_bytes()


def recorded(attempt):
    with attempt.context.transaction() as session:
        release = session.get_one(Release, attempt.lease.release_id)
        return release.recorded_steps, release.recorded_renyi


def settled_at(attempt):
    with attempt.context.transaction() as session:
        entries = ledger_repository.entries_of_release(session, attempt.lease.release_id)
        return entries["settle"].renyi


@pytest.fixture
def at_the_store(attempt, monkeypatch):
    """What is recorded at the moment at which the object is handed to the store."""
    seen = []
    put = Storage.put_content

    def look_and_put(storage, prefix, content):
        if prefix.startswith("checkpoints"):
            seen.append(recorded(attempt))
        return put(storage, prefix, content)

    monkeypatch.setattr(Storage, "put_content", look_and_put)
    return seen


def test_steps_are_recorded_before_their_checkpoint_lies_in_the_store(attempt, at_the_store):
    paid = attempt.cost_after(STEPS)
    assert 0 < attempt.cost_after(0) < paid < COST.renyi, "measurements alone, then the steps"
    for _ in range(2):
        attempt.checkpoints.put(checkpoint())
    assert at_the_store == [(STEPS, paid)] * 2
    attempt.checkpoints.put(checkpoint(TAKEN + 1))
    assert at_the_store[-1] == (STEPS + 1, attempt.cost_after(STEPS + 1))


def test_a_finished_generator_is_all_steps(attempt, at_the_store):
    """What is kept while its report is made holds all that was released, so that no stop pays for less."""
    finished = Finished({"format": 3}, {"model.onnx": b"weights"}, {"city": {"enum": ["Rome"]}})
    attempt.checkpoints.put(finished.to_bytes(EVENTS))
    assert at_the_store == [(20, attempt.cost_after(20))]
    assert Finished.of(attempt.checkpoints.get()) == finished
    assert Finished.of(checkpoint()) is None


def test_a_stop_pays_for_what_the_store_may_have_shown(attempt, monkeypatch):
    """The store took the object and did not answer: somebody may have seen it, and no attempt goes on from it."""
    attempt.checkpoints.put(checkpoint(3))

    def silent(*_):
        raise Unavailable("the store does not answer")

    monkeypatch.setattr(Storage, "put_content", silent)
    with pytest.raises(Unavailable):
        attempt.checkpoints.put(checkpoint())
    assert attempt.checkpoints.steps_done(EVENTS) == 2
    attempt.settle(attempt.checkpoints.steps_done(EVENTS))
    assert settled_at(attempt) == attempt.cost_after(STEPS)


def test_a_stop_before_anything_was_stored_pays_for_what_ran(attempt):
    attempt.settle(1)
    assert settled_at(attempt) == attempt.cost_after(1)


def test_a_worker_that_lost_its_claim_records_and_stores_nothing(attempt, at_the_store, settings):
    with transaction(settings) as session:
        leases.give_back(session, attempt.lease, spent=True)
    with transaction(settings) as session:
        assert claim(session, attempt.lease.release_id)
    with pytest.raises(leases.LeaseLost):
        attempt.checkpoints.put(checkpoint())
    assert at_the_store == []
    assert recorded(attempt) == (0, 0)
