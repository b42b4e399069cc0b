"""The Python client: one small method for every endpoint, typed errors, retries where a retry cannot do harm.

    with Client("http://127.0.0.1:8000", api_key) as client:
        dataset = client.create_dataset("table.csv", schema, epsilon=5.0)
        release = client.create_release(dataset["id"], {"epsilon": 4})
        client.wait(release["id"], on_progress=print)
        client.save_sample(release["id"], "synthetic.csv", rows=1000)

Imports quickly: httpx and the standard library, nothing else of the service.
"""

from __future__ import annotations

import json
import os
import random
import time
import uuid
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, NotRequired, Self, TypedDict, cast

import httpx

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

SampleFormat = Literal["csv", "parquet", "jsonl", "arrow", "npz", "zip", "png"]
Json = dict[str, Any]

ENDED = ("published", "failed", "voided")
DEFAULT_RETRIES = 5
FIRST_PAUSE_SECONDS = 0.25
LONGEST_PAUSE_SECONDS = 10.0
POLL_SECONDS = 1.0
EVENT_SILENCE_SECONDS = 60.0
"""A stream of events that says nothing for so long is opened again."""


class Dataset(TypedDict):
    """A table and its budget, as the owner sees it; never its rows."""

    id: str
    name: str
    units: int
    epsilon: float
    delta: float
    schema: Json
    privacy_unit: Json | None
    state: str
    created_at: str
    rows_expire_at: str | None
    warnings: NotRequired[list[str]]  # an older service sends none
    declared_at: str
    notices: NotRequired[list[str]]


class Account(TypedDict):
    """Nano-shares of one account; the whole budget is 1,000,000,000."""

    posted: int
    pending: int
    remaining: int
    order: NotRequired[float]


class Budget(TypedDict):
    """What is spent and what is left."""

    epsilon: float
    delta: float
    accounts: dict[str, Account]
    remaining_share: float
    epsilon_spent: float
    largest_next_epsilon: float


class Entry(TypedDict):
    """One line of a dataset's ledger."""

    seq: int
    kind: str
    release_id: str
    simple: int
    renyi: int
    created_at: str
    hash: str
    previous_hash: str


class LedgerBalance(TypedDict):
    """The balance at the moment of the entries."""

    simple_pending: int
    simple_posted: int
    renyi_pending: int
    renyi_posted: int
    entry_count: int
    head_hash: str


class Ledger(TypedDict):
    """All lines, the balance they belong to, and whether the service itself finds them whole."""

    dataset_id: str
    items: list[Entry]
    balance: LedgerBalance
    verified: bool
    faults: list[str]


class Price(TypedDict):
    """What an order costs."""

    epsilon: float
    delta: float
    shares: dict[str, int]


class Quote(TypedDict):
    """An order with every knob resolved, its price, and whether it fits now."""

    order: Json
    price: Price
    steps: int
    first_noise_multiplier: float | None
    last_noise_multiplier: float | None
    fits: bool
    remaining: dict[str, int]
    warnings: NotRequired[list[str]]


class Release(TypedDict):
    """One order on its way from reserved to published, failed or voided."""

    id: str
    dataset_id: str
    state: str
    order: Json
    price: Price
    progress: Json
    certificate: Json | None
    failure: str | None
    created_at: str
    links: dict[str, str]


