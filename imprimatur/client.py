"""The Python client: one small method for every endpoint, typed errors, retries where a retry cannot do harm.

    with Client("http://127.0.0.1:8000", api_key) as client:
        dataset = client.create_dataset("table.csv", schema, epsilon=5.0)
        release = client.create_release(dataset["id"], {"epsilon": 4})
        client.wait(release["id"], on_progress=print)
        client.save_sample(release["id"], "synthetic.csv", rows=1000)

Imports quickly: httpx and the standard library.
"""

from __future__ import annotations

import json
import time
import uuid
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack, cast

import httpx

from imprimatur.errors import ApiError
from imprimatur.replies import (
    Accepted,
    Budget,
    Dataset,
    DatasetOptions,
    Declaration,
    Json,
    Ledger,
    PublishOptions,
    Quote,
    Release,
    SampleFormat,
)
from imprimatur.streams import save
from imprimatur.transport import DEFAULT_RETRIES, Transport, Upload, priority_header
from imprimatur.verify.members import NotAsCertified, check_bundle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

ENDED = ("published", "failed", "voided")
POLL_SECONDS = 1.0


class Client:
    """One service, one API key. Use as a context manager, or close()."""

    def __init__(
        self, url: str, api_key: str | None = None, timeout: float = 60.0, *, retries: int = DEFAULT_RETRIES
    ) -> None:
        self._transport = Transport(url, api_key, timeout, retries)

    @property
    def url(self) -> str:
        """Where the service is."""
        return self._transport.url

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections to the service; `with` does so."""
        self._transport.close()

    # -- datasets -------------------------------------------------------------------------------------------------

    def create_dataset(
        self,
        file: str | Path,
        schema: Mapping[str, Any],
        *,
        epsilon: float,
        on_progress: Callable[[str, float], None] | None = None,
        **options: Unpack[DatasetOptions],
    ) -> Dataset:
        """Upload a CSV or Parquet file, or images, with the declared schema and the budget, given once.

        privacy_unit: {"column": "customer", "max_rows_per_unit": 8}, or of images {"max_images_per_unit": 10}. With
        "missing": "own_unit", what has no unit id is a unit of its own; without, it is refused.
        At `rows_expire_at` (RFC 3339, with its time zone) the rows and their key are destroyed.
        `accept_draft`: take a schema that is marked as a draft. `accept_undeclared`: columns of which most rows may be
        outside what is declared.
        `distinct_from`: ids of datasets that look the same, but hold other people's rows; the audit log keeps it.
        `on_progress` hears a phase (uploading, reading, storing) and the share of the file that is through it.
        """
        _refuse_unknown(options, DatasetOptions.__optional_keys__)
        fields = _upload_fields(schema, epsilon, options)
        rows_expire_at = options.get("rows_expire_at")
        if rows_expire_at is not None:
            fields["rows_expire_at"] = rows_expire_at
        return self._declared(Upload("/v1/datasets", file, fields), on_progress)

    def replace_declaration(
        self,
        dataset_id: str,
        *,
        schema: Mapping[str, Any] | None = None,
        privacy_unit: Mapping[str, Any] | Literal["rows"] | None = None,
        name: str | None = None,
        file: str | Path | None = None,
        on_progress: Callable[[str, float], None] | None = None,
        **accepted: Unpack[Accepted],
    ) -> Dataset:
        """Replace a dataset's schema, privacy unit or name before its first order is charged; None stays as it is.

        `privacy_unit="rows"`: each row is a unit. The file of the upload is needed again where the service says
        `upload_needed`. Progress is heard as by `create_dataset`.
        """
        _refuse_unknown(accepted, Accepted.__optional_keys__)
        fields = _accepted(accepted) | ({} if name is None else {"name": name})
        if schema is not None:
            fields["schema"] = json.dumps(dict(schema))
        if privacy_unit is not None:
            fields["privacy_unit"] = "null" if privacy_unit == "rows" else json.dumps(dict(privacy_unit))
        upload = Upload(f"/v1/datasets/{dataset_id}/declaration", file, fields, method="PUT")
        return self._declared(upload, on_progress)

    def _declared(self, upload: Upload, on_progress: Callable[[str, float], None] | None) -> Dataset:
        if on_progress is None:
            return cast("Dataset", self._transport.upload(upload).json())
        return cast("Dataset", self._transport.upload_heard(upload, on_progress))

    def datasets(self) -> list[Dataset]:
        """All datasets of this tenant, newest first."""
        return cast("list[Dataset]", list(self._transport.pages("/v1/datasets")))

    def dataset(self, dataset_id: str) -> Dataset:
        """One dataset: its schema, its privacy unit, its whole budget, and whether its rows are still there."""
        return cast("Dataset", self._transport.get(f"/v1/datasets/{dataset_id}"))

    def erase_dataset(self, dataset_id: str) -> None:
        """Erase the rows; the ledger, and releases already published, stay."""
        self._transport.send("DELETE", f"/v1/datasets/{dataset_id}", repeat=True)

    def expire_rows_at(self, dataset_id: str, rows_expire_at: str) -> Dataset:
        """Give the rows a deletion date, or an earlier one."""
        body = {"rows_expire_at": rows_expire_at}
        return cast(
            "Dataset", self._transport.send("PATCH", f"/v1/datasets/{dataset_id}", repeat=True, json=body).json()
        )

    def budget(self, dataset_id: str) -> Budget:
        """What is spent and left in both accounts, and the largest ε that one more release may have."""
        return cast("Budget", self._transport.get(f"/v1/datasets/{dataset_id}/budget"))

    def ledger(self, dataset_id: str) -> Ledger:
        """Every entry of a dataset's ledger, in order, and whether the hash chain and the balance are whole."""
        return cast("Ledger", self._transport.whole(f"/v1/datasets/{dataset_id}/ledger"))

    # -- the Merkle log of all ledgers; all but proofs without a key ----------------------------------------------

    def tree_head(self) -> Json:
        """The newest signed head of the log."""
        return self._transport.get("/v1/ledger/head")

    def consistency(self, first: int, second: int) -> Json:
        """Proof that the log of `second` entries begins with that of `first`."""
        return self._transport.get("/v1/ledger/consistency", {"first": first, "second": second})

    def inclusion(self, dataset_id: str, tree_size: int, seq: int | None = None) -> Json:
        """Proofs that entries of a dataset are in the log of this size."""
        query = {"dataset_id": dataset_id, "tree_size": tree_size} | ({} if seq is None else {"seq": seq})
        return self._transport.whole("/v1/ledger/proof", query)

    def signing_keys(self) -> list[Json]:
        """The public keys of certificates and heads, oldest first."""
        return cast("list[Json]", self._transport.get("/v1/ledger/keys")["items"])

    # -- releases -------------------------------------------------------------------------------------------------

    def quote(self, dataset_id: str, order: Mapping[str, Any]) -> Quote:
        """The price of an order and whether it fits; reserves nothing."""
        reply = self._transport.send("POST", f"/v1/datasets/{dataset_id}/quotes", repeat=True, json=dict(order))
        return cast("Quote", reply.json())

    def create_release(
        self,
        dataset_id: str,
        order: Mapping[str, Any],
        *,
        idempotency_key: str | None = None,
        priority: int | None = None,
    ) -> Release:
        """Order a release. Sent again after a lost connection it is still the same one order.

        `priority`: from 0, most urgent, to 7 (3); which of this key's waiting releases goes first.
        """
        headers = {"Idempotency-Key": idempotency_key or str(uuid.uuid4()), **priority_header(priority)}
        path = f"/v1/datasets/{dataset_id}/releases"
        return cast(
            "Release", self._transport.send("POST", path, repeat=True, json=dict(order), headers=headers).json()
        )

    def release(self, release_id: str) -> Release:
        """How far one release is: its state, order, price and progress, and why it failed if it did."""
        return cast("Release", self._transport.get(f"/v1/releases/{release_id}"))

    def releases(self, dataset_id: str | None = None) -> list[Release]:
        """All releases of a dataset, or of the tenant, newest first."""
        return list(self.iter_releases(dataset_id))

    def iter_releases(self, dataset_id: str | None = None) -> Iterator[Release]:
        """The same, fetched page by page as they are asked for."""
        query = {} if dataset_id is None else {"dataset_id": dataset_id}
        for release in self._transport.pages("/v1/releases", query):
            if release["state"] == "published" and release["certificate"] is None:  # too large for a list
                release["certificate"] = self.certificate(release["id"])
            yield cast("Release", release)

    def cancel(self, release_id: str) -> Release:
        """Cancel; free of charge if no private step has run yet."""
        return cast("Release", self._transport.send("POST", f"/v1/releases/{release_id}/cancel", repeat=True).json())

    def wait(
        self,
        release_id: str,
        *,
        on_progress: Callable[[Release], None] | None = None,
        timeout: float | None = None,
    ) -> Release:
        """Wait until the release has ended, one way or another. Raises TimeoutError after `timeout` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        report = on_progress or (lambda _: None)
        while True:
            release = self.release(release_id)
            report(release)
            if _ended(release):
                return release
            if deadline is not None and time.monotonic() > deadline:
                raise TimeoutError(f"release {release_id} is still {release['state']}")
            try:
                for event in self._events(release_id, deadline):
                    report(event)
            except (httpx.TransportError, ApiError, ValueError):
                # No events to be had, for example behind a proxy that does not let them through: ask now and then.
                time.sleep(POLL_SECONDS)

    def _events(self, release_id: str, deadline: float | None) -> Iterator[Release]:
        with closing(self._transport.events(f"/v1/releases/{release_id}/events")) as documents:
            for document in documents:
                release = cast("Release", document)
                yield release
                if _ended(release) or (deadline is not None and time.monotonic() > deadline):
                    return

    # -- what a release leaves ------------------------------------------------------------------------------------

    @contextmanager
    def sample(
        self,
        release_id: str,
        rows: int,
        *,
        format: SampleFormat | None = None,  # noqa: A002 - the API's own word
        where: Mapping[str, Any] | None = None,
        seed: int | None = None,
    ) -> Iterator[Iterator[bytes]]:
        """Synthetic rows as they are drawn: `with client.sample(...) as chunks: for chunk in chunks: ...`."""
        query: dict[str, Any] = {"rows": rows} | ({} if format is None else {"format": format})
        if where:
            ((column, value),) = where.items()  # the API knows one condition
            query["where"] = f"{column}:{value}"
        if seed is not None:
            query["seed"] = seed
        with self._transport.download(f"/v1/releases/{release_id}/sample", query) as chunks:
            yield chunks

    def save_sample(
        self,
        release_id: str,
        path: str | Path,
        rows: int,
        *,
        format: SampleFormat | None = None,  # noqa: A002 - the API's own word
        where: Mapping[str, Any] | None = None,
        seed: int | None = None,
        on_bytes: Callable[[int], None] | None = None,
    ) -> int:
        """Synthetic rows into a file, which appears only when it is whole; its size in bytes."""
        with self.sample(release_id, rows, format=format, where=where, seed=seed) as chunks:
            return save(chunks, Path(path), on_bytes)

    def save_generator(self, release_id: str, path: str | Path) -> int:
        """The trained generator as a ZIP that works without this project; its size in bytes.

        Raises `NotAsCertified`, and leaves no file, unless each member is as the release's certificate says. Who signed
        that, `imprimatur verify` tells.
        """
        certificate = self.certificate(release_id)
        if str(certificate.get("release_id")) != str(uuid.UUID(release_id)):
            raise NotAsCertified("the service gave the certificate of another release")
        with self._transport.download(f"/v1/releases/{release_id}/generator", {}) as chunks:
            return save(chunks, Path(path), None, lambda file: check_bundle(file, certificate))

    def preview(self, release_id: str) -> bytes:
        """A PNG of what a generator of images makes so far; 409 `not_ready` where there is none."""
        return self._transport.send("GET", f"/v1/releases/{release_id}/preview", repeat=True).content

    def certificate(self, release_id: str) -> Json:
        """What was promised and what was spent, signed."""
        return self._transport.get(f"/v1/releases/{release_id}/certificate")

    def answers(self, release_id: str) -> Json:
        """The numbers of a release that holds answers instead of a generator."""
        return self._transport.get(f"/v1/releases/{release_id}/answers")

    def methods(self) -> list[Json]:
        """Every method that this service offers: what it does, what it takes, and the schema of its knobs."""
        return cast("list[Json]", self._transport.get("/v1/methods")["items"])

    def publish(
        self,
        file: str | Path,
        schema: Mapping[str, Any],
        order: Mapping[str, Any],
        *,
        epsilon: float,
        path: str | Path,
        **options: Unpack[PublishOptions],
    ) -> tuple[str, Release | None]:
        """Everything in one call: the release's id, and None when `path` now holds the sample.

        Draws `rows` (1,000) in a `format`; else the service's own. Declares as `create_dataset` does.
        A release that is not done in `wait_seconds` (300) comes back instead; wait() for it and sample it.
        """
        _refuse_unknown(options, PublishOptions.__optional_keys__)
        rows, format_ = options.get("rows", 1_000), options.get("format")
        wait_seconds = options.get("wait_seconds", 300)
        priority = options.get("priority")
        fields = _upload_fields(schema, epsilon, options)
        fields |= {"order": json.dumps(dict(order)), "rows": str(rows)}
        fields |= {} if format_ is None else {"format": format_}
        headers = {"Prefer": f"wait={wait_seconds}", **priority_header(priority)}
        reply = self._transport.upload(Upload("/v1/publish", file, fields, headers, extra_seconds=wait_seconds))
        if reply.status_code == httpx.codes.ACCEPTED:
            release = cast("Release", reply.json())
            return release["id"], release
        save(iter([reply.content]), Path(path), None)
        return str(reply.headers["X-Release-Id"]), None

    # -- keys -----------------------------------------------------------------------------------------------------

    def create_key(
        self, name: str, scope: Literal["owner", "analyst", "reader"], *, expires_at: str | None = None
    ) -> Json:
        """A new key of this tenant: `id` and `key`, the latter shown only now."""
        body = {"name": name, "scope": scope, "expires_at": expires_at}
        return cast("Json", self._transport.send("POST", "/v1/keys", repeat=False, json=body).json())

    def replace_key(self, key_id: str, *, overlap_seconds: int = 86_400, expires_at: str | None = None) -> Json:
        """A new key of the same name and scope; the old one works on for `overlap_seconds`."""
        body = {"overlap_seconds": overlap_seconds, "expires_at": expires_at}
        return cast(
            "Json", self._transport.send("POST", f"/v1/keys/{key_id}/replacement", repeat=False, json=body).json()
        )

    def keys(self) -> list[Json]:
        """All keys of this tenant, newest first, without their secrets."""
        return list(self._transport.pages("/v1/keys"))

    def revoke_key(self, key_id: str) -> None:
        """Revoke a key at once; its id is in `keys()`."""
        self._transport.send("DELETE", f"/v1/keys/{key_id}", repeat=True)

    # -- audit ----------------------------------------------------------------------------------------------------

    def audit_log(self, limit: int | None = None) -> Iterator[Json]:
        """The lines of this tenant's audit log, newest first, fetched page by page."""
        pages = self._transport.pages("/v1/audit", most=limit)
        return pages if limit is None else islice(pages, limit)


