"""Datasets, releases and samples of a `Client`: what the service answered, and what can be asked of it next."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from imprimatur import replies
from imprimatur.datasets import Drawn, Formulas, Named, Weights, Where
from imprimatur.errors import NotPublished
from imprimatur.operations import Operations
from imprimatur.replies import Budget, SampleFormat
from imprimatur.steps import Items, Steps, signed
from imprimatur.tables import ARROW, PANDAS, POLARS
from imprimatur.transport import Session

P = ParamSpec("P")
T = TypeVar("T")


def called(
    operation: Callable[Concatenate[Operations[Dataset, Release], P], Steps[T]],
) -> Callable[Concatenate[Any, P], T]:
    """A method of a client: the operation, carried out."""

    def method(client: Any, /, *args: P.args, **named: P.kwargs) -> T:
        session: Session[Operations[Dataset, Release]] = client._session  # noqa: SLF001 - a method of it
        return session.run(operation(session.operations, *args, **named))

    signed(method, operation, bound=False)
    return method


def iterated(
    operation: Callable[Concatenate[Operations[Dataset, Release], P], Items[T]],
) -> Callable[Concatenate[Any, P], Generator[T]]:
    """A method of a client that gives item after item."""

    def method(client: Any, /, *args: P.args, **named: P.kwargs) -> Generator[T]:
        session: Session[Operations[Dataset, Release]] = client._session  # noqa: SLF001 - a method of it
        return session.iterate(operation(session.operations, *args, **named))

    signed(method, operation, bound=False)
    return method


def called_on(
    operation: Callable[Concatenate[Operations[Dataset, Release], str, P], Steps[T]],
) -> Callable[Concatenate[Any, P], T]:
    """A method of a dataset or a release: the operation on it."""

    def method(this: Any, /, *args: P.args, **named: P.kwargs) -> T:
        session: Session[Operations[Dataset, Release]] = this._session  # noqa: SLF001 - a method of it
        return session.run(operation(session.operations, this.id, *args, **named))

    signed(method, operation, bound=True)
    return method


def iterated_on(
    operation: Callable[Concatenate[Operations[Dataset, Release], str, P], Items[T]],
) -> Callable[Concatenate[Any, P], Generator[T]]:
    """A method of a dataset or a release that gives item after item."""

    def method(this: Any, /, *args: P.args, **named: P.kwargs) -> Generator[T]:
        session: Session[Operations[Dataset, Release]] = this._session  # noqa: SLF001 - a method of it
        return session.iterate(operation(session.operations, this.id, *args, **named))

    signed(method, operation, bound=True)
    return method


@dataclass(frozen=True, eq=False)
class Dataset(replies.Dataset):
    """A table and its budget, as the owner sees it; never its rows."""

    _session: Session[Operations[Dataset, Release]] = field(kw_only=True, repr=False)

    @property
    def budget(self) -> Budget:
        """What is spent and left, now."""
        return self._session.run(self._session.operations.budget(self.id))

    quote = called_on(Operations.quote)
    order = called_on(Operations.create_release)
    release = order
    releases = called_on(Operations.releases)
    ledger = called_on(Operations.ledger)
    replace_declaration = called_on(Operations.replace_declaration)
    expire_rows_at = called_on(Operations.expire_rows_at)
    erase = called_on(Operations.erase_dataset)


@dataclass(frozen=True, eq=False)
class Release(replies.Release):
    """One order on its way from reserved to published, failed or voided, as it was when the service was asked."""

    _session: Session[Operations[Dataset, Release]] = field(kw_only=True, repr=False)

    def wait(self, *, timeout: float | None = None, progress: bool | None = None) -> Release:
        """The release once it is published; raises `NotPublished` where it ends otherwise, TimeoutError after `timeout` seconds.

        `progress`: show a bar; None: in a terminal and in a notebook.
        """
        ended = self._session.run(self._session.operations.wait(self.id, timeout=timeout, progress=progress))
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
    ) -> Sample:
        """Synthetic rows: `release.sample(10_000).to_pandas()`. Nothing is drawn before it is asked for."""
        return Sample(self._session, self.id, rows, where=where, weights=weights, seed=seed)

    refreshed = called_on(Operations.release)
    progress = iterated_on(Operations.progress)
    save_sample = called_on(Operations.save_sample)
    complete = called_on(Operations.complete)
    save_generator = called_on(Operations.save_generator)
    answers = called_on(Operations.answers)
    report = called_on(Operations.report)
    owner_report = called_on(Operations.owner_report)
    save_report = called_on(Operations.save_report)
    preview = called_on(Operations.preview)
    cancel = called_on(Operations.cancel)


@dataclass(frozen=True)
class Sample:
    """Rows of a release, drawn anew at every call; with a seed they are the same each time."""

    _session: Session[Operations[Dataset, Release]] = field(repr=False)
    release: Named
    rows: int
    format: SampleFormat | None = None
    where: Where | None = None
    weights: Weights | None = None
    seed: int | None = None
    formulas: Formulas | None = None
    _opened: list[Generator[bytes]] = field(default_factory=list, repr=False, compare=False)

    def to_pandas(self) -> Any:
        """A DataFrame of pandas: texts as categories in their declared order, nullable types where something is missing."""
        return self._frame(PANDAS)

    def to_polars(self) -> Any:
        """A DataFrame of polars."""
        return self._frame(POLARS)

    def to_arrow(self) -> Any:
        """A Table of pyarrow."""
        return self._frame(ARROW)

    def save(self, path: str | Path, *, on_bytes: Callable[[int], None] | None = None) -> int:
        """Into a file of the format that its ending means; its size in bytes."""
        operation = self._session.operations.save_sample(
            self.release, path, self.rows, on_bytes=on_bytes, format=self.format, **self._drawn
        )
        return self._session.run(operation)

    def chunks(self) -> Generator[bytes]:
        """The bytes of a file, in pieces, as they are drawn."""
        operation = self._session.operations.sample_chunks(self.release, self.rows, format=self.format, **self._drawn)
        return self._session.iterate(operation)

    def __enter__(self) -> Iterator[bytes]:
        """The same; what the service refuses is raised here, and the connection ends with the block."""
        chunks = self.chunks()
        first = next(chunks, b"")
        self._opened.append(chunks)
        return chain([first], chunks)

    def __exit__(self, *_: object) -> None:
        self._opened.pop().close()

    @property
    def _drawn(self) -> Drawn:
        return {"where": self.where, "weights": self.weights, "seed": self.seed, "formulas": self.formulas}

    def _frame(self, library: Any) -> Any:
        operation = self._session.operations.sample_frame(self.release, library, self.rows, **self._drawn)
        return self._session.run(operation)
