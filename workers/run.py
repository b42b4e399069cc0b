"""One attempt at one release, in a process of its own: `python -m workers.run RELEASE_ID TOKEN`.

Reserve, commit, then touch: the charge is posted and committed before the first private row is decrypted. From then on
no outcome gives it back. Exit status 0 means that the release has ended or is no longer ours; anything else asks for
another attempt.
"""

from __future__ import annotations

import json
import logging
import signal
import sys
import time
import traceback
import uuid
from types import FrameType

from service.context import Context, open_context
from service.crypto import decrypt
from service.datasets.models import Dataset
from service.errors import NotFound, Unavailable
from service.ledger import repository as ledger_repository
from service.ledger.models import LedgerEntry
from service.privacy.accounting import first_steps, renyi_divergence
from service.privacy.filters import renyi_cost
from service.releases.models import Release
from workers import lease as leases
from workers.bundle import UnusableGeneratorError, build_bundle
from workers.certificate import certify
from workers.encoding.table import EncodedTable, TableDomain, encode_table
from workers.lease import Lease, LeaseLost
from workers.mechanism.secure_random import SecureRandom
from workers.plan import Plan
from workers.training import TrainedGenerator, TrainingStopped, train

logger = logging.getLogger(__name__)

REPORT_SECONDS = 0.3
RETRY = 75
"""EX_TEMPFAIL: nothing is wrong with the release; let another attempt continue from the checkpoint."""


BROKEN = 1
"""Something nobody expected; other attempts may fare better, and after the last one the release fails."""


class NotPrivateError(RuntimeError):
    """A generator trained on test noise must never be published."""


class Attempt:
    """One claim on one release, from charge to publication."""

    def __init__(self, context: Context, lease: Lease) -> None:
        self.context = context
        self.lease = lease
        with context.transaction() as session:
            self.release = session.get_one(Release, lease.release_id)
            self.dataset = session.get_one(Dataset, self.release.dataset_id)
        self.handed_over = False
        self._next_report = 0.0
        self._cancelled = False

    def run(self) -> None:
        """Charge, read, train, publish."""
        if self.dataset.storage_key is None:
            self.end(failure="erased")
            return
        self.report(0, "charging")
        if self._cancelled:
            self.end(failure="cancelled")
            return
        posted = self.charge()
        self.report(0, "reading")
        schema = self.dataset.table_schema
        domain = TableDomain.from_schema(schema, numeric_bins=self.release.order.networks.numeric_bins)
        table = self.read_rows(domain)
        plan = Plan(self.release.events)
        try:
            trained = train(
                self.release.order,
                plan,
                table,
                domain,
                SecureRandom(),
                on_progress=lambda step: self.report(step, "training"),
                checkpoints=Checkpoints(self.context, self.lease.release_id),
                should_stop=lambda: self._cancelled or self.handed_over,
            )
        except TrainingStopped:
            if self.handed_over:
                raise
            self.settle(plan.steps_done)
            return
        self.report(plan.steps_done, "bundling", at_once=True)
        try:
            self.publish(trained, domain, posted)
        except UnusableGeneratorError:
            # Weights are computed from noised sums alone, so that they diverged is no secret; the charge stands.
            self.end(failure="diverged")

    def charge(self) -> LedgerEntry:
        """Post and commit. A resumed attempt finds its charge already there."""
        with self.context.transaction() as session:
            leases.charge(session, self.lease)
        with self.context.transaction() as session:
            return ledger_repository.entries_of_release(session, self.lease.release_id)["post"]

    def read_rows(self, domain: TableDomain) -> EncodedTable:
        """Decrypt and encode. The plain rows exist in this process only; large codes in a scratch file without a name."""
        dataset = self.dataset
        if dataset.storage_key is None or dataset.wrapped_data_key is None:
            raise NotFound("the rows were erased")
        data_key = self.context.secrets.unwrap_data_key(bytes(dataset.wrapped_data_key), dataset.id)
        rows = b"".join(decrypt(self.context.storage.stream(dataset.storage_key), data_key))
        unit = dataset.unit
        return encode_table(
            rows,
            domain,
            units=dataset.units,
            max_rows_per_unit=1 if unit is None else unit.max_rows_per_unit,
            scratch_dir=self.context.settings.scratch_dir,
        )

    def report(self, step: int, phase: str, *, at_once: bool = False) -> None:
        """Write progress a few times a second, and learn whether somebody wants to stop."""
        if not at_once and phase == "training" and time.monotonic() < self._next_report:
            return
        try:
            with self.context.transaction() as session:
                self._cancelled = leases.report(session, self.lease, step=step, phase=phase)
        except Unavailable:
            logger.warning("no progress written: the database does not answer")
        self._next_report = time.monotonic() + REPORT_SECONDS

    def settle(self, steps_done: int) -> None:
        """A person stopped it early: the Rényi account keeps the steps that ran, the simple account its whole share."""
        ran = first_steps(self.release.events, steps_done)
        divergence = renyi_divergence(ran, self.dataset.renyi_order) if ran else 0.0
        cost = min(self.release.renyi_cost, renyi_cost(divergence, self.dataset.budget))
        self.end(failure="cancelled", settled_renyi=cost)

    def end(self, *, failure: str, settled_renyi: int | None = None) -> None:
        with self.context.transaction() as session:
            leases.end_without_publishing(session, self.lease, failure=failure, settled_renyi=settled_renyi)
        Checkpoints(self.context, self.lease.release_id).discard()

    def publish(self, trained: TrainedGenerator, domain: TableDomain, posted: LedgerEntry) -> None:
        """Bundle under its content hash first, then the one fenced write that makes it visible."""
        if not trained.is_private:
            raise NotPrivateError("this generator was trained on test noise")
        certificate = certify(
            self.context.secrets, dataset=self.dataset, release=self.release, posted=posted, trained=trained
        )
        bundle = build_bundle(
            trained.generator,
            domain,
            noise_dimension=trained.noise_dimension,
            condition_index=trained.condition_index,
            condition_frequencies=trained.condition_frequencies,
            schema=self.dataset.table_schema,
            certificate=certificate,
            order=self.release.order_,
        )
        bundle_key = self.context.storage.put_content("bundles", bundle)
        with self.context.transaction() as session:
            leases.publish(session, self.lease, bundle_key=bundle_key, certificate_json=json.dumps(certificate))
        Checkpoints(self.context, self.lease.release_id).discard()


class Checkpoints:
    """The latest checkpoint of a release in the object store. It holds nothing that was not noised or public."""

    def __init__(self, context: Context, release_id: uuid.UUID) -> None:
        self._storage = context.storage
        self._key = f"checkpoints/{release_id}"

    def put(self, checkpoint: bytes) -> None:
        self._storage.put(self._key, checkpoint)

    def get(self) -> bytes | None:
        try:
            return self._storage.get(self._key)
        except NotFound:
            return None

    def discard(self) -> None:
        self._storage.delete(self._key)


def main() -> int:
    """Run the attempt named on the command line."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    lease = Lease(uuid.UUID(sys.argv[1]), int(sys.argv[2]))
    attempt = Attempt(open_context(), lease)

    def hand_over(_: int, __: FrameType | None) -> None:
        attempt.handed_over = True

    signal.signal(signal.SIGTERM, hand_over)
    try:
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
        return BROKEN
    return 0


if __name__ == "__main__":
    sys.exit(main())
