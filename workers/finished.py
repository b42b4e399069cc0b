"""A generator that is finished and not yet published, as the checkpoint of its release while the charged report is made.

The report reads rows once more. They may be erased by then, and a worker may be stopped meanwhile: what was paid for and is ready goes
with neither. A file that a run leaves is noisy or public, so this is a checkpoint like any other; no run goes on from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from workers.checkpoints import Checkpoint
from workers.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from service.privacy.events import Events

STATEMENT, DECLARES = "finished", "declares"
"""Values of the checkpoint; that it has the first says what it is."""


@dataclass(frozen=True)
class Finished:
    """What is published of a release beside its report."""

    statement: dict[str, Any]
    """What the certificate will say, unsigned; the files quote it."""
    files: dict[str, bytes]
    declares: Mapping[str, Mapping[str, Any]] | None = None

    def to_bytes(self, events: Events) -> bytes:
        """events: what the run took, all of them, so that all of its steps are recorded with it."""
        values = {
            "plan": Plan(events).digest(),
            "position": sum(event.count for event in events),
            STATEMENT: self.statement,
            DECLARES: self.declares,
        }
        tensors = {name: torch.from_numpy(np.frombuffer(file, np.uint8).copy()) for name, file in self.files.items()}
        return Checkpoint(tensors, values).to_bytes()

    @classmethod
    def of(cls, saved: bytes) -> Finished | None:
        """None where it is the checkpoint of a run."""
        values = Checkpoint.values_of(saved)
        if STATEMENT not in values:
            return None
        tensors = Checkpoint.from_bytes(saved).tensors
        files = {name: tensor.numpy().tobytes() for name, tensor in tensors.items()}
        return cls(values[STATEMENT], files, values[DECLARES])
