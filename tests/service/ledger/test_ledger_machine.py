"""Everything that can happen to releases and their costs, in any order, against an exact model on real Postgres.

Orders, deliveries, charges, publications, cancels, settlements, lapsed leases, workers that come back from the dead;
each move may crash before its commit, or lose the answer of its commit and be tried again.
"""

import uuid
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import text

from imprimatur.verify.chain import Totals, totals_of
from service.auth.service import Principal
from service.base.errors import BudgetExhausted, NotCancellable
from service.ledger import repository
from service.ledger import service as ledger
from service.ledger.service import LedgerConflict
from service.platform.context import open_context
from service.platform.database import transaction
from service.privacy.filters import LARGEST_COST, NANO, Shares
from service.releases import service as releases
from service.releases.models import Release
from tests.bare_rows import add_bare_dataset, add_bare_key, add_bare_release
from tests.reservations import faults_of, reserve
from workers import lease as leases
from workers.lease import Lease, LeaseLost

MAX_ATTEMPTS = 3


@dataclass
class Job:
    """What the model knows of one release."""

    cost: Shares
    state: str = "reserved"
    kept_renyi: int | None = None  # after a settlement
    attempts: int = 0
    token: int = 0
    held: bool = False  # by a lease that has not lapsed
    tokens: list = field(default_factory=list)

    @property
    def active(self):
        return self.state in {"reserved", "charged"}

    @property
    def books(self):
        """(simple pending, simple posted, Rényi pending, Rényi posted)"""
        simple, renyi = self.cost.simple, self.cost.renyi
        if self.state == "voided":
            return 0, 0, 0, 0
        if self.state == "reserved":
            return simple, 0, renyi, 0
        return 0, simple, 0, renyi if self.kept_renyi is None else self.kept_renyi


class Crash(Exception):
    """The process ends here; what it had not committed is gone."""


