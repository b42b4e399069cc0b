"""Why the embedded stack does not start, in a sentence that tells what to do."""

from __future__ import annotations


class CannotStart(Exception):
    """The stack, or one of its parts, cannot be started here."""


class AlreadyRunning(CannotStart):
    """A living `up` owns this data directory."""
