"""The formats samples are written in. Apart from their writing, so that to name them imports no large library."""

from __future__ import annotations

from typing import Literal, get_args

from service.errors import InvalidInput

SampleFormat = Literal["csv", "jsonl", "parquet", "arrow"]

_MEDIA_TYPES: dict[SampleFormat, str] = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
    "arrow": "application/vnd.apache.arrow.stream",
}


def media_type(format: str) -> str:  # noqa: A002 - the query parameter's name
    """The media type of a sample format; raises `InvalidInput` for one we do not write."""
    if format not in get_args(SampleFormat):
        raise InvalidInput(f"format must be one of {', '.join(get_args(SampleFormat))}", where="format")
    return _MEDIA_TYPES[format]  # type: ignore[index] # just checked
