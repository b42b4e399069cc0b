"""Reports as pages that hold all they need: no script, nothing from elsewhere, fit for paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from service.methods.forecast import SURE

MEMBER, PAGE = "report.json", "report.html"
"""Of the published ZIP."""

STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #1b1b1b; background: #fff }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin-top: 2rem }
table { border-collapse: collapse; margin: .5rem 0 } th, td { padding: .2rem .7rem; border-bottom: 1px solid #ccc; text-align: left }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums } caption { text-align: left; color: #555 }
.warning { border: 3px solid #a40000; color: #a40000; padding: .6rem 1rem; font-weight: 600 }
@media print { body { margin: 0; max-width: none; font-size: 11px } h2 { break-after: avoid } tr { break-inside: avoid } }
"""

SETS = {
    "synthetic": "synthetic rows",
    "other_half": "other half of the real rows",
    "independent": "independent columns",
}
SUMMARY = {
    "one_way_tv": "total variation of single columns, mean",
    "two_way_tv": "total variation of pairs of columns, mean",
    "value_distance": "Wasserstein distance of values, part of the declared range, mean",
    "correlation_difference": "difference of correlations, mean",
    "same_values": "rows that are also in the real half, all values the same",
    "same_cells": "rows whose cells are those of a row of the real half",
}
ATTACKED = {
    "real": "real rows that it was made from",
    "held_out": "rows of held-out units",
    "synthetic": "fresh synthetic rows",
}
AMONG = {"synthetic": "synthetic rows", "even": "rows drawn evenly"}
SCORES = {
    "log_p": "log density",
    "log_p_over_independent": "log density, less that of independent columns",
}
_ENDS = ("value", "low", "high")
LEARNERS = {"logistic_regression": "logistic regression", "boosting": "boosting"}

Row = Sequence[str | float | int | None]


def owner_page(report: Mapping[str, Any], release_id: str) -> str:
    """The owner's report. Every page of it says that it is not private."""
    if "failed" in report:
        body = f"<p>No report could be made of this release ({escape(str(report['failed']))}). The release is not affected.</p>"
        return _page("Owner's report", release_id, body, warning="Do not share.")
    sets = list(SETS)
    summary = [[SUMMARY[name], *(report["summary"][each][name] for each in sets)] for name in SUMMARY]
    columns = [
        [one["column"], *(one["tv"][each] for each in sets), *(one["value_distance"][each] for each in sets)]
        for one in report["columns"]
    ]
    pairs = [
        [
            " × ".join(one["columns"]),
            *(one["tv"][each] for each in sets),
            *(one["correlation_difference"][each] for each in sets),
        ]
        for one in report["pairs"]
    ]
    heads = [SETS[each] for each in sets]
    body = "".join(
        [
            f"<p>{escape(report['compared'])}</p>",
            _looked_at(report["rows"], report["rows_that_break_the_declaration"]),
            _table("Summary", ["", *heads], summary),
            _learning(report["learning"]),
            _attacks(report.get("attacks")),
            ABOUT_COLUMNS,
            _table("Columns", ["column", *(f"TV, {h}" for h in heads), *(f"values, {h}" for h in heads)], columns),
            _table(
                "Pairs of columns", ["pair", *(f"TV, {h}" for h in heads), *(f"correlation, {h}" for h in heads)], pairs
            ),
        ]
    )
    return _page("Owner's report", release_id, body, warning=str(report["not_private"]))


ABOUT_CHARGED = (
    "How far rows of this generator are from the real ones. Real rows were counted with noise, as a charged part of this release, and compared "
    "with rows of the finished generator. Total variation (TV) is the share of rows that would have to move to another value, or pair of values, "
    "for the counts to be the same: 0 is equal, 1 nothing in common. The truth of the means is between “from” and “to” 19 times in 20; "
    "where noise hides it, there is no estimate. Measured with noise, each column looks further off than it is: what noise alone would "
    "show stands beside it, and where both are alike, the column may well be exact."
)
ABOUT_HELD_OUT = (
    "The generator was not made of the held-out units. The tables of counts are of all others. The classifier learned from synthetic rows alone; "
    "its bounds hold 19 times in 20, by noise and as units are drawn."
)
ABOUT_COLUMNS = (
    "<p>TV: total variation. Values: Wasserstein distance of values, as a part of the declared range. Correlation: difference of correlations. "
    "–: the column has no range.</p>"
)


