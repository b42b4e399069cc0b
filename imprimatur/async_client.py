"""The Python client for event loops: the same methods as `Client`, awaited.

async with AsyncClient("http://127.0.0.1:8000", api_key) as client:
dataset = await client.dataset("patients")
release = await dataset.order(epsilon=4)
async for now in release.progress():
print(now.stage.phase)
frame = await release.sample(10_000).to_polars()
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from imprimatur.asking import DEFAULT_RETRIES, Asking
from imprimatur.async_objects import AsyncDataset, AsyncRelease, AsyncSample, awaited, iterated
from imprimatur.async_transport import AsyncSession
from imprimatur.datasets import Formulas, Named, Weights, Where
from imprimatur.operations import Operations
from imprimatur.queries import QuerySession
from imprimatur.replies import SampleFormat
from imprimatur.running import service_of


class AsyncClient:
    """One service, one API key, in an event loop. Use as a context manager, or close().

    Where a dataset or a release is meant, its id, the first four or more digits of it, its name, or what the service
    answered will do.
    """

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        timeout: float = 60.0,
        *,
        retries: int = DEFAULT_RETRIES,
        on_retry: Callable[[str], None] | None = None,
    ) -> None:
        """Without `url`: the service of IMPRIMATUR_URL with the key of IMPRIMATUR_API_KEY, else the `imprimatur up` of this user.

        That is found by `imprimatur-data` in this folder or one above it, or by IMPRIMATUR_DATA. `on_retry` is told, once a
        request, that it is tried again.
        """
        url, api_key = service_of(url, api_key)
        asking = Asking(url, timeout, retries)
        asking.on_retry = on_retry
        operations = Operations[AsyncDataset, AsyncRelease](asking)
        session = self._session = AsyncSession(operations, asking.url, api_key, timeout)
        operations.new_dataset = lambda raw: AsyncDataset.of(raw, _session=session)
        operations.new_release = lambda raw: AsyncRelease.of(raw, _session=session)

    @property
    def url(self) -> str:
        """Where the service is."""
        return self._session.operations.asking.url

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections to the service; `async with` does so."""
        await self._session.close()

    def sample(
        self,
        release: Named,
        rows: int = 1_000,
        *,
        format: SampleFormat | None = None,  # noqa: A002 - the API's own word
        where: Where | None = None,
        weights: Weights | None = None,
        seed: int | None = None,
        formulas: Formulas | None = None,
    ) -> AsyncSample:
        """Synthetic rows, as a table, a file, or as they are drawn: `async for chunk in client.sample(...).chunks(): …`."""
        return AsyncSample(self._session, release, rows, format, where, weights, seed, formulas)

    def session(
        self, dataset: Named, *, epsilon: float | None = None
    ) -> QuerySession[Operations[AsyncDataset, AsyncRelease]]:
        """Questions about a dataset, one after another: `await client.session(dataset, epsilon=0.1).count(where="age>=65")`."""
        return QuerySession(self._session.run, self._session.operations, dataset, epsilon)

    create_dataset = awaited(Operations.create_dataset)
    replace_declaration = awaited(Operations.replace_declaration)
    datasets = awaited(Operations.datasets)
    dataset = awaited(Operations.dataset)
    erase_dataset = awaited(Operations.erase_dataset)
    expire_rows_at = awaited(Operations.expire_rows_at)
    budget = awaited(Operations.budget)
    ledger = awaited(Operations.ledger)

    methods = awaited(Operations.methods)
    quote = awaited(Operations.quote)
    create_release = awaited(Operations.create_release)
    release = awaited(Operations.release)
    releases = awaited(Operations.releases)
    iter_releases = iterated(Operations.iter_releases)
    cancel = awaited(Operations.cancel)
    wait = awaited(Operations.wait)
    progress = iterated(Operations.progress)

    save_sample = awaited(Operations.save_sample)
    complete = awaited(Operations.complete)
    save_generator = awaited(Operations.save_generator)
    preview = awaited(Operations.preview)
    certificate = awaited(Operations.certificate)
    answers = awaited(Operations.answers)
    query = awaited(Operations.query)
    ask = awaited(Operations.ask)
    report = awaited(Operations.report)
    owner_report = awaited(Operations.owner_report)
    save_report = awaited(Operations.save_report)
    publish = awaited(Operations.publish)

    tree_head = awaited(Operations.tree_head)
    consistency = awaited(Operations.consistency)
    inclusion = awaited(Operations.inclusion)
    signing_keys = awaited(Operations.signing_keys)

    create_key = awaited(Operations.create_key)
    replace_key = awaited(Operations.replace_key)
    keys = awaited(Operations.keys)
    revoke_key = awaited(Operations.revoke_key)
    audit_log = iterated(Operations.audit_log)
