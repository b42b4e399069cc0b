"""One attempt at one release, in a process of its own: `python -m workers.run RELEASE_ID TOKEN SECONDS BYTES`.

Reserve, commit, then touch: the charge is posted and committed before the first private row is decrypted. From then on
the charge stands; a cancel lowers its Rényi part to the steps that ran. Exit status 0 means that the release has ended or
is no longer ours; anything else asks for another attempt.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import time
import traceback
import uuid
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

import torch
from sqlalchemy.orm import Session

from service.base.errors import InvalidOrder, NotFound, Tampered, Unavailable, Unpriceable
from service.datasets.models import Dataset
from service.domain.open_columns import closed
from service.ledger import log, signing_keys
from service.ledger import repository as ledger_repository
from service.ledger import service as ledger
from service.ledger.models import LedgerEntry
from service.methods.report import split
from service.platform.context import Context, open_context
from service.platform.database import database_time
from service.platform.signing import SigningKey
from service.privacy.accounting import first_steps, renyi_divergence
from service.privacy.calibration import is_paid
from service.privacy.events import failures_of
from service.privacy.filters import Shares, renyi_cost
from service.releases.models import Release
from service.releases.refusals import NOT_ACCEPTED, refusal_key
from workers import lease as leases
from workers.certificate import certify, state
from workers.child import CANCEL_SIGNAL, OVER_LIMITS, Limits, limit_myself, was_refused_memory
from workers.finished import Finished
from workers.fitting import misfit, says_what_it_costs, stated
from workers.generators.archive import pack
from workers.generators.errors import UnusableGeneratorError
from workers.generators.released import Released
from workers.held_out import training_rows
from workers.hooks import Hooks, TrainingStopped
from workers.kept import Checkpoints
from workers.lease import RETRY, Lease, LeaseLost
from workers.mechanism.secure_random import SecureRandom
from workers.methods.interface import run_class
from workers.plan import Plan
from workers.public_start import lacks_public_rows, load_public, reads_public_rows
from workers.reports.files import has_report, summary_of, with_report, without_report
from workers.stored_rows import StoredRows
from workers.training import choose_device, make_release

logger = logging.getLogger(__name__)

REPORT_SECONDS = 0.3
OFTEN = {"training", "warming up"}
"""Phases that tell their steps as they go; any other is told when it begins."""
PAUSE_SECONDS = 1.0
PATIENCE_SECONDS = 600.0
"""How long an attempt waits for a database or a store that does not answer, before it is handed over."""
NICENESS = 5
"""On one machine with the API, a training of minutes lets requests go first, which take milliseconds."""
BROKEN = 1
"""An unexpected error; another attempt may succeed, and after the last one the release fails."""

Answer = TypeVar("Answer")


class NotPrivateError(RuntimeError):
    """A generator trained on test noise must never be published."""


class Attempt:
    """One claim on one release, from charge to publication."""

    def __init__(self, context: Context, lease: Lease) -> None:
        self.context = context
        self.lease = lease
        self.handed_over = False
        self._next_report = 0.0
        self.cancelled = False
        self.release, self.dataset = self.patiently(self._load)
        self.public = self.patiently(lambda: load_public(self))
        """The public dataset that the order begins from; None where it names none, or none that may be used."""
        self.checkpoints = Checkpoints(self, self.release.checkpoint_key)
        self.hooks = Hooks(
            on_progress=lambda step: self.report(step, "training"),
            on_warm_up=lambda share: self.report(round(share * self.release.steps), "warming up"),
            should_stop=lambda: self.cancelled or self.handed_over,
            checkpoints=self.checkpoints,
        )

    def run(self) -> None:
        """Charge, read, train, publish."""
        finished = self.finished()
        if self.dataset.state == "erased" and (finished is None or self.release.order.accept is not None):
            self.end(failure="erased")  # nothing was finished, or its figures can no longer be measured
            return
        if finished is None and lacks_public_rows(self):
            self.end_without_public_rows()
            return
        if self.release.cancel_requested:
            # No worker held the release when a person stopped it. A charge is settled at what this attempt would have
            # gone on from; what ran after that was lost, unseen.
            self.settle(self.checkpoints.steps_done(self.release.events))
            return
        self.report(self.release.step, "charging")
        if (unfit := self.unfit(finished)) is not None:
            self.end(failure=unfit)
            return
        run_class(self.release.order)  # a method that cannot run here must not be charged
        self.patiently(self.signing_key)  # without one nothing could be published: found out before it is charged
        rows = StoredRows(self)
        if finished is None and not reads_public_rows(self, rows):
            self.end_without_public_rows()
            return
        posted = self.charge()
        if finished is None:
            self.make(posted, rows)
        else:
            self.publish_finished(finished, posted)

    def make(self, posted: LedgerEntry, stored: StoredRows) -> None:
        """Read, train, publish."""
        self.report(self.release.step, "reading")
        plan = Plan(split(self.release.events)[0])
        rows = training_rows(self.release.order, self.release.id, stored)
        try:
            made = make_release(self.release.order, plan, rows, SecureRandom(), self.hooks)
        except TrainingStopped:
            if self.handed_over:
                raise
            self.settle(max(plan.steps_done, self.checkpoints.steps_done(self.release.events)))
            return
        stored.drop_public()
        del rows, stored
        self.report(self.release.steps, "bundling", at_once=True)
        try:
            self.publish(made, posted)
        except UnusableGeneratorError:
            # Weights are computed from noisy sums alone, so that they diverged is no secret; the charge stands.
            self.end(failure="diverged")

    def unfit(self, finished: Finished | None) -> str | None:
        """Why it must end before it is charged."""
        found = misfit(self.release.order, self.dataset)
        if found is None and finished is None and not self.patiently(StoredRows(self).are_its_own):
            found = "tampered"
        if found is None and not self.is_paid():
            found = "underpaid"
        if found is None and finished is None and not self.has_device():
            found = "no_device"
        return found

    def has_device(self) -> bool:
        """Asked before the charge. Raises where a GPU is not here and another worker may have it; False at the last attempt."""
        try:
            choose_device(self.release.order.device)
        except InvalidOrder:
            if self.release.attempts < self.context.settings.max_attempts:
                raise
            return False
        return True

    def is_paid(self) -> bool:
        """Whether the events cost what is reserved and stated: who can write to the database could have written dearer ones, or a smaller ε."""
        if self.release.state != "reserved":
            return True  # looked at before it was charged; neither events nor costs can be changed since
        entries = self.in_transaction(lambda session: ledger_repository.entries_of_release(session, self.release.id))
        reserved = Shares(simple=entries["reserve"].simple, renyi=entries["reserve"].renyi)
        price, budget = self.release.price, self.dataset.budget
        try:
            events = self.release.events
        except (Unpriceable, KeyError, TypeError):
            return False  # raw SQL wrote no list of events
        paid = is_paid(events, reserved, budget, epsilon_scale=stated(price, "epsilon"))
        return paid and says_what_it_costs(price, events, reserved, budget)

    def charge(self) -> LedgerEntry:
        """Post and commit. A resumed attempt finds its charge already there."""
        self.in_transaction(lambda session: leases.charge(session, self.lease))
        if self.dataset.upload_key is not None:
            try:
                self.context.storage.delete(self.dataset.upload_key)
            except Unavailable as error:
                logger.warning("no upload removed: %s", error.code)  # no longer readable, and the sweep will remove it
        return self.in_transaction(
            lambda session: ledger_repository.entries_of_release(session, self.lease.release_id)["post"]
        )

    def data_key(self) -> bytes:
        if self.dataset.wrapped_data_key is None:
            raise NotFound("the rows were erased")
        return self.context.secrets.unwrap_data_key(bytes(self.dataset.wrapped_data_key), self.dataset.id)

    def report(self, step: int, phase: str, *, at_once: bool = False) -> None:
        """Write progress a few times a second, and learn whether somebody wants to stop."""
        if not at_once and phase in OFTEN and time.monotonic() < self._next_report:
            return
        try:
            with self.context.transaction() as session:
                self.cancelled = leases.report(session, self.lease, step=step, phase=phase)
        except Unavailable:
            logger.warning("no progress written: the database does not answer")
        self._next_report = time.monotonic() + REPORT_SECONDS

    def settle(self, steps_done: int) -> None:
        """End a release that a person has stopped: the Rényi account keeps the steps that ran, the simple account its whole share.

        A release that was never charged is voided in full.
        """
        self.end(failure="cancelled", settled_renyi=self.cost_after(steps_done))

    def end_without_public_rows(self) -> None:
        """Settled as where a person stops it: unlike rows that are erased themselves, those of the release still have a budget."""
        self.end(failure="erased", settled_renyi=self.cost_after(self.checkpoints.steps_done(self.release.events)))

    def cost_after(self, steps_done: int) -> int:
        """What the list costs up to there."""
        ran = first_steps(self.release.events, steps_done)
        divergence = renyi_divergence(ran, self.dataset.renyi_order) if ran else 0.0
        return min(self.release.renyi_cost, renyi_cost(divergence, self.dataset.budget, failures=failures_of(ran)))

    def end(self, *, failure: str, settled_renyi: int | None = None) -> None:
        self.in_transaction(
            lambda session: leases.end_without_publishing(
                session, self.lease, failure=failure, settled_renyi=settled_renyi
            )
        )
        self.checkpoints.discard()

    def publish(self, made: Released, posted: LedgerEntry) -> None:
        """Bundle under its content hash first, then the one fenced write that makes it visible."""
        if not made.is_private:
            raise NotPrivateError("this generator was trained on test noise")
        self.publish_finished(self.finish(made, posted), posted)

    def finish(self, made: Released, posted: LedgerEntry) -> Finished:
        """What is published of it, and the statement that goes with it; kept where a report has still to read rows."""
        others = self.in_transaction(lambda session: ledger.other_releases(session, self.dataset.id, self.release.id))
        statement = state(
            dataset=self.dataset,
            release=self.release,
            posted=posted,
            made=made,
            others=others,
            issued_at=self.in_transaction(database_time),
            public=self.public,
        )
        # Before the certificate, which signs them.
        files = made.files(schema=self.dataset.declared_schema, certificate=statement, order=self.release.order_)
        finished = Finished(statement, files, made.declares)
        if has_report(self.release):
            try:
                self.checkpoints.put(finished.to_bytes(split(self.release.events)[0]))
            except Unavailable as error:
                logger.warning("a finished generator was not kept: %s", error.code)  # the next attempt makes another
        return finished

    def finished(self) -> Finished | None:
        """What an earlier attempt has finished and not published."""
        if self.release.state != "charged" or not has_report(self.release):
            return None
        try:
            saved = self.checkpoints.get()
        except (NotFound, Tampered):
            if self.dataset.state == "erased":
                return None  # nothing can run anew; while rows are there, a run must not
            raise
        return None if saved is None else Finished.of(saved)

    def publish_finished(self, finished: Finished, posted: LedgerEntry) -> None:
        """With its report, or where that could not be made, without; or refuse it by its report."""

        def proved() -> tuple[SigningKey, dict[str, Any], list[dict[str, Any]]]:
            key = self.signing_key()  # read at each try: it may be replaced before the head is signed
            return key, *log.transparency(self.context, key, posted)

        report, files = self.reported(finished.files)
        statement = finished.statement | summary_of(report)
        is_refused = report is not None and report.get("accepted") is False
        key, transparency, consistency = self.patiently(proved)
        certificate = certify(
            key, statement, {} if is_refused else files, transparency=transparency, consistency=consistency
        )
        if is_refused:
            self.refuse({"report": report, "certificate": certificate})
            return
        content = pack(files, certificate)
        bundle_key = self.patiently(lambda: self.context.storage.put_content("bundles", content))
        self.in_transaction(lambda session: self._make_visible(session, finished, bundle_key, json.dumps(certificate)))
        self.checkpoints.discard()

    def reported(self, files: dict[str, bytes]) -> tuple[dict[str, Any] | None, dict[str, bytes]]:
        """The charged report, where one was ordered, and the files with it. Rows that are gone take the report with them, and nothing else.

        Whether they are gone is public. Of the report nothing has left this process by then.
        """
        if has_report(self.release) and self.release.order.accept is None and self.are_rows_gone():
            return without_report(files)
        try:
            return with_report(self.release, StoredRows(self), files, self.dataset.declared_schema)
        except NotFound:
            # Erased while they were read; anything else that is not there is a fault.
            if self.release.order.accept is not None or not self.are_rows_gone():
                raise
            return without_report(files)

    def are_rows_gone(self) -> bool:
        """By the database, now: what this attempt has loaded is older."""
        return self.in_transaction(lambda session: session.get_one(Dataset, self.dataset.id).state) == "erased"

    def _make_visible(self, session: Session, finished: Finished, bundle_key: str, certificate_json: str) -> None:
        """The release, and where it bought a declaration that, too: both or nothing."""
        leases.publish(session, self.lease, bundle_key=bundle_key, certificate_json=certificate_json)
        if finished.declares is not None:
            schema = closed(self.dataset.schema, finished.declares, str(self.release.id))
            leases.declare(session, self.lease, schema_json=json.dumps(schema))

    def refuse(self, record: dict[str, Any]) -> None:
        """End a release whose noisy figures are not what its order accepts. Nothing of the generator is published; the charge stands."""
        self.end(failure=NOT_ACCEPTED)
        self.patiently(lambda: self.context.storage.put(refusal_key(self.release.id), json.dumps(record).encode()))

    def signing_key(self) -> SigningKey:
        """The newest one, read from its file each time: it may be replaced while a training runs."""
        with self.context.transaction() as session:
            return signing_keys.current(session, self.context.settings)

    def in_transaction(self, work: Callable[[Session], Answer]) -> Answer:
        """One transaction, patiently. Fenced writes may be repeated: the token decides, and each changes state once."""

        def transact() -> Answer:
            with self.context.transaction() as session:
                return work(session)

        return self.patiently(transact)

    def patiently(self, action: Callable[[], Answer]) -> Answer:
        """A database or a store that does not answer for a while costs a while, not an attempt."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return action()
            except Unavailable as error:
                if self.handed_over or time.monotonic() > deadline:
                    raise
                logger.warning("waiting: %s", error.code)
                time.sleep(PAUSE_SECONDS)

    def _load(self) -> tuple[Release, Dataset]:
        with self.context.transaction() as session:
            release = session.get_one(Release, self.lease.release_id)
            return release, session.get_one(Dataset, release.dataset_id)


