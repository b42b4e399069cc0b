"""The crowd of tests/service/ledger/test_crowd.py through HTTP: two API processes, one Postgres that is restarted."""

import collections
import json
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from service.auth.service import create_tenant
from service.local.database_access import API_ROLE, SUPERUSER
from service.platform.crypto import Secrets
from service.platform.database import transaction
from tests.private_servers import api_process, private_postgres
from tests.service.http.conftest import SCHEMA, TABLE

pytestmark = pytest.mark.slow

ORDER = {"method": "idpgan", "share": 0.1, "steps": 1, "sampling_probability": 1.0, "thresholds": {"kind": "fixed"}}
BUDGET = {"epsilon": 1.0, "delta": 1e-6}


@pytest.fixture
def two_apis(tmp_path, settings):
    """(addresses, headers, the Postgres behind them)"""
    with private_postgres(tmp_path / "private") as postgres:
        owner, api = (
            settings.model_copy(update={"database_url": postgres.server.url("imprimatur", role)})
            for role in (SUPERUSER, API_ROLE)
        )
        with transaction(owner) as session:
            key = create_tenant(session, Secrets.load(settings.secret_key_file), "crowd")
        with api_process(api, tmp_path / "a.log") as first, api_process(api, tmp_path / "b.log") as second:
            yield (first, second), {"Authorization": f"Bearer {key}"}, postgres


def upload(url, headers):
    data = {"schema": json.dumps(SCHEMA), "budget": json.dumps(BUDGET), "name": "crowd"}
    reply = httpx.post(
        f"{url}/v1/datasets", data=data, files={"file": ("t.csv", TABLE.encode())}, headers=headers, timeout=600
    )
    assert reply.status_code == 201, reply.text
    return reply.json()["id"]


def room_for(url, dataset, headers):
    quote = httpx.post(f"{url}/v1/datasets/{dataset}/quotes", json=ORDER, headers=headers, timeout=600).json()
    shares = quote["price"]["shares"]
    return max(10**9 // shares["simple"], 10**9 // shares["renyi"])


def crowd(apis, headers, dataset, *, clients, orders, seed=0, during=lambda: None):
    """Status and body of every key's last answer; 503 and broken connections are asked again with the same key."""
    work, answers, lock = collections.deque(range(orders)), collections.defaultdict(list), threading.Lock()
    path = f"/v1/datasets/{dataset}/releases"
    for url in apis:
        room_for(url, dataset, headers)  # priced before the crowd arrives
    start = threading.Barrier(clients + 1)

    def client(number):
        rng = random.Random(f"{seed}-{number}")
        with httpx.Client(timeout=600) as http:
            start.wait()
            while work:
                try:
                    key = work.popleft()
                except IndexError:
                    return
                while True:
                    try:
                        named = {**headers, "Idempotency-Key": f"{seed}-{key}"}
                        reply = http.post(rng.choice(apis) + path, json=ORDER, headers=named)
                    except httpx.TransportError:
                        continue
                    if reply.status_code != 503:
                        break
                    time.sleep(0.1)
                with lock:
                    answers[key].append((reply.status_code, reply.json()))

    with ThreadPoolExecutor(clients) as pool:
        done = [pool.submit(client, number) for number in range(clients)]
        start.wait()
        during()
        for each in done:
            each.result()
    return answers


def check(answers, url, dataset, headers, room):
    given = [answer for each in answers.values() for answer in each]
    assert {status for status, _ in given} <= {202, 409}
    assert {body["code"] for status, body in given if status == 409} == {"budget_exhausted"}
    ids = {body["id"] for status, body in given if status == 202}
    assert len(ids) == room == sum(status == 202 for status, _ in given)
    document = httpx.get(f"{url}/v1/datasets/{dataset}/ledger", headers=headers, timeout=600).json()
    assert document["verified"]
    assert {entry["release_id"] for entry in document["items"]} == ids
    assert len(document["items"]) == room


def restarting(postgres, times):
    def during():
        for number in range(times):
            time.sleep(0.5)
            postgres.restart("immediate" if number % 2 == 0 else "fast")

    return during


def test_a_crowd_at_two_apis_while_postgres_restarts(two_apis):
    apis, headers, postgres = two_apis
    dataset = upload(apis[0], headers)
    room = room_for(apis[0], dataset, headers)
    answers = crowd(apis, headers, dataset, clients=16, orders=2 * room, during=restarting(postgres, 2))
    check(answers, apis[1], dataset, headers, room)
    fifty_posts_with_one_key_make_one_release(apis, headers)


def fifty_posts_with_one_key_make_one_release(apis, headers):
    """Spread over both processes: the key is the database's to remember, not a process's."""
    data = {"schema": json.dumps(SCHEMA), "budget": json.dumps(BUDGET), "name": "one key"}
    table = TABLE + "33,1,Rome,true,1950-01-02\n"
    files = {"file": ("t.csv", table.encode())}
    dataset = httpx.post(f"{apis[0]}/v1/datasets", data=data, files=files, headers=headers, timeout=600).json()["id"]
    path = f"/v1/datasets/{dataset}/releases"
    named = {**headers, "Idempotency-Key": "one"}

    def post(number):
        return httpx.post(apis[number % 2] + path, json=ORDER, headers=named, timeout=600)

    with ThreadPoolExecutor(50) as pool:
        replies = list(pool.map(post, range(50)))
    assert {reply.status_code for reply in replies} == {202}
    assert len({reply.json()["id"] for reply in replies}) == 1
    entries = httpx.get(f"{apis[1]}/v1/datasets/{dataset}/ledger", headers=headers, timeout=600).json()["items"]
    assert len(entries) == 1
    for url in apis:
        other = httpx.post(url + path, json={**ORDER, "share": 0.2}, headers=named, timeout=600)
        assert (other.status_code, other.json()["code"]) == (409, "idempotency_conflict")


@pytest.mark.long
def test_1600_orders_at_two_apis_while_postgres_restarts_five_times(two_apis):
    apis, headers, postgres = two_apis
    dataset = upload(apis[0], headers)
    room = room_for(apis[0], dataset, headers)
    answers = crowd(apis, headers, dataset, clients=64, orders=1_600, during=restarting(postgres, 5))
    check(answers, apis[1], dataset, headers, room)
