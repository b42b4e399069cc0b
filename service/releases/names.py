"""Names of releases: given with the order, or made of the method and the id."""

from __future__ import annotations

import re
import unicodedata
import uuid
from urllib.parse import quote, unquote

from service.base.errors import InvalidInput
from service.base.messages import Message
from service.base.text import MAX_NAME_LENGTH

DESCRIPTION = "Name of the release, unique in its dataset; percent-encoded UTF-8. Without one: METHOD-ID."
GENERATED = re.compile(r"[a-z]+-[0-9a-f]{8}\Z")
LIKE_AN_ID = re.compile(r"[0-9a-fA-F-]{4,}\Z")
HEADER = "Release-Name"


def shown_name(given: str | None, method: str, release_id: uuid.UUID) -> str:
    """The name under which a release is shown and found."""
    return given or f"{method}-{str(release_id)[:8]}"


def checked_name(header: str | None) -> str | None:
    """A name as a header carries it; raises `InvalidInput`."""
    if header is None:
        return None
    try:
        return typed_name(unquote(header, errors="strict"))
    except UnicodeDecodeError:
        return typed_name("")


def typed_name(name: str) -> str:
    """A name as it is typed; raises `InvalidInput`. One that reads as an id or as a generated name is refused."""
    name = name.strip()
    if not 1 <= len(name) <= MAX_NAME_LENGTH or not name.isprintable():
        raise InvalidInput(
            Message(
                "%(header)s: use 1 to %(most)s printable characters, percent-encoded UTF-8",
                header=HEADER,
                most=MAX_NAME_LENGTH,
            ),
            where=HEADER,
        )
    if GENERATED.match(name) or LIKE_AN_ID.match(name):
        raise InvalidInput(
            Message("%(header)s: this reads as an id; choose a name with other letters in it", header=HEADER),
            where=HEADER,
        )
    return name


MOST_BYTES_OF_A_STEM = 120
"""File systems hold names of 255 bytes, of which browsers take some for themselves."""


def file_stem(name: str) -> str:
    """What a file of synthetic rows is called after a name that somebody has given; letters of every script stay.

    `synthetic-` before it tells it from the file of real rows, which a dataset is often named after. It also keeps a name from
    being hidden, read as an option, or one of a device (`.x`, `-x`, `CON`).
    """
    marks = unicodedata.normalize("NFC", name)
    kept = "".join(mark if unicodedata.category(mark)[0] in "LMN" or mark in "._" else "-" for mark in marks)
    short = re.sub(r"-+", "-", kept).encode()[:MOST_BYTES_OF_A_STEM].decode(errors="ignore")
    return f"synthetic-{short.strip('-._')}".rstrip("-")


def attachment(stem: str, ending: str) -> str:
    """The header that names a file: in ASCII for all, and as it is for those who read RFC 6266."""
    plain = "".join(mark if mark.isascii() else "_" for mark in stem)
    said = f'attachment; filename="{plain}.{ending}"'
    return said if stem.isascii() else f"{said}; filename*=UTF-8''{quote(stem, safe='')}.{ending}"
