"""The privacy unit: whose data one unit is. Without one, every row is its own unit."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from service.errors import InvalidInput
from service.text import sentence_of

MAX_ROWS_PER_UNIT = 10_000


class PrivacyUnit(BaseModel):
    """All rows with one value of `column` are one unit, of which at most `max_rows_per_unit` rows are used."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    column: Annotated[str, Field(min_length=1, max_length=200)]
    max_rows_per_unit: Annotated[int, Field(strict=True, ge=1, le=MAX_ROWS_PER_UNIT)]

    @field_validator("column")
    @classmethod
    def _printable(cls, column: str) -> str:
        if not column.isprintable() or column != column.strip():
            raise ValueError("a column name must be printable and not begin or end with a space")
        return column


def parse_privacy_unit(document: Any) -> PrivacyUnit:
    """Read a declared privacy unit; raises `InvalidInput` naming the field and the rule."""
    try:
        return PrivacyUnit.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(["privacy_unit", *(str(part) for part in first["loc"])])
        raise InvalidInput(f"{where}: {sentence_of(first)}", where=where) from None
