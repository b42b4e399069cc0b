"""Events as data: what is stored, what is refused, and that each answers for itself."""

from __future__ import annotations

import ast
import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import service
from service.base.errors import Unpriceable
from service.privacy.accounting import epsilon_of, first_steps, renyi_divergences
from service.privacy.calibration import MOST_RELEASES, is_paid
from service.privacy.events import (
    SAMPLED_STEPS,
    DrawnPartEvent,
    ExponentialEvent,
    GaussianEvent,
    InterleavedStepsEvent,
    LaplaceEvent,
    ParallelEvent,
    PureEvent,
    RepeatAndSelectEvent,
    SampledStepEvent,
    events_from_json,
    events_to_json,
    steps_in,
)
from service.privacy.filters import LARGEST_COST, Shares, open_budget
from service.privacy.renyi import CONVERSION_ORDERS, RenyiLoss

ROOT = Path(service.__file__).parents[1]

STORED = [
    {"kind": "gaussian", "purpose": "label_counts", "noise_multiplier": 9.25, "count": 1},
    {
        "kind": "sampled_step",
        "sampling_probability": 0.1,
        "gradient_noise_multiplier": 3.0,
        "histogram_noise_multiplier": 24.0,
        "count": 1,
    },
    {
        "kind": "sampled_step",
        "sampling_probability": 0.1,
        "gradient_noise_multiplier": 3.0,
        "histogram_noise_multiplier": None,
        "count": 9,
    },
]
"""As releases of earlier versions hold it."""

OF_EACH_KIND = (
    GaussianEvent("a", 3.0),
    SampledStepEvent(0.01, 1.5, None, 40),
    LaplaceEvent("b", 10.0, 3),
    PureEvent("c", 0.25),
    ExponentialEvent("d", 0.5, 2),
    ParallelEvent("e", ((PureEvent("f", 0.1), GaussianEvent("g", 5.0)), (LaplaceEvent("h", 4.0),)), 2),
    RepeatAndSelectEvent("i", (SampledStepEvent(0.02, 2.0, 9.0, 7),), 4.0, None),
    RepeatAndSelectEvent("j", (GaussianEvent("k", 9.0),), 4.0, 0.5),
    InterleavedStepsEvent(0.01, 1.5, 12.0, 7, 3, 25),
    DrawnPartEvent(0.01, 1.5, 40),
)

FLAT = st.one_of(
    st.builds(GaussianEvent, st.just("x"), st.floats(1.0, 30.0), st.integers(1, 3)),
    st.builds(SampledStepEvent, st.floats(0.001, 0.1), st.floats(0.8, 5.0), st.none(), st.integers(1, 200)),
    st.builds(DrawnPartEvent, st.floats(0.001, 0.5), st.floats(0.8, 5.0), st.integers(1, 200)),
    st.builds(LaplaceEvent, st.just("x"), st.floats(0.5, 50.0), st.integers(1, 4)),
    st.builds(PureEvent, st.just("x"), st.floats(0.01, 2.0), st.integers(1, 4)),
    st.builds(ExponentialEvent, st.just("x"), st.floats(0.01, 2.0), st.integers(1, 4)),
)
LISTS = st.lists(FLAT, min_size=1, max_size=3).map(tuple)
SPLIT = st.builds(
    ParallelEvent, st.just("x"), st.lists(LISTS, min_size=1, max_size=3).map(tuple), st.integers(1, 2), st.booleans()
)
EVENTS = st.one_of(
    FLAT,
    SPLIT,
    st.builds(
        RepeatAndSelectEvent, st.just("x"), LISTS, st.floats(1.0, 50.0), st.one_of(st.none(), st.floats(0.0, 4.0))
    ),
)


def test_what_is_stored_loads_and_is_written_unchanged() -> None:
    events = events_from_json(STORED)
    assert events == (
        GaussianEvent("label_counts", 9.25),
        SampledStepEvent(0.1, 3.0, 24.0, 1),
        SampledStepEvent(0.1, 3.0, None, 9),
    )
    assert json.dumps(events_to_json(events)) == json.dumps(STORED)


