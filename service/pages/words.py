"""Words of the database that a page shows, so that translations can be found for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.releases.models import ACTIVE

if TYPE_CHECKING:
    from service.releases.models import Release


def N_(text: str) -> str:  # noqa: N802 - the name by which gettext's tools find texts to translate
    """The text as it is; a template translates it where it is shown."""
    return text


def shown_state(release: Release) -> str:
    """The state of a release in the words of people: the API calls a cancelled one failed, or voided."""
    if release.state in ACTIVE:
        return "being cancelled" if release.cancel_requested else release.state
    has_ended_so = release.failure == "cancelled" or (release.state == "voided" and release.cancel_requested)
    return "cancelled" if has_ended_so and release.state != "published" else release.state


STATES = [
    N_("ready"),
    N_("erased"),
    N_("reserved"),
    N_("charged"),
    N_("published"),
    N_("failed"),
    N_("voided"),
    N_("cancelled"),
    N_("being cancelled"),
]
SCOPES = [N_("owner"), N_("analyst"), N_("reader")]
LEDGER = [N_("reserve"), N_("post"), N_("void"), N_("settle")]
USES = {
    "string": N_("categories (text)"),
    "boolean": N_("yes or no"),
    "integer": N_("whole numbers"),
    "number": N_("numbers with a fraction"),
    "date": N_("dates"),
    "datetime": N_("dates with a time"),
    "ignore": N_("nothing to publish: left out"),
    "identifier": N_("an identifier: made anew"),
    "free_text": N_("free text: leave it out"),
}
"""What a column holds, by its type or role. Short: each fits the choice on a narrow screen (tests/browser)."""
PARTS = [N_("relay"), N_("worker")]
PHASES = [N_("queued"), N_("charging"), N_("reading"), N_("training"), N_("bundling"), N_("ended")]
"""Of a release that is made."""
FAILURES = [
    N_("cancelled"),
    N_("erased"),
    N_("underpaid"),
    N_("diverged"),
    N_("over_limits"),
    N_("worker_lost"),
    N_("declaration_needed"),
    N_("already_declared"),
]
"""Why a release has ended without a result."""
UNITS_OF_TIME = [N_("s"), N_("min"), N_("h"), N_("days")]
KINDS = {
    "count": N_("how many rows"),
    "histogram": N_("how many rows each value has"),
    "cross_table": N_("how many rows each pair of values has"),
    "mean": N_("the mean of a column"),
    "sum": N_("the sum of a column"),
    "quantiles": N_("quartiles of a column"),
    "median": N_("the median of a column"),
    "arg_max": N_("the most frequent value"),
    "keys": N_("combinations that are common"),
}
"""Kinds of questions (docs/queries.md)."""
SETS = {
    "synthetic": N_("synthetic rows"),
    "other_half": N_("fresh real rows"),
    "independent": N_("independent columns"),
}
LEARNERS = {"logistic_regression": N_("logistic regression"), "boosting": N_("boosted trees")}
"""What the owner's report compares (docs/reports.md)."""
FORMAT_NAMES = {
    "csv": "CSV",
    "excel": N_("CSV for Excel"),
    "jsonl": N_("JSON lines"),
    "parquet": "Parquet",
    "arrow": "Arrow",
    "npz": "NPZ",
    "zip": "ZIP",
    "png": "PNG",
}
"""Of each format of samples, as people call it; what it is says its `help`."""
