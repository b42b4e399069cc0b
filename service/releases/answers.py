"""What a release without a generator holds: the answers in its ZIP. Post-processing; reads nothing private."""

from __future__ import annotations

import io
import json
import zipfile
from typing import TYPE_CHECKING, Any

from service.base.errors import NotInRelease
from service.base.messages import Message

if TYPE_CHECKING:
    import uuid

MEMBER = "answers.json"


def answers_of_bundle(bundle: bytes, release_id: uuid.UUID) -> dict[str, Any]:
    """answers.json; raises `NotInRelease` for the ZIP of a generator."""
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        if MEMBER not in archive.namelist():
            generator = f"/v1/releases/{release_id}/generator"
            raise NotInRelease(
                Message(
                    "this release holds a generator, not answers: its ZIP is at %(generator)s, rows or images of it at "
                    "%(sample)s",
                    generator=generator,
                    sample=f"/v1/releases/{release_id}/sample",
                ),
                holds="generator",
                at=generator,
            )
        answers: dict[str, Any] = json.loads(archive.read(MEMBER))
    return answers


def not_a_generator(release_id: uuid.UUID) -> NotInRelease:
    """The refusal of rows or images of a release of answers, which says where the answers are."""
    at = f"/v1/releases/{release_id}/answers"
    return NotInRelease(
        Message(
            "this release holds answers, not a generator, so nothing can be drawn from it: its answers are at %(at)s",
            at=at,
        ),
        holds="answers",
        at=at,
    )
