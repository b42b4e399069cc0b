"""Datasets, releases and samples of an `AsyncClient`; see `objects.py`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from imprimatur import replies
from imprimatur.async_transport import AsyncSession
from imprimatur.datasets import Drawn, Formulas, Named, Weights, Where
from imprimatur.errors import NotPublished
from imprimatur.operations import Operations
from imprimatur.replies import Budget, SampleFormat
from imprimatur.steps import Items, Steps, signed
from imprimatur.tables import ARROW, PANDAS, POLARS, Library

P = ParamSpec("P")
T = TypeVar("T")


def awaited(
    operation: Callable[Concatenate[Operations[AsyncDataset, AsyncRelease], P], Steps[T]],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """A method of a client: the operation, carried out."""

    async def method(client: Any, /, *args: P.args, **named: P.kwargs) -> T:
        session: AsyncSession[Operations[AsyncDataset, AsyncRelease]] = client._session  # noqa: SLF001 - a method of it
        return await session.run(operation(session.operations, *args, **named))

    signed(method, operation, bound=False)
    return method


def iterated(
    operation: Callable[Concatenate[Operations[AsyncDataset, AsyncRelease], P], Items[T]],
) -> Callable[Concatenate[Any, P], AsyncGenerator[T]]:
    """A method of a client that gives item after item."""

    def method(client: Any, /, *args: P.args, **named: P.kwargs) -> AsyncGenerator[T]:
        session: AsyncSession[Operations[AsyncDataset, AsyncRelease]] = client._session  # noqa: SLF001 - a method of it
        return session.iterate(operation(session.operations, *args, **named))

    signed(method, operation, bound=False)
    return method


def awaited_on(
    operation: Callable[Concatenate[Operations[AsyncDataset, AsyncRelease], str, P], Steps[T]],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """A method of a dataset or a release: the operation on it."""

    async def method(this: Any, /, *args: P.args, **named: P.kwargs) -> T:
        session: AsyncSession[Operations[AsyncDataset, AsyncRelease]] = this._session  # noqa: SLF001 - a method of it
        return await session.run(operation(session.operations, this.id, *args, **named))

    signed(method, operation, bound=True)
    return method


def iterated_on(
    operation: Callable[Concatenate[Operations[AsyncDataset, AsyncRelease], str, P], Items[T]],
) -> Callable[Concatenate[Any, P], AsyncGenerator[T]]:
    """A method of a dataset or a release that gives item after item."""

    def method(this: Any, /, *args: P.args, **named: P.kwargs) -> AsyncGenerator[T]:
        session: AsyncSession[Operations[AsyncDataset, AsyncRelease]] = this._session  # noqa: SLF001 - a method of it
        return session.iterate(operation(session.operations, this.id, *args, **named))

    signed(method, operation, bound=True)
    return method


@dataclass(frozen=True, eq=False)
class AsyncDataset(replies.Dataset):
    """A table and its budget, as the owner sees it; never its rows."""

    _session: AsyncSession[Operations[AsyncDataset, AsyncRelease]] = field(kw_only=True, repr=False)

    @property
    def budget(self) -> Coroutine[Any, Any, Budget]:
        """What is spent and left, now: `(await dataset.budget).remaining_epsilon`."""
        return self._session.run(self._session.operations.budget(self.id))

    quote = awaited_on(Operations.quote)
    order = awaited_on(Operations.create_release)
    release = order
    releases = awaited_on(Operations.releases)
    ledger = awaited_on(Operations.ledger)
    replace_declaration = awaited_on(Operations.replace_declaration)
    expire_rows_at = awaited_on(Operations.expire_rows_at)
    erase = awaited_on(Operations.erase_dataset)


@dataclass(frozen=True, eq=False)
class AsyncRelease(replies.Release):
    """One order on its way from reserved to published, failed or voided, as it was when the service was asked."""

    _session: AsyncSession[Operations[AsyncDataset, AsyncRelease]] = field(kw_only=True, repr=False)

    async def wait(self, *, timeout: float | None = None, progress: bool | None = None) -> AsyncRelease:  # noqa: ASYNC109 - as `Release.wait`
        """The release once it is published; raises `NotPublished` where it ends otherwise, TimeoutError after `timeout` seconds.

        `progress`: show a bar; None: in a terminal and in a notebook.
        """
        ended = await self._session.run(self._session.operations.wait(self.id, timeout=timeout, progress=progress))
        if ended.state != "published":
            raise NotPublished(ended)
        return ended

    def sample(
        self,
        rows: int = 1_000,
        *,
        where: Where | None = None,
        weights: Weights | None = None,
        seed: int | None = None,
    ) -> AsyncSample:
        """Synthetic rows: `await release.sample(10_000).to_pandas()`. Nothing is drawn before it is asked for."""
        return AsyncSample(self._session, self.id, rows, where=where, weights=weights, seed=seed)

    refreshed = awaited_on(Operations.release)
    progress = iterated_on(Operations.progress)
    save_sample = awaited_on(Operations.save_sample)
    complete = awaited_on(Operations.complete)
    save_generator = awaited_on(Operations.save_generator)
    answers = awaited_on(Operations.answers)
    report = awaited_on(Operations.report)
    owner_report = awaited_on(Operations.owner_report)
    save_report = awaited_on(Operations.save_report)
    preview = awaited_on(Operations.preview)
    cancel = awaited_on(Operations.cancel)


@dataclass(frozen=True)
class AsyncSample:
    """Rows of a release, drawn anew at every call; with a seed they are the same each time."""

    _session: AsyncSession[Operations[AsyncDataset, AsyncRelease]] = field(repr=False)
    release: Named
    rows: int
    format: SampleFormat | None = None
    where: Where | None = None
    weights: Weights | None = None
    seed: int | None = None
    formulas: Formulas | None = None

    async def to_pandas(self) -> Any:
        """A DataFrame of pandas: texts as categories in their declared order, nullable types where something is missing."""
        return await self._frame(PANDAS)

    async def to_polars(self) -> Any:
        """A DataFrame of polars."""
        return await self._frame(POLARS)

    async def to_arrow(self) -> Any:
        """A Table of pyarrow."""
        return await self._frame(ARROW)

    async def save(self, path: str | Path, *, on_bytes: Callable[[int], None] | None = None) -> int:
        """Into a file of the format that its ending means; its size in bytes."""
        operation = self._session.operations.save_sample(
            self.release, path, self.rows, on_bytes=on_bytes, format=self.format, **self._drawn
        )
        return await self._session.run(operation)

    def chunks(self) -> AsyncGenerator[bytes]:
        """The bytes of a file, in pieces, as they are drawn."""
        operation = self._session.operations.sample_chunks(self.release, self.rows, format=self.format, **self._drawn)
        return self._session.iterate(operation)

    @property
    def _drawn(self) -> Drawn:
        return {"where": self.where, "weights": self.weights, "seed": self.seed, "formulas": self.formulas}

    async def _frame(self, library: Library) -> Any:
        operation = self._session.operations.sample_frame(self.release, library, self.rows, **self._drawn)
        return await self._session.run(operation)