def main() -> int:
    """Run the attempt named on the command line."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    os.nice(NICENESS)
    lease = Lease(uuid.UUID(sys.argv[1]), int(sys.argv[2]))
    limit_myself(Limits.from_arguments(sys.argv[3:5]), has_gpu=torch.cuda.is_available())
    # Ctrl-C in a terminal reaches the whole group; it is the worker that decides when we stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        attempt = Attempt(open_context(), lease)

        def hand_over(_: int, __: FrameType | None) -> None:
            attempt.handed_over = True

        def cancel(_: int, __: FrameType | None) -> None:
            attempt.cancelled = True

        signal.signal(signal.SIGTERM, hand_over)
        signal.signal(CANCEL_SIGNAL, cancel)
        attempt.run()
    except LeaseLost:
        logger.info("release %s is no longer ours", lease.release_id)
    except (Unavailable, TrainingStopped) as error:
        logger.info("release %s is handed over: %s", lease.release_id, error.code)
        return RETRY
    except Exception as error:  # noqa: BLE001 - a process's last line of defence
        # Frames and class, never the message: a library's message may quote a cell.
        frames = "".join(traceback.format_tb(error.__traceback__))
        logger.error("release %s failed with %s\n%s", lease.release_id, type(error).__name__, frames)  # noqa: TRY400 - see above
        return OVER_LIMITS if was_refused_memory(error) else BROKEN
    return 0


if __name__ == "__main__":
    sys.exit(main())
