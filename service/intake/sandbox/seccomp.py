"""A filter of system calls for the reading process, as classic BPF: `prctl` and `seccomp`, no library.

A call on the list fails with EPERM; one that no kernel of the list had, with ENOSYS. Files can be opened for reading
alone. Whether a call on data behind a pointer is harmless cannot be seen here, so `openat2` and `clone3` are missing as
on an old kernel, and libraries use `openat` and `clone`.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from typing import NamedTuple

from service.intake.sandbox.syscalls import DENIED, NEWEST

_LOAD, _EQUAL, _GREATER, _ANY_BIT, _RETURN = 0x20, 0x15, 0x25, 0x45, 0x06
_ALLOW, _ERRNO, _KILL = 0x7FFF_0000, 0x0005_0000, 0x8000_0000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16

_SET_MODE_FILTER, _ALL_THREADS = 1, 1
_GET_ACTION_AVAILABLE = 2

_CLONE_THREAD = 0x0001_0000
_CLONE_NAMESPACES = 0x7E02_0080
_FOR_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_HARMLESS_PRCTL = (15, 16, 39, 0x53564D41)
"""PR_SET_NAME, PR_GET_NAME, PR_GET_NO_NEW_PRIVS, PR_SET_VMA: names of threads and of memory, and a question."""
_HARMLESS_IOCTL = (0x5401, 0x5413, 0x541B, 0x5450, 0x5451)
"""TCGETS, TIOCGWINSZ, FIONREAD, FIONCLEX, FIOCLEX."""


class Machine(NamedTuple):
    """What differs between processors."""

    audit_number: int
    column: int
    """In the tables of numbers."""


MACHINES = {"x86_64": Machine(0xC000_003E, 0), "aarch64": Machine(0xC000_00B7, 1)}
_CONDITIONAL = {
    "seccomp": (317, 277),
    "open": (2, None),
    "openat": (257, 56),
    "openat2": (437, 437),
    "clone": (56, 220),
    "clone3": (435, 435),
    "tgkill": (234, 131),
    "prctl": (157, 167),
    "prlimit64": (302, 261),
    "ioctl": (16, 29),
}

Instruction = tuple[int, int, int, int]
"""Code, jump if true, jump if false, operand."""


def is_available() -> bool:
    """Whether this kernel has filters and the numbers of this processor are known."""
    machine = MACHINES.get(os.uname().machine)
    if sys.platform != "linux" or machine is None:
        return False
    number = _CONDITIONAL["seccomp"][machine.column]
    action = ctypes.c_uint32(_ERRNO)
    return bool(ctypes.CDLL(None).syscall(number, _GET_ACTION_AVAILABLE, 0, ctypes.byref(action)) == 0)


def install() -> bool:
    """Bind all threads of this process, for good. False where the kernel refuses; needs no_new_privs."""
    machine = MACHINES.get(os.uname().machine)
    if machine is None:
        return False
    code = packed(program(machine, os.getpid()))
    buffer = ctypes.create_string_buffer(code, len(code))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    held = Program(len(code) // 8, ctypes.addressof(buffer))
    number = _CONDITIONAL["seccomp"][machine.column]
    return bool(ctypes.CDLL(None).syscall(number, _SET_MODE_FILTER, _ALL_THREADS, ctypes.byref(held)) == 0)


def packed(instructions: list[Instruction]) -> bytes:
    """The instructions as the kernel's `struct sock_filter`."""
    return b"".join(struct.pack("=HBBI", *one) for one in instructions)


def program(machine: Machine, own_pid: int) -> list[Instruction]:
    """The whole filter. Jumps go over one instruction at most, so their order does not matter."""
    found = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, machine.audit_number),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_GREATER, 0, 1, NEWEST),  # those of x32 as well
        (_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
    ]
    refused = (_RETURN, 0, 0, _ERRNO | errno.EPERM)
    for numbers in DENIED.values():
        found += _on(numbers[machine.column], [refused])
    for name, answer in _conditional(own_pid).items():
        found += _on(_CONDITIONAL[name][machine.column], answer)
    return [*found, (_RETURN, 0, 0, _ALLOW)]


def _on(number: int | None, answer: list[Instruction]) -> list[Instruction]:
    return [] if number is None else [(_EQUAL, 0, len(answer), number), *answer]


def _conditional(own_pid: int) -> dict[str, list[Instruction]]:
    """What is answered depends on the arguments; each list ends with an answer."""
    allowed, refused = (_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _ERRNO | errno.EPERM)
    missing = (_RETURN, 0, 0, _ERRNO | errno.ENOSYS)

    def low(argument: int) -> Instruction:
        return (_LOAD, 0, 0, _ARGUMENTS + 8 * argument)

    def high(argument: int) -> Instruction:
        return (_LOAD, 0, 0, _ARGUMENTS + 8 * argument + 4)

    def only(argument: int, values: tuple[int, ...]) -> list[Instruction]:
        tests = [step for value in values for step in ((_EQUAL, 0, 1, value), allowed)]
        return [low(argument), *tests, refused]

    def for_reading(flags: int) -> list[Instruction]:
        return [low(flags), (_ANY_BIT, 0, 1, _FOR_WRITING), refused, allowed]

    return {
        "open": for_reading(1),
        "openat": for_reading(2),
        "openat2": [missing],
        "clone3": [missing],
        "clone": [
            low(0),
            (_ANY_BIT, 0, 1, _CLONE_NAMESPACES),
            refused,
            (_ANY_BIT, 0, 1, _CLONE_THREAD),
            allowed,
            refused,
        ],
        "tgkill": only(0, (own_pid,)),  # how a process ends itself when an assertion of a library fails
        "prctl": only(0, _HARMLESS_PRCTL),
        "prlimit64": [low(2), (_EQUAL, 1, 0, 0), refused, high(2), (_EQUAL, 1, 0, 0), refused, allowed],
        "ioctl": only(1, _HARMLESS_IOCTL),
    }
