"""Releases that were published without the charged report that they were ordered with: why, as certificates and people are told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from service.base.messages import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

ROWS_ERASED = "rows_erased"
"""`report.not_made` of the certificate."""

REASONS = {
    ROWS_ERASED: Message(
        "This release has no report: its rows were erased, or their deletion date came, before the report was made. The "
        "generator was finished by then and is published. The charge stands in full."
    )
}


def report_not_made(certificate: Mapping[str, Any] | None) -> str | None:
    """Why, in a sentence; None where the report is there, or none was ordered."""
    reason = ((certificate or {}).get("report") or {}).get("not_made")
    return None if reason is None else REASONS.get(reason, Message("This release has no report."))
