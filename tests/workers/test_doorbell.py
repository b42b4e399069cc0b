"""A real Celery worker, and a stranger who can write to its broker: all a message can do is wake it."""

import base64
import json
import os
import pickle
import subprocess
import sys
import time
import uuid

import psutil
import pytest
from sqlalchemy import text

from service.platform.broker import BELL_TASK, OLD_TRAIN_TASK, PING_TASK, QUEUE, celery_sender, seconds_since_beat
from service.platform.broker_address import broker_client
from service.platform.database import statement, transaction
from service.privacy.filters import Shares
from service.upkeep.relay import BELLS, ring
from tests.bare_rows import add_bare_dataset, add_bare_release
from tests.reservations import reserve

pytestmark = pytest.mark.slow

COMMAND = (
    *("-m", "celery", "-A", "workers.app:celery", "worker", "--pool=threads", "--concurrency=1"),
    *("--loglevel=INFO", "--without-gossip", "--without-mingle", "--without-heartbeat"),
)
COST = Shares(1_000, 2_000)


class Worker:
    """One worker's process and its log."""

    def __init__(self, settings, log):
        environment = {
            f"IMPRIMATUR_{name.upper()}": str(value) for name, value in settings.model_dump().items() if value
        }
        self._log = log
        with log.open("w") as output:
            self.process = subprocess.Popen(
                [sys.executable, *COMMAND],
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def log(self):
        return self._log.read_text(errors="replace")

    def until(self, condition, seconds=600.0):
        deadline = time.monotonic() + seconds
        while not (found := condition()):
            assert self.process.poll() is None, self.log()
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.05)
        return found

    def stop(self):
        self.process.terminate()
        self.process.wait(60)


@pytest.fixture
def worker(settings, tmp_path):
    started = Worker(settings, tmp_path / "worker.log")
    try:
        started.until(lambda: " ready." in started.log())
        yield started
    finally:
        started.stop()


@pytest.fixture
def broker(redis_url):
    with broker_client(redis_url) as connection:
        yield connection


def message(task, body="[[], {}, {}]", content_type="application/json", encoding="utf-8", **headers):
    """As Celery puts it into a list of Redis."""
    properties = {
        "correlation_id": str(uuid.uuid4()), "delivery_mode": 2, "delivery_info": {"exchange": "", "routing_key": QUEUE},
        "priority": 0, "body_encoding": "base64", "delivery_tag": str(uuid.uuid4()),
    }  # fmt: skip
    body = body if isinstance(body, bytes) else body.encode()
    return json.dumps({
        "body": base64.b64encode(body).decode(), "content-encoding": encoding, "content-type": content_type,
        "headers": {"lang": "py", "task": task, "id": str(uuid.uuid4()), **headers}, "properties": properties,
    })  # fmt: skip


class Bomb:
    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return os.system, (f"touch {self.file}",)


def bells_heard(worker):
    return worker.log().count(f"Task {BELL_TASK}[")


def order(settings):
    """A release that no training process can begin with; it is claimed all the same."""
    with transaction(settings) as session:
        tenant, dataset = add_bare_dataset(session)
        release = add_bare_release(session, tenant, dataset, COST)
        reserve(session, dataset, release, COST)
    return release


def claims(worker, release):
    return worker.log().count(f"release {release} claimed with token")


