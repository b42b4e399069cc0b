"""The filter is a filter: an adaptive adversary against the real ledger, an exact model, and the losses in numbers.

What is claimed is proved in docs/privacy.md, "The filter". Three kinds of evidence here:
  1. whatever is ordered, started, cancelled or stopped, the ledger decides as exact fractions would, and never lets
     both accounts end above capacity;
  2. a sequence fixed in advance that was let in, by whichever account, is (ε, δ/2)-DP by PLD;
  3. the best *adaptive* adversary, found by dynamic programming over its choices, still stays below (ε, δ) - and
     does not when the accounts are given half as much room again, so the check can fail.
"""

from __future__ import annotations

import itertools
import uuid
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

import dp_accounting
import numpy as np
import pytest
import sqlalchemy
from dp_accounting import pld
from hypothesis import HealthCheck, target
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)
from scipy.fft import next_fast_len
from sqlalchemy import insert

from service.auth.models import Tenant
from service.base.errors import BudgetExhausted
from service.datasets.models import Dataset
from service.ledger import repository
from service.ledger import service as ledger
from service.methods.idpgan.order import IdpganOrder
from service.platform.database import get_engine, transaction
from service.privacy.accounting import ADJACENCY, first_steps, loss_of, renyi_divergence
from service.privacy.events import steps_in, to_dp_event
from service.privacy.filters import LARGEST_COST, NANO, Shares, exact, open_budget, renyi_cost, simple_cost
from tests.bare_rows import add_bare_dataset
from tests.orders import price_order
from tests.reservations import faults_of, reserve

BUDGET = open_budget(2.0, 1e-5)
UNITS = 10_000
ONE_STEP = {"steps": 1, "sampling_probability": 1.0, "thresholds": {"kind": "fixed"}}
CATALOGUE = (
    {"share": 0.02, "steps": 40, "sampling_probability": 0.1},
    {"share": 0.05, **ONE_STEP},
    {"share": 0.1, "steps": 25, "thresholds": {"kind": "adaptive", "every_steps": 5}},
    {"share": 0.3, "steps": 40, "condition_on": "y"},
    {"epsilon": 1.0, "steps": 60},
    {"share": 1.0, **ONE_STEP},
)


@lru_cache
def priced(index):
    order = IdpganOrder.model_validate({"method": "idpgan", **CATALOGUE[index]})
    return price_order(order, units=UNITS, budget=BUDGET)


# -- 1. the model ---------------------------------------------------------------------------------------------------


@dataclass
class Model:
    """docs/privacy.md, The filter in exact fractions of the budget. Nothing is rounded, nothing is shared with the ledger's code."""

    held: dict = field(default_factory=dict)

    @property
    def simple(self):
        return sum((simple for simple, _ in self.held.values()), Fraction(0))

    @property
    def renyi(self):
        return sum((renyi for _, renyi in self.held.values()), Fraction(0))

    def admits(self, simple, renyi, slack=Fraction(0)):
        return self.simple + simple <= 1 - slack or self.renyi + renyi <= 1 - slack

    def reserve(self, release, simple, renyi):
        self.held[release] = (simple, renyi)

    def void(self, release):
        del self.held[release]

    def settle(self, release, renyi):
        self.held[release] = (self.held[release][0], renyi)


NANO_SHARE = Fraction(1, NANO)


