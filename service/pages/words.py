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
LEDGER = {
    "reserve": N_("reserved"),
    "post": N_("charged to the budget"),
    "void": N_("given back"),
    "settle": N_("partly given back"),
}
"""What a line of the ledger does, by its kind in the API."""
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
PHASES = [
    N_("queued"),
    N_("charging"),
    N_("reading"),
    N_("warming up"),
    N_("training"),
    N_("bundling"),
    N_("ended"),
]
"""Of a release that is made."""
FAILURES = [
    N_("cancelled"),
    N_("erased"),
    N_("underpaid"),
    N_("diverged"),
    N_("over_limits"),
    N_("worker_lost"),
    N_("no_device"),
    N_("declaration_needed"),
    N_("already_declared"),
    N_("tampered"),
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
ATTACKED = {
    "real": N_("real rows that it was made from"),
    "held_out": N_("rows of held-out units"),
    "synthetic": N_("fresh synthetic rows"),
}
AMONG = {"synthetic": N_("synthetic rows"), "even": N_("rows drawn evenly")}
SCORES = {"log_p": N_("log density"), "log_p_over_independent": N_("log density, less that of independent columns")}
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
AUDIT_ACTIONS = {
    "ask": N_("ask a question about the rows"),
    "ask_before_buying": N_("look at the price of bounds or categories"),
    "ask_before_cancel": N_("look at what cancelling costs"),
    "ask_for_order": N_("look at the order form"),
    "ask_form": N_("look at the form for questions"),
    "cancel_release": N_("cancel a release"),
    "change_dataset": N_("change a dataset"),
    "change_promise": N_("change the privacy unit, the number of units or δ"),
    "choose_file": N_("choose a file to upload"),
    "complete_rows": N_("complete rows"),
    "create_dataset": N_("publish a dataset"),
    "create_key": N_("make a key"),
    "create_tenant": N_("make a tenant"),
    "declare_distinct": N_("declare that a dataset is of other people"),
    "declare_public": N_("declare that rows are public"),
    "declare_upload": N_("declare an upload"),
    "discard_upload": N_("throw an upload away"),
    "erase_dataset": N_("erase a dataset"),
    "expire_rows": N_("destroy rows on their deletion date"),
    "go_on": N_("go on with an upload"),
    "home": N_("read the first page"),
    "list_datasets": N_("list datasets"),
    "list_keys": N_("list keys"),
    "list_methods": N_("list methods"),
    "list_releases": N_("list releases"),
    "list_signing_keys": N_("list the keys that signed the ledger"),
    "order_release": N_("order a release"),
    "preview": N_("look at a preview"),
    "publish": N_("upload, order and download at once"),
    "quote": N_("ask for a price"),
    "read_answers": N_("read answers"),
    "read_audit": N_("read the audit log"),
    "read_budget": N_("read a budget"),
    "read_certificate": N_("read a certificate"),
    "read_dataset": N_("read a dataset"),
    "read_consistency": N_("check that the ledger only grew"),
    "read_declaration": N_("read a declaration"),
    "read_generator": N_("download a generator"),
    "read_head": N_("read the head of the ledger"),
    "read_knobs": N_("read the settings of a method"),
    "read_ledger": N_("read the ledger"),
    "read_odds": N_("read what an epsilon means"),
    "read_owner_report": N_("read the owner's report"),
    "read_preview": N_("look at a preview"),
    "read_proof": N_("read a proof of the ledger"),
    "read_progress": N_("watch progress"),
    "read_reading": N_("watch an upload"),
    "read_release": N_("read a release"),
    "read_report": N_("read a report"),
    "read_sample": N_("draw synthetic rows"),
    "read_state": N_("look at the state of the service"),
    "read_tenants": N_("read the tenant"),
    "read_upload": N_("read an upload once more"),
    "replace_declaration": N_("replace a declaration"),
    "replace_key": N_("replace a key"),
    "revoke_key": N_("revoke a key"),
    "sign_in": N_("sign in"),
    "sign_out": N_("sign out"),
    "stage_upload": N_("upload a file"),
    "wait_for_owner_report": N_("wait for the owner's report"),
    "watch_release": N_("watch a release"),
}
"""What a line of the audit log calls an operation: the name of its route, or what the service did by itself."""
AUDIT_OBJECTS = {
    "dataset": N_("dataset"),
    "key": N_("key"),
    "release": N_("release"),
    "staged": N_("upload"),
    "staged_upload": N_("upload"),
    "tenant": N_("tenant"),
}
