"""Redis and Postgres go away, forget, hang, or have no room: nothing is lost, nothing overspent, all comes back alone."""

import os
import shutil
import signal
import subprocess
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from bench.faults.stack import BUDGET, ORDER
from tests.conftest import forget_everything

pytestmark = pytest.mark.slow

NANO = 1_000_000_000
TINY = {**ORDER, "epsilon": 0.5}


def wait_for(condition, seconds=600.0):
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.05)
    return found


def kill(stack, part):
    """SIGKILL; returns once the supervisor has started it again and it answers."""
    before = stack.pids[part]
    os.kill(before, signal.SIGKILL)
    wait_for(lambda: stack.pids[part] != before)


def post_order(stack, dataset, order=ORDER, key=None):
    headers = {"Authorization": f"Bearer {stack.admin_key}"} | ({} if key is None else {"Idempotency-Key": key})
    return httpx.post(f"{stack.url}/v1/datasets/{dataset}/releases", json=order, headers=headers, timeout=600)


def assert_fails_closed(reply):
    assert reply.status_code == 503, reply.text
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.json()["code"] == "unavailable"
    assert int(reply.headers["retry-after"]) > 0


def assert_all_published(stack, dataset, releases):
    for release_id in releases:
        stack.wait(release_id, seconds=300.0)
        stack.check_published(dataset, release_id)
    stack.check_storage()


def test_a_broker_that_forgets_everything_and_restarts_loses_no_job(shared):
    stack, dataset = shared, shared.new_dataset()
    releases = [stack.order(dataset, TINY)]
    forget_everything(stack.redis.url)
    releases.append(stack.order(dataset, TINY))
    kill(stack, "redis")
    releases.append(stack.order(dataset, TINY))
    assert_all_published(stack, dataset, releases)
    stack.wait_until_ready()


@pytest.mark.long
def test_ten_restarts_of_the_broker_lose_no_job(faulty):
    stack = faulty()
    dataset = stack.new_dataset()
    releases = []
    for number in range(10):
        releases.append(stack.order(dataset, TINY))
        time.sleep(0.7 * number)  # at another moment of another job each time
        kill(stack, "redis")
    assert_all_published(stack, dataset, releases)
    # It consumes, by the worker that was there all the time or by one that ended itself.
    assert_all_published(stack, dataset, [stack.order(dataset, TINY)])
    stack.wait_until_ready()


@pytest.mark.long
@pytest.mark.parametrize("forgets", [False, True])
def test_a_broker_that_is_cut_off_for_a_minute_loses_no_job(faulty, forgets):
    stack = faulty()
    dataset = stack.new_dataset()
    releases = [stack.order(dataset, TINY)]
    frozen = stack.pids["redis"]
    os.kill(frozen, signal.SIGSTOP)  # connections stay open and no answer comes: the worst kind of cut
    releases += [stack.order(dataset, TINY) for _ in range(2)]
    time.sleep(60)
    releases.append(stack.order(dataset, TINY))
    os.kill(frozen, signal.SIGKILL if forgets else signal.SIGCONT)
    assert_all_published(stack, dataset, releases)
    stack.wait_until_ready()


@pytest.mark.long
def test_a_worker_that_lives_and_does_not_consume_is_started_again(faulty):
    stack = faulty()
    dataset = stack.new_dataset()
    stack.wait_until_ready()
    deaf = stack.pids["worker"]
    (stack.faults / "deaf").write_text(str(deaf))
    release_id = stack.order(dataset)
    assert wait_for(lambda: stack.pids["worker"] != deaf)
    assert_all_published(stack, dataset, [release_id])
    assert "consumes nothing although the broker answers" in (stack.logs / "worker.log").read_text()


