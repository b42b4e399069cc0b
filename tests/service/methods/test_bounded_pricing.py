"""What a caller asks a price of is bounded: in work, in a child, in turns. Counted in units of work, never in seconds."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from contextlib import ExitStack
from fractions import Fraction

import pytest

from service.base.errors import PricingBusy, TooExpensiveToPrice, Unpriceable
from service.base.messages import said
from service.base.work import TooMuchWork, at_most, left
from service.domain.image_schema import parse_schema
from service.methods import bounded, pricing, wants
from service.methods.catalogue import parse_order
from service.methods.child import answer_to
from service.methods.facts import Facts
from service.methods.knobs import Order
from service.methods.turns import OF_A_TENANT, WANTED_SECONDS, Asker, Turns, on_behalf_of
from service.methods.wants import least_epsilon, parse_want
from service.pages.languages import language_named
from service.privacy.filters import open_budget

A_READER = Asker("key", "tenant")
LONG = {
    "method": "idpgan",
    "share": 1.0,
    "steps": 999_970,
    "sampling_probability": 0.001,
    "noise_decay": {"kind": "polynomial", "end_ratio": 0.001},
    "thresholds": {"kind": "adaptive", "every_steps": 2, "noise_ratio": 0.5},
}
SHORT = {"method": "idpgan", "share": 0.5, "steps": 300, "sampling_probability": 0.02}


def fresh(document: dict) -> Order:
    """An order whose price no other test has cached."""
    order = parse_order({**document, "optimizer": {"critic_learning_rate": random.uniform(1e-6, 1e-3)}})
    assert isinstance(order, Order)
    return order


def work_of(document: dict, budget, most: int) -> int | None:
    """What pricing it takes; None: more than that."""
    try:
        with at_most(most):
            try:
                pricing.price_order(fresh(document), budget)
            except TooMuchWork:
                raise
            except Unpriceable:
                pass
            return most - (left() or 0)
    except TooMuchWork:
        return None


@pytest.mark.parametrize("epsilon", [1.0, 10.0])
@pytest.mark.parametrize("steps", [300, 3_000])
def test_a_usual_order_takes_a_part_of_what_a_request_may(steps, epsilon):
    document = {"method": "idpgan", "share": 0.5, "steps": steps, "sampling_probability": 0.01}
    work = work_of(document, open_budget(epsilon, 1e-6), bounded.WORK_HERE)
    assert work is not None


def test_a_million_steps_are_refused_within_the_bound_or_priced():
    """It took 61 seconds of one of four threads."""
    calls = []

    def child(text):
        calls.append(json.loads(text)["kind"])
        raise TooExpensiveToPrice(bounded.WHAT_TO_DO)

    with pytest.MonkeyPatch.context() as patch, on_behalf_of(A_READER):
        patch.setattr(bounded, "_ask_child", child)
        order = fresh(LONG)
        for _ in range(2):
            with pytest.raises(TooExpensiveToPrice, match="noise_decay"):
                pricing.price_order(order, open_budget(10.0, 1e-6))
    assert calls == ["price"], "what was too much work once is not tried again"


def test_a_refusal_that_is_remembered_holds_no_frames(monkeypatch):
    """One error raised again and again kept the frames, and so the requests, of every time."""

    def child(_text):
        raise TooExpensiveToPrice(bounded.WHAT_TO_DO)

    monkeypatch.setattr(bounded, "_ask_child", child)
    monkeypatch.setattr(bounded, "WORK_HERE", 1)
    refusals, lengths = [], []
    order = fresh(LONG)
    for _ in range(3):
        with on_behalf_of(A_READER), pytest.raises(TooExpensiveToPrice) as caught:
            pricing.price_order(order, open_budget(10.0, 1e-6))
        refusals.append(caught.value)
        lengths.append(len(caught.traceback))
    assert len(set(map(id, refusals))) == 3
    assert lengths[1] == lengths[2]


@pytest.mark.skipif(sys.platform != "linux", reason="only there the system says what is resident")
def test_a_price_leaves_no_factors_of_its_transforms():
    """scipy.fft keeps those of 16 lengths: 33 MiB after this price, 64 once all lengths were asked for."""
    code = """
