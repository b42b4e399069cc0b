"""Work is counted before it is done."""

import pytest

from service.base.work import TooMuchWork, at_most, left, spend


def test_more_than_the_bound_is_refused_before_it_is_done():
    with at_most(10):
        spend(10)
        with pytest.raises(TooMuchWork):
            spend(1)
    spend(10**18)  # no bound here
    assert left() is None


def test_a_bound_within_a_bound_counts_for_both():
    with at_most(10):
        with at_most(100):
            assert left() == 10
            spend(4)
        assert left() == 6
        with pytest.raises(TooMuchWork), at_most(3):
            spend(4)
        assert left() == 2
