"""A draft of an upload's schema and its first rows, for the owner who sent it: made by a child process in the sandbox of uploads."""

from __future__ import annotations

import os
from itertools import chain
from typing import TYPE_CHECKING, Any

from service.intake.ingest import MOST_LINE_BYTES, run_child, told
from service.intake.sealed import SealedFile

if TYPE_CHECKING:
    from pathlib import Path

    from service.intake.caller import Caller
    from service.intake.limits import IngestLimits

_CHILD = "service.intake.drafted_child"
FIRST_ROWS = 10
_AROUND_BYTES = 1_000
"""Of the answer's line around the draft."""


def draft_of(upload: SealedFile, limits: IngestLimits, scratch_dir: Path | None, caller: Caller) -> dict[str, Any]:
    """What the page shows beside the form. It holds cells: for the sender alone, and at rest encrypted.

    `kind` (table or image), `schema` (every named column is in it, those that should stay out with a role), `findings` by
    column and `notices`, both as `service.base.carried` packs them, `repeating` (columns that may say whose row it is, in
    which the same value stands in several rows, or null where that is not known), and `names` and `rows` of the preview, cut
    short; of images `pictures` instead (`service.intake.image.first_pictures`). Raises `InvalidFile` or `TooLarge`.
    """
    with SealedFile.create(scratch_dir) as scratch:
        job = {
            "upload": upload.handle(),
            "scratch": scratch.handle(),
            "schema": {"fields": []},
            "limits": limits.model_dump(),
            "first_rows": FIRST_ROWS,
            "most_bytes": MOST_LINE_BYTES - _AROUND_BYTES,
            "parent": os.getpid(),
        }
        draft = run_child(job, limits, (upload, scratch), caller, child=_CHILD)
    for each in (*draft["notices"], *chain.from_iterable(draft["findings"].values())):
        told(each)
    return draft
