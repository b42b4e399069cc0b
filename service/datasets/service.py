"""Upload, read, erase. An upload is checked whole before anything of it is kept; the ledger outlives the rows."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import insert
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from imprimatur.verify.chain import Amounts
from service.audit import service as audit
from service.auth.principal import Principal
from service.base.errors import Gone, NotPostponable, Unavailable
from service.base.messages import Message
from service.datasets import known_rows, owner_reports, repository
from service.datasets.declaration import Declaration, check_expiry
from service.datasets.models import Dataset
from service.datasets.schemas import (
    Accounts,
    BudgetReply,
    LedgerBalanceReply,
    LedgerEntryReply,
    LedgerReply,
    RenyiAccount,
    SimpleAccount,
)
from service.datasets.stored_objects import UPLOAD, context_of_rows, context_of_upload, new_name
from service.intake.caller import Caller
from service.intake.ingest import IngestedTable, IngestLimits, ingest_table
from service.intake.sealed import SealedFile
from service.ledger import repository as ledger_repository
from service.ledger import service as ledger
from service.ledger.recent_checks import RECENT
from service.methods.pricing import largest_next_epsilon
from service.platform.context import Context
from service.platform.crypto import encrypt
from service.platform.database import database_time
from service.platform.paging import Page
from service.platform.settings import Settings
from service.privacy.filters import NANO, Budget, Shares, open_budget, proven_epsilon
from service.privacy.statements import check_epsilon, choose_delta

DECLARE_DISTINCT = "declare_distinct"
"""The audit log's word for an owner's word that a dataset holds other people's rows than the upload."""

DECLARE_PUBLIC = "declare_public"
"""The same for an owner's word that the rows of an upload are public."""


@dataclass(frozen=True, slots=True)
class ToBeOrdered:
    """What a dataset is made for, where the same request orders a release of it."""

    check: Callable[[int, Budget], None]
    """Of the number of units and the budget; raises before anything is kept where the order would be refused."""
    idempotency_key: str | None
    """Of the request: sent again, it goes on from where it stopped."""
    order_digest: bytes
    """By which it is known to be sent again with the same order."""


def limits_of(settings: Settings) -> IngestLimits:
    """The limits of the process that reads an upload."""
    return IngestLimits(
        unpacked_bytes=settings.unpacked_limit_bytes,
        memory_bytes=settings.ingest_memory_bytes,
        seconds=settings.ingest_seconds,
    )


def create(
    context: Context,
    principal: Principal,
    upload: SealedFile,
    declaration: Declaration,
    caller: Caller | None = None,
    to_be_ordered: ToBeOrdered | None = None,
) -> tuple[Dataset, list[str]]:
    """Check, fingerprint, encrypt and keep a table, and open its account. Returns owner-only notices besides.

    `caller` hears the share of the file that has been read; if it leaves before the file is stored, nothing is kept. Neither is it
    where the order that the dataset is made for would be refused.
    """
    settings, caller = context.settings, caller or Caller()
    check_epsilon(declaration.budget.epsilon, settings.max_epsilon)
    if declaration.rows_expire_at is not None:
        with context.transaction() as session:
            check_expiry(declaration.rows_expire_at, database_time(session))
    with ingest_table(
        upload,
        declaration.schema,
        privacy_unit=declaration.privacy_unit,
        limits=limits_of(settings),
        scratch_dir=settings.scratch_dir,
        fingerprint_key=context.secrets.fingerprint_key,
        caller=caller,
        accept_undeclared=declaration.accept_undeclared,
    ) as table:
        budget = open_budget(declaration.budget.epsilon, choose_delta(declaration.budget.delta, table.units))
        with context.transaction() as session:  # before anything is encrypted; asked again under a lock
            _refuse_duplicate(session, principal, table, declaration)
        if to_be_ordered is not None:
            to_be_ordered.check(table.units, budget)
        caller(1.0)
        notices = [*table.notices, *declaration.told_apart()]
        return _keep(context, principal, declaration, table, budget, upload, to_be_ordered), notices


