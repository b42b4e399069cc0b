"""Token buckets: never more than the rate and the burst, for any sequence of events; memory is bounded."""

from hypothesis import given, settings
from hypothesis import strategies as st

from service.auth.limits import address_of
from service.requests.rates import Rates


class Clock:
    def __init__(self):
        self.now = 1_000.0

    def __call__(self):
        return self.now


@settings(deadline=None)
@given(st.lists(st.floats(0, 20), max_size=80), st.integers(1, 30), st.floats(1, 60))
def test_no_window_holds_more_than_burst_and_rate(pauses, per_minute, burst_seconds):
    clock = Clock()
    rates = Rates(per_minute, burst_seconds=burst_seconds, clock=clock)
    admitted = []
    for pause in pauses:
        clock.now += pause
        if not rates.seconds_until_free("a"):
            admitted.append(clock.now)
    depth = max(burst_seconds, 60 / per_minute)
    for i, first in enumerate(admitted):
        for j in range(i, len(admitted)):
            assert (j - i + 1) <= (depth + admitted[j] - first) * per_minute / 60 + 1e-6


@settings(deadline=None)
@given(st.integers(1, 30), st.floats(1, 60))
def test_who_waits_as_told_is_let_in(per_minute, burst_seconds):
    clock = Clock()
    rates = Rates(per_minute, burst_seconds=burst_seconds, clock=clock)
    while not (wait := rates.seconds_until_free("a")):
        pass
    assert not rates.seconds_until_free("b")
    clock.now += wait * (1 + 1e-9) + 1e-9
    assert not rates.seconds_until_free("a")


def test_looking_takes_nothing_and_names_do_not_pile_up():
    clock = Clock()
    rates = Rates(1, names=100, clock=clock)
    for _ in range(5):
        assert not rates.seconds_until_free("a", take=False)
    assert not rates.knows("a")
    for i in range(10_000):
        rates.seconds_until_free(i)
        assert len(rates._full_at) <= 100
    assert rates.knows(9_999)


def test_an_ipv6_network_is_one_address():
    assert address_of("192.0.2.7") == "192.0.2.7"
    assert address_of("2001:db8:1:2:3:4:5:6") == address_of("2001:db8:1:2::1") != address_of("2001:db8:1:3::1")
    assert address_of("testclient") == "testclient"
