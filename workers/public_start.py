"""The public rows that an order begins from: looked up anew, and read before anything is charged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from service.base.errors import InvalidOrder, NotFound
from service.datasets.public import check_public_start
from service.methods.catalogue import method_of

if TYPE_CHECKING:
    from service.datasets.models import Dataset
    from service.platform.context import Context
    from service.releases.models import Release
    from workers.stored_rows import StoredRows


class Attempt(Protocol):
    """What of an attempt is asked here."""

    context: Context
    release: Release
    dataset: Dataset
    public: Dataset | None


def load_public(attempt: Attempt) -> Dataset | None:
    """Asked of the database: the rows may be erased by now, and an order may have been written by who checks nothing."""
    order = attempt.release.order
    named = method_of(order).also_reads(order)
    if named is None:
        return None
    with attempt.context.transaction() as session:
        try:
            return check_public_start(session, attempt.release.tenant_id, named, attempt.dataset)
        except InvalidOrder:
            return None


def lacks_public_rows(attempt: Attempt) -> bool:
    """Whether the order names a dataset that it may not begin from, or not any more."""
    order = attempt.release.order
    return attempt.public is None and method_of(order).also_reads(order) is not None


def reads_public_rows(attempt: Attempt, rows: StoredRows) -> bool:
    """Read them, where the order names some, so that the attempt needs them no more; False: they are gone.

    Before the charge: they are no private rows, they may be erased at any moment, and what cannot be read costs nothing.
    """
    if attempt.public is None:
        return True
    try:
        rows.keep_public(attempt.release.order)
    except NotFound:
        if load_public(attempt) is None:
            return False
        raise  # they should be there, and another attempt may find them
    return True
