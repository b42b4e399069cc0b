"""Operations of the client as generators that do no input and output, and how a client runs them.

An operation yields what is to be done (`Ask`, `Pause`, …) and is sent what came of it, or has the error thrown at it.
So one text of it serves `Client` and `AsyncClient`: only `transport.py` knows sockets, threads and sleeping.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import httpx

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True)
class Upload:
    """One file, if any, and its text fields."""

    file: str | Path | None
    fields: Mapping[str, str]
    on_progress: Callable[[str, float], None] | None = None


@dataclass(frozen=True)
class Ask:
    """Send a request. Comes back: the `httpx.Response`, read; where it is `streamed`, a `Streamed`."""

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    json: Any = None
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    upload: Upload | None = None
    read_seconds: float | None = None
    """Of silence; None: the client's own."""
    streamed: bool = False


@dataclass(frozen=True)
class Streamed:
    """A reply whose body is read by `Next`, and which must be closed."""

    response: httpx.Response
    lines: Iterator[str] | AsyncIterator[str]
    chunks: Iterator[bytes] | AsyncIterator[bytes]


@dataclass(frozen=True)
class Next:
    """The next line or chunk of a streamed reply; None comes back at its end."""

    of: Iterator[Any] | AsyncIterator[Any]


@dataclass(frozen=True)
class Read:
    """Read the whole body of a streamed reply."""

    reply: Streamed


@dataclass(frozen=True)
class Close:
    """End a streamed reply."""

    reply: Streamed


@dataclass(frozen=True)
class Pause:
    """Wait."""

    seconds: float


@dataclass(frozen=True)
class Work:
    """Something that takes a while and would hold up an event loop; its result comes back."""

    function: Callable[[], Any]


@dataclass(frozen=True)
class Give(Generic[T]):
    """One item of an operation that is iterated over."""

    item: T


Step = Ask | Next | Read | Close | Pause | Work
Steps = Generator[Step, Any, T]
"""An operation that returns a T."""
Items = Generator[Step | Give[T], Any, None]
"""An operation that gives T after T."""


def mapped(items: Items[T], make: Callable[[T], Steps[U]]) -> Items[U]:
    """The operation, with something made of each of its items, which may take steps itself."""
    try:
        step = next(items)
        while True:
            try:
                answer = None
                if isinstance(step, Give):
                    yield Give((yield from make(step.item)))
                else:
                    answer = yield step
            except BaseException as error:  # noqa: BLE001 - whatever ends it, the operation closes what it has opened
                step = items.throw(error)
            else:
                step = items.send(answer)
    except StopIteration:
        return


def heard(items: Items[T], hear: Callable[[T], Steps[None]]) -> Steps[None]:
    """The operation, with `hear` done for each of its items, and none given."""
    try:
        step = next(items)
        while True:
            try:
                answer = None
                if isinstance(step, Give):
                    yield from hear(step.item)
                else:
                    answer = yield step
            except BaseException as error:  # noqa: BLE001 - as above
                step = items.throw(error)
            else:
                step = items.send(answer)
    except StopIteration:
        return


class NoMore(BaseException):
    """Thrown at an operation whose caller wants no more items. Not `GeneratorExit`: under `yield from` that lets nothing be closed in steps."""


class _Enough(Exception):
    """Thrown at an operation whose next item is not wanted."""


def until(items: Items[T], is_last: Callable[[T], bool]) -> Items[T]:
    """The items before the first for which `is_last` holds; the operation is ended there."""

    def check(item: T) -> Steps[T]:
        if is_last(item):
            raise _Enough
        yield from ()
        return item

    with suppress(_Enough):
        yield from mapped(items, check)


def told(hear: Callable[[T], object]) -> Callable[[T], Steps[None]]:
    """A plain function as `heard` takes it."""

    def tell(item: T) -> Steps[None]:
        hear(item)
        yield from ()

    return tell


def listed(items: Items[T]) -> Steps[list[T]]:
    """All items at once."""
    found: list[T] = []
    yield from heard(items, told(found.append))
    return found


def signed(method: Callable[..., Any], operation: Callable[..., Any], *, bound: bool) -> None:
    """Give a method the name, words and signature of its operation; `bound`: without the id, which its object has."""
    functools.update_wrapper(method, operation)
    signature = inspect.signature(operation)
    first, *others = signature.parameters.values()
    returned = re.sub(r"^(?:Steps|Items)\[(.*)\]$", r"\1", str(signature.return_annotation))
    parameters = [first, *others[1:]] if bound else [first, *others]
    method.__signature__ = signature.replace(parameters=parameters, return_annotation=returned)  # type: ignore[attr-defined]  # any function has it