FATES = st.sampled_from(["done", "done", "done", "crashed", "answer lost"])
AMOUNTS = st.one_of(
    st.sampled_from([0, 1, NANO - 1, NANO, NANO + 1, LARGEST_COST]), st.integers(0, 6).map(lambda n: n * NANO // 6)
)


class History(RuleBasedStateMachine):
    jobs = Bundle("jobs")
    settings = None  # of a service on real Postgres
    context = None

    @initialize()
    def open(self):
        with transaction(self.settings) as session:
            self.tenant, self.dataset = add_bare_dataset(session)
            key = add_bare_key(session, self.tenant)
        self.principal = Principal(self.tenant, key, "owner")
        self.model = {}

    # -- how a move ends --------------------------------------------------------------------------------------------

    def happens(self, move, fate, *refusals):
        """Run a move in a transaction of its own. Returns True, or the class of the refusal; False after a crash."""
        try:
            if fate == "crashed":
                with transaction(self.settings) as session:
                    move(session)
                    raise Crash  # noqa: TRY301 - as a process that ends here
            for _ in range(2 if fate == "answer lost" else 1):
                with transaction(self.settings) as session:
                    move(session)
        except Crash:
            return False
        except refusals as refusal:
            return type(refusal)
        return True

    def totals(self):
        columns = zip(*(job.books for job in self.model.values()), strict=True) if self.model else [()] * 4
        return Totals(*(sum(column) for column in columns))

    # -- moves ------------------------------------------------------------------------------------------------------

    @rule(target=jobs, simple=AMOUNTS, renyi=AMOUNTS, fate=FATES)
    def order(self, simple, renyi, fate):
        cost, release, now = Shares(simple, renyi), uuid.uuid4(), self.totals()
        room = (
            now.simple_pending + now.simple_posted + simple <= NANO
            or now.renyi_pending + now.renyi_posted + renyi <= NANO
        )

        def move(session):
            if session.get(Release, release) is None:
                add_bare_release(session, self.tenant, self.dataset, cost, id=release)
            reserve(session, self.dataset, release, cost)

        happened = self.happens(move, fate, BudgetExhausted)
        assert happened == (BudgetExhausted if not room else fate != "crashed")
        if happened is not True:
            return multiple()
        self.model[release] = Job(cost)
        return release

    @rule(release=jobs)
    def the_same_order_arrives_again(self, release):
        job = self.model[release]
        with transaction(self.settings) as session:
            assert reserve(session, self.dataset, release, job.cost).simple == job.cost.simple
            with pytest.raises(LedgerConflict):
                reserve(session, self.dataset, release, Shares(job.cost.simple, NANO // 2 + 7))

    @rule()
    def claim(self):
        """A worker looks: the oldest release that no worker holds is its own; those without an attempt left end first."""
        lease = leases.claim_next(self.settings)
        for release, job in self.model.items():  # in the order of the orders
            if not job.active or job.held:
                continue
            job.attempts, job.token = job.attempts + 1, job.token + 1
            if job.attempts <= MAX_ATTEMPTS:
                assert lease == Lease(release, job.token)
                job.held = True
                return
            job.state = "voided" if job.state == "reserved" else "failed"
        assert lease is None

    @rule(release=jobs)
    def lapse(self, release):
        """The worker froze, or died: its lease runs out."""
        with transaction(self.settings) as session:
            session.execute(
                text(
                    "UPDATE releases SET lease_expires_at = clock_timestamp() - interval '1 second' "
                    "WHERE id = :id AND state IN ('reserved', 'charged') AND lease_expires_at IS NOT NULL"
                ),
                {"id": release},
            )
        self.model[release].held = False

    @rule(release=jobs, age=st.sampled_from([0, 0, 0, 1]), fate=FATES)
    def charge(self, release, age, fate):
        self.worker_does(leases.charge, release, age, fate, after="charged")

    @rule(release=jobs, age=st.sampled_from([0, 0, 0, 1]), fate=FATES)
    def publish(self, release, age, fate):
        if self.model[release].state == "reserved":  # the database refuses: attacked in test_ledger_attacks.py
            return
        self.worker_does(
            lambda session, lease: leases.publish(session, lease, bundle_key="b", certificate_json="{}"),
            release, age, fate, after="published",
        )  # fmt: skip

    @rule(release=jobs, age=st.sampled_from([0, 0, 0, 1]), fate=FATES, part=st.none() | st.integers(0, 6))
    def end(self, release, age, fate, part):
        """Failed, or stopped by a person and settled at what ran."""
        job = self.model[release]
        settled = None if part is None else job.cost.renyi * part // 6
        ended = self.worker_does(
            lambda session, lease: leases.end_without_publishing(session, lease, failure="f", settled_renyi=settled),
            release, age, fate, after="voided" if job.state == "reserved" else "failed",
        )  # fmt: skip
        if ended and job.state == "failed":
            job.kept_renyi = settled

    def worker_does(self, write, release, age, fate, *, after):
        """A fenced write by the newest claim, or by an older one. True when it happened."""
        job = self.model[release]
        fenced = job.token == 0 or not job.active or age > 0
        lease = Lease(release, job.token - age if job.token else -1)  # no claim ever had the token 0 of a new release
        happened = self.happens(lambda session: write(session, lease), fate, LeaseLost)
        if fenced:
            assert happened is LeaseLost
            return False
        if after != "charged" and fate == "answer lost":
            assert happened is LeaseLost  # the second time it has ended already
        elif fate == "crashed":
            assert happened is False
            return False
        else:
            assert happened is True
        job.state = after
        return True

    @rule(release=jobs)
    def cancel(self, release):
        job = self.model[release]
        if not job.active:
            with pytest.raises(NotCancellable):
                releases.cancel(self.context, self.principal, release)
            return
        assert releases.cancel(self.context, self.principal, release).cancel_requested
        if job.state == "reserved":
            job.state = "voided"

    @rule(release=jobs, kind=st.sampled_from(["post", "void", "settle"]), fate=FATES, part=st.integers(-1, 8))
    def move_the_money_alone(self, release, kind, fate, part):
        """The bare functions, at the wrong moment: only what keeps the books true may pass, and only once."""
        job = self.model[release]
        amount = job.cost.renyi * part // 6
        posted = job.state in {"charged", "published", "failed"}
        again = {"post": posted, "void": job.state == "voided", "settle": job.kept_renyi is not None}[kind]
        if not again and (kind == "settle" and job.state == "failed" and 0 <= amount <= job.cost.renyi):
            job_after = amount
        elif not again and job.active and not (kind == "post" and posted) and kind != "settle" and not posted:
            return  # a legal move that would leave the release behind; the rules above make it, with its state
        elif not again and kind == "settle" and job.state == "charged":
            return
        else:
            job_after = job.kept_renyi

        def move(session):
            if kind == "settle":
                ledger.settle(session, self.dataset, release, renyi=amount)
            else:
                getattr(ledger, kind)(session, self.dataset, release)

        happened = self.happens(move, fate, LedgerConflict)
        if again or job_after != job.kept_renyi:
            assert happened == (fate != "crashed")
            if happened:
                job.kept_renyi = job_after
        else:
            assert happened is LedgerConflict

    # -- what must hold ---------------------------------------------------------------------------------------------

    @invariant()
    def books_are_the_models(self):
        with transaction(self.settings) as session:
            balance = repository.read_balance(session, self.dataset)
        held = Totals(*(getattr(balance, account) for account in Totals.__dataclass_fields__))
        assert held == self.totals()
        assert held.simple_pending + held.simple_posted <= NANO or held.renyi_pending + held.renyi_posted <= NANO

    def teardown(self):
        if not hasattr(self, "model"):
            return
        with transaction(self.settings) as session:
            assert faults_of(session, self.dataset) == []
            entries = repository.entries_of_dataset(session, self.dataset)
            states = dict(
                session.execute(text("SELECT id, state FROM releases WHERE dataset_id = :d"), {"d": self.dataset}).all()
            )
            session.execute(  # the next history begins with an empty queue
                text(
                    "UPDATE releases SET lease_expires_at = 'infinity' "
                    "WHERE dataset_id = :d AND state IN ('reserved', 'charged')"
                ),
                {"d": self.dataset},
            )
        assert totals_of(entries) == self.totals()
        assert states == {release: job.state for release, job in self.model.items()}
        for release, job in self.model.items():
            kinds = [entry.kind for entry in entries if entry.release_id == release]
            after = {"reserved": [], "voided": ["void"]}.get(job.state, ["post"])
            assert kinds == ["reserve", *after, *(["settle"] if job.kept_renyi is not None else [])]


def run(settings, sequences):
    settings = settings.model_copy(update={"lease_seconds": 3_600.0, "max_attempts": MAX_ATTEMPTS})
    machine = type("Machine", (History,), {"settings": settings, "context": open_context(settings)})
    profile = hypothesis_settings(
        max_examples=sequences,
        stateful_step_count=20,
        deadline=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(machine, settings=profile)


@pytest.mark.slow
def test_any_history_leaves_entries_balances_and_model_in_agreement(settings):
    run(settings, 60)


@pytest.mark.long
def test_two_thousand_histories(settings):
    run(settings, 2_000)
