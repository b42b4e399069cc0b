"""Formats of samples, and the endings of file names that mean them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from imprimatur.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

RowFormat = Literal["csv", "excel", "parquet", "jsonl", "arrow"]
ImageFormat = Literal["npz", "zip", "png"]
SampleFormat = RowFormat | ImageFormat
ROW_FORMATS: tuple[str, ...] = get_args(RowFormat)
IMAGE_FORMATS: tuple[str, ...] = get_args(ImageFormat)
WITHOUT_ENDING = {"excel"}
"""Formats that are named, since their files look like those of another one."""
OTHER_ENDINGS = {"ndjson": "jsonl", "pq": "parquet", "feather": "arrow"}


def format_of_path(path: Path) -> SampleFormat | None:
    """What the ending of a file's name means; None of none, and of an unknown one."""
    ending = path.suffix.lstrip(".").lower()
    ending = OTHER_ENDINGS.get(ending, ending)
    return cast("SampleFormat", ending) if ending in {*ROW_FORMATS, *IMAGE_FORMATS} - WITHOUT_ENDING else None


def chosen_format(named: str | None, path: Path | None, schema: Mapping[str, Any] | None = None) -> SampleFormat | None:
    """The format that is named, else that of the file's ending; None leaves it to the service.

    `InvalidInput` where neither is known, or where rows would be written as images.
    """
    named = named and OTHER_ENDINGS.get(named, named)
    offered = (*ROW_FORMATS, *IMAGE_FORMATS)
    if schema is not None:
        offered = IMAGE_FORMATS if schema.get("type") == "image" else ROW_FORMATS
    if named is None and path is not None and path.suffix:
        found = format_of_path(path)
        if found not in offered:
            endings = ", ".join(f".{name}" for name in offered if name not in WITHOUT_ENDING)
            raise invalid(
                "format", f"{path}: the ending says no format of this sample; end it in {endings}, or name one"
            )
        return found
    if named is not None and named not in offered:
        raise invalid("format", f"there is no format {named!r} here; there are {', '.join(offered)}")
    return cast("SampleFormat | None", named)


def invalid(where: str, sentence: str) -> InvalidInput:
    """What the service would say, said before it is asked."""
    return InvalidInput(422, "invalid_input", sentence, {"where": where})