def _keep(
    context: Context,
    principal: Principal,
    declaration: Declaration,
    table: IngestedTable,
    budget: Budget,
    upload: SealedFile,
    to_be_ordered: ToBeOrdered | None,
) -> Dataset:
    dataset_id = uuid.uuid4()
    data_key = context.secrets.new_data_key()
    storage_key = new_name(dataset_id, "rows")
    bound_to = context_of_rows(storage_key, declaration.privacy_unit)
    stored = [storage_key]
    try:
        context.storage.put(storage_key, encrypt(table.canonical.pieces(), data_key, context=bound_to))
        kept = keep_upload(context, principal, dataset_id, upload)
        stored += [kept["upload_key"]] if kept else []
        with context.transaction() as session:
            repository.lock_fingerprints(session)
            _refuse_duplicate(session, principal, table, declaration)
            session.execute(
                insert(Dataset).values(
                    id=dataset_id,
                    tenant_id=principal.tenant_id,
                    name=declaration.name,
                    schema=declaration.schema.as_json(),
                    privacy_unit=None if declaration.privacy_unit is None else declaration.privacy_unit.as_json(),
                    units=table.units,
                    epsilon=budget.epsilon,
                    delta=budget.delta,
                    renyi_order=budget.renyi_order,
                    renyi_capacity=budget.renyi_capacity,
                    storage_key=storage_key,
                    wrapped_data_key=context.secrets.wrap_data_key(data_key, dataset_id),
                    rows_expire_at=declaration.rows_expire_at,
                    rows_are_public=declaration.rows_are_public,
                    idempotency_key=None if to_be_ordered is None else to_be_ordered.idempotency_key,
                    order_digest=None if to_be_ordered is None else to_be_ordered.order_digest,
                    **kept,
                )
            )
            repository.add_fingerprints(session, dataset_id, table.fingerprints, table.column_fingerprints)
            ledger_repository.open_account(session, dataset_id)
            audit.record(session, principal, "dataset", dataset_id)
            if declaration.rows_are_public:
                audit.record(session, principal, "dataset", dataset_id, action=DECLARE_PUBLIC)
            for other in declaration.distinct_from:
                audit.record(session, principal, "dataset", other, action=DECLARE_DISTINCT)
            return repository.find(session, principal.tenant_id, dataset_id)
    except BaseException as error:
        if not isinstance(
            error, Unavailable
        ):  # then it may have happened nevertheless: the sweep removes what no row names
            for key in stored:
                context.storage.delete(key)
        if isinstance(error, IntegrityError):  # a process of the version before, which takes no lock, was first
            with context.transaction() as session:
                _refuse_duplicate(session, principal, table, declaration)
        raise


def keep_upload(context: Context, principal: Principal, dataset_id: uuid.UUID, upload: SealedFile) -> dict[str, Any]:
    """Store the file as it came, under a key of its own; what the dataset's row must say of it, nothing where it is too large."""
    if upload.size > context.settings.kept_upload_limit_bytes:
        return {}
    upload_key, key = new_name(dataset_id, UPLOAD), context.secrets.new_data_key()
    bound_to = context_of_upload(upload_key, principal.key_id)
    context.storage.put(upload_key, encrypt(upload.pieces(), key, context=bound_to))
    return {
        "upload_key": upload_key,
        "wrapped_upload_key": context.secrets.wrap_data_key(key, f"{dataset_id}/{UPLOAD}"),
        "upload_key_id": principal.key_id,
        "upload_reads": 0,
    }


def destroy_needless_uploads(context: Context) -> None:
    """What a worker or an erasure of another version, or one that was killed, has left: key first, then the object."""
    with context.transaction() as session:
        needless = repository.list_needless_uploads(session)
        gone = [key for dataset_id, key in needless if repository.forget_upload(session, dataset_id)]
    for key in gone:
        if key is not None:
            context.storage.delete(key)


def _refuse_duplicate(session: Session, principal: Principal, table: IngestedTable, declaration: Declaration) -> None:
    for named in declaration.distinct_from:
        repository.find(session, principal.tenant_id, named)
    known_rows.refuse_duplicate(
        session, principal, table.fingerprints, table.column_fingerprints, declaration.distinct_from, declaration
    )


def find(context: Context, principal: Principal, dataset_id: uuid.UUID) -> Dataset:
    """The tenant's dataset; `NotFound` where the tenant has none of this id."""
    with context.transaction() as session:
        return repository.find(session, principal.tenant_id, dataset_id)


def list_page(context: Context, principal: Principal, page: Page) -> tuple[Sequence[Dataset], str | None]:
    """A page of the tenant's datasets, newest first, and the cursor of the next page."""
    with context.transaction() as session:
        return repository.page_of_tenant(session, principal.tenant_id, page)


def erase(context: Context, principal: Principal, dataset_id: uuid.UUID) -> None:
    """Destroy the rows' key, then the rows. The ledger and published releases stay; asking again changes nothing."""
    with context.transaction() as session:
        repository.find(session, principal.tenant_id, dataset_id)
        storage_keys = repository.mark_erased(session, dataset_id, key=principal.key_id, request=principal.request_id)
    for key in (*storage_keys, *owner_reports.keys_of(context, dataset_id)):
        context.storage.delete(key)


def set_expiry(context: Context, principal: Principal, dataset_id: uuid.UUID, moment: dt.datetime) -> Dataset:
    """Give the rows a deletion date, or an earlier one. A promised date is never put off.

    A release that has read the rows by then ends as it would have; one that has not is voided or fails as `erased`.
    """
    with context.transaction() as session:
        check_expiry(moment, database_time(session))
        dataset = repository.find(session, principal.tenant_id, dataset_id)
        if dataset.state == "erased":
            raise Gone(Message("the rows of this dataset are erased already"))
        if not repository.bring_expiry_forward(session, dataset_id, moment):
            expiry = "it" if dataset.rows_expire_at is None else dataset.rows_expire_at.isoformat()
            raise NotPostponable(
                Message(
                    "these rows have an earlier deletion date, which cannot be put off: give a moment before %(expiry)s",
                    expiry=expiry,
                )
            )
        audit.record(session, principal, "dataset", dataset_id)
        session.expire_all()
        return repository.find(session, principal.tenant_id, dataset_id)


