"""What the forms of the page call the fields of the API, so that a refusal names what stands there.

A label is the text of its form, up to a parenthesis or a colon. `tests/service/pages/test_field_labels.py` walks over the templates:
a field without an entry here, or with other words than the form has, fails there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from service.base.messages import Message
from service.releases.names import HEADER


@dataclass(frozen=True, slots=True)
class Labelled:
    """One field of a form."""

    name: str
    """As the form sends it."""
    label: Message
    fields: tuple[str, ...] = ()
    """What refusals call it, where that is not the same."""

    @property
    def said_as(self) -> tuple[str, ...]:
        """The names by which a refusal may call this field."""
        return self.fields or (self.name,)


_SCHEMA = Message("The whole schema as JSON, for experts")

ORDER = (
    Labelled("epsilon", Message("Privacy loss ε of this release")),
    Labelled("group", Message("A group of so many rows"), ("want.group",)),
    Labelled("within", Message("may be off by at most so many per cent, 19 times in 20"), ("want.within",)),
    Labelled("step", Message("I know how exact it must be"), ("want",)),
    Labelled("method", Message("Method")),
    Labelled("purpose", Message("What the rows are for")),
    Labelled("condition_on", Message("Column to predict"), ("condition_on", "target")),
    Labelled("report", Message("Measure it, for everybody who may see the release")),
    Labelled("owner_report", Message("Show real beside synthetic, for owners alone")),
    Labelled("report_share", Message("Precision kept for the report, in per cent"), ("report.share",)),
    Labelled("report_held_out", Message("Held-out units, in per cent"), ("report.held_out",)),
    Labelled(
        "accept_accuracy",
        Message("Rows of held-out units predicted right at least, in per cent"),
        ("accept.accuracy",),
    ),
    Labelled("accept_one_way_tv", Message("Single columns off by at most, in per cent"), ("accept.one_way_tv",)),
    Labelled("accept_two_way_tv", Message("Pairs of columns off by at most, in per cent"), ("accept.two_way_tv",)),
    Labelled("accept_by", Message("Compared is"), ("accept.by", "accept")),
    Labelled("name", Message("Name of the release (may be left empty)"), ("name", HEADER)),
    Labelled("knob.public_dataset", Message("A public dataset to begin from"), ("public_dataset",)),
)
"""Knobs are called there as in the API: a page of the documents describes them by these names."""

QUESTION = (
    Labelled("kind", Message("Question"), ("kind", "questions", "method")),
    Labelled("column", Message("Column")),
    Labelled("second", Message("Second column, for pairs"), ("columns",)),
    Labelled("where", Message("Only rows with (may be left empty)")),
    Labelled("epsilon", Message("Privacy loss ε of this question")),
)
BUDGET = (
    Labelled("name", Message("Name of the dataset")),
    Labelled(
        "epsilon",
        Message("Privacy loss ε of everything that is ever released from it"),
        ("budget.epsilon", "budget", "epsilon"),
    ),
    Labelled(
        "delta",
        Message(
            "δ: the promise above holds except with this probability. If empty, it is one millionth, or one divided by "
            "the square of the number of people, whichever is smaller."
        ),
        ("budget.delta",),
    ),
    Labelled(
        "expires",
        Message(
            "Day on which rows and their key are destroyed (may be left empty; it can be brought forward later, never "
            "put off)"
        ),
        ("rows_expire_at",),
    ),
    Labelled(
        "accept_undeclared",
        Message("Columns of which most cells may lie outside what you declared, one per line"),
    ),
    Labelled("rows_are_public", Message("Everybody may have these rows: they are public already")),
    Labelled(
        "public_for_ever",
        Message("I know that this cannot be undone, and that the people in these rows are then not protected at all"),
    ),
    Labelled(
        "distinct_from",
        Message(
            "These rows are about other people than those of the dataset that looks alike. The audit log records that I "
            "declare this."
        ),
    ),
    Labelled("step", Message("Correct the declaration"), ("schema", "privacy_unit")),
)
_ROWS_OF_A_UNIT = Message("Most rows of one person; more are left out")
DECLARATION = (
    Labelled("json", _SCHEMA, ("schema",)),
    Labelled("most", _ROWS_OF_A_UNIT, ("privacy_unit.max_rows_per_unit", "privacy_unit.max_images_per_unit")),
    Labelled("column", Message("Column that says whose row it is; it is not published"), ("privacy_unit",)),
    Labelled("missing", Message("Rows that name no person"), ("privacy_unit.missing",)),
    Labelled("several", Message("Do several rows belong to one person?")),
    Labelled("apart", Message("Still each row is of another person.")),
    Labelled("declared", Message("I have gone through all of this. It is my declaration, and everybody may know it.")),
    Labelled("target", Message("Column that people will want to predict (may be left empty)")),
    Labelled("image.width", Message("Width in pixels"), ("width", "schema.width")),
    Labelled("image.height", Message("Height in pixels"), ("height", "schema.height")),
    Labelled("image.channels", Message("Colours"), ("channels", "schema.channels")),
    Labelled("image.classes", Message("Classes that a label may name, one per line"), ("classes", "schema.classes")),
)
SAMPLE = (
    Labelled("rows", Message("Rows")),
    Labelled("format", Message("Format")),
    Labelled("formulas", Message("CSV cells that look like formulas")),
    Labelled("where", Message("Only rows with (may be left empty)")),
)
KEY = (
    Labelled("name", Message("Name")),
    Labelled("scope", Message("May")),
    Labelled("days", Message("Ends after days (empty: never)"), ("days", "expires_at")),
)

FORMS: dict[str, tuple[Labelled, ...]] = {
    "/datasets/{dataset_id}/order": ORDER,
    "/datasets/{dataset_id}/releases": ORDER,
    "/datasets/{dataset_id}/ask": QUESTION,
    "/datasets/{dataset_id}/queries": QUESTION,
    "/datasets/new": (Labelled("file", Message("The file: choose it, or drop it here")),),
    "/datasets/new/{staged_id}/declare": DECLARATION,
    "/datasets/new/{staged_id}/budget": BUDGET,
    "/releases/{release_id}/download": SAMPLE,
    "/releases/{release_id}/rows": (Labelled("where", Message("Only rows with")),),
    "/admin/keys": KEY,
    "/admin/tenants": (Labelled("name", Message("Name of the new tenant")),),
    "/sign-in": (Labelled("key", Message("API key")),),
}
"""By the address that the form is sent to."""

_OF_A_QUESTION = re.compile(r"questions\.[0-9]+(?:\.|$)")


def labels_of(address: str) -> dict[str, Message]:
    """The labels of a form, by the words of refusals."""
    return {field: each.label for each in FORMS.get(address, ()) for field in each.said_as}


def label_in(labels: dict[str, Message], field: str) -> Message | None:
    """The label of a field, or of what it is a part of: `report.share` has one of its own."""
    if "questions" in labels and (within := _OF_A_QUESTION.match(field)):
        inner = field[within.end() :].rpartition(".")[2]  # less the kind of the question
        return labels.get(inner, labels["questions"])
    while field:
        if field in labels:
            return labels[field]
        field = field.rpartition(".")[0]
    return None


def short(label: str) -> str:
    """The label without what explains it."""
    return re.split(r" \(|: ", label, maxsplit=1)[0]
