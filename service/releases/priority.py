"""The header `Priority` of an order (RFC 9218): which of one key's releases goes first. It moves nothing else."""

from __future__ import annotations

import re

MOST_URGENT, DEFAULT_URGENCY, LEAST_URGENT = 0, 3, 7

DESCRIPTION = (
    "`u=N` (RFC 9218), from 0, most urgent, to 7; default 3. Orders the waiting releases of this key among themselves, "
    "and gains nothing over other keys or tenants."
)

_MEMBER = re.compile(r"[ \t]*([a-z*][a-z0-9_.*-]*)(?:=([^,;\s]+))?(?:;[^,;]+)*[ \t]*")


def urgency(header: str | None) -> int:
    """The urgency that a header asks for. One that cannot be read, or is out of range, counts as none, as the RFC says."""
    urgent = None
    for member in (header or "").split(","):
        found = _MEMBER.fullmatch(member)
        if found is None:
            return DEFAULT_URGENCY
        if found[1] == "u":
            urgent = found[2]  # the last one counts, as in any dictionary of structured fields
    return int(urgent) if urgent is not None and re.fullmatch("[0-7]", urgent) else DEFAULT_URGENCY
