"""The datasets, declared public, that an order on another one may begin from: for a form that lets people choose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from service.base.errors import InvalidOrder
from service.datasets import repository
from service.datasets.models import Dataset
from service.datasets.public import check_public_start

if TYPE_CHECKING:
    import uuid

    from sqlalchemy.orm import Session

    from service.auth.principal import Principal
    from service.platform.context import Context

MOST_SHOWN = 50


def public_starts(context: Context, principal: Principal, dataset_id: uuid.UUID) -> list[Dataset]:
    """The public datasets that an order may begin from, the newest first; decided as where an order is placed, from declarations alone."""
    of_tenant = select(Dataset).where(Dataset.tenant_id == principal.tenant_id, Dataset.rows_are_public.is_(True))
    with context.transaction() as session:
        private = repository.find(session, principal.tenant_id, dataset_id)
        found = session.scalars(of_tenant.order_by(Dataset.created_at.desc()).limit(MOST_SHOWN)).all()
        return [each for each in found if _fits(session, each, private)]


def _fits(session: Session, public: Dataset, private: Dataset) -> bool:
    try:
        check_public_start(session, private.tenant_id, public.id, private)
    except InvalidOrder:
        return False
    return True
