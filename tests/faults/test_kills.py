"""SIGKILL at the transitions of an order. Some of them here, all of them ten times by `python -m bench.faults`."""

import pytest

from bench.faults.__main__ import run_all, run_point
from bench.faults.points import POINTS

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", ["reserve.committed", "charge.committed", "publish.committed"])
def test_killed_at_the_worst_moments_it_is_published_and_charged_once(shared, name):
    point = next(point for point in POINTS if point.name == name)
    outcome = run_point(shared, point, runs=1)
    assert outcome.broken == []
    assert len(outcome.seconds) == 1


@pytest.mark.long
def test_killed_anywhere_it_is_published_and_charged_once():
    outcomes = run_all(list(POINTS), runs=2, lanes=2)
    assert len(outcomes) == len(POINTS)
    assert [fault for outcome in outcomes.values() for fault in outcome.broken] == []
