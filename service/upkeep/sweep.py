"""Destroys rows whose deletion date has come, and removes what a crash left in the object store and no row names.

Bundles, checkpoints and rows are written before the transaction that names them, so a young object may simply not be named yet.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from sqlalchemy import Text, cast, or_, select
from sqlalchemy.orm import Session

from service.datasets import owner_reports, staging
from service.datasets.models import Dataset
from service.datasets.service import destroy_needless_uploads, erase_expired
from service.platform.context import Context
from service.releases.models import ACTIVE, Release

logger = logging.getLogger(__name__)

FIRST_SWEEP_SECONDS, SWEEP_SECONDS = 60.0, 3_600.0
STAGED_SECONDS = 60.0
"""So often uploads that were not published are looked at; each may lie for an hour."""
MIN_AGE_SECONDS = 86_400.0
"""Far longer than any upload or publication takes between writing an object and naming it."""


def sweep(context: Context, *, min_age_seconds: float = MIN_AGE_SECONDS) -> int:
    """Erase expired rows and needless uploads, then delete every orphan older than `min_age_seconds`; returns how many orphans."""
    erase_expired(context)
    destroy_needless_uploads(context)
    staging.remove_expired(context)
    # Listed first: what is named after the listing was either listed and is named now, or is too young.
    old = list(context.storage.list_older(min_age_seconds))
    with context.transaction() as session:
        orphans = list(_orphans(session, old))
    for key in orphans:
        context.storage.delete(key)
    if orphans:
        logger.info("swept %d orphaned objects", len(orphans))
    return len(orphans)


def _orphans(session: Session, keys: list[str]) -> Iterator[str]:
    for key in keys:
        prefix = key.partition("/")[0]
        if prefix == "datasets":
            named = select(Dataset.id).where(or_(Dataset.storage_key == key, Dataset.upload_key == key))
        elif prefix == "bundles":
            named = select(Release.id).where(Release.bundle_key == key)
        elif prefix == "checkpoints":
            named = select(Release.id).where(Release.checkpoint_key == key, Release.state.in_(ACTIVE))
        elif prefix == owner_reports.FOLDER:  # put while the rows were erased: without their key it is of no use
            dataset_id = key.split("/")[1]
            named = select(Dataset.id).where(
                cast(Dataset.id, Text) == dataset_id, Dataset.wrapped_data_key.is_not(None)
            )
        elif prefix == staging.STAGED:
            if not staging.is_staged(session, key):
                yield key
            continue
        else:
            continue  # not ours
        if session.scalars(named.limit(1)).first() is None:
            yield key
