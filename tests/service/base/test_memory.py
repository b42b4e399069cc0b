"""Free memory goes back to the system whenever there is more of it; memory in use is not taken for it."""

import ctypes
import subprocess
import sys

import pytest

from service.base.memory import GROWTH_BYTES, MAPPED_BYTES, Tidy, give_back, resident_bytes


class Process:
    """Not to be given back, and free."""

    def __init__(self):
        self.fixed, self.free, self.returns = 100 << 20, 0, 0

    def idle(self):
        return self.fixed + self.free

    def give_back(self):
        self.free = 0
        self.returns += 1


@pytest.fixture
def process():
    return Process()


@pytest.fixture
def tidy(process):
    made = Tidy(process.idle, process.give_back)
    made.look()
    return made


def test_what_a_burst_leaves_is_given_back_even_if_no_request_follows(process, tidy):
    process.free = GROWTH_BYTES
    assert tidy.look()
    assert process.idle() == process.fixed


def test_a_little_growth_is_let_be(process, tidy):
    process.free = GROWTH_BYTES - 1
    assert not tidy.look()
    assert process.returns == 0


def test_what_cannot_be_given_back_is_looked_for_once(process, tidy):
    process.fixed += 10 * GROWTH_BYTES
    assert tidy.look()
    assert not tidy.look()
    assert process.returns == 1


def test_growth_after_memory_became_less_counts_from_there(process, tidy):
    process.fixed += 10 * GROWTH_BYTES
    tidy.look()
    process.fixed -= 5 * GROWTH_BYTES
    assert not tidy.look()
    process.free = GROWTH_BYTES
    assert tidy.look()


def test_nothing_happens_where_the_system_does_not_say(process):
    tidy = Tidy(lambda: None, process.give_back)
    assert not tidy.look()
    assert process.returns == 0


ON_GLIBC = pytest.mark.skipif(
    not (sys.platform == "linux" and hasattr(ctypes.CDLL(None), "mallinfo2")), reason="glibc alone keeps memory so"
)


class Blocks:
    """Memory of malloc, all written to; below the size that is mapped by itself."""

    def __init__(self, count):
        self.libc = ctypes.CDLL(None)
        self.libc.malloc.restype, self.libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
        self.libc.free.argtypes = [ctypes.c_void_p]
        self.blocks = [self.libc.malloc(100_000) for _ in range(count)]
        for block in self.blocks:
            ctypes.memset(block, 1, 100_000)

    def free(self, kept=0):
        while len(self.blocks) > kept:
            self.libc.free(self.blocks.pop(0))


@ON_GLIBC
def test_holes_are_given_back():
    blocks = Blocks(1_000)
    full = resident_bytes()
    blocks.free(kept=1)  # the last one keeps the top of the heap
    give_back()
    left = resident_bytes()
    blocks.free()
    assert full is not None
    assert left is not None
    assert full - left > 80 << 20


@ON_GLIBC
def test_what_was_in_use_at_one_look_and_free_at_the_next_is_given_back():
    """Its pages are resident at both, so that the process does not seem to have grown: 45 MiB stayed so after hostile requests."""
    tidy = Tidy()
    tidy.look()
    blocks = Blocks(1_000)
    tidy.look()
    full = resident_bytes()
    blocks.free(kept=1)
    assert tidy.look()
    left = resident_bytes()
    blocks.free()
    assert full - left > 80 << 20


@ON_GLIBC
def test_large_arrays_are_mapped_by_themselves_even_after_larger_ones_were_freed():
    code = f"""
import ctypes
from service.base.memory import _Mallinfo, use_few_arenas
use_few_arenas()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
libc.mallinfo2.restype = _Mallinfo
libc.free(libc.malloc(16 << 20))
before = libc.mallinfo2().hblks
libc.malloc({MAPPED_BYTES})
assert libc.mallinfo2().hblks == before + 1
"""
    subprocess.run([sys.executable, "-c", code], check=True)
