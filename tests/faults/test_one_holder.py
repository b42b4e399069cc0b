"""One holder at a time: redelivered messages, frozen workers, workers without memory, workers that are told to stop."""

import os
import re
import signal
import time

import psutil
import pytest

from bench.faults.stack import ORDER
from service.datasets.models import Dataset
from service.platform.context import open_context
from service.privacy.accounting import first_steps, renyi_divergence
from service.privacy.filters import renyi_cost
from workers.checkpoints import Checkpoint
from workers.plan import Plan

pytestmark = pytest.mark.slow

LONG = {**ORDER, "steps": 4_000}


def wait_for(condition, seconds=600.0):
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.05)
    return found


def log_of_workers(stack):
    return "".join(log.read_text(errors="replace") for log in sorted(stack.logs.glob("worker*.log")))


def row(release):
    return {
        column.name: getattr(release, column.key)
        for column in release.__mapper__.column_attrs
        for column in column.columns
    }


@pytest.mark.long
def test_a_job_longer_than_the_visibility_timeout_is_trained_once(faulty, monkeypatch):
    monkeypatch.setenv("IMPRIMATUR_FAULTS_VISIBILITY_SECONDS", "5")
    stack = faulty(workers=2)
    dataset = stack.new_dataset()
    started = time.monotonic()
    release_id = stack.order(dataset, {**ORDER, "steps": 100_000})
    wait_for(lambda: stack.release(release_id).step > 0)
    wait_for(lambda: time.monotonic() - started > 25.0)  # five visibility timeouts
    step = stack.release(release_id).step
    wait_for(lambda: stack.release(release_id).step > step)
    with stack.client() as client:
        client.cancel(release_id)
    ended = stack.wait(release_id)
    assert (ended.failure, ended.attempts, ended.lease_token) == ("cancelled", 1, 1)
    assert log_of_workers(stack).count(f"release {release_id} claimed") == 1
    # The same, to its end: as many steps as take longer than the timeout.
    release_id = stack.order(dataset, {**ORDER, "steps": max(50, step)})
    ended = stack.wait(release_id, seconds=300.0)
    assert (ended.attempts, ended.lease_token) == (1, 1)
    assert log_of_workers(stack).count(f"release {release_id} claimed") == 1
    stack.check_published(dataset, release_id)
    stack.check_storage()


@pytest.mark.parametrize(
    "point",
    [
        pytest.param("charge.before", marks=pytest.mark.long),
        pytest.param("checkpoint.written@1", marks=pytest.mark.long),
        "bundle.written",
    ],
)
def test_a_worker_frozen_past_its_lease_writes_nothing_when_it_thaws(shared, point):
    stack, dataset = shared, shared.new_dataset()
    stack.arm(point, "freeze")
    release_id = stack.order(dataset)
    group = int(wait_for(lambda: stack.fired_at() and (stack.faults / "fired").read_text()))
    frozen = [p for p in psutil.process_iter() if os.getpgid(p.pid) == group]
    stack.wait(release_id)
    stack.check_published(dataset, release_id)
    before = row(stack.release(release_id))
    assert before["lease_token"] == 2
    os.killpg(group, signal.SIGCONT)
    training = [p for p in frozen if "workers.run" in " ".join(p.cmdline())]
    assert training
    wait_for(lambda: not any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in training))
    wait_for(lambda: f"release {release_id} is no longer ours" in log_of_workers(stack))
    assert row(stack.release(release_id)) == before
    stack.check_published(dataset, release_id)
    assert stack.check_storage() == (0 if point == "charge.before" else 1)


@pytest.mark.long
def test_a_frozen_worker_puts_no_old_checkpoint_back_while_another_trains(faulty):
    stack = faulty(workers=2)
    dataset = stack.new_dataset()
    stack.arm("checkpoint.written@1", "freeze")
    release_id = stack.order(dataset, LONG)
    group = int(wait_for(lambda: stack.fired_at() and (stack.faults / "fired").read_text()))
    stray = set(open_context(stack.settings()).storage.list(f"checkpoints/{release_id}"))
    assert len(stray) == 1  # written and not yet named; what the other worker writes is its own
    stack.wait_for_step(release_id, 30)
    os.killpg(group, signal.SIGCONT)
    wait_for(lambda: f"release {release_id} is no longer ours" in log_of_workers(stack))
    key = stack.release(release_id).checkpoint_key
    assert key is not None
    assert key not in stray
    with stack.client() as client:
        client.cancel(release_id)
    assert stack.wait(release_id).lease_token == 2
    assert stack.check_storage() >= 1


@pytest.mark.long
def test_a_training_that_is_refused_memory_is_over_its_limits_and_stays_charged(faulty, monkeypatch):
    monkeypatch.setenv("IMPRIMATUR_FAULTS_CHILD_BYTES", str(4 << 30))
    stack = faulty(job_memory_bytes_limit=64 << 30)
    dataset = stack.new_dataset()
    wide = {"generator_hidden": [4096] * 8, "critic_hidden": [4096] * 8, "noise_dimension": 4}
    release_id = stack.order(dataset, {**ORDER, "networks": wide})
    ended = stack.wait(release_id, seconds=300.0)
    assert (ended.state, ended.failure) == ("failed", "over_limits")
    log = log_of_workers(stack)
    assert log.count(f"release {release_id} claimed with token") == 1
    assert re.search(r"failed with \w*(Memory|Runtime)\w*Error", log)
    stack.check_charged_once(dataset, release_id)
    stack.check_storage()


