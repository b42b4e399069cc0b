"""The Python client for event loops: the same methods as `Client`, awaited.

async with AsyncClient("http://127.0.0.1:8000", api_key) as client:
dataset = await client.dataset("patients")
release = await dataset.order(epsilon=4)
async for now in release.progress():
print(now.stage.phase)
frame = await release.sample(10_000).to_polars()
"""

from __future__ import annotations

from typing import Self

from imprimatur.asking import DEFAULT_RETRIES, Asking
from imprimatur.async_objects import AsyncDataset, AsyncRelease, AsyncSample, awaited, iterated
from imprimatur.async_transport import AsyncSession
from imprimatur.datasets import Formulas, Named, Weights, Where
from imprimatur.operations import Operations
from imprimatur.replies import SampleFormat


class AsyncClient:
    """One service, one API key, in an event loop. Use as a context manager, or close().

    Where a dataset or a release is meant, its id, the first four or more digits of it, its name, or what the service
    answered will do.
    """

    def __init__(
        self, url: str, api_key: str | None = None, timeout: float = 60.0, *, retries: int = DEFAULT_RETRIES
    ) -> None:
        asking = Asking(url, timeout, retries)
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
