"""Operations on releases and what they leave: what is asked, and how the answer is read."""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, cast

from imprimatur.asking import NoEvents, order_headers
from imprimatur.datasets import (
    DatasetOperations,
    DatasetT,
    Drawn,
    Formulas,
    Named,
    ReleaseT,
    Weights,
    Where,
    refuse_unknown,
)
from imprimatur.errors import ApiError, NotReady
from imprimatur.formats import chosen_format, invalid
from imprimatur.naming import id_among, whole_id
from imprimatur.preflight import check_writable
from imprimatur.progress import bar
from imprimatur.public_starts import public_datasets, with_ids
from imprimatur.replies import ENDED, Json, Quote, SampleFormat
from imprimatur.steps import Ask, Give, Pause, Work, heard, listed, mapped, told, until
from imprimatur.streams import Saving
from imprimatur.tables import Library, library_of, parquet_of, read_parquet, read_rows
from imprimatur.verify.members import NotAsCertified, check_bundle
from imprimatur.where import json_of, where_texts

if TYPE_CHECKING:
    from imprimatur.steps import Items, Steps

POLL_SECONDS = 1.0
ENDED_WITHOUT = ("failed", "voided")
RowsT = TypeVar("RowsT")


class ReleaseOperations(DatasetOperations[DatasetT, ReleaseT]):
    """Orders, and what becomes of them."""

    def quote(self, dataset: Named, order: Mapping[str, Any] | None = None, /, **knobs: Any) -> Steps[Quote]:
        """The price of an order, whether it fits, and how exact its result will be; reserves nothing. `quote(epsilon=2)` is `quote({"epsilon": 2})`.

        `public_dataset`: id, name or beginning of the id of another dataset, declared public, that the generator is trained on first, without a
        price (`method="idpgan"`); the rows of that one have no protection. `method="choose"`: its candidates may name it.
        `want={"group": 200, "within": 0.1}` or `want={"two_way_tv": 0.05}` instead of an ε: the least that gives it is quoted, and `wanted` says so.
        """
        path = f"/v1/datasets/{(yield from self._dataset_id(dataset))}/quotes"
        document = yield from self._with_ids({**(order or {}), **knobs})
        reply = yield from self.asking.send(Ask("POST", path, json=document), repeat=True)
        return Quote.of(reply.json())

    def create_release(
        self,
        dataset: Named,
        order: Mapping[str, Any] | None = None,
        /,
        *,
        idempotency_key: str | None = None,
        priority: int | None = None,
        name: str | None = None,
        **knobs: Any,
    ) -> Steps[ReleaseT]:
        """Order a release. Sent again with the same idempotency key it is the same order, charged once.

        The key is made before the first try, and every further try has it. Give one of your own to be able to order
        again after your program has ended. `priority`: from 0, most urgent, to 7 (3); which of this key's waiting
        releases goes first. `name`: of the release, unique in its dataset. `epsilon=2` is `{"epsilon": 2}`, and so is every other knob of an order.
        """
        key = idempotency_key or str(uuid.uuid4())
        headers = order_headers(key, priority, name)
        path = f"/v1/datasets/{(yield from self._dataset_id(dataset))}/releases"
        document = yield from self._with_ids({**(order or {}), **knobs})
        ask = Ask("POST", path, json=document, headers=headers)
        try:
            return self.new_release((yield from self.asking.send(ask, repeat=True)).json())
        except ApiError as error:
            if error.status and error.status < 500:
                raise
            detail = f"{error.detail}; whether this was ordered is not known: order it again with idempotency_key={key!r}, which never pays twice"
            raise ApiError(error.status, error.code, detail, {**error.values, "idempotency_key": key}) from error

    def _with_ids(self, order: Json) -> Steps[Json]:
        """An order may name another dataset as every call does; the service takes its id."""
        ids: dict[str, str] = {}
        for named in public_datasets(order):
            ids[named] = yield from self._dataset_id(named)
        return with_ids(order, ids)

    def release(self, release: Named) -> Steps[ReleaseT]:
        """How far one release is: its state, order, price and progress, and why it failed if it did."""
        return self.new_release((yield from self._read_release(release)))

    def releases(self, dataset: Named | None = None) -> Steps[list[ReleaseT]]:
        """All releases of a dataset, or of the tenant, newest first."""
        return (yield from listed(self.iter_releases(dataset)))

    def iter_releases(self, dataset: Named | None = None) -> Items[ReleaseT]:
        """The same, fetched page by page as they are asked for."""
        query = {} if dataset is None else {"dataset_id": (yield from self._dataset_id(dataset))}
        yield from mapped(self.asking.pages("/v1/releases", query), self._listed_release)

    def _listed_release(self, raw: Json) -> Steps[ReleaseT]:
        if raw["state"] == "published" and raw["certificate"] is None:  # too large for a list
            raw["certificate"] = yield from self.certificate(raw["id"])
        return self.new_release(raw)

    def cancel(self, release: Named) -> Steps[ReleaseT]:
        """Cancel; free of charge if no private step has run yet."""
        path = f"/v1/releases/{(yield from self._release_id(release))}/cancel"
        return self.new_release((yield from self.asking.send(Ask("POST", path), repeat=True)).json())

    def wait(
        self,
        release: Named,
        *,
        on_progress: Callable[[ReleaseT], object] | None = None,
        timeout: float | None = None,
        progress: bool | None = False,
    ) -> Steps[ReleaseT]:
        """Wait until the release has ended, one way or another. Raises TimeoutError after `timeout` seconds.

        `progress`: show a bar, in a terminal or a notebook; None: where somebody may see it.
        """
        seen: list[ReleaseT] = []
        with bar(shown=progress) as report:

            def hear(now: ReleaseT) -> None:
                seen[:] = [now]
                report(now)
                if on_progress is not None:
                    on_progress(now)

            yield from heard(self.progress(release, timeout=timeout), told(hear))
        return seen[0]

    def progress(self, release: Named, *, timeout: float | None = None) -> Items[ReleaseT]:
        """The release as it is now, at every change, and once it has ended: `for now in release.progress(): …`.

        Raises TimeoutError after `timeout` seconds.
        """
        release_id = yield from self._release_id(release)
        deadline = None if timeout is None else time.monotonic() + timeout
        path = f"/v1/releases/{release_id}/events"
        while True:
            now = yield from self._read_release(release_id)
            yield Give(self.new_release(now))
            if _ended(now):
                return
            if _past(deadline):
                raise TimeoutError(
                    f"release {release_id} is still {now['state']}; client.release('{release_id}') finds it again"
                )
            events = until(self.asking.events(path), lambda each: _ended(each) or _past(deadline))
            try:
                yield from mapped(events, self._new_release)
            except NoEvents:
                # No events to be had, for example behind a proxy that does not let them through: ask now and then.
                yield Pause(POLL_SECONDS)

    def _new_release(self, raw: Json) -> Steps[ReleaseT]:
        yield from ()
        return self.new_release(raw)

    def _read_release(self, release: Named) -> Steps[Json]:
        return (yield from self.asking.get(f"/v1/releases/{(yield from self._release_id(release))}"))

    def _release_id(self, named: Named) -> Steps[str]:
        known = whole_id(named)
        if known is not None:
            return known
        datasets: dict[str, str] = {}
        if "/" in str(named):  # DATASET/NAME
            found = yield from listed(self.asking.pages("/v1/datasets"))
            datasets = {str(each["id"]): str(each["name"]) for each in found}
        releases = yield from listed(self.asking.pages("/v1/releases"))
        return id_among(releases, str(named), "release", datasets)

    # -- what a release leaves ------------------------------------------------------------------------------------

    def sample_chunks(
        self,
        release: Named,
        rows: int = 1_000,
        *,
        format: SampleFormat | None = None,  # noqa: A002 - the API's own word
        where: Where | None = None,
        weights: Weights | None = None,
        seed: int | None = None,
        formulas: Formulas | None = None,
    ) -> Items[bytes]:
        """Synthetic rows as they are drawn, in pieces of the file that they make.

        `formulas`: what happens to CSV texts that a spreadsheet would run as formulas: they stay (`keep`) or not (`escape`).
        """
        query: dict[str, Any] = {"rows": rows} | ({} if format is None else {"format": format})
        query |= {"where": where_texts(where)} if where else {}
        query |= {"weights": json_of(weights)} if weights else {}
        query |= {name: value for name, value in (("seed", seed), ("formulas", formulas)) if value is not None}
        path = f"/v1/releases/{(yield from self._release_id(release))}/sample"
        yield from self.asking.download(path, query)

    def save_sample(
        self,
        release: Named,
        /,
        path: str | Path,
        rows: int = 1_000,
        *,
        format: SampleFormat | None = None,  # noqa: A002 - the API's own word
        on_bytes: Callable[[int], None] | None = None,
        **drawn: Unpack[Drawn],
    ) -> Steps[int]:
        """Synthetic rows into a file, which appears only when it is whole; its size in bytes.

        The format is that of the file's ending (`.csv`, `.parquet`, `.jsonl`, `.arrow`; images `.npz`, `.zip`, `.png`)
        unless it is named. `where`, `weights`, `seed` and `formulas` are as of `sample`.
        """
        refuse_unknown(drawn, Drawn.__optional_keys__)
        file = Path(path)
        chosen = chosen_format(format, file)
        check_writable(file)
        with Saving(file, on_bytes) as saving:
            yield from heard(self.sample_chunks(release, rows, format=chosen, **drawn), told(saving.write))
            saving.finish()
        return saving.size

    def sample_frame(
        self, release: Named, library: Library, rows: int = 1_000, /, **drawn: Unpack[Drawn]
    ) -> Steps[Any]:
        """Synthetic rows as a table of a library."""
        library.check_installed()
        chunks: list[bytes] = []
        yield from heard(self.sample_chunks(release, rows, format=library.wanted, **drawn), told(chunks.append))
        return (yield Work(lambda: read_rows(b"".join(chunks), library)))

    def complete(self, release: Named, rows: RowsT, *, seed: int | None = None) -> Steps[RowsT]:
        """Your rows, with values drawn where they have none: dictionaries, a table of pandas, polars or Arrow, or CSV, JSON lines or Parquet as bytes.

        None is imputed; a column that is not there may come out missing. Costs nothing; send no private rows.
        """
        library = library_of(rows)
        content = (
            rows if isinstance(rows, bytes) else _rows_sent(rows) if library is None else parquet_of(rows, library)
        )
        path = f"/v1/releases/{(yield from self._release_id(release))}/complete"
        query = {"formulas": "keep"} | ({} if seed is None else {"seed": str(seed)})
        ask = Ask("POST", path, query, content=content, headers={"Content-Type": _media_type(content)})
        reply = yield from self.asking.send(ask, repeat=True)
        if isinstance(rows, bytes):
            return cast("RowsT", reply.content)
        if library is not None:
            return cast("RowsT", read_parquet(reply.content, library))
        return cast("RowsT", [json.loads(line) for line in reply.content.splitlines()])

    def save_generator(self, release: Named, path: str | Path) -> Steps[int]:
        """The trained generator as a ZIP that works without this project; its size in bytes.

        Raises `NotAsCertified`, and leaves no file, unless each member is as the release's certificate says. Who signed
        that, `imprimatur verify` tells.
        """
        file = Path(path)
        check_writable(file)
        release_id = yield from self._release_id(release)
        certificate = yield from self.certificate(release_id)
        if str(certificate.get("release_id")) != str(uuid.UUID(release_id)):
            raise NotAsCertified("the service gave the certificate of another release")
        with Saving(file) as saving:
            yield from heard(self.asking.download(f"/v1/releases/{release_id}/generator", {}), told(saving.write))
            yield Work(lambda: saving.finish(lambda file: check_bundle(file, certificate)))
        return saving.size

    def preview(self, release: Named) -> Steps[bytes]:
        """A PNG of what a generator of images makes so far; 409 `not_ready` where there is none."""
        path = f"/v1/releases/{(yield from self._release_id(release))}/preview"
        return (yield from self.asking.send(Ask("GET", path), repeat=True)).content

    def certificate(self, release: Named) -> Steps[Json]:
        """What was promised and what was spent, signed."""
        return (yield from self.asking.get(f"/v1/releases/{(yield from self._release_id(release))}/certificate"))

    def answers(self, release: Named) -> Steps[Json]:
        """The numbers of a release that holds answers instead of a generator."""
        return (yield from self.asking.get(f"/v1/releases/{(yield from self._release_id(release))}/answers"))

    def owner_report(self, release: Named, *, timeout: float | None = None) -> Steps[Json]:
        """How close the published rows are to the real ones: not private, and for owner keys alone.

        Of a release ordered with `owner_report=True`; `NotReady` until a worker has made it, minutes after it is published.
        `timeout`: wait for it so many seconds.
        """
        path = f"/v1/releases/{(yield from self._release_id(release))}/owner-report"
        deadline = time.monotonic() + (timeout or 0.0)
        while True:
            try:
                return (yield from self.asking.get(path))
            except NotReady as refused:
                if _past(deadline) or refused.values.get("state") in ENDED_WITHOUT:
                    raise
            yield Pause(POLL_SECONDS)

    def report(self, release: Named) -> Steps[Json]:
        """How far off it is, as it was measured with noise and charged: of a release ordered with `report={"share": 0.05}`.

        With `report={"share": 0.05, "held_out": 0.1}` its `accuracy` is how often a classifier, trained on synthetic rows, is right on held-out units.
        """
        return (yield from self.asking.get(f"/v1/releases/{(yield from self._release_id(release))}/report"))

    def save_report(self, release: Named, path: str | Path, *, owner: bool = True) -> Steps[int]:
        """The owner's report, or the charged one, as a page (`.html`) or as JSON (`.json`), into a file that only you may read; its size in bytes."""
        file = Path(path)
        check_writable(file)
        query = {"format": "json" if file.suffix == ".json" else "html"}
        path = f"/v1/releases/{(yield from self._release_id(release))}/{'owner-report' if owner else 'report'}"
        content = (yield from self.asking.send(Ask("GET", path, query), repeat=True)).content
        yield Work(lambda: _write_for_me(file, content))
        return len(content)


def _write_for_me(file: Path, content: bytes) -> None:
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
        opened.write(content)


def _rows_sent(rows: Any) -> bytes:
    listed = [] if isinstance(rows, str | Mapping) or not isinstance(rows, Iterable) else list(rows)
    if not listed or not all(isinstance(row, Mapping) for row in listed):
        raise invalid(
            "rows",
            "rows are a list of dictionaries, one a row, a table of pandas, polars or Arrow, or the bytes of a CSV, JSON lines or Parquet file",
        )
    return "".join(json_of(row) + "\n" for row in listed).encode()


def _media_type(content: bytes) -> str:
    if content.startswith(b"PAR1"):
        return "application/vnd.apache.parquet"
    return "application/x-ndjson" if content.lstrip().startswith(b"{") else "text/csv"


def _ended(release: Json) -> bool:
    return release["state"] in ENDED


def _past(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() > deadline