def charged_page(report: Mapping[str, Any], release_id: str) -> str:
    """The report for everybody: all its figures were charged."""
    means = [
        _mean(what, mean)
        for what, mean in (("single columns", report["one_way"]), ("pairs of columns", report["two_way"]))
        if mean is not None
    ]
    figures = ("noisy_tv", "noise_std", "of_noise_alone")
    heads = ["noisy TV", "standard error of noise", "TV of noise alone"]
    columns = [[one["column"], *(one[name] for name in figures)] for one in report["columns"]]
    pairs = [[" × ".join(one["columns"]), *(one[name] for name in figures)] for one in report["pairs"]]
    about = ABOUT_CHARGED if "accuracy" not in report else f"{ABOUT_CHARGED} {ABOUT_HELD_OUT}"
    body = f"<p>{about}</p>" + _table(
        "Total variation, mean", ["", "tables", "from", "to", "estimate", "with noise"], means
    )
    if any(one["noisy_tv"] > 1.0 for one in (*report["columns"], *report["pairs"])):
        body += "<p>A total variation is a share, at most 1: a noisy one above that is nothing but noise.</p>"
    if report["accept"] is not None:
        limits = accepted_in_words(report["accept"])
        said = "accepted" if report["accepted"] else "not accepted, so that no generator was published"
        body += (
            f"<p>Declared before the order: {escape(limits)}. By the {report['accept']['by']}: <strong>{said}</strong>."
        )
        body += f"{' Noise hides the estimate, so that this says little.' if decided_by_noise(report) else ''}</p>"
    body += _accuracy(report.get("accuracy"))
    body += _table("Columns", ["column", *heads], columns)
    return _page("Report", release_id, body + (_table("Pairs of columns", ["pair", *heads], pairs) if pairs else ""))


def decided_by_noise(report: Mapping[str, Any]) -> bool:
    """Whether what was accepted, or not, is an estimate that noise hides, and the bounds allow the other answer, too."""
    accept = report["accept"]
    if accept is None or accept["by"] != "estimate":
        return False
    limits = ((report[what], accept[f"{what}_tv"]) for what in ("one_way", "two_way") if f"{what}_tv" in accept)
    return any(is_hidden(mean) and mean["low"] <= limit < mean["high"] for mean, limit in limits)


def is_hidden(mean: Mapping[str, Any]) -> bool:
    """Whether noise hides the estimate. Reports of earlier versions do not say it, but have the bounds that it follows from."""
    return bool(mean.get("noise_hides_it", mean["low"] <= 0.0 < mean["high"] or mean["high"] > 1.0))


def _mean(what: str, mean: Mapping[str, Any]) -> Row:
    """The bounds first: they hold, and where noise hides the truth between them, the estimate says nothing."""
    low, high, estimate = (min(1.0, mean[name]) for name in ("low", "high", "tv"))
    return [what, mean["tables"], low, high, "noise hides it" if is_hidden(mean) else estimate, mean["noisy_tv"]]


def accepted_in_words(accept: Mapping[str, Any]) -> str:
    """What was declared before the order: accuracy at least, how far off at most."""
    limits = ((name, limit) for name, limit in accept.items() if name != "by")
    return ", ".join(f"{name} at {'least' if name == 'accuracy' else 'most'} {limit:g}" for name, limit in limits)


def _accuracy(found: Mapping[str, Any] | None) -> str:
    """On held-out units, where the order held some out."""
    if found is None:
        return ""
    frequent, heads = found["most_frequent"], ["", "part of the rows", "from", "to", "standard error of noise"]
    share, noise = frequent["share"], frequent["noise_std"]
    rows: list[Row] = [
        [
            "logistic regression, trained on synthetic rows",
            found["accuracy"],
            found["low"],
            found["high"],
            found["noise_std"],
        ],
        [
            "always the most frequent value",
            share,
            max(0.0, share - SURE * noise),
            min(1.0, share + SURE * noise),
            noise,
        ],
    ]
    said = f"Rows of {found['held_out_units']:,} held-out units: {found['target']} predicted right"
    return _table(said, heads, rows)


def _looked_at(rows: Mapping[str, int], breaking: int) -> str:
    return (
        f"<p>{rows['real']:,} real rows and {rows['synthetic']:,} synthetic ones were looked at. "
        f"Synthetic rows that break the declaration: <strong>{breaking}</strong>.</p>"
    )


