"""The process of an attempt, watched: a cancel ends it whatever it does, limits end it, and the ledger says what they must.

Children are real processes and the claims are in real Postgres. Time is the test's own: a poll takes as long as the watcher
thinks it does.
"""

import re
import signal
import subprocess
import sys
import textwrap
import threading
import types

import pytest
from sqlalchemy import text

from service.ledger import repository as ledger_repository
from service.platform.context import open_context
from service.platform.database import transaction
from service.platform.settings import get_settings
from service.privacy.filters import Shares
from service.releases.models import Release
from service.upkeep.installation import owner_transaction
from tests.bare_rows import add_bare_dataset, add_bare_release
from tests.reservations import claim, reserve
from workers import child as children
from workers import lease as leases

COST = Shares(1_000, 2_000)
MOST_POLLS = 300
FEW_POLLS = 40
UNTIL_ENOUGH = "import pathlib, time\nwhile not pathlib.Path('{folder}/enough').exists(): time.sleep(0.02)"
"""A child that ends by itself after so many polls."""
BUSY = "sum(range(10**12))"
"""One call of C: no handler of a signal runs before it returns, which is hours later."""
DEAF = f"import signal; [signal.signal(s, lambda *_: None) for s in (signal.SIGTERM, signal.SIGUSR1)]; ready(); {BUSY}"
HOLDS = "held = b'x' * (300 << 20); ready(); import time; time.sleep(600)"

GRANDCHILD = f"""
import subprocess, sys
subprocess.Popen([sys.executable, "-c", {HOLDS.replace("ready(); ", "")!r}])
ready()
{BUSY}
"""


@pytest.fixture
def release_id(settings):
    with transaction(settings) as session:
        tenant, dataset = add_bare_dataset(session)
        release = add_bare_release(session, tenant, dataset, COST)
        reserve(session, dataset, release, COST)
    return release


@pytest.fixture
def charged(settings, release_id):
    """The claim of a worker on a release that it has charged."""
    with transaction(settings) as session:
        lease = claim(session, release_id)
        leases.charge(session, lease)
    return lease


class Polls:
    """A clock that a poll moves on, and what happens at a poll once the child is ready."""

    def __init__(self, monkeypatch, folder, when_ready=lambda: None):
        self.now, self.since_ready, self.ready = 0.0, 0, folder / "ready"
        self.when_ready = when_ready
        self.pause = threading.Event()
        monkeypatch.setattr(children, "time", types.SimpleNamespace(monotonic=lambda: self.now, sleep=self.sleep))

    def sleep(self, seconds):
        self.pause.wait(0.02)
        if not self.ready.exists():
            return
        if self.since_ready == 0:
            self.when_ready()
        self.since_ready += 1
        assert self.since_ready < MOST_POLLS, "it is never ended"
        if self.since_ready == FEW_POLLS:
            (self.ready.parent / "enough").touch()
        self.now += seconds

    def command(self, code):
        prelude = f"import pathlib\ndef ready(): pathlib.Path({str(self.ready)!r}).touch()\n"
        return (sys.executable, "-c", prelude + textwrap.dedent(code))


def limited(settings, **limits):
    return open_context(settings.model_copy(update={"job_seconds_limit": 1e6, "heartbeat_seconds": 1e6, **limits}))


def read(settings, release_id):
    with transaction(settings) as session:
        release = session.get_one(Release, release_id)
        balance = ledger_repository.read_balance(session, release.dataset_id)
        kinds = set(ledger_repository.entries_of_release(session, release_id))
    return release, balance, kinds


def cancel(settings, release_id):
    with owner_transaction(settings) as session:
        session.execute(text("UPDATE releases SET cancel_requested = true WHERE id = :id"), {"id": release_id})


def test_a_cancel_ends_a_child_that_hears_nothing_within_five_seconds_of_polls(
    settings, charged, monkeypatch, tmp_path
):
    polls = Polls(monkeypatch, tmp_path, lambda: cancel(settings, charged.release_id))
    ended = children.run_child(limited(settings), charged, threading.Event(), {}, polls.command(DEAF))
    assert (ended.status, ended.cancelled, ended.over_limits) == (-signal.SIGKILL, True, False)
    assert polls.since_ready * children.POLL_SECONDS <= 5.0


def test_a_cancelled_child_may_end_by_itself(settings, charged, monkeypatch, tmp_path):
    polls = Polls(monkeypatch, tmp_path, lambda: cancel(settings, charged.release_id))
    heeds = "import signal, sys, time; signal.signal(signal.SIGUSR1, lambda *_: sys.exit(0)); ready(); time.sleep(600)"
    ended = children.run_child(limited(settings), charged, threading.Event(), {}, polls.command(heeds))
    assert (ended.status, ended.cancelled) == (0, True)


