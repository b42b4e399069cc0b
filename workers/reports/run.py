"""The owner's report on one published release, in a process of its own: `python -m workers.reports.run RELEASE_ID SECONDS BYTES`.

The release is published before this begins, and nothing that anybody but the owner sees depends on how it ends. It writes no line
of a log: what could be said here would be about rows.
"""

from __future__ import annotations

import os
import sys
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING

from service.base.errors import ImprimaturError
from service.datasets import owner_reports
from service.datasets.models import Dataset
from service.platform.context import Context, open_context
from service.platform.crypto import open_decrypted
from service.releases.models import Release
from workers.child import Limits, limit_myself
from workers.held_out import Split
from workers.reports.owner import Made, owner_report

if TYPE_CHECKING:
    from typing import BinaryIO

NICENESS = 10
"""A training beside it has most of the processor (`workers.run.NICENESS`)."""


def write_report(context: Context, release_id: uuid.UUID) -> None:
    """Compute, encrypt, store. What goes wrong is stored, too, for the owner."""
    with context.transaction() as session:
        release = session.get_one(Release, release_id)
        dataset = session.get_one(Dataset, release.dataset_id)
    if release.state != "published" or release.bundle_key is None or not release.order.owner_report:
        return
    try:
        bundle = context.storage.get_content(release.bundle_key)
        price, split = release.price, Split.of(release.order, release.id)
        made = Made(price["epsilon"], price["delta"], dataset.units, split)
        report = owner_report(dataset.table_schema, _rows(context, dataset), bundle, made)
    except Exception as error:  # noqa: BLE001 - whatever it is, the owner learns its kind, and no one else that there was one
        report = {"failed": type(error).__name__}
    with suppress(ImprimaturError):  # erased meanwhile, or the store is silent: there is no report
        owner_reports.put(context, dataset, release_id, report)


def _rows(context: Context, dataset: Dataset) -> BinaryIO:
    key, storage = str(dataset.storage_key), context.storage
    data_key = context.secrets.unwrap_data_key(bytes(dataset.wrapped_data_key or b""), dataset.id)
    return open_decrypted(
        lambda start, stop: storage.read_range(key, start, stop),
        storage.size(key),
        data_key,
        context=dataset.rows_context,
    )


def main() -> int:
    """Make the report named on the command line."""
    os.nice(NICENESS)
    limit_myself(Limits.from_arguments(sys.argv[2:4]), has_gpu=False)
    write_report(open_context(), uuid.UUID(sys.argv[1]))
    return 0


if __name__ == "__main__":
    with suppress(Exception):  # its message may quote a cell
        sys.exit(main())
    sys.exit(1)
