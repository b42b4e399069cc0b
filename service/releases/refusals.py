"""What is left of a release that its own accepted figures have refused: a signed record with the noisy figures, and no generator."""

from __future__ import annotations

import uuid

NOT_ACCEPTED = "not_accepted"
"""The failure: the charged report's figures are not what the order accepts."""


def refusal_key(release_id: uuid.UUID) -> str:
    """The key of the record in the object store. All of the record is noisy or public."""
    return f"refusals/{release_id}"
