"""Another declaration for the same rows, as long as nothing was charged: docs/privacy.md, "Another declaration".

Whether that is still so is decided by `dataset_redeclare` (migration 0029) under the lock of the dataset's balance, which
every reservation and every charge takes. The rows are read anew, from the upload as it came, which is kept until the
first charge, or from the same file sent again.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from service.audit import service as audit
from service.auth.principal import Principal
from service.base.errors import (
    AlreadyCharged,
    Gone,
    InvalidInput,
    NotFound,
    OpenOrders,
    OtherRows,
    Redeclared,
    Unavailable,
    UploadNeeded,
)
from service.base.messages import Message
from service.datasets import known_rows, repository, service
from service.datasets.declaration import checked_name, parse_columns, parse_flag
from service.datasets.models import Dataset
from service.datasets.stored_objects import UPLOAD, context_of_rows, context_of_upload, new_name
from service.domain.drafts import refuse_draft
from service.domain.image_schema import DeclaredSchema, parse_schema
from service.domain.open_columns import refuse_bought
from service.domain.privacy_unit import DeclaredUnit, parse_privacy_unit
from service.domain.table_schema import TableSchema
from service.intake.caller import Caller
from service.intake.ingest import IngestedTable, ingest_table
from service.intake.sealed import SealedFile
from service.intake.table.alike import alike
from service.platform.context import Context
from service.platform.crypto import decrypt, encrypt
from service.privacy.filters import Budget, open_budget
from service.privacy.statements import choose_delta, default_delta, largest_delta
from service.requests.spool import Spool

logger = logging.getLogger(__name__)

MOST_READS = 20
"""So often the kept upload is read again. Each reading tells the owner counts of cells; a thief of the key, who does
not have the rows, cannot ask without end."""
MOST_ORDERS_NAMED = 20
FIELDS = ("name", "schema", "privacy_unit", "accept_draft", "accept_undeclared")
_WHAT = {"name", "schema", "privacy_unit"}


@dataclass(frozen=True, slots=True)
class Replacement:
    """What the owner says anew; None where it stays. A privacy unit is `(None,)` where each row is to be one."""

    name: str | None
    schema: DeclaredSchema | None
    privacy_unit: tuple[DeclaredUnit | None] | None
    accept_undeclared: frozenset[str] = frozenset()


def parse_replacement(documents: Mapping[str, Any]) -> Replacement:
    """Read the fields of the request; raises `InvalidInput` naming the one that is wrong."""
    unknown = sorted(set(documents) - set(FIELDS))
    if unknown:
        raise InvalidInput(
            "there is an unknown field: only the declaration and the name can be changed; ε is given once",
            where="body",
            allowed=list(FIELDS),
        )
    if not _WHAT & set(documents):
        raise InvalidInput("say what is to be declared again: schema, privacy_unit or name", where="body")
    name, unit = documents.get("name"), documents.get("privacy_unit")
    if "name" in documents and not isinstance(name, str):
        raise InvalidInput("name: give a text", where="name")
    schema = parse_schema(documents["schema"]) if "schema" in documents else None
    if schema is not None:
        refuse_bought(schema)
    if schema is not None and not parse_flag(documents.get("accept_draft", False), "accept_draft"):
        refuse_draft(schema)
    return Replacement(
        name=None if name is None else checked_name(name),
        schema=schema,
        privacy_unit=(None if unit is None else parse_privacy_unit(unit),) if "privacy_unit" in documents else None,
        accept_undeclared=parse_columns(documents.get("accept_undeclared", []), "accept_undeclared"),
    )


@dataclass(frozen=True, slots=True)
class _Declared:
    """What the dataset's row is to say, and which declaration it takes the place of."""

    declaration: int
    name: str
    schema: DeclaredSchema
    unit: DeclaredUnit | None
    budget: Budget


