"""Free memory goes back to the system whenever the process has grown, and is not looked for again while it is in use."""

import ctypes
import sys

import pytest

from service.base.memory import GROWTH_BYTES, Tidy, give_back, resident_bytes


class Process:
    """In use, and free but not given back."""

    def __init__(self):
        self.used, self.free, self.returns = 100 << 20, 0, 0

    def resident(self):
        return self.used + self.free

    def give_back(self):
        self.free = 0
        self.returns += 1


@pytest.fixture
def process():
    return Process()


@pytest.fixture
def tidy(process):
    made = Tidy(process.resident, process.give_back)
    made.look()
    return made


def test_what_a_burst_leaves_is_given_back_even_if_no_request_follows(process, tidy):
    process.free = GROWTH_BYTES
    assert tidy.look()
    assert process.resident() == process.used


def test_a_little_growth_is_let_be(process, tidy):
    process.free = GROWTH_BYTES - 1
    assert not tidy.look()
    assert process.returns == 0


def test_memory_in_use_is_looked_for_once(process, tidy):
    process.used += 10 * GROWTH_BYTES
    assert tidy.look()
    assert not tidy.look()
    assert process.returns == 1


def test_growth_after_memory_became_less_counts_from_there(process, tidy):
    process.used += 10 * GROWTH_BYTES
    tidy.look()
    process.used -= 5 * GROWTH_BYTES
    assert not tidy.look()
    process.free = GROWTH_BYTES
    assert tidy.look()


def test_nothing_happens_where_the_system_does_not_say(process):
    tidy = Tidy(lambda: None, process.give_back)
    assert not tidy.look()
    assert process.returns == 0


@pytest.mark.skipif(
    not (sys.platform == "linux" and hasattr(ctypes.CDLL(None), "malloc_trim")), reason="glibc alone keeps memory so"
)
def test_holes_are_given_back():
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    blocks = [libc.malloc(100_000) for _ in range(1_000)]  # below the size that is mapped by itself
    for block in blocks:
        ctypes.memset(block, 1, 100_000)
    full = resident_bytes()
    for block in blocks[:-1]:  # the last one keeps the top of the heap
        libc.free(block)
    give_back()
    left = resident_bytes()
    libc.free(blocks[-1])
    assert full is not None
    assert left is not None
    assert full - left > 80 << 20
