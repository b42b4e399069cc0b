"""Claims on releases: compare-and-set with a fencing token and a lease in Postgres.

The worker with the newest token may write; a worker that was frozen past its lease finds its token outdated and can
report no progress, leave no checkpoint and publish nothing. All times are the database's.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.orm import Session

from service.base.errors import ImprimaturError
from service.datasets import repository as datasets
from service.ledger import service as ledger
from service.platform.database import statement, transaction
from service.platform.settings import Settings
from service.releases.models import ACTIVE

RETRY = 75
"""Exit status of an attempt, EX_TEMPFAIL: nothing is wrong with the release; let another one go on from the checkpoint."""


class LeaseLost(ImprimaturError):
    """Another worker holds a newer claim on this release, or it has ended."""

    code = "lease_lost"


@dataclass(frozen=True, slots=True)
class Lease:
    """One claim: which release, and the fencing token that every write must carry."""

    release_id: uuid.UUID
    token: int


def claim_next(settings: Settings) -> Lease | None:
    """Take the release whose turn it is, if one waits. After its last attempt it is failed instead; the charge stands.

    The claim is a statement, and so a transaction, by itself: a worker that freezes in the middle of it holds up no other.
    """
    query = text("SELECT release, token, attempts FROM release_claim(:lease_seconds)")
    while True:
        with statement(settings) as session:
            row = session.execute(query, {"lease_seconds": settings.lease_seconds}).one()
        if row.release is None:
            return None
        lease = Lease(row.release, row.token)
        if row.attempts <= settings.max_attempts:
            return lease
        with suppress(LeaseLost), transaction(settings) as session:
            end_without_publishing(session, lease, failure="worker_lost")


def renew(session: Session, lease: Lease, *, lease_seconds: float) -> None:
    """The heartbeat. Raises `LeaseLost` when the claim is no longer ours."""
    _write(
        session,
        lease,
        "lease_expires_at = clock_timestamp() + make_interval(secs => :lease_seconds)",
        lease_seconds=lease_seconds,
    )


def give_back(session: Session, lease: Lease, *, spent: bool) -> None:
    """Let the release wait for its next turn at once: the next claim of any worker finds it.

    An attempt that was not spent does not count: a worker that is told to stop says nothing about the release.
    """
    _write(
        session,
        lease,
        "lease_expires_at = clock_timestamp() - interval '1 second', attempts = attempts - :unspent",
        unspent=0 if spent else 1,
    )


def is_cancelled(session: Session, lease: Lease) -> bool:
    """Whether a person has asked to stop, or has voided it. A read, so it costs next to nothing."""
    asked = session.execute(
        text("SELECT cancel_requested AND state <> 'published' FROM releases WHERE id = :id AND lease_token = :token"),
        {"id": lease.release_id, "token": lease.token},
    ).scalar_one_or_none()
    return bool(asked)


def report(session: Session, lease: Lease, *, step: int, phase: str) -> bool:
    """Publish progress; returns whether a person has asked to stop."""
    row = _write(session, lease, "step = :step, phase = :phase", step=step, phase=phase)
    return bool(row.cancel_requested)


def record_steps(session: Session, lease: Lease, *, steps: int, renyi: int) -> None:
    """Record that so many steps, of this Rényi cost, may be seen: no settlement is below it. Committed before a checkpoint is stored."""
    call = text("SELECT release_record_steps(:id, :token, :steps, :renyi)")
    values = {"id": lease.release_id, "token": lease.token, "steps": steps, "renyi": renyi}
    if not session.execute(call, values).scalar_one():
        raise LeaseLost("this worker no longer holds the release")


def record_checkpoint(session: Session, lease: Lease, *, key: str) -> None:
    """After `record_steps`. From here on an attempt continues from this object. What a frozen worker has put beside it is never read."""
    _write(session, lease, "checkpoint_key = :key", key=key)


def charge(session: Session, lease: Lease) -> None:
    """Post the reservation, in the transaction that moves the release to `charged`. A second call changes nothing."""
    row = _write(session, lease, "state = 'charged'")
    ledger.post(session, row.dataset_id, lease.release_id)
    # From here on the declaration stays, so the upload as it came is no longer needed. Its key goes in the same transaction.
    datasets.forget_upload(session, row.dataset_id)


def publish(session: Session, lease: Lease, *, bundle_key: str, certificate_json: str) -> None:
    """The last write: from here on everybody in the tenant may fetch the artefacts. Only what was charged gets there."""
    _write(
        session,
        lease,
        "state = 'published', phase = 'published', step = steps, lease_expires_at = NULL, checkpoint_key = NULL, "
        "bundle_key = :bundle_key, certificate = CAST(:certificate AS jsonb)",
        only_from=("charged",),
        bundle_key=bundle_key,
        certificate=certificate_json,
    )


def declare(session: Session, lease: Lease, *, schema_json: str) -> None:
    """Replace the dataset's declaration by one with what was bought, in the transaction of `publish`."""
    call = text("SELECT dataset_declare(:id, :token, CAST(:schema AS jsonb))")
    outcome = session.execute(call, {"id": lease.release_id, "token": lease.token, "schema": schema_json}).scalar_one()
    if outcome == "lost":
        raise LeaseLost("this worker no longer holds the release")
    if outcome != "done":
        raise RuntimeError("the database refuses what was bought as the dataset's declaration")


def end_without_publishing(session: Session, lease: Lease, *, failure: str, settled_renyi: int | None = None) -> None:
    """Fail a release. Before the charge its reservation is voided; after it the charge stands, or is settled.

    Never below what was recorded.
    """
    row = _write(
        session,
        lease,
        "phase = 'ended', lease_expires_at = NULL, checkpoint_key = NULL, failure = :failure",
        failure=failure,
    )
    if row.state == "reserved":
        ledger.void(session, row.dataset_id, lease.release_id)
        _write(session, lease, "state = 'voided'")
        return
    if settled_renyi is not None:
        # An attempt may have recorded steps and ended before it stored them.
        ledger.settle(session, row.dataset_id, lease.release_id, renyi=max(settled_renyi, row.recorded_renyi))
    _write(session, lease, "state = 'failed'")


def _write(
    session: Session, lease: Lease, assignments: str, *, only_from: tuple[str, ...] = ACTIVE, **values: object
) -> Row[Any]:
    """One fenced UPDATE: nothing happens, and `LeaseLost` is raised, unless the token is still the newest."""
    row = session.execute(
        text(
            f"UPDATE releases SET {assignments}, updated_at = now() "  # noqa: S608 - the assignments are constants of this module
            "WHERE id = :id AND lease_token = :token AND state = ANY(:only_from) "
            "RETURNING state, dataset_id, cancel_requested, recorded_renyi"
        ),
        {"id": lease.release_id, "token": lease.token, "only_from": list(only_from), **values},
    ).one_or_none()
    if row is None:
        raise LeaseLost("this worker no longer holds the release")
    return row
