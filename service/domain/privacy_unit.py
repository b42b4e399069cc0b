"""The privacy unit: whose data one unit is. Without one, every row and every image is its own unit."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from service.base.errors import InvalidInput
from service.base.faults import sentence_of
from service.base.messages import Message, plural

MAX_ROWS_PER_UNIT = 10_000
MAX_IMAGES_PER_UNIT = 1_000
"""Sums of products grow with it, and stay exact: image_moments.scale_for."""

UnitPart = Literal["row", "image"]
MissingIds = Literal["refuse", "own_unit"]

IMAGE_UNITS = "unit"
"""The column of the labels file that says whose an image is; in NPZ the array `units`."""


class _Unit(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    missing: MissingIds = "refuse"
    """What becomes of rows and images without a unit id: the file is refused, or each is a unit of its own."""

    def as_json(self) -> dict[str, Any]:
        """The declaration as the owner would write it; what is not said is left out, as in earlier versions."""
        return self.model_dump(exclude_defaults=True)


class PrivacyUnit(_Unit):
    """All rows with one value of `column` are one unit, of which at most `max_rows_per_unit` rows are used."""

    column: Annotated[str, Field(min_length=1, max_length=200)]
    max_rows_per_unit: Annotated[int, Field(strict=True, ge=1, le=MAX_ROWS_PER_UNIT)]

    @field_validator("column")
    @classmethod
    def _printable(cls, column: str) -> str:
        if not column.isprintable() or column != column.strip():
            raise ValueError(Message("a column name must be printable and not begin or end with a space"))
        return column

    @property
    def most(self) -> int:
        return self.max_rows_per_unit


class ImageUnit(_Unit):
    """All images with one unit id are one unit, of which at most `max_images_per_unit` are used. The file says whose each is."""

    max_images_per_unit: Annotated[int, Field(strict=True, ge=1, le=MAX_IMAGES_PER_UNIT)]

    @property
    def most(self) -> int:
        return self.max_images_per_unit


DeclaredUnit = PrivacyUnit | ImageUnit


def parse_privacy_unit(document: Any) -> DeclaredUnit:
    """Read a declared privacy unit, of images where it bounds images; raises `InvalidInput` naming the field and the rule."""
    kind = ImageUnit if isinstance(document, dict) and "max_images_per_unit" in document else PrivacyUnit
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(["privacy_unit", *(str(part) for part in first["loc"])])
        raise InvalidInput(
            Message("%(where)s: %(fault)s", where=where, fault=sentence_of(first)), where=where
        ) from None


def no_unit_ids(count: int, what: UnitPart) -> str:
    """The refusal of rows or images without a unit id, and what to do."""
    if what == "row":
        have = plural("1 row has", "%(count)s rows have", count, count=count)
        each = Message("which makes every such row a unit of its own")
    else:
        have = plural("1 image has", "%(count)s images have", count, count=count)
        each = Message("which makes every such image a unit of its own")
    return Message(
        "%(have)s no unit id, but an empty cell, NA, null, nan, ? or another word for a missing value; give each its id, "
        'or declare "missing": "own_unit" in the privacy unit, %(each)s',
        have=have,
        each=each,
    )


def own_units(count: int, what: UnitPart) -> str:
    """The notice where that was declared."""
    if what == "row":
        return plural(
            "1 row has no unit id and is a unit of its own.",
            "%(count)s rows have no unit id; each is a unit of its own.",
            count,
            count=count,
        )
    return plural(
        "1 image has no unit id and is a unit of its own.",
        "%(count)s images have no unit id; each is a unit of its own.",
        count,
        count=count,
    )
