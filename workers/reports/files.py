"""What the charged report adds to the published ZIP: two files, and a section of the card."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from service.domain.image_schema import ImageSchema
from service.methods.forecast import SURE
from service.methods.report import split
from service.releases.not_made import ROWS_ERASED
from service.releases.report_pages import MEMBER, PAGE, accepted_in_words, charged_page
from workers.generators.archive import to_json
from workers.generators.markdown import code
from workers.held_out import Split
from workers.mechanism.secure_random import SecureRandom
from workers.plan import Plan

if TYPE_CHECKING:
    import uuid
    from collections.abc import Mapping

    from service.domain.image_schema import DeclaredSchema
    from service.releases.models import Release
    from workers.sources import Source

CARD = "MODEL_CARD.md"
NOT_MADE = (
    "\n## How far off it is\n\nIt was not measured: the rows were erased, or their deletion date came, before the report that was ordered could be made. "
    "Of the event of the report (the last of the price list) nothing was released. What was charged stays charged, so the stated ε is an upper bound.\n"
)


def has_report(release: Release) -> bool:
    """Whether the event of a charged report is on its price list."""
    return bool(split(release.events)[1])


def without_report(files: Mapping[str, bytes]) -> tuple[dict[str, Any], dict[str, bytes]]:
    """In place of `with_report` where the rows are gone: why there is none, for the certificate, and the same for the card."""
    return {"not_made": ROWS_ERASED}, {**files, CARD: files[CARD] + NOT_MADE.encode()}


def with_report(
    release: Release, source: Source, files: dict[str, bytes], schema: DeclaredSchema
) -> tuple[dict[str, Any] | None, dict[str, bytes]]:
    """The charged report, where its event is on the list, and the files with it: report.json, report.html, a section of the card."""
    events = split(release.events)[1]
    if not events or isinstance(schema, ImageSchema):
        return None, files
    from workers.reports.charged import charged_report  # noqa: PLC0415 - samplers and scipy are loaded when they are needed

    order = release.order
    sides = Split.of(order, release.id)
    rows, held_out = (source, None) if sides is None else (sides.training(source), sides.held_out(source))
    report = charged_report(order, Plan(events), rows, SecureRandom(), files, schema, held_out=held_out)
    return report, files | _files(report, release.id, files)


def summary_of(report: Mapping[str, Any] | None) -> dict[str, Any]:
    """What the certificate has of it."""
    if report is None:
        return {}
    names = ("one_way", "two_way", "accuracy", "accept", "accepted", "not_made")
    return {"report": {name: report[name] for name in names if name in report}}


def _files(report: Mapping[str, Any], release_id: uuid.UUID, files: Mapping[str, bytes]) -> dict[str, bytes]:
    return {
        MEMBER: to_json(report),
        PAGE: charged_page(report, str(release_id)).encode(),
        CARD: files[CARD] + _section(report).encode(),
    }


def _section(report: Mapping[str, Any]) -> str:
    lines = [
        _line("single columns", report["one_way"]),
        *([_line("pairs of columns", report["two_way"])] if report["two_way"] else []),
    ]
    if "accuracy" in report:
        lines.append(_accuracy_line(report["accuracy"]))
    if report["accept"] is not None:
        lines.append(
            f"- Accepted before the order, by the {report['accept']['by']}: {accepted_in_words(report['accept'])}."
        )
    return (
        "\n## How far off it is\n\nMeasured with noise, as a charged part of this release; by column and by pair in report.html and report.json.\n\n"
        + "\n".join(lines)
        + "\n"
    )


def _line(what: str, mean: Mapping[str, float]) -> str:
    between = f"19 times in 20 between {mean['low']:.3g} and {mean['high']:.3g}"
    if mean["noise_hides_it"]:
        return (
            f"- Total variation of {mean['tables']} {what}: on average, {between}. More is not known: noise hides it."
        )
    return f"- Total variation of {mean['tables']} {what}: {mean['tv']:.3g} on average ({between})."


def _accuracy_line(found: Mapping[str, Any]) -> str:
    frequent = found["most_frequent"]
    within = SURE * frequent["noise_std"]
    return (
        f"- A logistic regression trained on synthetic rows predicts {code(found['target'])} right in {found['accuracy']:.3g} of the rows of "
        f"{found['held_out_units']:,} held-out units, which nothing was made of (19 times in 20 between {found['low']:.3g} and "
        f"{found['high']:.3g}). Always answering its most frequent value would be right in about {frequent['share']:.3g} "
        f"(between {max(0.0, frequent['share'] - within):.3g} and {min(1.0, frequent['share'] + within):.3g})."
    )