from service.base.memory import give_back, resident_bytes
from service.methods.catalogue import parse_order
from service.methods.pricing import price_order
from service.pages.languages import language_named
from service.privacy.filters import open_budget
order, budget = {"method": "idpgan", "steps": 100, "sampling_probability": 1e-4}, open_budget(10.0, 1e-6)
price_order(parse_order({**order, "share": 1.0}), budget)
give_back()
before = resident_bytes()
price_order(parse_order({**order, "share": 0.001}), budget)
give_back()
print(resident_bytes() - before)
"""
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert int(said.stdout) < 12 << 20


def test_nothing_is_computed_before_it_is_counted():
    """Whatever the knobs: either it ends within the bound or it is refused at it, not after it."""
    rng = random.Random(7)
    refused = 0
    for _ in range(25):
        document = {
            "method": "idpgan",
            "share": rng.choice([1.0, 0.1, 1e-6]),
            "steps": int(10 ** rng.uniform(0, 6)),
            "sampling_probability": 10 ** rng.uniform(-6, 0),
            "noise_decay": {"kind": "polynomial", "end_ratio": 10 ** rng.uniform(-3, 0)},
            "thresholds": {"kind": "adaptive", "every_steps": rng.choice([1, 2, 5_000]), "noise_ratio": 0.01},
        }
        refused += work_of(document, open_budget(10 ** rng.uniform(-2, 1), 1e-9), 30_000_000) is None
    assert refused >= 5


def test_the_child_computes_the_same_price_to_the_last_bit():
    """And what the API makes of its answer is the price it would have computed itself."""
    budget = open_budget(2.0, 1e-6)
    order = fresh(SHORT)
    here = pricing.price_order(order, budget)
    with pytest.MonkeyPatch.context() as patch, on_behalf_of(A_READER):
        patch.setattr(bounded, "WORK_HERE", 1)
        other = order.model_copy(update={"optimizer": fresh(SHORT).optimizer})  # type: ignore[attr-defined]
        there = pricing.price_order(other, budget)
    assert there == here


def test_the_rest_of_a_budget_is_the_same_in_a_child():
    budget, order = open_budget(2.0, 1e-6), fresh(SHORT).model_copy(update=pricing.UNPRICED)
    with pytest.MonkeyPatch.context() as patch, on_behalf_of(A_READER):
        patch.setattr(bounded, "WORK_HERE", 1)
        there = pricing._largest(order, budget, 300_000_000)
    assert there == pricing.largest_of(order, budget, 300_000_000)


def test_a_child_that_the_clock_ended_is_a_refusal_for_a_while(monkeypatch):
    """A busy machine once refused a price that it could compute, and then did so for ever; then the same dear order took every slow turn."""
    clock, asked = [1_000.0], []
    ask_child = bounded._ask_child

    def child(text):
        asked.append(text)
        return ask_child(text)

    monkeypatch.setattr(bounded, "_ask_child", child)
    monkeypatch.setattr("service.methods.bounded.time.monotonic", lambda: clock[0])
    monkeypatch.setattr(bounded, "WORK_HERE", 1)
    order = fresh(SHORT)
    with on_behalf_of(A_READER):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(bounded, "CHILD_SECONDS", 0.0)
            for seconds in (0.0, bounded.OUT_OF_TIME_SECONDS - 1.0):
                clock[0] += seconds
                with pytest.raises(TooExpensiveToPrice, match="noise_decay"):
                    pricing.price_order(order, open_budget(2.0, 1e-6))
        assert len(asked) == 1
        clock[0] += 1.0
        monkeypatch.setattr(bounded, "_ask_child", lambda text: answer_to(json.loads(text)))
        assert pricing.price_order(order, open_budget(2.0, 1e-6)).events


def test_what_cannot_be_priced_is_said_by_the_child_too(monkeypatch):
    monkeypatch.setattr(bounded, "WORK_HERE", 1)
    drawn_rarely = {"method": "idpgan", "share": 1.0, "steps": 100, "sampling_probability": 1e-5}
    with on_behalf_of(A_READER), pytest.raises(Unpriceable, match="no amount of noise") as refused:
        pricing.price_order(fresh(drawn_rarely), open_budget(3.0, 0.01))
    assert not isinstance(refused.value, TooExpensiveToPrice)
    assert said(refused.value.detail, language_named("de")).startswith("Kein Rauschen"), "it comes out with its places"


def test_a_job_says_everything_a_price_depends_on():
    order, budget = fresh(SHORT), open_budget(2.0, 1e-6)
    share = Fraction(1, 3)
    unpriced = order.model_copy(update=pricing.UNPRICED)
    values = {"share": share.as_integer_ratio(), "epsilon": 2 / 3, "delta": 1e-6 / 6}
    job = json.loads(json.dumps(bounded.job_of("price", unpriced, budget, **values)))
    assert answer_to(job) == pricing.priced(unpriced, share, 2 / 3, 1e-6 / 6, budget).as_json


def test_no_one_else_is_bounded():
    """Workers and measurements have no caller."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounded, "WORK_HERE", 1)
        pricing.price_order(fresh(SHORT), open_budget(2.0, 1e-6))