@pytest.mark.long
def test_five_restarts_of_the_database_under_orders_overspend_nothing(faulty):
    stack = faulty()
    dataset = stack.new_dataset()
    half = {**ORDER, "epsilon": BUDGET / 2}
    answers = Counter()

    def order_until_answered(number):
        for _ in range(600):
            try:
                reply = post_order(stack, dataset, half, key=f"order-{number}")
            except httpx.TransportError as error:
                answers[type(error).__name__] += 1
                continue
            answers[reply.status_code] += 1
            if reply.status_code != 503:
                return reply
            assert_fails_closed(reply)
            time.sleep(0.2)
        pytest.fail("never answered")

    with ThreadPoolExecutor(8) as pool:
        replies = [pool.submit(order_until_answered, number) for number in range(40)]
        for _ in range(5):
            time.sleep(0.5)
            kill(stack, "postgres")
            wait_for(stack.postgres._answers)
        replies = [reply.result() for reply in replies]
    orders = {reply.json()["id"]: reply.json()["price"]["shares"] for reply in replies if reply.status_code == 202}
    assert set(answers) <= {202, 409, 503}
    (price,) = {tuple(sorted(shares.items())) for shares in orders.values()}
    room = max(NANO // share for _, share in price)  # one account with room is enough
    assert len(orders) == room, answers
    assert_all_published(stack, dataset, orders)
    with stack.client() as client:
        accounts = client.budget(dataset)["accounts"]
        assert client.ledger(dataset)["verified"]
    assert {(name, accounts[name]["posted"]) for name, _ in price} == {(name, room * share) for name, share in price}
    stack.wait_until_ready()


def test_without_a_free_connection_the_api_fails_closed(shared):
    """Two connections wait for a lock; no one else gets one."""
    stack, dataset = shared, shared.new_dataset()
    with stack.postgres.connect("imprimatur") as connection, ThreadPoolExecutor(8) as pool:
        with connection.transaction():
            connection.execute("LOCK TABLE balances IN ACCESS EXCLUSIVE MODE")
            for reply in pool.map(lambda _: post_order(stack, dataset), range(8)):
                assert_fails_closed(reply)
        entries = connection.execute("SELECT count(*) FROM ledger_entries WHERE dataset_id = %s", (dataset,)).fetchone()
    assert entries == (0,)
    reply = wait_for(lambda: (r := post_order(stack, dataset)).status_code != 503 and r)
    assert reply.status_code == 202
    assert_all_published(stack, dataset, [reply.json()["id"]])


@pytest.mark.long
def test_on_a_full_disk_the_api_fails_closed_and_recovers(faulty, tmp_path):
    """A real file system of 400 MB under everything the service keeps, filled to its last byte."""
    home = tmp_path / "small"
    home.mkdir()
    mounted = subprocess.run(
        [shutil.which("mount") or "mount", "-t", "tmpfs", "-o", "size=400m,mode=755", "tmpfs", str(home)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip("only root may mount a small file system")
    try:
        _fill_and_recover(faulty, home)
    finally:
        subprocess.run(["umount", "--lazy", str(home)], check=False)


def _fill_and_recover(faulty, home):
    stack = faulty(home)
    dataset = stack.new_dataset()
    post_order(stack, dataset).raise_for_status()
    with stack.client() as client:
        (first,) = client.releases()
    stack.wait(first["id"])
    with (home / "filler").open("wb", buffering=0) as filler:
        chunk = bytes(1 << 20)
        while True:
            try:
                filler.write(chunk)
            except OSError:
                if len(chunk) == 1:
                    break
                chunk = bytes(len(chunk) // 2)
    # A few orders may still fit into pages that the database has; then none does.
    admitted = {first["id"]}
    statuses = Counter()
    for _ in range(300):
        reply = post_order(stack, dataset, {**ORDER, "epsilon": 0.01})
        statuses[reply.status_code] += 1
        if reply.status_code == 503:
            assert_fails_closed(reply)
            if statuses[503] >= 5:
                break
            continue
        assert reply.status_code == 202, reply.text
        admitted.add(reply.json()["id"])
    assert statuses[503] >= 5, statuses
    upload = _upload(stack)
    assert_fails_closed(upload)
    kill(stack, "api")  # what dies now must still be started again
    (home / "filler").unlink()
    stack.wait_until_ready()
    again = stack.order(dataset, {**ORDER, "epsilon": 0.01})
    with stack.client() as client:
        ledger = client.ledger(dataset)
        known = {release["id"] for release in client.releases()}
    assert ledger["verified"]
    assert known == admitted | {again}
    assert {e["release_id"] for e in ledger["items"] if e["kind"] == "reserve"} == known
    stack.wait(again)
    stack.check_published(dataset, again)


def _upload(stack):
    rows = "colour,size\n" + "".join(f"red,{number % 1000}\n" for number in range(3_000_000))
    return httpx.post(
        f"{stack.url}/v1/datasets",
        headers={"Authorization": f"Bearer {stack.admin_key}"},
        files={"file": ("t.csv", rows.encode())},
        data={"schema": "{}", "budget": '{"epsilon": 1}'},
        timeout=600,
    )
