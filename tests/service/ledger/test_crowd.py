"""Sixty-four clients, 1,600 orders, room for a hundred: a hundred get in. Whatever the order, the keys, the restarts."""

import collections
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text

from service.auth.principal import Principal
from service.base.errors import BudgetExhausted, Unavailable
from service.ledger import repository
from service.platform.context import open_context
from service.platform.database import transaction
from service.privacy.filters import NANO, open_budget
from service.releases import service as releases
from tests.bare_rows import add_bare_dataset, add_bare_key
from tests.database_roles import TEST_ROLE
from tests.private_servers import private_postgres
from tests.reservations import faults_of

pytestmark = pytest.mark.slow

CLIENTS, ORDERS, ROOM = 64, 1_600, 100
BUDGET = open_budget(1.0, 1e-6)
ORDER = {"method": "idpgan", "share": 0.0917, "steps": 1, "sampling_probability": 1.0, "thresholds": {"kind": "fixed"}}
"""The Rényi account has room for exactly a hundred of these, the simple one for ten."""


def new_dataset(settings):
    with transaction(settings) as session:
        tenant, dataset = add_bare_dataset(
            session,
            schema={"fields": [{"name": "smoker", "type": "boolean"}]},
            epsilon=BUDGET.epsilon,
            delta=BUDGET.delta,
            renyi_order=BUDGET.renyi_order,
            renyi_capacity=BUDGET.renyi_capacity,
        )
        key = add_bare_key(session, tenant)
    return Principal(tenant, key, "owner", "order_release"), dataset


def crowd(settings, seed, *, orders=ORDERS, during=lambda: None):
    """Every order is sent until it is answered; some keys are sent by two clients, or again after their answer.

    Returns what each idempotency key was answered: a release's id, or None for a refusal.
    """
    rng = random.Random(seed)
    context = open_context(settings)
    principal, dataset = new_dataset(settings)
    releases.quote(context, principal, dataset, ORDER)
    keys = [f"{seed}-{number}" for number in range(orders)]
    sent = [*keys, *rng.sample(keys, orders * rng.randint(0, 20) // 100)]
    rng.shuffle(sent)
    work, answers, lock = collections.deque(sent), collections.defaultdict(set), threading.Lock()
    start = threading.Barrier(CLIENTS + 1)

    def client(number):
        mine = random.Random(f"{seed}-{number}")
        start.wait()
        while work:
            try:
                key = work.popleft()
            except IndexError:
                return
            answer = order(key)
            with lock:
                answers[key].add(answer)
            if mine.random() < 0.1:
                time.sleep(mine.random() * 0.01)

    def order(key):
        while True:
            try:
                return releases.order_release(context, principal, dataset, ORDER, key).id
            except BudgetExhausted:
                return None
            except Unavailable:  # perhaps it happened, perhaps not: the same key asks again
                time.sleep(0.05)

    with ThreadPoolExecutor(CLIENTS) as pool:
        done = [pool.submit(client, number) for number in range(CLIENTS)]
        start.wait()
        during()
        for each in done:
            each.result()
    check(settings, dataset, answers)


def check(settings, dataset, answers):
    """A hundred keys were admitted, each once; releases, entries and audit lines say the same."""
    admitted = {key: given - {None} for key, given in answers.items() if given != {None}}
    assert all(len(ids) == 1 for ids in admitted.values()), "one key made two releases"
    ids = {release for given in admitted.values() for release in given}
    assert len(admitted) == len(ids) == ROOM
    assert all(None not in answers[key] for key in admitted), "refused and admitted under one key"
    with transaction(settings) as session:
        assert faults_of(session, dataset) == []
        entries = repository.entries_of_dataset(session, dataset)
        balance = repository.read_balance(session, dataset)
        rows = dict(
            session.execute(
                text("SELECT id, idempotency_key FROM releases WHERE dataset_id = :d"), {"d": dataset}
            ).all()
        )
        noted = session.execute(
            text("SELECT object_id FROM audit_events e JOIN releases r ON r.id = object_id WHERE r.dataset_id = :d"),
            {"d": dataset},
        ).scalars()
        assert sorted(noted) == sorted(ids)
    assert rows == {next(iter(given)): key for key, given in admitted.items()}
    assert {entry.release_id for entry in entries} == ids
    assert {entry.kind for entry in entries} == {"reserve"}
    assert NANO - entries[0].renyi < balance.renyi_pending <= NANO < balance.simple_pending


@pytest.mark.parametrize("seed", [0, 1])
def test_a_hundred_of_many_orders_are_admitted(settings, seed):
    crowd(settings, seed, orders=400)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_a_hundred_of_1600_orders_are_admitted(settings, seed):
    crowd(settings, seed)


@pytest.fixture
def breakable(tmp_path, settings):
    """Settings of a service on a Postgres of this test alone, and that Postgres."""
    with private_postgres(tmp_path / "private") as postgres:
        yield (
            settings.model_copy(update={"database_url": postgres.server.url("imprimatur", TEST_ROLE)}),
            postgres,
        )


def restarts(postgres, seed, times):
    """Restart again and again while the crowd is at work."""
    rng = random.Random(seed)

    def during():
        for number in range(times):
            time.sleep(0.2 + rng.random() * 0.3)
            postgres.restart("immediate" if number % 2 == 0 else "fast")

    return during


def test_a_hundred_are_admitted_while_postgres_restarts(breakable):
    settings, postgres = breakable
    crowd(settings, 0, orders=400, during=restarts(postgres, 0, 2))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_a_hundred_of_1600_are_admitted_while_postgres_restarts_five_times(breakable, seed):
    settings, postgres = breakable
    crowd(settings, seed, during=restarts(postgres, seed, 5))