# -- turns


def test_a_key_computes_one_price_at_a_time_and_a_tenant_leaves_room_for_another():
    turns = Turns()
    with ExitStack() as held:
        for number in range(OF_A_TENANT):
            held.enter_context(turns.take(Asker(f"key {number}", "ours")))
        with pytest.raises(PricingBusy), turns.take(Asker("key 0", "ours")):
            pass
        with pytest.raises(PricingBusy), turns.take(Asker("key 9", "ours")):
            pass
        with turns.take(Asker("another", "theirs")):
            pass
    with turns.take(Asker("key 0", "ours")):
        pass
    assert not turns._computing


def test_a_turn_ends_with_an_error_too():
    turns = Turns()
    with pytest.raises(ValueError, match="x"), turns.take(A_READER):
        raise ValueError("x")
    with turns.take(A_READER):
        pass


def test_a_tenant_that_had_the_child_lets_another_go_first(monkeypatch):
    turns, clock = Turns(), [0.0]
    monkeypatch.setattr("service.methods.turns.time.monotonic", lambda: clock[0])
    ours, theirs = Asker("a", "ours"), Asker("b", "theirs")
    with turns.take_slow(ours), pytest.raises(PricingBusy), turns.take_slow(theirs):
        pass
    with pytest.raises(PricingBusy), turns.take_slow(ours):  # theirs was refused a moment ago
        pass
    with turns.take_slow(theirs):
        pass
    with turns.take_slow(ours):
        with pytest.raises(PricingBusy), turns.take_slow(theirs):
            pass
        clock[0] += WANTED_SECONDS + 1
    with turns.take_slow(ours):  # theirs has not come back
        pass


def test_a_missing_price_takes_a_turn_and_a_known_one_does_not(monkeypatch):
    turns, budget = Turns(), open_budget(2.0, 1e-6)
    monkeypatch.setattr("service.methods.turns.TURNS", turns)
    known = fresh(SHORT)
    pricing.price_order(known, budget)
    with turns.take(A_READER), on_behalf_of(A_READER):
        assert pricing.price_order(known, budget).pld_epsilon > 0
        with pytest.raises(PricingBusy):
            pricing.price_order(fresh(SHORT), budget)


def test_a_search_for_an_epsilon_takes_a_turn_and_ends_it(monkeypatch):
    """Readers quoted a table of a thousand columns again and again, each 28 forecasts, beside the turns."""
    turns = Turns()
    monkeypatch.setattr("service.methods.turns.TURNS", turns)
    schema = {"fields": [{"name": "a", "type": "string", "constraints": {"enum": ["x", "y"]}}]}
    facts = Facts.of_declaration(json.dumps(schema), units=1_000, most_per_unit=1, budget=open_budget(2.0, 1e-6))
    asked = parse_want({"one_way_tv": 0.1}), parse_order({"method": "marginals", "epsilon": 1.0}), facts
    taken, looked = [], wants.forecast_at

    def look(*values):
        taken.append(turns._computing[("key", A_READER.key)])
        return looked(*values)

    monkeypatch.setattr(wants, "forecast_at", look)
    with on_behalf_of(A_READER):
        found = least_epsilon(*asked, parse_schema(schema), 2.0)
        with turns.take(A_READER), pytest.raises(PricingBusy):
            least_epsilon(*asked, parse_schema(schema), 2.0)
    assert not turns._computing
    assert set(taken) == {1}
    assert len(taken) <= wants.MOST_LOOKS
    assert least_epsilon(*asked, parse_schema(schema), 2.0) == found, "no caller, so no turn"
