"""What an owner says about a dataset before it is read: the fields of an upload, each refused by its name."""

from __future__ import annotations

import datetime as dt
import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

from pydantic import AwareDatetime, Field, TypeAdapter, ValidationError

from service.base.errors import InvalidInput
from service.base.faults import sentence_of
from service.base.messages import Message
from service.base.text import MAX_NAME_LENGTH, read_json
from service.datasets.schemas import BudgetRequest
from service.domain.drafts import refuse_draft
from service.domain.image_schema import DeclaredSchema, parse_schema
from service.domain.open_columns import refuse_bought
from service.domain.privacy_unit import DeclaredUnit, parse_privacy_unit
from service.domain.table_schema import MAX_FIELDS

if TYPE_CHECKING:
    from service.requests.uploads import Upload

FURTHEST_EXPIRY = dt.timedelta(days=36_525)
MOST_DISTINCT_FROM = 100

_Columns = Annotated[list[Annotated[str, Field(max_length=200)]], Field(max_length=MAX_FIELDS)]
_Ids = Annotated[list[uuid.UUID], Field(max_length=MOST_DISTINCT_FROM)]


@dataclass(frozen=True, slots=True)
class Declaration:
    """Everything the owner says about a table before it is read."""

    name: str
    schema: DeclaredSchema
    budget: BudgetRequest
    privacy_unit: DeclaredUnit | None
    rows_expire_at: dt.datetime | None
    distinct_from: tuple[uuid.UUID, ...] = ()
    """Datasets of the tenant that may look the same and hold other people's rows, on the owner's word."""

    accept_undeclared: frozenset[str] = frozenset()
    """Columns most of whose cells may be outside what is declared, on the owner's word."""

    rows_are_public: bool = False
    """Everybody may have the rows, on the owner's word; never of rows that only look like those of another dataset."""

    def told_apart(self) -> list[str]:
        """What its owner hears of datasets that may look the same."""
        return [
            Message(
                "You declare that dataset %(dataset)s holds other people's rows, and get another budget because you say so; "
                "the audit log records it.",
                dataset=str(other),
            )
            for other in self.distinct_from
        ]


def parse_declaration(
    *,
    schema: str,
    budget: str,
    name: str | None,
    privacy_unit: str | None,
    rows_expire_at: str | None,
    distinct_from: str | None = None,
    accept_draft: str | None = None,
    accept_undeclared: str | None = None,
) -> Declaration:
    """Read the JSON fields of an upload; raises `InvalidInput` naming the field that is wrong."""
    name = checked_name("dataset" if name is None else name)
    try:
        budget_request = BudgetRequest.model_validate(read_json(budget, "budget"))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(["budget", *map(str, first["loc"])])
        raise InvalidInput(
            Message("%(where)s: %(fault)s", where=where, fault=sentence_of(first)), where=where
        ) from None
    declared = parse_schema(read_json(schema, "schema"))
    refuse_bought(declared)
    if not (accept_draft is not None and parse_flag(read_json(accept_draft, "accept_draft"), "accept_draft")):
        refuse_draft(declared)
    unit = None if privacy_unit is None else parse_privacy_unit(read_json(privacy_unit, "privacy_unit"))
    return Declaration(
        name=name,
        schema=declared,
        budget=budget_request,
        privacy_unit=unit,
        rows_expire_at=_parse_expiry(rows_expire_at),
        distinct_from=_parse_ids(distinct_from, "distinct_from"),
        accept_undeclared=parse_columns(
            [] if accept_undeclared is None else read_json(accept_undeclared, "accept_undeclared"), "accept_undeclared"
        ),
    )


def declaration_of(upload: Upload) -> Declaration:
    """The fields beside a file."""
    return parse_declaration(
        schema=upload.required("schema"),
        budget=upload.required("budget"),
        name=upload.fields.get("name"),
        privacy_unit=upload.fields.get("privacy_unit"),
        rows_expire_at=upload.fields.get("rows_expire_at"),
        distinct_from=upload.fields.get("distinct_from"),
        accept_draft=upload.fields.get("accept_draft"),
        accept_undeclared=upload.fields.get("accept_undeclared"),
    )


def with_public_rows(declaration: Declaration, said: str | None) -> Declaration:
    """The declaration with the field of an upload that says whether everybody may have the rows; None: it was left out."""
    if said is None or not parse_flag(read_json(said, "rows_are_public"), "rows_are_public"):
        return declaration
    if declaration.distinct_from:
        raise InvalidInput(
            Message(
                "rows_are_public: rows that look like those of another dataset cannot be declared public; leave out "
                "distinct_from or this"
            ),
            where="rows_are_public",
        )
    return replace(declaration, rows_are_public=True)


def parse_flag(said: object, where: str) -> bool:
    """True or false, and nothing that only looks like it."""
    if not isinstance(said, bool):
        raise InvalidInput(Message("%(where)s: write true or false", where=where), where=where)
    return said


def parse_columns(said: object, where: str) -> frozenset[str]:
    """Names of columns."""
    try:
        return frozenset(TypeAdapter(_Columns).validate_python(said, strict=True))
    except ValidationError:
        raise InvalidInput(Message("%(where)s: give a JSON list of column names", where=where), where=where) from None


def _parse_ids(text: str | None, where: str) -> tuple[uuid.UUID, ...]:
    if text is None:
        return ()
    try:
        return tuple(dict.fromkeys(TypeAdapter(_Ids).validate_python(read_json(text, where))))
    except ValidationError:
        raise InvalidInput(
            Message(
                "%(where)s: give a JSON list of at most %(most_distinct_from)s dataset ids",
                where=where,
                most_distinct_from=MOST_DISTINCT_FROM,
            ),
            where=where,
        ) from None


def checked_name(name: str) -> str:
    """Without blanks around it; raises `InvalidInput`."""
    name = name.strip()
    if not 1 <= len(name) <= MAX_NAME_LENGTH or not name.isprintable():
        raise InvalidInput(
            Message("name: use 1 to %(max_name_length)s printable characters", max_name_length=MAX_NAME_LENGTH),
            where="name",
        )
    return name


def _parse_expiry(text: str | None) -> dt.datetime | None:
    if text is None:
        return None
    try:
        return TypeAdapter(AwareDatetime).validate_python(text.strip())
    except ValidationError:
        raise InvalidInput(
            Message("rows_expire_at: give a moment with its time zone, like 2027-01-31T00:00:00Z"),
            where="rows_expire_at",
        ) from None


def check_expiry(moment: dt.datetime | None, now: dt.datetime) -> None:
    """`now`: the database's time. Raises `InvalidInput` for a date that has passed or is far away."""
    if moment is not None and not now < moment <= now + FURTHEST_EXPIRY:
        raise InvalidInput(
            Message("rows_expire_at: name a moment within the next hundred years"), where="rows_expire_at"
        )
