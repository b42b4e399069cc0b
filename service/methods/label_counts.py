"""The event of noisy label counts, which every conditional method buys. Reads no row."""

from __future__ import annotations

from service.methods.whole_noise import noise_of_share
from service.privacy.events import Events, GaussianEvent

LABEL_COUNTS = "label_counts"
"""Purpose of the event."""


def label_count_events(condition: str | None, precision_share: float, epsilon: float, delta: float) -> Events:
    """The event of label counts, for a method that buys nothing else before its steps; none without a condition."""
    if condition is None:
        return ()
    return (GaussianEvent(LABEL_COUNTS, noise_of_share(precision_share, epsilon, delta)),)