class Adversary(RuleBasedStateMachine):
    """Sees everything the service shows, and picks each next move from it."""

    pending = Bundle("pending")
    running = Bundle("running")
    settings = None  # of a service on real Postgres
    ended: list = []  # noqa: RUF012 - shared by all runs on purpose: what each one got away with

    def __init__(self):
        super().__init__()
        self.dataset = new_dataset(self.settings)
        self.model = Model()
        self.events, self.priced_only = {}, True

    def order(self, simple, renyi, *, events=None):
        """Ask for a release of these exact costs; the ledger must decide as the model does."""
        cost = Shares(simple_cost(simple), min(LARGEST_COST, -(-renyi * NANO // 1)) if events is None else events[1])
        release = uuid.uuid4()
        # Each cost was rounded up to a nano-share, and the Rényi ones by their guard of a billionth besides.
        rounding = (2 * len(self.model.held) + 3) * NANO_SHARE
        try:
            with transaction(self.settings) as session:
                reserve(session, self.dataset, release, cost)
        except BudgetExhausted:
            assert not self.model.admits(simple, renyi, slack=rounding), "refused although there was room"
            return multiple()
        assert self.model.admits(simple, renyi), "admitted although neither account had room"
        self.model.reserve(release, simple, renyi)
        if events is None:
            self.priced_only = False
        else:
            self.events[release] = events[0]
        return release

    @rule(target=pending, index=st.sampled_from(range(len(CATALOGUE))))
    def order_a_priced_release(self, index):
        price = priced(index)
        share = exact(price.epsilon) / exact(BUDGET.epsilon)
        renyi = Fraction(price.renyi_divergence) / Fraction(BUDGET.renyi_capacity)
        return self.order(share, renyi, events=(price.events, price.shares.renyi))

    @rule(index=st.sampled_from(range(len(CATALOGUE))), times=st.integers(2, 15))
    def order_the_same_many_times(self, index, times):
        for _ in range(times):
            self.order_a_priced_release(index)

    @rule(target=pending, simple=st.fractions(0, 2), renyi=st.fractions(0, 2))
    def order_anything(self, simple, renyi):
        return self.order(simple, renyi)

    @rule(
        target=pending,
        fill=st.sampled_from(["simple", "renyi", "both"]),
        over=st.sampled_from([-1, 0, 1]),
        other=st.sampled_from([0, 1, NANO // 2, NANO, LARGEST_COST]),
    )
    def order_what_is_left_or_a_hair_more(self, fill, over, other):
        """The adversary knows both balances to the nano-share."""
        with transaction(self.settings) as session:
            left = ledger.Remaining.of(repository.read_balance(session, self.dataset))
        cost = {"simple": other, "renyi": other}
        for account in ("simple", "renyi") if fill == "both" else (fill,):
            cost[account] = max(0, getattr(left, account) + over)
        return self.order(cost["simple"] * NANO_SHARE, cost["renyi"] * NANO_SHARE)

    @rule(target=running, release=consumes(pending))
    def start(self, release):
        with transaction(self.settings) as session:
            ledger.post(session, self.dataset, release)
        return release

    @rule(release=consumes(pending))
    def cancel_before_the_first_step(self, release):
        with transaction(self.settings) as session:
            ledger.void(session, self.dataset, release)
        self.model.void(release)
        self.events.pop(release, None)

    @rule(release=consumes(running), part=st.fractions(0, 1))
    def stop_after_some_steps(self, release, part):
        """Priced releases keep the divergence of the steps that ran, as the worker settles them."""
        if release in self.events:
            ran = first_steps(self.events[release], int(part * steps_in(self.events[release])))
            divergence = renyi_divergence(ran, BUDGET.renyi_order) if ran else 0.0
            renyi, cost = Fraction(divergence) / Fraction(BUDGET.renyi_capacity), renyi_cost(divergence, BUDGET)
            self.events[release] = ran
        else:
            renyi = self.model.held[release][1] * part
            cost = min(LARGEST_COST, -(-renyi * NANO // 1))
        with transaction(self.settings) as session:
            charged = repository.entries_of_release(session, release)["post"].renyi
            ledger.settle(session, self.dataset, release, renyi=min(cost, charged))
        self.model.settle(release, min(renyi, self.model.held[release][1]))

    @invariant()
    def never_both_above_capacity(self):
        assert self.model.simple <= 1 or self.model.renyi <= 1
        with transaction(self.settings) as session:
            balance = repository.read_balance(session, self.dataset)
        simple = balance.simple_pending + balance.simple_posted
        renyi = balance.renyi_pending + balance.renyi_posted
        assert simple <= NANO or renyi <= NANO
        # What is written is never less than what is true.
        assert simple >= self.model.simple * NANO
        assert renyi >= min(self.model.renyi, 1) * NANO

    def teardown(self):
        simple, renyi = self.model.simple, self.model.renyi
        target(float(min(max(simple, renyi), 100)), label="spent in the fuller account")
        target(float(min(simple, renyi)), label="spent in the emptier account")
        with transaction(self.settings) as session:
            assert faults_of(session, self.dataset) == []
        if self.priced_only and self.events:
            self.ended.append((simple <= 1, renyi <= 1, tuple(e for events in self.events.values() for e in events)))


def new_dataset(settings):
    with transaction(settings) as session:
        return add_bare_dataset(
            session,
            units=UNITS,
            epsilon=BUDGET.epsilon,
            delta=BUDGET.delta,
            renyi_order=BUDGET.renyi_order,
            renyi_capacity=BUDGET.renyi_capacity,
        )[1]


class BuyerOfReleases(Adversary):
    """The same adversary, held to releases that exist, so that what it got can be composed."""

    order_anything = None
    order_what_is_left_or_a_hair_more = None


def hypothesis_profile(examples, steps):
    return hypothesis_settings(
        max_examples=examples, stateful_step_count=steps, deadline=None, suppress_health_check=list(HealthCheck)
    )


@pytest.mark.slow
def test_no_sequence_of_moves_ends_with_both_accounts_above_capacity(settings):
    machine = type("Machine", (Adversary,), {"settings": settings, "ended": []})
    run_state_machine_as_test(machine, settings=hypothesis_profile(40, 25))


@pytest.mark.slow
def test_the_worst_sequences_found_keep_the_promise_in_numbers(settings):
    """A sequence fixed in advance is decided by one account alone, so it must keep that account's half of δ.

    For such a sequence the composed privacy-loss distribution is the whole truth (Koskela et al. 2020), whichever
    account let it in: δ(ε) ≤ δ/2 is what the proof promises. Composing PLDs would not be a *filter*; here nothing is
    chosen by looking at outputs, and it is used as a measurement only.
    """
    machine = type("Machine", (BuyerOfReleases,), {"settings": settings, "ended": []})
    run_state_machine_as_test(machine, settings=hypothesis_profile(25, 15))
    found = [*machine.ended, *greedy_sequences()]
    assert {(simple, renyi) for simple, renyi, _ in found} >= {(True, True), (True, False), (False, True)}
    assert not any(not simple and not renyi for simple, renyi, _ in found)
    for route in ((True, True), (True, False), (False, True)):
        worst = sorted({pool(events) for *ends, events in found if tuple(ends) == route}, key=gaussian_size)[-3:]
        for pooled in worst:
            assert delta_of(pooled) <= BUDGET.delta / 2, (route, pooled)


def pool(events):
    """Order does not matter to the composition of a fixed sequence."""
    counts = Counter()
    for event in (each for runs in events for each in runs.alike):
        counts[event.sampling_probability, event.joint_noise_multiplier] += event.count
    return tuple(sorted(counts.items()))


def gaussian_size(pooled):
    """How much a sequence loses by the central limit, Σ q²(e^{1/σ²} - 1): only decides which ones are composed."""
    return sum(count * q * q * min(np.expm1(min(noise**-2, 50.0)), 1e6) for (q, noise), count in pooled)


def delta_of(pooled):
    accountant = pld.PLDAccountant(ADJACENCY, value_discretization_interval=2e-4)
    for (q, noise), count in pooled:
        gaussian = dp_accounting.GaussianDpEvent(noise)
        one = gaussian if q == 1.0 else dp_accounting.PoissonSampledDpEvent(q, gaussian)
        accountant.compose(dp_accounting.SelfComposedDpEvent(one, count))
    return accountant.get_delta(BUDGET.epsilon)


def greedy_sequences():
    """As many as fit, in every order of two kinds of release: what a search should find at least."""
    found = []
    for first in range(len(CATALOGUE)):
        for second in range(len(CATALOGUE)):
            simple, renyi, events = 0, 0, []
            for index, limit in ((first, 60), (second, 4_000), (first, 4_000)):
                cost = priced(index).shares
                for _ in range(limit):
                    if simple + cost.simple > NANO and renyi + cost.renyi > NANO:
                        break
                    simple, renyi = simple + cost.simple, renyi + cost.renyi
                    events += priced(index).events
            found.append((simple <= NANO, renyi <= NANO, tuple(events)))
    return found


# -- 3. the best adaptive adversary ---------------------------------------------------------------------------------

WIDTH = 4e-3
REACH = 10.0
ACCOUNTS = ("simple", "renyi")
GRID = np.arange(-round(REACH / WIDTH), round(REACH / WIDTH) + 1) * WIDTH
"""Values of e = ε - (loss so far)."""


def loss_on_grid(price, *, adding):
    """The discretised loss of one release, from above, in one direction: places on the grid, probabilities, mass at ∞."""
    accountant = pld.PLDAccountant(ADJACENCY, value_discretization_interval=WIDTH)
    accountant.compose(to_dp_event(price.events))
    composed = accountant._pld
    pmf = (composed._pmf_add if adding else composed._pmf_remove).to_dense_pmf()
    return pmf._lower_loss, pmf._probs, pmf._infinity_mass


def best_response(indices, room, *, adding):
    """max over adaptive strategies of δ(ε): the value of ordering on and on, each time after seeing the outputs so far.

    V(spent, e) = max( (1 - exp(e))₊ , max over releases r with room: E[V(spent + r, e - L_r)] ), L_r the loss of r.
    (1 - exp(ε - ΣL))₊ averaged over outputs is the hockey-stick divergence, so V(nothing, ε) is the δ of the best
    adversary who may choose among these releases for as long as the filter lets it.
    """
    losses = {index: loss_on_grid(priced(index), adding=adding) for index in indices}
    costs = {index: priced(index).shares for index in indices}

    def has_room(counts):
        totals = [
            sum(n * getattr(costs[i], account) for n, i in zip(counts, indices, strict=True)) for account in ACCOUNTS
        ]
        return min(totals) <= room

    # All that may have been bought, the most first: an admissible sequence has room after every order, the last included.
    most = [max(range(2_000), key=lambda n, i=i: (has_room([n * (i == j) for j in indices]), n)) for i in indices]
    bought = [counts for counts in itertools.product(*(range(n, -1, -1) for n in most)) if has_room(counts)]
    values = {}
    for counts in bought:
        best = np.maximum(0.0, -np.expm1(np.minimum(GRID, 0.0)))
        for place, index in enumerate(indices):
            following = values.get(tuple(n + (k == place) for k, n in enumerate(counts)))
            if following is not None:
                best = np.maximum(best, expected(following, *losses[index]))
        values[counts] = best
    return float(values[(0,) * len(indices)][np.searchsorted(GRID, BUDGET.epsilon - WIDTH / 2)])


def expected(following, lowest, probabilities, infinite):
    """E[V(e - L)] on the grid; beyond its ends V is taken as at the ends, 1 below and the last value above: from above."""
    below, above = max(0, lowest + len(probabilities)), max(0, -lowest)
    padded = np.concatenate([np.ones(below), following, np.full(above, following[-1])])
    size = next_fast_len(len(padded) + len(probabilities), real=True)
    product = np.fft.irfft(np.fft.rfft(padded, size) * np.fft.rfft(probabilities, size), size)
    start = below - lowest
    return np.clip(product[start : start + len(following)], 0.0, 1.0) + infinite


@pytest.mark.parametrize("adding", [False, True], ids=["remove", "add"])
def test_the_best_adaptive_adversary_stays_below_epsilon_and_delta(adding):
    """Small releases run far through the Rényi account, large ones end in the simple one: it may steer by outcomes."""
    assert best_response((1, 4), NANO, adding=adding) <= BUDGET.delta
    assert best_response((2, 3), NANO, adding=adding) <= BUDGET.delta


def test_an_adversary_with_half_as_much_room_again_is_caught():
    """The same measurement goes red for accounts that let in half as much again as they should."""
    assert best_response((1, 4), NANO * 3 // 2, adding=False) > BUDGET.delta


def test_the_value_of_one_release_is_its_own_delta():
    """Of the machinery itself: with room for one release only, the best response is that release."""
    exactly = loss_of(priced(5).events, delta=BUDGET.delta, epsilon_scale=BUDGET.epsilon).delta(BUDGET.epsilon)
    # What is paid for rounding is in the one and not in the other.
    assert exactly * (1.0 - 1e-6) <= best_response((5,), NANO, adding=False) <= exactly * 1.05


# -- what is no cost, at the level of SQL ---------------------------------------------------------------------------

RELEASE = """
INSERT INTO releases (id, tenant_id, dataset_id, order_, price, simple_cost, renyi_cost, body_digest, steps)
SELECT gen_random_uuid(), tenant_id, id, '{{}}', '{{}}', COSTS, '', 1 FROM datasets
"""
NO_COSTS = [
    "INSERT INTO ledger_entries SELECT dataset_id, 9, gen_random_uuid(), 'reserve', {}, 0, now(), head_hash, head_hash FROM balances",
    "INSERT INTO ledger_entries SELECT dataset_id, 9, gen_random_uuid(), 'reserve', 0, {}, now(), head_hash, head_hash FROM balances",
    "UPDATE balances SET simple_pending = {}",
    "UPDATE balances SET simple_posted = {}",
    "UPDATE balances SET renyi_pending = {}",
    "UPDATE balances SET renyi_posted = {}",
    "UPDATE balances SET renyi_posted = renyi_posted + simple_posted + {}",
    RELEASE.replace("COSTS", "{}, 0"),
    RELEASE.replace("COSTS", "0, {}"),
]
VALUES = ["-1", "-9223372036854775808", "'NaN'::float8", "'Infinity'::float8", "'-Infinity'::float8", "'NaN'", "NULL"]


def as_owner(settings):
    """The role that owns the tables; the application's may not even try (tests/service/ledger/test_ledger_attacks.py)."""
    return get_engine(settings.migration_database_url).connect()


def test_negative_nan_and_infinite_costs_are_refused_by_the_tables(settings):
    new_dataset(settings)
    for statement in NO_COSTS:
        for value in VALUES:
            with as_owner(settings) as connection, pytest.raises(sqlalchemy.exc.DBAPIError):
                connection.exec_driver_sql(statement.format(value))
    refused = [statement.format("0") for statement in NO_COSTS]
    for statement in refused:  # the same statements with a cost are fine: it was the cost that was refused
        with as_owner(settings) as connection:
            connection.exec_driver_sql(statement)
            connection.rollback()


@pytest.mark.parametrize("column", ["epsilon", "delta", "renyi_capacity"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), 0.0, -1.0])
def test_a_budget_that_is_none_is_refused_by_the_table(settings, column, value):
    tenant = uuid.uuid4()
    row = {
        "id": uuid.uuid4(),
        "tenant_id": tenant,
        "name": "d",
        "schema": {},
        "units": 100,
        "epsilon": 1.0,
        "delta": 1e-6,
        "renyi_order": 8,
        "renyi_capacity": 0.5,
        "storage_key": "k",
        "wrapped_data_key": b"w",
    }
    with transaction(settings) as session:
        session.execute(insert(Tenant).values(id=tenant, name="t"))
    with pytest.raises(sqlalchemy.exc.IntegrityError), transaction(settings) as session:
        session.execute(insert(Dataset).values(row | {column: value}))