@settings(deadline=None, max_examples=200)
@given(st.lists(EVENTS, max_size=4).map(tuple))
def test_a_list_comes_back_from_json(events) -> None:  # type: ignore[no-untyped-def]
    written = json.dumps(events_to_json(events), allow_nan=False)
    assert events_from_json(json.loads(written)) == events
    assert hash(events_from_json(json.loads(written))) == hash(events)


def test_every_kind_comes_back_from_json() -> None:
    assert len({event.kind for event in OF_EACH_KIND}) == 9
    assert events_from_json(json.loads(json.dumps(events_to_json(OF_EACH_KIND)))) == OF_EACH_KIND


STEP = {
    "kind": "sampled_step",
    "sampling_probability": 0.1,
    "gradient_noise_multiplier": 1.0,
    "histogram_noise_multiplier": None,
    "count": 1,
}


def nested(depth: int) -> dict:  # type: ignore[type-arg]
    row = {"kind": "gaussian", "purpose": "x", "noise_multiplier": 1.0, "count": 1}
    for _ in range(depth):
        row = {"kind": "parallel", "purpose": "x", "count": 1, "follows_outputs": False, "parts": [[row]]}
    return row


@pytest.mark.parametrize(
    "rows",
    [
        *([{**STEP, "count": count}] for count in (1.5, True, 0, -1, "1", None, float("nan"))),
        *([{**STEP, "gradient_noise_multiplier": noise}] for noise in ("1", None, [1.0], float("nan"), -1.0)),
        [{**STEP, "more": 1}],
        [{"purpose": "x"}],
        ["gaussian"],
        [{**nested(1), "follows_outputs": ""}],
    ],
    ids=str,
)
def test_a_stored_list_that_is_none_is_refused(rows) -> None:  # type: ignore[no-untyped-def]
    """Who can write to the database can write any list: what is not exactly one must not be half read."""
    with pytest.raises(Unpriceable):
        events_from_json(rows)


def test_lists_in_lists_have_an_end() -> None:
    assert events_from_json([nested(3)])
    for depth in (4, 900):
        with pytest.raises(Unpriceable, match="nested"):
            events_from_json([nested(depth)])


@pytest.mark.parametrize(
    "row", [{"kind": "sparse_vector"}, {"kind": "parallel", "purpose": "x", "parts": [[{"kind": "svt"}]]}]
)
def test_an_unknown_kind_is_refused_by_name(row) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(Unpriceable, match=r"unknown event kind '(sparse_vector|svt)'"):
        events_from_json([row])


@pytest.mark.parametrize(
    "make",
    [
        lambda: LaplaceEvent("x", 0.0),
        lambda: LaplaceEvent("x", 1e-3),
        lambda: LaplaceEvent("x", float("inf")),
        lambda: LaplaceEvent("x", float("nan")),
        lambda: LaplaceEvent("x", 1.0, 0),
        lambda: PureEvent("x", 0.0),
        lambda: PureEvent("x", -1.0),
        lambda: PureEvent("x", float("inf")),
        lambda: PureEvent("x", float("nan")),
        lambda: PureEvent("x", 1.0, 0),
        lambda: ExponentialEvent("x", 0.0),
        lambda: ExponentialEvent("x", 1.0, -1),
        lambda: ParallelEvent("x", ()),
        lambda: ParallelEvent("x", ((PureEvent("y", 1.0),), ())),
        lambda: ParallelEvent("x", ((PureEvent("y", 1.0),),), 0),
        lambda: RepeatAndSelectEvent("x", (), 2.0, 1.0),
        lambda: RepeatAndSelectEvent("x", (PureEvent("y", 1.0),), 0.5, 1.0),
        lambda: RepeatAndSelectEvent("x", (PureEvent("y", 1.0),), float("nan"), 1.0),
        lambda: RepeatAndSelectEvent("x", (PureEvent("y", 1.0),), 2.0, -0.5),
        lambda: RepeatAndSelectEvent("x", (PureEvent("y", 1.0),), 2.0, float("inf")),
        lambda: RepeatAndSelectEvent("x", (PureEvent("y", 1.0),), 2.0, 1.0, 0),
    ],
)
def test_what_has_no_price_is_no_event(make) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(Unpriceable):
        make()