def test_an_attempt_that_begins_cancelled_only_settles_and_gets_the_time_it_takes(
    settings, charged, monkeypatch, tmp_path
):
    cancel(settings, charged.release_id)
    polls = Polls(monkeypatch, tmp_path)
    long = "ready()\n" + UNTIL_ENOUGH.format(folder=tmp_path)
    ended = children.run_child(limited(settings), charged, threading.Event(), {}, polls.command(long))
    assert (ended.status, ended.cancelled) == (0, False)
    assert (
        polls.since_ready * children.POLL_SECONDS > children.LOOK_SECONDS + children.CANCEL_SECONDS
    )  # it was not hurried


@pytest.mark.parametrize(
    ("code", "limits"),
    [
        (DEAF, {"job_seconds_limit": 20.0}),
        (HOLDS, {"job_memory_bytes_limit": 200 << 20}),
        (
            GRANDCHILD,
            {"job_memory_bytes_limit": 200 << 20},
        ),
    ],
    ids=["time", "memory", "memory of a grandchild"],
)
def test_a_child_over_a_limit_is_killed_and_nothing_of_it_lives_on(
    settings, charged, monkeypatch, tmp_path, code, limits
):
    polls = Polls(monkeypatch, tmp_path)
    ended = children.run_child(limited(settings, **limits), charged, threading.Event(), {}, polls.command(code))
    assert (ended.status, ended.cancelled, ended.over_limits) == (-signal.SIGKILL, False, True)


def test_a_child_within_its_limits_is_left_alone(settings, charged, monkeypatch, tmp_path):
    polls = Polls(monkeypatch, tmp_path)
    code = "held = b'x' * (100 << 20); ready()\n" + UNTIL_ENOUGH.format(folder=tmp_path)
    limits = {"job_memory_bytes_limit": 200 << 20, "job_seconds_limit": 1e4}
    ended = children.run_child(limited(settings, **limits), charged, threading.Event(), {}, polls.command(code))
    assert (ended.status, ended.over_limits) == (0, False)


def test_over_limits_ends_the_release_at_once_and_a_charge_stands_in_full(settings, charged):
    children.end_over_limits(open_context(settings), charged)
    release, balance, kinds = read(settings, charged.release_id)
    assert (release.state, release.failure, release.attempts) == ("failed", "over_limits", 1)
    assert (balance.simple_posted, balance.renyi_posted, kinds) == (COST.simple, COST.renyi, {"reserve", "post"})


def test_over_limits_before_the_charge_costs_nothing(settings, release_id):
    with transaction(settings) as session:
        lease = claim(session, release_id)
    children.end_over_limits(open_context(settings), lease)
    release, balance, kinds = read(settings, release_id)
    assert (release.state, release.failure, kinds) == ("voided", "over_limits", {"reserve", "void"})
    assert (balance.simple_pending, balance.simple_posted) == (0, 0)


@pytest.mark.parametrize(("limit", "ends"), [(60 << 20, ("voided", "over_limits")), (16 << 30, ("reserved", None))])
def test_a_worker_gives_its_limits_to_the_process_of_a_training(settings, release_id, monkeypatch, limit, ends):
    """That process loads torch, which alone takes more than the small limit; it then finds an order that says nothing."""
    for name, value in settings.model_dump(exclude_none=True).items():
        monkeypatch.setenv(f"IMPRIMATUR_{name.upper()}", str(value))
    monkeypatch.setenv("IMPRIMATUR_JOB_MEMORY_BYTES_LIMIT", str(limit))
    get_settings.cache_clear()
    from workers import tasks

    context = open_context(settings.model_copy(update={"job_memory_bytes_limit": limit}))
    tasks.train(context, leases.claim_next(context.settings))
    get_settings.cache_clear()
    release, _, _ = read(settings, release_id)
    assert (release.state, release.failure, release.attempts) == (*ends, 1)


def test_the_kernel_limits_a_child_whose_watcher_is_gone():
    code = f"""
    import resource, signal, numpy, torch
    from workers.child import Limits, SPARE_BYTES, limit_myself, was_refused_memory
    limit_myself(Limits(100.0, {1 << 30}), has_gpu=False)
    assert resource.getrlimit(resource.RLIMIT_CORE) == (0, 0)
    numpy.ones({256 << 20}, dtype=numpy.uint8)
    for grow in (
        lambda: numpy.ones(4 << 30, dtype=numpy.uint8),
        lambda: torch.ones(4 << 30, dtype=torch.uint8),
        lambda: bytearray(4 << 30),
    ):
        try:
            grow()
        except Exception as error:
            assert was_refused_memory(error), error
        else:
            raise SystemExit("four gigabytes of one")
    assert not was_refused_memory(RuntimeError("shapes differ"))
    assert 100 < signal.alarm(0) <= 161
    print("limited")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert done.stdout == "limited\n"


def test_an_attempt_limits_itself_by_what_its_worker_says():
    code = """
    import signal, sys
    from workers import run
    def told(): raise SystemExit(f"an alarm in {signal.alarm(0)} s")
    run.open_context = told
    sys.argv = ["workers.run", "7f1c0d5e-0000-4000-8000-000000000000", "1", "540.0", str(8 << 30)]
    run.main()
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)
    assert re.search(r"an alarm in (59\d|600) s", done.stderr), done.stderr
