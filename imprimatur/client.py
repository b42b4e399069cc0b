"""The Python client: one small method for every endpoint, typed answers and errors, retries where a retry cannot do harm.

    with Client("http://127.0.0.1:8000", api_key) as client:
        dataset = client.create_dataset("table.csv", schema, epsilon=5.0)
        release = dataset.order(epsilon=4).wait()
        release.save_sample("synthetic.parquet", 10_000)
        frame = release.sample(10_000).to_pandas()

Imports quickly: httpx and the standard library. What each method asks is in `operations.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from imprimatur.asking import DEFAULT_RETRIES, Asking
from imprimatur.datasets import Formulas, Named, Weights, Where
from imprimatur.objects import Dataset, Release, Sample, called, iterated
from imprimatur.operations import Operations
from imprimatur.queries import QuerySession
from imprimatur.replies import SampleFormat
from imprimatur.running import service_of
from imprimatur.transport import Session


class Client:
    """One service, one API key. Use as a context manager, or close().

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
        operations = Operations[Dataset, Release](asking)
        session = self._session = Session(operations, asking.url, api_key, timeout)
        operations.new_dataset = lambda raw: Dataset.of(raw, _session=session)
        operations.new_release = lambda raw: Release.of(raw, _session=session)

    @property
    def url(self) -> str:
        """Where the service is."""
        return self._session.operations.asking.url

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections to the service; `with` does so."""
        self._session.close()

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
    ) -> Sample:
        """Synthetic rows, as a table, a file, or as they are drawn: `with client.sample(...) as chunks: …`."""
        return Sample(self._session, release, rows, format, where, weights, seed, formulas)

    def session(self, dataset: Named, *, epsilon: float | None = None) -> QuerySession[Operations[Dataset, Release]]:
        """Questions about a dataset, one after another: `client.session(dataset, epsilon=0.1).count(where="age>=65")`."""
        return QuerySession(self._session.run, self._session.operations, dataset, epsilon)

    create_dataset = called(Operations.create_dataset)
    replace_declaration = called(Operations.replace_declaration)
    datasets = called(Operations.datasets)
    dataset = called(Operations.dataset)
    erase_dataset = called(Operations.erase_dataset)
    expire_rows_at = called(Operations.expire_rows_at)
    budget = called(Operations.budget)
    ledger = called(Operations.ledger)

    methods = called(Operations.methods)
    quote = called(Operations.quote)
    create_release = called(Operations.create_release)
    release = called(Operations.release)
    releases = called(Operations.releases)
    iter_releases = iterated(Operations.iter_releases)
    cancel = called(Operations.cancel)
    wait = called(Operations.wait)
    progress = iterated(Operations.progress)

    save_sample = called(Operations.save_sample)
    complete = called(Operations.complete)
    save_generator = called(Operations.save_generator)
    preview = called(Operations.preview)
    certificate = called(Operations.certificate)
    answers = called(Operations.answers)
    query = called(Operations.query)
    ask = called(Operations.ask)
    report = called(Operations.report)
    owner_report = called(Operations.owner_report)
    save_report = called(Operations.save_report)
    publish = called(Operations.publish)

    tree_head = called(Operations.tree_head)
    consistency = called(Operations.consistency)
    inclusion = called(Operations.inclusion)
    signing_keys = called(Operations.signing_keys)

    create_key = called(Operations.create_key)
    replace_key = called(Operations.replace_key)
    keys = called(Operations.keys)
    revoke_key = called(Operations.revoke_key)
    audit_log = iterated(Operations.audit_log)
