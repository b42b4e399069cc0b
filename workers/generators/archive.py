"""The published ZIP: the same contents give the same bytes, and no member is a pickle."""

from __future__ import annotations

import io
import json
import zipfile
from typing import TYPE_CHECKING, Any

from imprimatur.verify.members import CERTIFICATE

if TYPE_CHECKING:
    from collections.abc import Mapping

_FIXED_DATE = (1980, 1, 1, 0, 0, 0)


def to_json(document: Any) -> bytes:
    """A member in JSON; `ValueError` for a number that is not finite."""
    return (json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False) + "\n").encode()


def pack(files: Mapping[str, bytes], certificate: Mapping[str, Any]) -> bytes:
    """Name -> content as a ZIP, in this order, and the certificate, which signs them all, at the end."""
    if CERTIFICATE in files:
        raise ValueError("the certificate signs the other files: it is made after them")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in {**files, CERTIFICATE: to_json(certificate)}.items():
            member = zipfile.ZipInfo(name, date_time=_FIXED_DATE)
            member.compress_type = zipfile.ZIP_DEFLATED
            member.create_system = 3
            member.external_attr = 0o100644 << 16
            archive.writestr(member, content)
    return buffer.getvalue()
