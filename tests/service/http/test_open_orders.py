"""Open orders of a key and of a tenant are limited, in the order's own transaction; priorities come in a header."""

import threading
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from service.audit.models import DONE
from service.auth.principal import Principal
from service.base.errors import PricingBusy, TooManyOpenOrders
from service.platform.context import open_context
from service.platform.database import driver, transaction
from service.releases import repository, service
from service.releases.models import Release
from service.releases.priority import urgency
from tests.bare_rows import add_bare_dataset, add_bare_key
from tests.service.http.test_datasets_api import _assert_problem

TINY = {"method": "idpgan", "epsilon": 0.001, "steps": 1}
SCHEMA = {"fields": [{"name": "smoker", "type": "boolean"}]}


@pytest.fixture
def settings(settings):
    return settings.model_copy(update={"open_orders_per_key": 3, "open_orders_per_tenant": 5})


def problem_of(reply):
    _assert_problem(reply, 429, "too_many_open_orders")
    assert int(reply.headers["retry-after"]) == reply.json()["retry_after_seconds"] > 0
    assert "cancel" in reply.json()["detail"]
    return reply.json()["of"], reply.json()["limit"]


def pending(api, dataset_id):
    return api.http.get(f"/v1/datasets/{dataset_id}/budget", headers=api.reader).json()["accounts"]["simple"]["pending"]


def test_a_key_over_its_limit_is_told_what_to_do_and_reserves_nothing(api, dataset_id):
    first, *_ = (api.order(dataset_id, TINY) for _ in range(3))
    before = pending(api, dataset_id)
    assert problem_of(api.order(dataset_id, TINY)) == ("key", 3)
    assert pending(api, dataset_id) == before
    assert api.order(dataset_id, TINY, key=api.owner).status_code == 202  # another key has its own
    assert api.http.post(f"{first.headers['location']}/cancel", headers=api.analyst).status_code == 200
    assert api.order(dataset_id, TINY).status_code == 202


def test_all_keys_of_a_tenant_together_have_a_limit(api, dataset_id):
    assert [api.order(dataset_id, TINY).status_code for _ in range(3)] == [202] * 3
    assert [api.order(dataset_id, TINY, key=api.owner).status_code for _ in range(2)] == [202] * 2
    assert problem_of(api.order(dataset_id, TINY, key=api.owner)) == ("tenant", 5)


def test_a_repeat_of_an_earlier_order_is_answered_over_the_limit(api, dataset_id):
    made = [api.order(dataset_id, TINY, **{"Idempotency-Key": f"k{number}"}) for number in range(3)]
    problem_of(api.order(dataset_id, TINY, **{"Idempotency-Key": "k3"}))
    for number, reply in enumerate(made):
        again = api.order(dataset_id, TINY, **{"Idempotency-Key": f"k{number}"})
        assert (again.status_code, again.json()["id"]) == (202, reply.json()["id"])
    other = api.order(dataset_id, {**TINY, "steps": 2}, **{"Idempotency-Key": "k0"})
    _assert_problem(other, 409, "idempotency_conflict")


def somebody_waits(settings):
    """For a lock that the open transaction of this test holds."""
    with psycopg.connect(settings.migration_database_url.replace("+psycopg", ""), autocommit=True) as connection:
        query = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        return connection.execute(query).fetchone()[0] > 0


def test_two_orders_at_once_do_not_both_take_the_last_place(settings):
    """On two datasets of one tenant, whose balances know nothing of each other."""
    with transaction(settings) as session:
        tenant, first = add_bare_dataset(session)
        _, second = add_bare_dataset(session, tenant_id=tenant)
        key = add_bare_key(session, tenant)

    def place(connection, dataset):
        return repository.place(
            connection,
            id=uuid.uuid4(),
            tenant_id=tenant,
            dataset_id=dataset,
            key_id=key,
            priority=3,
            estimate="null",
            simple_cost=1,
            renyi_cost=1,
            declaration=1,
            idempotency_key=None,
            body_digest=b"",
            steps=1,
            order="{}",
            price="{}",
            most_of_key=1,
            most_of_tenant=9,
            action="order_release",
            request_id=uuid.uuid4(),
            audit_outcome=DONE,
        ).outcome

    def place_second():
        with driver(settings) as connection:
            return place(connection, second)

    with ThreadPoolExecutor(1) as pool:
        with driver(settings) as connection, connection.transaction():
            assert place(connection, first) == "done"
            later = pool.submit(place_second)
            while not (later.done() or somebody_waits(settings)):
                pass
        assert later.result() == "key_full"


def test_orders_on_many_datasets_at_once_do_not_pass_the_limit_together(settings):
    """Each dataset has a balance, and a lock, of its own."""
    context = open_context(settings)
    with transaction(settings) as session:
        tenant, first = add_bare_dataset(session, schema=SCHEMA)
        datasets = [first, *(add_bare_dataset(session, schema=SCHEMA, tenant_id=tenant)[1] for _ in range(7))]
        keys = [add_bare_key(session, tenant) for _ in range(2)]
    start = threading.Barrier(8)
    outcomes = Counter()

    def ordered(principal, dataset):
        while True:
            try:
                service.order_release(context, principal, dataset, {**TINY, "sampling_probability": 1.0})
            except TooManyOpenOrders as full:
                return full.values["of"]
            except PricingBusy:
                continue
            return "done"

    def order(number):
        start.wait()
        for _ in range(4):
            principal = Principal(tenant, keys[number % 2], "owner", "order_release")
            outcomes[ordered(principal, datasets[number])] += 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(order, range(8)))
    assert outcomes["done"] == 5
    with transaction(settings) as session:
        by_key = Counter(session.scalars(Release.__table__.select().with_only_columns(Release.key_id)))
    assert sorted(by_key.values()) == [2, 3]


def test_an_order_keeps_its_priority_and_a_wrong_one_counts_as_none(api, dataset_id):
    replies = [
        api.order(dataset_id, TINY, **headers).json() for headers in ({"Priority": "u=1, i"}, {"Priority": "u=9"}, {})
    ]
    assert [reply["priority"] for reply in replies] == [1, 3, 3]
    read = api.http.get(replies[0]["links"]["self"], headers=api.reader).json()
    assert read["priority"] == 1


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, 3), ("", 3), ("u=0", 0), ("u=7", 7), ("u=8", 3), ("u=-1", 3), ("u=1.0", 3), ("u", 3), ("i", 3), ("u=2,i", 2),
        (" u=5 , i=?0", 5), ("u=5, u=1", 1), ("u=1;x=2", 1), ("U=1", 3), ("u=1, ???", 3), ("u=\u0664", 3), ("foo=1, u=6", 6),
    ],
)  # fmt: skip
def test_the_header_is_read_as_the_rfc_says(header, expected):
    assert urgency(header) == expected