def test_a_forged_message_can_only_wake_a_worker(worker, broker, settings, tmp_path):
    touched = tmp_path / "touched"
    somebody = str(uuid.uuid4())
    far = "2099-01-01T00:00:00+00:00"
    link = {"task": PING_TASK, "args": [], "kwargs": {}, "options": {"queue": "elsewhere"}, "subtask_type": None}
    forged = [
        message(OLD_TRAIN_TASK, json.dumps([[somebody], {}, {}])),  # a release's id, as the version before sent it
        message(BELL_TASK, json.dumps([[somebody, "; rm -rf /"], {"release_id": somebody}, {}])),
        message(
            BELL_TASK, eta=far, expires=far, retries=9, timelimit=[1, 1]
        ),  # to be kept, and nothing consumed meanwhile
        message(BELL_TASK, json.dumps([[], {}, {"callbacks": [link], "chain": [link], "chord": link}])),
        message(BELL_TASK, pickle.dumps(([], {}, {"x": Bomb(touched)})), "application/x-python-serialize", "binary"),
        message("celery.map", json.dumps([[link, [1, 2, 3]], {}, {}])),
        message("celery.accumulate"),
        message("os.system", json.dumps([[f"touch {touched}"], {}, {}])),
        message(BELL_TASK, b"\xff\xfenot json"),
    ]
    own = next(name.decode() for name in broker.smembers("_kombu.binding.C.dq2")).split("\x06\x16")[-1]
    before = worker.log().count(f"Task {PING_TASK}[")
    for each in forged:
        broker.lpush(QUEUE, each)
    pid = {"pidbox": "celery.pidbox", "method": "shutdown"}
    for exchange in ("celery.pidbox", "celeryev"):
        broker.publish(f"/0.{exchange}", json.dumps(pid))
    worker.until(lambda: broker.llen(QUEUE) == 0)
    # It lives, it consumes its own pings, and every later bell.
    worker.until(lambda: worker.log().count(f"Task {PING_TASK}[") > before + 2)
    heard = bells_heard(worker)
    broker.lpush(QUEUE, message(BELL_TASK))
    worker.until(lambda: bells_heard(worker) > heard)
    assert broker.llen(own) == 0
    assert not touched.exists()
    assert broker.llen("elsewhere") == 0
    worker.until(lambda: not psutil.Process(worker.process.pid).children())
    with statement(settings) as session:
        assert session.execute(text("SELECT count(*) FROM releases")).scalar_one() == 0
        assert seconds_since_beat(session, "worker") is not None


def test_what_is_no_message_at_all_is_passed_over(worker, broker):
    rubbish = [b"not json", b"\xff\xfe", b"[]", b"7", b"null", b"{}", b'{"body": 1, "properties": 2}', b"[" * 100_000]
    headless = {**json.loads(message(BELL_TASK)), "headers": 5}
    for each in (*rubbish, json.dumps(headless)):
        broker.lpush(QUEUE, each)
        worker.until(lambda: broker.llen(QUEUE) == 0)
    heard = bells_heard(worker)
    broker.lpush(QUEUE, message(BELL_TASK))
    worker.until(lambda: bells_heard(worker) > heard)


def test_no_command_is_taken_from_the_broker(worker, redis_url):
    app = celery_sender(redis_url)
    assert app.control.inspect(timeout=2.0).ping() is None
    app.control.shutdown()
    app.control.cancel_consumer(QUEUE)
    before = worker.log().count(f"Task {PING_TASK}[")
    worker.until(lambda: worker.log().count(f"Task {PING_TASK}[") > before + 1)


def test_a_worker_looks_by_itself_when_no_bell_rings(worker, settings):
    """No relay runs here."""
    release = order(settings)
    worker.until(lambda: claims(worker, release))
    # Three attempts that cannot begin, then the reservation is given back.
    with statement(settings) as session:
        worker.until(
            lambda: (
                session.execute(text("SELECT state FROM releases WHERE id = :id"), {"id": release}).scalar_one()
                == "voided"
            )
        )
    assert claims(worker, release) == settings.max_attempts


def test_the_relay_rings_once_for_each_that_waits_up_to_a_bound_and_not_for_what_has_ended(settings, broker):
    sender = celery_sender(settings.redis_url)
    assert ring(settings, sender, broker) == 0
    releases = [order(settings) for _ in range(3)]
    assert ring(settings, sender, broker) == 3
    assert ring(settings, sender, broker) == 0  # no worker has heard those yet
    broker.delete(QUEUE)
    assert ring(settings, sender, broker) == 3  # what the broker forgot
    rung = [json.loads(each) for each in broker.lrange(QUEUE, 0, -1)]
    assert {each["headers"]["task"] for each in rung} == {BELL_TASK}
    assert {base64.b64decode(each["body"]) for each in rung} == {
        b'[[], {}, {"callbacks": null, "errbacks": null, "chain": null, "chord": null}]'
    }
    for _ in range(BELLS):
        order(settings)
    assert ring(settings, sender, broker) == BELLS - 3
    broker.delete(QUEUE)
    with transaction(settings) as session:
        session.execute(text("UPDATE releases SET lease_expires_at = 'infinity' WHERE id != :id"), {"id": releases[0]})
    assert ring(settings, sender, broker) == 1
