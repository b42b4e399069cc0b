"""The formats of samples: one entry each. The API, its OpenAPI document and the writers derive from `FORMATS`.

A new format is one writer and one entry. Client, command line and the `sample.py` of bundles import nothing of the
service or cannot; tests compare their lists with this one (tests/service/samples/test_formats.py).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from service.base.errors import InvalidInput

Content = Literal["rows", "images"]
"""What a generator makes."""


@dataclass(frozen=True)
class Format:
    """How a sample is written."""

    content: Content
    media_type: str
    writer: str
    """module:function, so that its libraries are loaded only with the first sample."""
    help: str
    """A few words on what the file is."""
    endings: tuple[str, ...]
    """Of file names that mean it, the usual one first; none where files of it look like those of another format."""
    like: str = ""
    """The format whose endings its files have, where it has none of its own."""
    default: bool = False
    """Written where a request names none."""
    in_script: bool = False
    """The `sample.py` of a bundle writes it, too."""

    @property
    def ending(self) -> str:
        """Of the names of its files."""
        return FORMATS[self.like].ending if self.like else self.endings[0]

    def load_writer(self) -> Callable[[Any, Any], Any]:
        """(sampler, request) -> the bytes, piece by piece; a wrong request raises `InvalidInput` before the first."""
        module, _, function = self.writer.partition(":")
        writer: Callable[[Any, Any], Any] = getattr(importlib.import_module(module), function)
        return writer


FORMATS: dict[str, Format] = {
    "csv": Format(
        content="rows",
        media_type="text/csv; charset=utf-8",
        writer="service.samples.row_streams:csv",
        help="text with a header, RFC 4180",
        endings=("csv",),
        default=True,
        in_script=True,
    ),
    "excel": Format(
        content="rows",
        media_type="text/csv; charset=utf-8",
        writer="service.samples.row_streams:excel",
        help="CSV for Excel: a byte order mark, texts like formulas disarmed, and with decimal commas semicolons",
        endings=(),
        like="csv",
    ),
    "jsonl": Format(
        content="rows",
        media_type="application/x-ndjson",
        writer="service.samples.row_streams:jsonl",
        help="one JSON object per line",
        endings=("jsonl", "ndjson"),
        in_script=True,
    ),
    "parquet": Format(
        content="rows",
        media_type="application/vnd.apache.parquet",
        writer="service.samples.row_streams:parquet",
        help="typed columns, compressed",
        endings=("parquet", "pq"),
    ),
    "arrow": Format(
        content="rows",
        media_type="application/vnd.apache.arrow.stream",
        writer="service.samples.row_streams:arrow",
        help="an Arrow IPC stream",
        endings=("arrow", "feather"),
    ),
    "npz": Format(
        content="images",
        media_type="application/x-npz",
        writer="service.samples.image_streams:npz",
        help="NumPy arrays of images and labels",
        endings=("npz",),
        default=True,
        in_script=True,
    ),
    "zip": Format(
        content="images",
        media_type="application/zip",
        writer="service.samples.image_streams:png_files",
        help="PNG files and their labels as CSV",
        endings=("zip",),
    ),
    "png": Format(
        content="images",
        media_type="image/png",
        writer="service.samples.image_streams:picture",
        help="one picture, a class a row",
        endings=("png",),
    ),
}


def formats_of(content: Content) -> tuple[str, ...]:
    """The names of the formats that rows, or images, are written in."""
    return tuple(name for name, format_ in FORMATS.items() if format_.content == content)


if TYPE_CHECKING:
    SampleFormat = str
else:  # for the API, which checks a request's format by its type
    RowFormat = Literal[formats_of("rows")]
    ImageFormat = Literal[formats_of("images")]
    SampleFormat = RowFormat | ImageFormat


def format_named(name: str) -> Format:
    """The format; raises `InvalidInput` for one that is not written."""
    if name not in FORMATS:
        raise InvalidInput(f"format must be one of {', '.join(FORMATS)}", where="format")
    return FORMATS[name]


def media_type(name: str) -> str:
    """The media type of a sample format; raises `InvalidInput` for one that is not written."""
    return format_named(name).media_type


def default_format(content: Content) -> str:
    """What a request that names no format gets."""
    return next(name for name in formats_of(content) if FORMATS[name].default)


def described_formats() -> str:
    """One sentence for rows and one for images, for the API's documentation."""
    return f"{_described('rows')} {_described('images')}"


def _described(content: Content) -> str:
    names = formats_of(content)
    parts = [f"{name} ({'default; ' * FORMATS[name].default}{FORMATS[name].help})" for name in names]
    return f"{content.capitalize()}: {', '.join(parts[:-1])} or {parts[-1]}."