def _learning(learned: Sequence[Mapping[str, Any]]) -> str:
    if not learned:
        return ""
    rows = [
        [LEARNERS[one["learner"]], SETS[one["trained_on"]], one["accuracy"], one["auroc"], one["true_positive_rate"]]
        for one in learned
    ]
    page = _table(
        "The declared target, predicted on real rows",
        ["classifier", "trained on", "accuracy", "AUROC", "true positive rate"],
        rows,
    )
    groups, over = [], []
    for one in learned:
        for field, found in one["protected"].items():
            head = [field, LEARNERS[one["learner"]], SETS[one["trained_on"]]]
            over.append([*head, found["demographic_parity_difference"], found["worst_group"]])
            groups += [
                [*head, value, own["accuracy"], own["auroc"], own["true_positive_rate"]]
                for value, own in found["groups"].items()
            ]
    if over:
        head = ["field", "classifier", "trained on"]
        page += _table(
            "By value of protected fields", [*head, "value", "accuracy", "AUROC", "true positive rate"], groups
        )
        page += _table("Between these values", [*head, "demographic parity difference", "lowest accuracy"], over)
    return page


def _attacks(found: Mapping[str, Any] | None) -> str:
    """What an adversary sees of real rows; reports of earlier versions have none."""
    if found is None:
        return ""
    looked_at = ", ".join(f"{count:,} {ATTACKED[name]}" for name, count in found["rows"].items())
    page = f"<h2>Attacks on this release</h2><p>{escape(found['says'])}</p><p>Looked at: {looked_at}; one row of a privacy unit.</p>"
    if found["not_given"] is not None:
        page += f"<p>{escape(found['not_given'])}</p>"
    return page + _likelihood(found["likelihood"]) + _exposure(found["exposure"]) + _nearest(found["nearest"])


def _likelihood(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return ""
    rows: list[Row] = [
        [SCORES[one["score"]], *(one[figure][end] for figure in ("auroc", "advantage") for end in _ENDS)]
        for one in found["scores"]
    ]
    heads = ["score", "AUROC", "from", "to", "advantage at the best threshold", "from", "to"]
    allowed = f"<p>At ε = {found['epsilon']:g} the advantage is at most {found['most_advantage']:.4g}.</p>"
    return _table("Likelihood: used rows from others", heads, rows) + f"<p>{escape(found['says'])}</p>{allowed}"


def _exposure(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return ""
    figures = ("median", "percentile_99", "largest", "share_above_chance")
    rows: list[Row] = [
        [ATTACKED[one["rows"]], AMONG[one["among"]], *(one[figure] for figure in figures)] for one in found["found"]
    ]
    chance = found["chance"]
    rows.append(["by chance", "any", chance["median"], None, None, chance["share_above_chance"]])
    heads = ["rows", "among", "median, bits", "99th percentile", "largest", "part above the mean of chance"]
    return _table("Exposure", heads, rows) + f"<p>{escape(found['says'])}</p>"


def _nearest(found: Mapping[str, Any]) -> str:
    rows: list[Row] = [[ATTACKED[one["rows"]], one["mean"], one["same"]] for one in found["found"]]
    heads = ["rows", "Gower distance, mean", "part with the same cells"]
    return _table("Nearest synthetic rows", heads, rows) + f"<p>{escape(found['says'])}</p>"


def _table(title: str, heads: Sequence[str], rows: Sequence[Row]) -> str:
    first = rows[0] if rows else [""] * len(heads)
    is_text = [isinstance(each, str) for each in first]
    head = "".join(
        f'<th scope="col"{"" if t else " class=n"}>{escape(h)}</th>' for h, t in zip(heads, is_text, strict=True)
    )
    body = "".join("<tr>" + "".join(_cell(each) for each in row) + "</tr>" for row in rows)
    return f"<h2>{escape(title)}</h2><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: str | float | None) -> str:
    if isinstance(value, str):
        return f"<td>{escape(value)}</td>"
    return f'<td class="n">{"–" if value is None else format(value, ".4g")}</td>'


def _page(title: str, release_id: str, body: str, *, warning: str = "") -> str:
    marked = f'<p class="warning" role="note">{escape(warning)}</p>' if warning else ""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}: {escape(release_id)}</title><style>{STYLE}</style></head><body>{marked}"
        f"<h1>{escape(title)}</h1><p>Release {escape(release_id)}</p>{body}{marked}</body></html>\n"
    )
