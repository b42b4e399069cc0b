"""Where an order can die, in the order in which it passes by."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Point:
    """A moment in the life of an order: `name` as in hooks/sitecustomize.py, and what has just (not) happened."""

    name: str
    moment: str
    process: str

    @property
    def scopes(self) -> tuple[str, ...]:
        """What dies: the process alone, and where it has company, all of its machine."""
        return ("process", "group") if self.process in {"worker", "training"} else ("process",)


POINTS = (
    Point("reserve.before", "the API has the order, nothing is written", "API"),
    Point("reserve.uncommitted", "reserved and recorded, not committed", "API"),
    Point("reserve.committed", "committed, not answered", "API"),
    Point("relay.before", "the relay has seen that something waits, nothing is sent", "relay"),
    Point("relay.sent", "sent", "relay"),
    Point("delivery.received", "the worker has the message", "worker"),
    Point("acknowledge.before", "about to acknowledge", "worker"),
    Point("acknowledge.after", "acknowledged, not claimed", "worker"),
    Point("claim.before", "about to claim", "worker"),
    Point("claim.committed", "claimed, nothing started", "worker"),
    Point("charge.before", "about to charge", "training"),
    Point("charge.uncommitted", "charged, not committed", "training"),
    Point("charge.committed", "charged, no row read", "training"),
    Point("label_counts.before", "rows read, nothing private done", "training"),
    Point("checkpoint.before@1", "the counts measured, before the first checkpoint", "training"),
    Point("checkpoint.written@1", "its object written, not recorded", "training"),
    Point("checkpoint.record.uncommitted@1", "recorded, not committed", "training"),
    Point("checkpoint.record.committed@1", "recorded", "training"),
    Point("step.before@1", "before the first step", "training"),
    Point("step.before@2", "after the first step", "training"),
    Point("checkpoint.before@2", "before the second checkpoint", "training"),
    Point("checkpoint.written@2", "its object written, not recorded", "training"),
    Point("checkpoint.record.committed@2", "recorded, the first one not deleted", "training"),
    Point("bundle.before", "trained, no bundle written", "training"),
    Point("bundle.written", "bundle written, not published", "training"),
    Point("publish.uncommitted", "published, not committed", "training"),
    Point("publish.committed", "published, the checkpoint not deleted", "training"),
    Point("child.ended", "the training process has ended", "worker"),
)
