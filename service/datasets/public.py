"""Which orders may begin from a dataset that is declared public; asked where they are placed, and by workers.

An owner says so with the upload. It cannot be said later or taken back (migration 0026), and the audit log keeps it. Only orders
of the same tenant may name such a dataset, and a worker asks again before it charges.
"""

from __future__ import annotations

import math
import uuid
from typing import TYPE_CHECKING

from sqlalchemy import select

from service.base.errors import InvalidOrder
from service.base.messages import Message
from service.datasets.models import Dataset
from service.domain.alike import first_difference
from service.domain.image_schema import DeclaredSchema, ImageSchema
from service.domain.table_schema import TableSchema
from service.methods.facts import PublicRows
from service.methods.idpgan.work import MOST_PUBLIC_BYTES

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


WHERE = "public_dataset"
BYTES_OF_A_CODE = 2
"""Of a cell of a row."""


def check_public_start(session: Session, tenant_id: uuid.UUID, public_id: uuid.UUID, private: Dataset) -> Dataset:
    """The public dataset that an order on `private` begins from. Raises `InvalidOrder`: another tenant's looks like none."""
    if public_id == private.id:
        raise InvalidOrder(Message("%(where)s: this is the dataset itself; name another one", where=WHERE), where=WHERE)
    return check_public_start_of(session, tenant_id, public_id, private.declared_schema)


def check_public_start_of(
    session: Session, tenant_id: uuid.UUID, public_id: uuid.UUID, declared: DeclaredSchema
) -> Dataset:
    """The same check for a declaration whose dataset may not be made yet."""
    found = session.scalars(
        select(Dataset)
        .where(Dataset.id == public_id, Dataset.tenant_id == tenant_id)
        .where(Dataset.rows_are_public.is_(True))
        .execution_options(populate_existing=True)
    ).one_or_none()
    if found is None:
        raise InvalidOrder(
            Message(
                "%(where)s: none of your datasets of this id is declared public; that is said at the upload "
                "(rows_are_public), and never later",
                where=WHERE,
            ),
            where=WHERE,
        )
    if found.state == "erased":
        raise InvalidOrder(Message("%(where)s: the rows of this dataset were erased", where=WHERE), where=WHERE)
    _check_alike(found, declared)
    return found


def _check_alike(public: Dataset, private: DeclaredSchema) -> None:
    declared = public.declared_schema
    if isinstance(declared, ImageSchema) and isinstance(private, ImageSchema):
        _check_images_alike(declared, private)
    elif isinstance(declared, TableSchema) and isinstance(private, TableSchema):
        difference = first_difference(declared, private)
        if difference is not None:
            raise InvalidOrder(
                Message(
                    "%(where)s: the same modelled columns are needed in both datasets; %(difference)s",
                    where=WHERE,
                    difference=difference,
                ),
                where=WHERE,
            )
    else:
        raise InvalidOrder(
            Message("%(where)s: both datasets must hold images, or both must be tables", where=WHERE), where=WHERE
        )
    if public_rows_of(public).held_bytes > MOST_PUBLIC_BYTES:
        raise InvalidOrder(
            Message("%(where)s: its rows take more than %(most)s MiB", where=WHERE, most=MOST_PUBLIC_BYTES >> 20),
            where=WHERE,
        )


def public_rows_of(public: Dataset) -> PublicRows:
    """How much there is to read and to hold; from the declaration and n, as everybody of the tenant sees them."""
    declared = public.declared_schema
    one = (
        math.prod(declared.shape)
        if isinstance(declared, ImageSchema)
        else BYTES_OF_A_CODE * len(declared.modelled.fields)
    )
    rows = public.units * (1 if public.unit is None else public.unit.most)
    return PublicRows(rows, rows * one)


def _check_images_alike(declared: ImageSchema, private: ImageSchema) -> None:
    if declared.shape != private.shape or len(declared.class_names) != len(private.class_names):
        raise InvalidOrder(
            Message(
                "%(where)s: images of the same height, width and channels, and as many classes, are needed", where=WHERE
            ),
            where=WHERE,
        )
