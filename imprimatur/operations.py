"""Every call of the API as an operation: what is asked, and how the answer is read. `Client` and `AsyncClient` carry them out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast

import httpx

from imprimatur.asking import priority_header
from imprimatur.datasets import DatasetT, Named, ReleaseT, refuse_unknown
from imprimatur.errors import OrderedNotDelivered
from imprimatur.frame_schemas import ask_whose_rows, refuse_draft
from imprimatur.person_columns import header_of
from imprimatur.preflight import check_before_paying, check_name
from imprimatur.queries import QueryOperations
from imprimatur.replies import Json, PublishOptions
from imprimatur.steps import Ask, Upload, Work, listed
from imprimatur.streams import Saving

if TYPE_CHECKING:
    from imprimatur.steps import Items, Steps


class Operations(QueryOperations[DatasetT, ReleaseT]):
    """One service."""

    def methods(self) -> Steps[list[Json]]:
        """Every method that this service offers: what it does, what it takes, and the schema of its knobs."""
        return cast("list[Json]", (yield from self.asking.get("/v1/methods"))["items"])

    def publish(
        self,
        /,
        file: str | Path,
        schema: Mapping[str, Any],
        order: Mapping[str, Any],
        *,
        epsilon: float,
        path: str | Path,
        **options: Unpack[PublishOptions],
    ) -> Steps[tuple[str, ReleaseT | None]]:
        """Everything in one request: the release's id, and None when `path` now holds the sample.

        Draws `rows` (1,000) in a `format`, by default that of the ending. Declares as `create_dataset` does.
        A release that is not done in `wait_seconds` (300) comes back instead; wait() for it and sample it.
        A schema that is a draft needs `accept_draft`, a column that looks like a person's id `privacy_unit` or
        `rows_are_units`. `imprimatur.publish` takes and gives DataFrames.
        """
        refuse_unknown(options, PublishOptions.__optional_keys__)
        rows, wait_seconds = options.get("rows", 1_000), options.get("wait_seconds", 300)
        refuse_draft(schema, accepted=options.get("accept_draft", False))
        columns = yield Work(lambda: header_of(Path(file)))
        ask_whose_rows(
            schema, columns, options.get("privacy_unit"), rows_are_units=options.get("rows_are_units", False)
        )
        format_ = check_before_paying(schema, output=path, format=options.get("format"), rows=rows, source=file)
        if options.get("name") is not None:
            check_name((yield from self.datasets()), str(options.get("name")), schema)
        fields = yield from self._upload_fields(schema, epsilon, options)
        fields |= {"order": json.dumps(dict(order)), "rows": str(rows)}
        fields |= {} if format_ is None else {"format": format_}
        headers = {"Prefer": f"wait={wait_seconds}", **priority_header(options.get("priority"))}
        upload = Upload(file, fields)
        reply = yield from self.asking.upload("POST", "/v1/publish", upload, headers=headers, seconds=wait_seconds)
        if reply.status_code == httpx.codes.ACCEPTED:
            release = self.new_release(reply.json())
            return release.id, release
        release_id = str(reply.headers["X-Release-Id"])
        try:
            with Saving(Path(path)) as saving:
                saving.write(reply.content)
                saving.finish()
        except OSError as error:
            raise OrderedNotDelivered(release_id, error) from error
        return release_id, None

    # -- the Merkle log of all ledgers; all but proofs without a key ----------------------------------------------

    def tree_head(self) -> Steps[Json]:
        """The newest signed head of the log."""
        return (yield from self.asking.get("/v1/ledger/head"))

    def consistency(self, first: int, second: int) -> Steps[Json]:
        """Proof that the log of `second` entries begins with that of `first`."""
        return (yield from self.asking.get("/v1/ledger/consistency", {"first": first, "second": second}))

    def inclusion(self, dataset: Named, tree_size: int, seq: int | None = None) -> Steps[Json]:
        """Proofs that entries of a dataset are in the log of this size."""
        query = {"dataset_id": (yield from self._dataset_id(dataset)), "tree_size": tree_size}
        return (yield from self.asking.whole("/v1/ledger/proof", query | ({} if seq is None else {"seq": seq})))

    def signing_keys(self) -> Steps[list[Json]]:
        """The public keys of certificates and heads, oldest first."""
        return cast("list[Json]", (yield from self.asking.get("/v1/ledger/keys"))["items"])

    # -- keys -----------------------------------------------------------------------------------------------------

    def create_key(
        self, name: str, scope: Literal["owner", "analyst", "reader"], *, expires_at: str | None = None
    ) -> Steps[Json]:
        """A new key of this tenant: `id` and `key`, the latter shown only now."""
        ask = Ask("POST", "/v1/keys", json={"name": name, "scope": scope, "expires_at": expires_at})
        return cast("Json", (yield from self.asking.send(ask, repeat=False)).json())

    def replace_key(self, key_id: str, *, overlap_seconds: int = 86_400, expires_at: str | None = None) -> Steps[Json]:
        """A new key of the same name and scope; the old one works on for `overlap_seconds`."""
        body = {"overlap_seconds": overlap_seconds, "expires_at": expires_at}
        ask = Ask("POST", f"/v1/keys/{key_id}/replacement", json=body)
        return cast("Json", (yield from self.asking.send(ask, repeat=False)).json())

    def keys(self) -> Steps[list[Json]]:
        """All keys of this tenant, newest first, without their secrets."""
        return (yield from listed(self.asking.pages("/v1/keys")))

    def revoke_key(self, key_id: str) -> Steps[None]:
        """Revoke a key at once; its id is in `keys()`."""
        yield from self.asking.send(Ask("DELETE", f"/v1/keys/{key_id}"), repeat=True)

    # -- audit ----------------------------------------------------------------------------------------------------

    def audit_log(self, limit: int | None = None) -> Items[Json]:
        """The lines of this tenant's audit log, newest first, fetched page by page."""
        yield from self.asking.pages("/v1/audit", most=limit)
