"""Same rows, same budget: rows that have one are refused another, and their owner is told what can be done."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence

from sqlalchemy.orm import Session

from service.auth.principal import Principal
from service.base.errors import DuplicateRows
from service.base.messages import Message
from service.datasets import repository
from service.datasets.declaration import Declaration
from service.datasets.models import Dataset
from service.domain.image_schema import parse_schema
from service.domain.open_columns import reopened
from service.domain.table_schema import TableSchema
from service.intake.table.alike import ColumnFingerprint, alike

_SAME_ROWS = Message("these rows already have a budget; uploading them again cannot open a new one")


def _is_declared_alike(known: Dataset, declaration: Declaration) -> bool:
    unit = None if declaration.privacy_unit is None else declaration.privacy_unit.as_json()
    schema = parse_schema(known.schema)
    declared = reopened(schema) if isinstance(schema, TableSchema) else schema
    said = (declaration.schema, unit, declaration.rows_are_public)
    return (declared, known.privacy_unit, known.rows_are_public) == said


def refuse_duplicate(
    session: Session,
    principal: Principal,
    fingerprints: Collection[bytes],
    column_fingerprints: Sequence[ColumnFingerprint],
    distinct_from: Collection[uuid.UUID],
    declaration: Declaration | None = None,
) -> None:
    """Same rows, same budget, whatever is declared to be missing, and what is done to a few columns (docs/privacy.md, Limits).

    Only the rows' own tenant learns which dataset it is, and whether whole rows are the same or most columns. There an owner
    may say that most columns only look alike; of another tenant's rows that cannot be said. Of the same rows in a new upload
    it also learns whether the `declaration` is that of the dataset.
    """
    known = repository.find_by_fingerprints(session, fingerprints)
    if known is not None:
        if known.tenant_id != principal.tenant_id:
            raise DuplicateRows(_SAME_ROWS)
        alike_too = {} if declaration is None else {"same_declaration": _is_declared_alike(known, declaration)}
        stays = declaration is not None and declaration.rows_are_public and not known.rows_are_public
        remedy = Message("and rows that were uploaded as private stay private") if stays else _remedy(session, known)
        said = Message("%(same_rows)s; %(remedy)s", same_rows=_SAME_ROWS, remedy=remedy)
        raise DuplicateRows(said, dataset_id=str(known.id), **alike_too)
    matches = repository.find_matches(session, principal.tenant_id, column_fingerprints)
    look_alikes = repository.find_all(session, alike(column_fingerprints, matches) - set(distinct_from))
    if not look_alikes:
        return
    own = next((dataset for dataset in look_alikes if dataset.tenant_id == principal.tenant_id), None)
    if own is None:
        raise DuplicateRows(_SAME_ROWS)
    raise DuplicateRows(
        Message(
            "most columns of these rows are those of dataset %(name)s, which has its budget. If they are still other "
            "people's rows, name that dataset in distinct_from (--distinct-from)",
            name=repr(own.name),
        ),
        dataset_id=str(own.id),
        columns_match=True,
    )


def _remedy(session: Session, known: Dataset) -> str:
    """What the owner of these rows can do."""
    name = repr(known.name)
    if known.state == "erased":
        return Message(
            "its dataset, %(name)s, was erased after an order, and these rows have no budget any more", name=name
        )
    if repository.standing(session, known.id).charged:
        return Message("order from its dataset, %(name)s, as it was declared", name=name)
    return Message(
        "until the first order of its dataset, %(name)s, is charged, its declaration can be corrected: "
        "`imprimatur redeclare %(id)s`, PUT /v1/datasets/%(id)s/declaration",
        name=name,
        id=known.id,
    )