def _upload_fields(schema: Mapping[str, Any], epsilon: float, declared: Declaration) -> dict[str, str]:
    """The text fields of an upload."""
    delta = declared.get("delta")
    budget = {"epsilon": epsilon} if delta is None else {"epsilon": epsilon, "delta": delta}
    fields = {"schema": json.dumps(dict(schema)), "budget": json.dumps(budget)}
    name = declared.get("name")
    if name is not None:
        fields["name"] = name
    privacy_unit = declared.get("privacy_unit")
    if privacy_unit is not None:
        fields["privacy_unit"] = json.dumps(dict(privacy_unit))
    distinct_from = declared.get("distinct_from")
    if distinct_from:
        fields["distinct_from"] = json.dumps(list(distinct_from))
    return fields | _accepted(declared)


def _accepted(said: Mapping[str, Any]) -> dict[str, str]:
    """What the owner takes on their word: a draft, columns that hardly fit."""
    fields = {"accept_draft": "true"} if said.get("accept_draft") else {}
    if said.get("accept_undeclared"):
        fields["accept_undeclared"] = json.dumps(list(said["accept_undeclared"]))
    return fields


def _refuse_unknown(options: Mapping[str, Any], known: frozenset[str]) -> None:
    """As Python refuses keywords of a function that lists them."""
    unknown = sorted(options.keys() - known)
    if unknown:
        raise TypeError(f"unexpected keyword argument {unknown[0]!r}; known are {', '.join(sorted(known))}")


def _ended(release: Release) -> bool:
    return release["state"] in ENDED
