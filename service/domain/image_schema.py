"""The declared schema of a set of images: one size, one number of channels, and the classes a label may name.

Sibling of the table schema; like it, everything here is public and stated before any image is read.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from service.base.errors import InvalidSchema
from service.base.faults import sentence_of
from service.base.messages import Listed, Message
from service.domain.table_schema import TableSchema, parse_table_schema

MAX_SIDE = 512
MAX_CLASSES = 1_000
NO_LABEL = 0xFFFF
"""The stored label of an image whose schema declares no classes."""

Side = Annotated[int, Field(ge=1, le=MAX_SIDE)]
ClassName = Annotated[str, Field(min_length=1, max_length=200)]


class PixelBlock(BaseModel):
    """A block of neighbouring pixels, wherever it lies in an image."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    rows: Side
    columns: Side


class ImageSchema(BaseModel):
    """Images of height × width × channels bytes (0 black, 255 white), each with one of the declared classes."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    type: Literal["image"]
    height: Side
    width: Side
    channels: Literal[1, 3]
    """1 grey, 3 red, green and blue."""
    classes: (
        Annotated[int, Field(ge=1, le=MAX_CLASSES)]
        | Annotated[list[ClassName], Field(min_length=1, max_length=MAX_CLASSES)]
        | None
    ) = None
    """How many there are, named 0, 1, 2, …; or their names. Without it, images carry no label."""
    pixel_unit: Literal["column"] | PixelBlock | None = None
    """Where one unit is a part of one image, and not the image: one column of pixels, or any one block. Says nothing of a person."""
    title: str | None = None
    description: str | None = None

    @model_validator(mode="after")
    def _classes_are_names(self) -> ImageSchema:
        names = self.class_names
        if len(set(names)) != len(names):
            raise ValueError(Message("classes repeats a name"))
        if any(not name.isprintable() or name != name.strip() for name in names):
            raise ValueError(Message("a class name must be printable and not begin or end with a space"))
        return self

    @model_validator(mode="after")
    def _unit_is_a_part(self) -> ImageSchema:
        if self.pixel_unit is None:
            return self
        if self.classes is not None:
            raise ValueError(
                Message("pixel_unit: a class is of a whole image, which is no unit here; leave out classes")
            )
        if self.unit_pixels == (self.height, self.width):
            raise ValueError(Message("pixel_unit: this is the whole image; leave it out"))
        if self.unit_pixels is not None and (self.unit_pixels[0] > self.height or self.unit_pixels[1] > self.width):
            raise ValueError(Message("pixel_unit: a block is no larger than an image"))
        return self

    @property
    def unit_pixels(self) -> tuple[int, int] | None:
        """Rows and columns of pixels of one unit; None where the unit is an image, or more."""
        if self.pixel_unit is None:
            return None
        if isinstance(self.pixel_unit, PixelBlock):
            return self.pixel_unit.rows, self.pixel_unit.columns
        return self.height, 1

    @property
    def class_names(self) -> tuple[str, ...]:
        """One name per class; empty where images carry no label."""
        if isinstance(self.classes, int):
            return tuple(map(str, range(self.classes)))
        return tuple(self.classes or ())

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width, channels."""
        return self.height, self.width, self.channels

    @property
    def pixels(self) -> int:
        """Numbers (bytes) in one image."""
        return self.height * self.width * self.channels

    def as_json(self) -> dict[str, Any]:
        """The declaration as the owner would write it."""
        return self.model_dump(mode="json", exclude_none=True)


DeclaredSchema = TableSchema | ImageSchema


def parse_schema(document: Any) -> DeclaredSchema:
    """Read a declared schema, of images where it says `"type": "image"`; raises `InvalidSchema` naming the rule."""
    if not is_image_schema(document):
        return parse_table_schema(document)
    try:
        return ImageSchema.model_validate(document)
    except ValidationError as error:
        faults = error.errors(include_input=False, include_url=False)
        # Of a word that may be one of several things, what is said of the one that came furthest.
        first = max(
            (each for each in faults if each["loc"][:1] == faults[0]["loc"][:1]), key=lambda each: len(each["loc"])
        )
        where = ".".join(str(part) for part in first["loc"][:1])
        fault = Listed(": ", filter(None, (where, sentence_of(first))))
        raise InvalidSchema(Message("schema: %(fault)s", fault=fault), where=where or "schema") from None


def is_image_schema(document: Any) -> bool:
    """Whether a schema document declares images; every other one is read as a table's."""
    return isinstance(document, dict) and document.get("type") == "image"