def erase_expired(context: Context) -> int:
    """Destroy rows and keys whose deletion date has come; how many. Object by object, so that one cannot stop all."""
    with context.transaction() as session:
        expired = repository.list_expired(session)
    for dataset_id in expired:
        with context.transaction() as session:
            storage_keys = repository.mark_expired(session, dataset_id)  # none: somebody else was quicker
        for key in (*storage_keys, *owner_reports.keys_of(context, dataset_id)):
            context.storage.delete(key)
    return len(expired)


@dataclass(frozen=True, slots=True)
class BudgetLeft:
    """What is left of a dataset's budget, as `BudgetReply` has it."""

    remaining_share: float
    largest_next_epsilon: float


def budgets_left(context: Context, found: Sequence[Dataset]) -> dict[uuid.UUID, BudgetLeft]:
    """Of several datasets at once."""
    with context.statement() as session:
        balances = ledger_repository.balances_of(session, [each.id for each in found])
    left = {balance.dataset_id: ledger.Remaining.of(balance) for balance in balances}
    return {each.id: _left_of(left[each.id], each.budget) for each in found}


def _left_of(left: ledger.Remaining, budget: Budget) -> BudgetLeft:
    return BudgetLeft(
        remaining_share=max(left.simple, left.renyi) / NANO,
        largest_next_epsilon=largest_next_epsilon(budget, Shares(left.simple, _rounded_down(left.renyi))),
    )


def read_budget(context: Context, principal: Principal, dataset_id: uuid.UUID) -> BudgetReply:
    """Both accounts as they stand, and what they still allow."""
    with context.driver() as connection:
        account = repository.find_account(connection, principal.tenant_id, dataset_id)
    left = ledger.Remaining.of(account)
    allowed = _left_of(left, account.budget)
    return BudgetReply(
        epsilon=account.epsilon,
        delta=account.delta,
        accounts=Accounts(
            simple=SimpleAccount(posted=account.simple_posted, pending=account.simple_pending, remaining=left.simple),
            renyi=RenyiAccount(
                order=account.renyi_order,
                posted=account.renyi_posted,
                pending=account.renyi_pending,
                remaining=left.renyi,
            ),
        ),
        remaining_share=allowed.remaining_share,
        epsilon_spent=_epsilon_spent(account, account.budget),
        largest_next_epsilon=allowed.largest_next_epsilon,
    )


def read_ledger(
    context: Context, principal: Principal, dataset_id: uuid.UUID, *, limit: int, before: int | None
) -> LedgerReply:
    """A page of lines; on the first one, whether all of them and the balance agree: one snapshot, which no writer waits for."""
    with context.snapshot() as session:
        repository.find(session, principal.tenant_id, dataset_id)
        balance = ledger_repository.read_balance(session, dataset_id)
        entries = ledger_repository.lines_before(session, dataset_id, before=before, limit=limit + 1)
        faults = RECENT.faults(session, dataset_id, balance) if before is None else []
    page = entries[-limit:]
    items = [
        LedgerEntryReply(
            seq=e.seq,
            release_id=e.release_id,
            kind=e.kind,
            simple=e.simple,
            renyi=e.renyi,
            created_at=e.created_at,
            previous_hash=bytes(e.previous_hash).hex(),
            hash=bytes(e.hash).hex(),
        )
        for e in page
    ]
    shown = LedgerBalanceReply(
        simple_pending=balance.simple_pending,
        simple_posted=balance.simple_posted,
        renyi_pending=balance.renyi_pending,
        renyi_posted=balance.renyi_posted,
        entry_count=balance.entry_count,
        head_hash=bytes(balance.head_hash).hex(),
    )
    return LedgerReply(
        dataset_id=dataset_id,
        items=items,
        balance=shown,
        verified=not faults if before is None else None,
        faults=faults,
        next=page[0].seq if len(page) < len(entries) else None,
    )


def _rounded_down(amount: int, bits: int = 6) -> int:
    """To its first bits. A second of arithmetic stands behind each amount, so amounts that hardly differ share one."""
    spare = max(0, amount.bit_length() - bits)
    return amount >> spare << spare


def _epsilon_spent(balance: Amounts, budget: Budget) -> float:
    """Spent means reserved or charged."""
    simple, renyi = balance.simple_pending + balance.simple_posted, balance.renyi_pending + balance.renyi_posted
    return proven_epsilon(simple, renyi, budget)