@pytest.mark.long
def test_a_training_that_is_killed_every_time_is_tried_three_times_and_stays_charged(faulty):
    """What the kernel does when memory is short: SIGKILL, without a word."""
    stack = faulty()
    dataset = stack.new_dataset()
    stack.arm("step.before@2")
    release_id = stack.order(dataset)
    for attempt in (1, 2, 3):
        wait_for(stack.fired_at)
        assert stack.release(release_id).attempts == attempt
        if attempt < 3:
            stack.arm("step.before@2")
    ended = stack.wait(release_id)
    assert (ended.state, ended.failure) == ("failed", "worker_lost")
    assert log_of_workers(stack).count(f"release {release_id} claimed with token") == 3
    stack.check_charged_once(dataset, release_id)
    stack.check_storage()


def test_a_worker_that_is_told_to_stop_hands_its_job_over(shared):
    """Only a claim that was given back leaves its attempt unspent."""
    stack, dataset = shared, shared.new_dataset()
    release_id = stack.order(dataset, LONG)
    stack.wait_for_step(release_id, 20)
    holder = next(
        name for name in ("worker", "worker-2") if f"{release_id} claimed" in (stack.logs / f"{name}.log").read_text()
    )
    before = log_of_workers(stack).count("goes on after step")
    os.kill(stack.pids[holder], signal.SIGTERM)
    wait_for(lambda: log_of_workers(stack).count("goes on after step") > before)
    stopped_at = stack.release(release_id).step
    assert stopped_at >= 20
    stack.wait_for_step(release_id, stopped_at + 1)
    now = stack.release(release_id)
    assert (now.attempts, now.lease_token) == (1, 2)
    with stack.client() as client:
        client.cancel(release_id)
    assert stack.wait(release_id).failure == "cancelled"
    stack.check_charged_once(dataset, release_id, ("reserve", "post", "settle"))
    assert stack.check_storage() == 0


def test_a_cancel_while_no_worker_holds_the_release_settles_what_its_checkpoint_holds(shared):
    stack, dataset = shared, shared.new_dataset()
    stack.arm("checkpoint.record.committed@3", "group")
    release_id = stack.order(dataset)
    wait_for(stack.fired_at)
    with stack.client() as client:
        client.cancel(release_id)
        ended = stack.wait(release_id)
        assert (ended.state, ended.failure) == ("failed", "cancelled")
        entries = {entry["kind"]: entry for entry in client.ledger(dataset)["items"]}
    with open_context(stack.settings()).transaction() as session:
        budget = session.get_one(Dataset, ended.dataset_id).budget
    ran = first_steps(ended.events, 10)  # one checkpoint when the counts were bought, and two of five steps
    assert entries["settle"]["renyi"] == renyi_cost(renyi_divergence(ran, budget.renyi_order), budget)
    assert entries["settle"]["simple"] == entries["post"]["simple"]
    assert 0 < entries["settle"]["renyi"] < entries["post"]["renyi"]
    stack.check_storage()


def test_a_cancelled_training_that_hears_nothing_is_ended_and_settled_at_what_was_visible(shared):
    """Frozen, as in a step of an hour: its worker ends it, and the next claim settles what was recorded as visible."""
    stack, dataset = shared, shared.new_dataset()
    release_id = stack.order(dataset, LONG)
    stack.wait_for_step(release_id, 20)
    workers = [psutil.Process(pid) for name, pid in stack.pids.items() if name.startswith("worker")]
    (training,) = [p for worker in workers for p in worker.children() if release_id in p.cmdline()]
    training.suspend()
    context = open_context(stack.settings())
    frozen = stack.release(release_id)
    saved = Checkpoint.from_bytes(context.storage.get(frozen.checkpoint_key))
    stored = Plan(frozen.events, saved.values["position"]).steps_done
    with stack.client() as client:
        client.cancel(release_id)
        ended = stack.wait(release_id)
        entries = {entry["kind"]: entry for entry in client.ledger(dataset)["items"]}
    assert not training.is_running()
    assert (ended.state, ended.failure, ended.attempts, ended.lease_token) == ("failed", "cancelled", 1, 2)
    with context.transaction() as session:
        budget = session.get_one(Dataset, ended.dataset_id).budget
    assert 5 <= stored <= ended.recorded_steps  # it is recorded first, and may have been frozen before it was stored
    ran = first_steps(ended.events, ended.recorded_steps)
    assert entries["settle"]["renyi"] == renyi_cost(renyi_divergence(ran, budget.renyi_order), budget)
    assert 0 < entries["settle"]["renyi"] < entries["post"]["renyi"]
    assert stack.check_storage() >= 0