# -- what the rest of the service asks


def test_only_steps_are_steps() -> None:
    assert steps_in(OF_EACH_KIND) == 105
    assert OF_EACH_KIND[1].purpose == SAMPLED_STEPS
    cut = first_steps((*OF_EACH_KIND, SampledStepEvent(0.01, 1.0, None, 5)), 12)
    assert steps_in(cut) == 12
    assert [event.kind for event in cut if not event.private_steps] == [
        event.kind for event in OF_EACH_KIND if not event.private_steps
    ]


def test_releases_of_whole_numbers_are_counted_where_noise_is_gaussian() -> None:
    """A unit is in one part of a split, so the largest part counts."""
    assert [event.whole_number_releases for event in OF_EACH_KIND] == [1, 0, 0, 0, 0, 2, 0, 0, 0, 0]
    budget = open_budget(10.0, 1e-6)
    paid = Shares(LARGEST_COST, LARGEST_COST)
    for split, fits in ((MOST_RELEASES - 1, True), (MOST_RELEASES, False)):
        events = (ParallelEvent("x", ((GaussianEvent("y", 1e3),), (PureEvent("z", 0.1),)), split),)
        assert is_paid(events, paid, budget, epsilon_scale=1.0) == fits


def test_every_kind_says_what_a_certificate_needs() -> None:
    for event in OF_EACH_KIND:
        assert event.parameters()["sampling_probability"] == event.sampling_probability
        json.dumps(event.parameters(), allow_nan=False)
        assert event.cut(1).count == 1
        assert event.cut(event.count) == event
        assert sum(each.count for each in event.alike) == event.count
        for each in event.alike:
            (dearest,) = event.mechanism.divergences([8])
            assert each.mechanism.divergences([8])[0] <= dearest
            assert each.mechanism.divergences([8])[0] <= renyi_divergences((each.cut(1),), [8])[0]


def test_nothing_outside_asks_an_event_for_its_type() -> None:
    kinds = {type(event).__name__ for event in OF_EACH_KIND} | {"Event"}
    asked = []
    for path in sorted(file for folder in ("service", "workers") for file in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
                names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
                asked += [f"{path.name}:{node.lineno}"] if names & kinds else []
    assert asked == []


# -- prices


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(LISTS, EVENTS)
def test_one_more_event_never_lowers_a_price(events, more) -> None:  # type: ignore[no-untyped-def]
    """But for the width of the grid, which is another one for another list.

    And but for the way it is computed: a list with a part that is drawn may have a price by its Rényi divergences alone, and these can be
    lower than the price by losses of the list without that part (two Gaussians and two choices: 8.86 and 9.10). Both are bounds from above.
    """
    orders = [2, 8, 32]
    for before, after in zip(
        renyi_divergences(events, orders), renyi_divergences((*events, more), orders), strict=True
    ):
        assert before <= after
    before, after = (epsilon_of(each, delta=1e-6, epsilon_scale=3.0) for each in (events, (*events, more)))
    divergences = renyi_divergences(events, CONVERSION_ORDERS)
    by_divergences = RenyiLoss.of(CONVERSION_ORDERS, divergences, largest=math.inf).epsilon(1e-6)
    assert min(before, by_divergences) <= after * (1.0 + 1e-3)


@settings(deadline=None, max_examples=10)  # a pair of prices each
@given(st.lists(st.one_of(FLAT, SPLIT), min_size=2, max_size=4))
def test_the_order_of_a_list_does_not_matter(events) -> None:  # type: ignore[no-untyped-def]
    forward, back = tuple(events), tuple(reversed(events))
    assert renyi_divergences(forward, [16]) == pytest.approx(renyi_divergences(back, [16]), rel=1e-12)
    there, again = (epsilon_of(each, delta=1e-6, epsilon_scale=3.0) for each in (forward, back))
    assert there == pytest.approx(again, rel=1e-5)