class ApiError(Exception):
    """What the service answered instead: HTTP status, stable code, a sentence, and values to act on.

    Status 0, code `unreachable`: no service answered at all.
    """

    def __init__(self, status: int, code: str, detail: str, values: Mapping[str, Any] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.values = dict(values or {})


class Client:
    """One service, one API key. Use as a context manager, or close()."""

    def __init__(
        self, url: str, api_key: str | None = None, timeout: float = 60.0, *, retries: int = DEFAULT_RETRIES
    ) -> None:
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self.url = url.rstrip("/")
        self._retries = retries
        self._http = httpx.Client(
            base_url=self.url, headers=headers, timeout=timeout, trust_env=not _is_local(self.url)
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    # -- datasets -------------------------------------------------------------------------------------------------

    def create_dataset(
        self,
        file: str | Path,
        schema: Mapping[str, Any],
        *,
        epsilon: float,
        delta: float | None = None,
        name: str | None = None,
        privacy_unit: Mapping[str, Any] | None = None,
        rows_expire_at: str | None = None,
        distinct_from: Sequence[str] = (),
        on_progress: Callable[[str, float], None] | None = None,
    ) -> Dataset:
        """Upload a CSV or Parquet file, or images, with the declared schema and the budget, given once.

        privacy_unit: {"column": "customer", "max_rows_per_unit": 8}, or of images {"max_images_per_unit": 10}. With
        "missing": "own_unit", what has no unit id is a unit of its own; without, it is refused.
        At `rows_expire_at` (RFC 3339, with its time zone) the rows and their key are destroyed.
        `distinct_from`: ids of datasets that look the same, but hold other people's rows; the audit log keeps it.
        `on_progress` hears a phase (uploading, reading, storing) and the share of the file that is through it.
        """
        fields = _upload_fields(schema, epsilon, delta, name, privacy_unit, distinct_from)
        if rows_expire_at is not None:
            fields["rows_expire_at"] = rows_expire_at
        if on_progress is None:
            return cast("Dataset", self._upload("/v1/datasets", file, fields, {}).json())
        headers = {"Accept": "text/event-stream"}
        with closing(self._upload("/v1/datasets", file, fields, headers, on_progress=on_progress)) as reply:
            return self._heard(reply, on_progress)

    def replace_declaration(
        self,
        dataset_id: str,
        *,
        schema: Mapping[str, Any] | None = None,
        privacy_unit: Mapping[str, Any] | Literal["rows"] | None = None,
        name: str | None = None,
        file: str | Path | None = None,
        on_progress: Callable[[str, float], None] | None = None,
    ) -> Dataset:
        """Replace a dataset's schema, privacy unit or name before its first order is charged; None stays as it is.

        `privacy_unit="rows"`: each row is a unit. The file of the upload is needed again where the service says
        `upload_needed`. Progress is heard as by `create_dataset`.
        """
        fields = {} if name is None else {"name": name}
        if schema is not None:
            fields["schema"] = json.dumps(dict(schema))
        if privacy_unit is not None:
            fields["privacy_unit"] = "null" if privacy_unit == "rows" else json.dumps(dict(privacy_unit))
        path = f"/v1/datasets/{dataset_id}/declaration"
        if on_progress is None:
            return cast("Dataset", self._upload(path, file, fields, {}, method="PUT").json())
        headers = {"Accept": "text/event-stream"}
        with closing(self._upload(path, file, fields, headers, on_progress=on_progress, method="PUT")) as reply:
            return self._heard(reply, on_progress)

    def _heard(self, reply: httpx.Response, on_progress: Callable[[str, float], None]) -> Dataset:
        """The dataset at the end of an upload's events."""
        try:
            for event, document in server_sent_events(reply.iter_lines()):
                if event == "progress":
                    on_progress(document["phase"], document["share"])
                elif event == "problem":
                    raise _problem(int(document["status"]), document)
                else:
                    return cast("Dataset", document)
        except httpx.TransportError as error:
            raise self._unreachable(error) from error
        raise ApiError(0, "unreachable", f"{self.url} hung up before it said what became of the upload")

    def datasets(self) -> list[Dataset]:
        """All datasets of this tenant."""
        return cast("list[Dataset]", self._get("/v1/datasets")["items"])

    def dataset(self, dataset_id: str) -> Dataset:
        return cast("Dataset", self._get(f"/v1/datasets/{dataset_id}"))

    def erase_dataset(self, dataset_id: str) -> None:
        """Erase the rows; the ledger, and releases already published, stay."""
        self._send("DELETE", f"/v1/datasets/{dataset_id}", repeat=True)

    def expire_rows_at(self, dataset_id: str, rows_expire_at: str) -> Dataset:
        """Give the rows a deletion date, or an earlier one."""
        body = {"rows_expire_at": rows_expire_at}
        return cast("Dataset", self._send("PATCH", f"/v1/datasets/{dataset_id}", repeat=True, json=body).json())

    def budget(self, dataset_id: str) -> Budget:
        return cast("Budget", self._get(f"/v1/datasets/{dataset_id}/budget"))

    def ledger(self, dataset_id: str) -> Ledger:
        return cast("Ledger", self._get(f"/v1/datasets/{dataset_id}/ledger"))

    # -- the Merkle log of all ledgers; all but proofs without a key ----------------------------------------------

    def tree_head(self) -> Json:
        """The newest signed head of the log."""
        return self._get("/v1/ledger/head")

    def consistency(self, first: int, second: int) -> Json:
        """Proof that the log of `second` entries begins with that of `first`."""
        return self._get("/v1/ledger/consistency", {"first": first, "second": second})

    def inclusion(self, dataset_id: str, tree_size: int, seq: int | None = None) -> Json:
        """Proofs that entries of a dataset are in the log of this size."""
        query = {"dataset_id": dataset_id, "tree_size": tree_size} | ({} if seq is None else {"seq": seq})
        return self._get("/v1/ledger/proof", query)

    def signing_keys(self) -> list[Json]:
        """The public keys of certificates and heads, oldest first."""
        return cast("list[Json]", self._get("/v1/ledger/keys")["items"])

    # -- releases -------------------------------------------------------------------------------------------------

    def quote(self, dataset_id: str, order: Mapping[str, Any]) -> Quote:
        """The price of an order and whether it fits; reserves nothing."""
        reply = self._send("POST", f"/v1/datasets/{dataset_id}/quotes", repeat=True, json=dict(order))
        return cast("Quote", reply.json())

    def create_release(
        self, dataset_id: str, order: Mapping[str, Any], *, idempotency_key: str | None = None
    ) -> Release:
        """Order a release. Sent again after a lost connection it is still the same one order."""
        headers = {"Idempotency-Key": idempotency_key or str(uuid.uuid4())}
        path = f"/v1/datasets/{dataset_id}/releases"
        return cast("Release", self._send("POST", path, repeat=True, json=dict(order), headers=headers).json())

    def release(self, release_id: str) -> Release:
        return cast("Release", self._get(f"/v1/releases/{release_id}"))

    def releases(self, dataset_id: str | None = None) -> list[Release]:
        """All releases of a dataset, or of the tenant, newest first."""
        query = {} if dataset_id is None else {"dataset_id": dataset_id}
        return cast("list[Release]", self._get("/v1/releases", query)["items"])

    def cancel(self, release_id: str) -> Release:
        """Cancel; free of charge if no private step has run yet."""
        return cast("Release", self._send("POST", f"/v1/releases/{release_id}/cancel", repeat=True).json())

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
        silence = httpx.Timeout(self._http.timeout.connect, read=EVENT_SILENCE_SECONDS)
        headers = {"Accept": "text/event-stream"}
        with self._http.stream("GET", f"/v1/releases/{release_id}/events", headers=headers, timeout=silence) as reply:
            _raise_for_problem(reply)
            for document in server_sent_documents(reply.iter_lines()):
                yield cast("Release", document)
                if _ended(cast("Release", document)) or (deadline is not None and time.monotonic() > deadline):
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
        with self._download(f"/v1/releases/{release_id}/sample", query) as chunks:
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
            return _save(chunks, Path(path), on_bytes)

    def save_generator(self, release_id: str, path: str | Path) -> int:
        """The trained generator as a ZIP that works without this project; its size in bytes."""
        with self._download(f"/v1/releases/{release_id}/generator", {}) as chunks:
            return _save(chunks, Path(path), None)

    def preview(self, release_id: str) -> bytes:
        """A PNG of what a generator of images makes so far; 409 `not_ready` where there is none."""
        return self._send("GET", f"/v1/releases/{release_id}/preview", repeat=True).content

    def certificate(self, release_id: str) -> Json:
        """What was promised and what was spent, signed."""
        return self._get(f"/v1/releases/{release_id}/certificate")

    def publish(
        self,
        file: str | Path,
        schema: Mapping[str, Any],
        order: Mapping[str, Any],
        *,
        epsilon: float,
        path: str | Path,
        rows: int = 1_000,
        delta: float | None = None,
        name: str | None = None,
        privacy_unit: Mapping[str, Any] | None = None,
        distinct_from: Sequence[str] = (),
        format: SampleFormat | None = None,  # noqa: A002 - the API's own word
        wait_seconds: int = 300,
    ) -> tuple[str, Release | None]:
        """Everything in one call: the release's id, and None when `path` now holds the sample.

        A release that is not done in `wait_seconds` comes back instead; wait() for it and sample it.
        """
        fields = _upload_fields(schema, epsilon, delta, name, privacy_unit, distinct_from)
        fields |= {"order": json.dumps(dict(order)), "rows": str(rows)} | ({} if format is None else {"format": format})
        headers = {"Prefer": f"wait={wait_seconds}"}
        reply = self._upload("/v1/publish", file, fields, headers, extra_seconds=wait_seconds)
        if reply.status_code == httpx.codes.ACCEPTED:
            release = cast("Release", reply.json())
            return release["id"], release
        _save(iter([reply.content]), Path(path), None)
        return str(reply.headers["X-Release-Id"]), None

    # -- keys -----------------------------------------------------------------------------------------------------

    def create_key(
        self, name: str, scope: Literal["owner", "analyst", "reader"], *, expires_at: str | None = None
    ) -> Json:
        """A new key of this tenant: `id` and `key`, the latter shown only now."""
        body = {"name": name, "scope": scope, "expires_at": expires_at}
        return cast("Json", self._send("POST", "/v1/keys", repeat=False, json=body).json())

    def replace_key(self, key_id: str, *, overlap_seconds: int = 86_400, expires_at: str | None = None) -> Json:
        """A new key of the same name and scope; the old one works on for `overlap_seconds`."""
        body = {"overlap_seconds": overlap_seconds, "expires_at": expires_at}
        return cast("Json", self._send("POST", f"/v1/keys/{key_id}/replacement", repeat=False, json=body).json())

    def keys(self) -> list[Json]:
        """All keys of this tenant, without their secrets."""
        return cast("list[Json]", self._get("/v1/keys")["items"])

    def revoke_key(self, key_id: str) -> None:
        self._send("DELETE", f"/v1/keys/{key_id}", repeat=True)

    # -- audit ----------------------------------------------------------------------------------------------------

    def audit_log(self, limit: int | None = None) -> Iterator[Json]:
        """The lines of this tenant's audit log, newest first, fetched page by page."""
        query: dict[str, int] = {"limit": min(limit or 1_000, 1_000)}
        given = 0
        while True:
            page = self._get("/v1/audit", query)
            for line in page["items"]:
                if given == limit:
                    return
                yield line
                given += 1
            if page["next"] is None or given == limit:
                return
            query["before"] = page["next"]

    # -- HTTP -----------------------------------------------------------------------------------------------------

    def _get(self, path: str, query: Mapping[str, Any] | None = None) -> Json:
        return cast("Json", self._send("GET", path, repeat=True, params=dict(query or {})).json())

    def _upload(
        self,
        path: str,
        file: str | Path | None,
        fields: Mapping[str, str],
        headers: Mapping[str, str],
        extra_seconds: float = 0.0,
        on_progress: Callable[[str, float], None] | None = None,
        method: str = "POST",
    ) -> httpx.Response:
        """The reply; not yet read where progress is wanted."""
        # Reading a large table can take the service a while after its last byte has arrived.
        read_seconds = (self._http.timeout.read or 0.0) * 10 + extra_seconds
        timeout = httpx.Timeout(self._http.timeout.connect, read=read_seconds)

        def send() -> httpx.Response:
            with _multipart(file, fields, on_progress) as parts:  # opened anew by every attempt
                request = self._http.build_request(method, path, files=parts, headers=dict(headers), timeout=timeout)
                return self._http.send(request, stream=on_progress is not None)

        return self._attempt(send, repeat=False)

    def _send(self, method: str, path: str, *, repeat: bool, **arguments: Any) -> httpx.Response:
        return self._attempt(lambda: self._http.request(method, path, **arguments), repeat=repeat)

    @contextmanager
    def _download(self, path: str, query: Mapping[str, Any]) -> Iterator[Iterator[bytes]]:
        request = self._http.build_request("GET", path, params=dict(query))
        reply = self._attempt(lambda: self._http.send(request, stream=True), repeat=True)
        try:
            yield reply.iter_bytes()
        except httpx.TransportError as error:  # rows already handed out cannot be called back: no second attempt
            raise self._unreachable(error) from error
        finally:
            reply.close()

    def _attempt(self, send: Callable[[], httpx.Response], *, repeat: bool) -> httpx.Response:
        """One request; again, with growing pauses, when that cannot do harm.

        A connection that never opened may always be tried again, and so may a 503: should it have been carried out all
        the same, an order's Idempotency-Key finds it and rows sent twice are refused. A connection that broke in the
        middle only when the request is safe or carries an Idempotency-Key (`repeat`).
        """
        for attempt in range(self._retries + 1):
            last = attempt == self._retries
            try:
                reply = send()
            except httpx.TransportError as error:
                never_sent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
                if last or not (repeat or never_sent):
                    raise self._unreachable(error) from error
                _pause(attempt)
                continue
            if reply.status_code == httpx.codes.SERVICE_UNAVAILABLE and not last:
                reply.close()
                _pause(attempt, reply.headers.get("Retry-After"))
                continue
            _raise_for_problem(reply)
            return reply
        raise AssertionError("the last attempt returns or raises")

    def _unreachable(self, error: Exception) -> ApiError:
        return ApiError(0, "unreachable", f"no answer from {self.url}: {error or type(error).__name__}")


def server_sent_documents(lines: Iterator[str]) -> Iterator[Json]:
    """The JSON documents of a stream of server-sent events; comments and other fields are passed over."""
    for _, document in server_sent_events(lines):
        yield document


def server_sent_events(lines: Iterator[str]) -> Iterator[tuple[str, Json]]:
    """The kinds and JSON documents of a stream of server-sent events."""
    kind, data = "message", list[str]()
    for line in lines:
        if line.startswith("event:"):
            kind = line[6:].strip()
        elif line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line:
            if data:
                yield kind, json.loads("\n".join(data))
            kind, data = "message", []


def _ended(release: Release) -> bool:
    return release["state"] in ENDED


def _is_local(url: str) -> bool:
    return httpx.URL(url).host in {"127.0.0.1", "localhost", "::1"}  # never through a proxy of the environment


def _pause(attempt: int, retry_after: str | None = None) -> None:
    seconds = min(FIRST_PAUSE_SECONDS * 2**attempt, LONGEST_PAUSE_SECONDS)
    if retry_after is not None and retry_after.isdigit():
        seconds = min(float(retry_after), LONGEST_PAUSE_SECONDS)
    time.sleep(seconds * random.uniform(0.8, 1.2))  # noqa: S311 - so that many clients do not come back together


def _upload_fields(
    schema: Mapping[str, Any],
    epsilon: float,
    delta: float | None,
    name: str | None,
    privacy_unit: Mapping[str, Any] | None,
    distinct_from: Sequence[str],
) -> dict[str, str]:
    budget = {"epsilon": epsilon} if delta is None else {"epsilon": epsilon, "delta": delta}
    fields = {"schema": json.dumps(dict(schema)), "budget": json.dumps(budget)}
    if name is not None:
        fields["name"] = name
    if privacy_unit is not None:
        fields["privacy_unit"] = json.dumps(dict(privacy_unit))
    if distinct_from:
        fields["distinct_from"] = json.dumps(list(distinct_from))
    return fields


@contextmanager
def _multipart(
    file: str | Path | None, fields: Mapping[str, str], on_progress: Callable[[str, float], None] | None
) -> Iterator[dict[str, Any]]:
    """The text fields, then the file if there is one."""
    parts: dict[str, Any] = {name: (None, text) for name, text in fields.items()}
    if file is None:
        yield parts
        return
    file = Path(file)
    kind = "application/vnd.apache.parquet" if file.suffix == ".parquet" else "text/csv"
    with file.open("rb") as stream:
        sent = stream if on_progress is None else _Watched(stream, on_progress)
        yield {**parts, "file": (file.name, cast("IO[bytes]", sent), kind)}


class _Watched:
    """A file that says how much of it has been sent."""

    def __init__(self, file: IO[bytes], on_progress: Callable[[str, float], None]) -> None:
        self._file = file
        self._on_progress = on_progress
        self._size = max(1, os.fstat(file.fileno()).st_size)
        self.fileno, self.seek, self.tell = file.fileno, file.seek, file.tell

    def read(self, size: int = -1) -> bytes:
        piece = self._file.read(size)
        self._on_progress("uploading", min(1.0, self._file.tell() / self._size))
        return piece


def _save(chunks: Iterator[bytes], path: Path, on_bytes: Callable[[int], None] | None) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.unfinished")
    size = 0
    try:
        with unfinished.open("wb") as file:
            for chunk in chunks:
                size += file.write(chunk)
                if on_bytes is not None:
                    on_bytes(size)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return size


def _raise_for_problem(reply: httpx.Response) -> None:
    if reply.is_success:
        return
    try:
        body = json.loads(reply.read())
    except ValueError:
        body = {}
    if not isinstance(body, dict):
        body = {}
    body["detail"] = body.get("detail") or f"{reply.status_code} {reply.reason_phrase}"
    raise _problem(reply.status_code, body)


def _problem(status: int, document: Json) -> ApiError:
    known = {"type", "title", "status", "detail", "code", "instance"}
    values = {name: value for name, value in document.items() if name not in known}
    return ApiError(status, str(document.get("code", "http_error")), str(document["detail"]), values)