def redeclare(
    context: Context,
    principal: Principal,
    dataset_id: uuid.UUID,
    replacement: Replacement,
    upload: Spool,
    caller: Caller | None = None,
    *,
    is_new: bool,
) -> tuple[Dataset, list[str]]:
    """Replace the declaration, or refuse and change nothing. Returns owner-only notices besides.

    `upload` is the file where it was sent again (`is_new`), and is filled from the kept upload where not.
    """
    caller = caller or Caller()
    before, declaration = _find_open(context, principal, dataset_id)
    if not is_new:
        _fetch_upload(context, principal, dataset_id, upload)
    schema = parse_schema(before.schema) if replacement.schema is None else replacement.schema
    unit = before.unit if replacement.privacy_unit is None else replacement.privacy_unit[0]
    with ingest_table(
        upload.file,
        schema,
        privacy_unit=unit,
        limits=service.limits_of(context.settings),
        scratch_dir=context.settings.scratch_dir,
        fingerprint_key=context.secrets.fingerprint_key,
        caller=caller,
        accept_undeclared=_accepted(replacement, schema),
    ) as table:
        added = _added_fingerprints(context, dataset_id, table, is_new=is_new)
        with context.transaction() as session:  # before anything is encrypted; asked again under a lock
            _refuse_duplicate(session, principal, dataset_id, table, added)
        budget = _budget_of(before, table.units)
        caller(1.0)
        declared = _Declared(declaration, replacement.name or before.name, schema, unit, budget)
        after = _replace(context, principal, before, declared, table, added, upload.file if is_new else None)
    notices = list(table.notices)
    if table.units != before.units:
        notices.append(
            Message(
                "Until now the dataset had %(units)s units, which every key of the tenant could see: take that number as "
                "public.",
                units=before.units,
            )
        )
    return after, notices


def _accepted(replacement: Replacement, schema: DeclaredSchema) -> frozenset[str]:
    """A schema that stays was accepted with these rows before."""
    if replacement.schema is None and isinstance(schema, TableSchema):
        return frozenset(schema.names)
    return replacement.accept_undeclared


def _find_open(context: Context, principal: Principal, dataset_id: uuid.UUID) -> tuple[Dataset, int]:
    """The dataset, which can still be declared anew, and the number of its declaration."""
    with (
        context.snapshot() as session
    ):  # one moment, so that what stays is what the number of the declaration stands for
        before = repository.find(session, principal.tenant_id, dataset_id)
        standing = repository.standing(session, dataset_id)
    if before.state == "erased":
        raise _gone()
    if standing.charged:
        raise _already_charged()
    if standing.open_releases:
        raise _open_orders(standing.open_releases)
    return before, standing.declaration


def _added_fingerprints(context: Context, dataset_id: uuid.UUID, table: IngestedTable, *, is_new: bool) -> set[bytes]:
    """Those by which these rows were not known so far; a file that was sent again must hold the rows of the upload."""
    with context.transaction() as session:
        known = repository.fingerprints_of(session, dataset_id)
    # As its cells are written: by the declared missing values alone, any cells could be blanked out and exchanged.
    if is_new and table.fingerprints[-1] not in known:
        raise OtherRows(
            "these are other rows than the dataset's; send the file of its upload, or upload them as a dataset of their own"
        )
    return set(table.fingerprints) - known


def _budget_of(before: Dataset, units: int) -> Budget:
    """ε stays. δ follows n where it was the default; any other stays, or becomes the largest that so many units allow."""
    is_default = before.delta == default_delta(before.units)
    return open_budget(
        before.epsilon, choose_delta(None if is_default else min(before.delta, largest_delta(units)), units)
    )


def _fetch_upload(context: Context, principal: Principal, dataset_id: uuid.UUID, upload: Spool) -> None:
    """The kept upload, into the spool. The reading is counted and noted, and that committed, before it begins."""
    with context.transaction() as session:
        taken = repository.take_upload(session, dataset_id, principal.key_id, MOST_READS)
        if taken is not None:
            audit.record(session, principal, "dataset", dataset_id, action="read_upload")
    if taken is None:
        raise UploadNeeded(
            "send the file of the upload again, as `file` of multipart/form-data: it is not kept, or was sent with "
            f"another key, or was read {MOST_READS} times"
        )
    upload_key, wrapped = taken
    key = context.secrets.unwrap_data_key(wrapped, f"{dataset_id}/{UPLOAD}")
    try:
        pieces = context.storage.stream(upload_key)
    except NotFound:
        raise Redeclared(
            "the upload is no longer there: the dataset was charged, erased or declared again in the meantime; look at it first"
        ) from None
    for piece in decrypt(pieces, key, context=context_of_upload(upload_key, principal.key_id)):
        upload.append(piece)


def _replace(
    context: Context,
    principal: Principal,
    before: Dataset,
    declared: _Declared,
    table: IngestedTable,
    added: set[bytes],
    upload: SealedFile | None,
) -> Dataset:
    """Store the rows as they are declared now, then change everything in one transaction or nothing."""
    if before.wrapped_data_key is None:
        raise _gone()
    data_key = context.secrets.unwrap_data_key(bytes(before.wrapped_data_key), before.id)
    storage_key = new_name(before.id, "rows")
    bound_to = context_of_rows(storage_key, declared.unit)
    stored = [storage_key]
    try:
        context.storage.put(storage_key, encrypt(table.canonical.pieces(), data_key, context=bound_to))
        kept = {} if upload is None else service.keep_upload(context, principal, before.id, upload)
        stored += [kept["upload_key"]] if kept else []
        with context.transaction() as session:
            repository.lock_fingerprints(session)
            _refuse_duplicate(session, principal, before.id, table, added)
            done = repository.redeclare(
                session,
                before.id,
                declaration=declared.declaration,
                name=declared.name,
                schema=json.dumps(declared.schema.as_json()),
                privacy_unit=None if declared.unit is None else json.dumps(declared.unit.as_json()),
                units=table.units,
                delta=declared.budget.delta,
                renyi_order=declared.budget.renyi_order,
                renyi_capacity=declared.budget.renyi_capacity,
                storage_key=storage_key,
                key=principal.key_id,
                request=principal.request_id,
            )
            _require_done(done)
            if kept:
                repository.set_upload(session, before.id, **kept)
            repository.add_fingerprints(session, before.id, added, table.column_fingerprints)
            session.expire_all()
            after = repository.find(session, principal.tenant_id, before.id)
    except BaseException as error:
        if not isinstance(
            error, Unavailable
        ):  # then it may have happened nevertheless: the sweep removes what no row names
            _remove(context, stored)
        if isinstance(error, IntegrityError):  # another upload of these rows was first
            with context.transaction() as session:
                _refuse_duplicate(session, principal, before.id, table, added)
        raise
    old = [before.storage_key, before.upload_key if kept else None]
    _remove(context, [key for key in old if key is not None])
    return after


def _refuse_duplicate(
    session: Session, principal: Principal, dataset_id: uuid.UUID, table: IngestedTable, added: set[bytes]
) -> None:
    """Rows of another dataset, as they are declared now. Datasets that the upload looked like stay distinct: its owner said so."""
    known = repository.columns_of(session, dataset_id)
    columns = table.column_fingerprints
    # By what was known of these rows then, and most of all their columns: not of those that were known.
    cleared = alike(
        columns,
        [one for one in repository.find_matches(session, principal.tenant_id, columns) if one.fingerprint in known],
    )
    known_rows.refuse_duplicate(session, principal, added, columns, {dataset_id, *cleared})


def _remove(context: Context, keys: list[str]) -> None:
    """Objects that no row names any more; what a silent store keeps, the sweep removes."""
    for key in keys:
        try:
            context.storage.delete(key)
        except Unavailable as error:
            logger.warning("no object of a replaced declaration removed: %s", error.code)


def _require_done(row: Row[Any]) -> None:
    if row.outcome == "charged":
        raise _already_charged()
    if row.outcome == "ordered":
        raise _open_orders(row.open_releases)
    if row.outcome == "redeclared":
        raise Redeclared("the declaration was replaced by another request in the meantime; look at the dataset first")
    if row.outcome == "erased":
        raise _gone()
    if row.outcome != "done":
        raise NotFound("no such dataset; GET /v1/datasets lists yours")


def _already_charged() -> AlreadyCharged:
    return AlreadyCharged(
        "an order on this dataset has been charged, so its declaration stays as it is: its budget is spent under it"
    )


def _open_orders(release_ids: list[uuid.UUID]) -> OpenOrders:
    return OpenOrders(
        f"{len(release_ids)} orders on this dataset are reserved under its declaration; cancel them first",
        release_ids=[str(one) for one in release_ids[:MOST_ORDERS_NAMED]],
    )


def _gone() -> Gone:
    return Gone("the rows of this dataset are erased; their declaration can no longer be changed")
