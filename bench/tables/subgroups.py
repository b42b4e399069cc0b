"""Classifiers by value of the fields that a schema names as protected: trained on synthetic rows, tested on real ones, beside the real-trained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from workers.reports.learning import answers_of, names_of
from workers.reports.subgroups import group_scores, worst_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bench.tables.tables import Table

LEARNERS = {"LR": "logistic_regression", "GB": "boosting"}
MARK = " of "
FIGURES = {"accuracy": "accuracy", "auroc": "AUROC", "true_positive_rate": "TPR"}
PARITY = "demographic parity difference"
WORST = "lowest accuracy"


def subgroup_scores(synthetic: np.ndarray, table: Table) -> dict[str, float]:
    """`GB accuracy of sex=Female`, …; over all values `GB demographic parity difference of sex` and `GB lowest accuracy of sex`."""
    found: dict[str, float] = {}
    if table.target is None or not table.schema.protected:
        return found
    label, widths, test = table.domain.index(table.target), table.domain.widths, table.test_codes.astype(np.int64)
    for short, learner in LEARNERS.items():
        answers = answers_of(learner, synthetic.astype(np.int64), test, widths, label)
        for field in table.schema.protected:
            place = table.domain.index(field)
            scores = group_scores(answers, test[:, place], names_of(table.domain.columns[place]))
            for value, own in scores["groups"].items():
                found |= {
                    f"{short} {name}{MARK}{field}={value}": own[key]
                    for key, name in FIGURES.items()
                    if own[key] is not None
                }
            found[f"{short} {PARITY}{MARK}{field}"] = scores["demographic_parity_difference"]
            worst = worst_of(scores["groups"])
            if worst is not None:
                found[f"{short} {WORST}{MARK}{field}"] = scores["groups"][worst]["accuracy"]
    return found


def is_of_a_subgroup(name: str) -> bool:
    """Whether a metric is one of these."""
    return MARK in name and "recall" not in name and "all rows" not in name


def section(runs: Iterable[tuple[str, str, list[dict[str, Any]]]]) -> list[str]:
    """A table in Markdown, each figure with its gap to the real-trained. runs: method, ε as text, and the runs of both."""
    groups = [(method, epsilon, _means(own)) for method, epsilon, own in runs]
    real = next((means for method, _, means in groups if method == "real"), {})
    wheres = sorted({(name.split(" ")[0], name.split(MARK, 1)[1]) for _, _, means in groups for name in means})
    if not wheres:
        return []
    heads = [*FIGURES.values(), PARITY, WORST]
    says = (
        "By value of protected fields, trained on the rows of each method and tested on real ones; in brackets the gap to the same trained on real rows. "
        "Values of fewer than 30 test rows are left out."
    )
    lines = [
        "",
        says,
        "",
        f"| method | ε | classifier | field | {' | '.join(heads)} |",
        f"|---|---|---|---|{'---|' * len(heads)}",
    ]
    for short, where in wheres:
        for method, epsilon, means in groups:
            cells = [_cell(means, real, f"{short} {head}{MARK}{where}") for head in heads]
            lines.append(f"| {method} | {epsilon} | {short} | {where} | {' | '.join(cells)} |")
    return lines


def _means(runs: list[dict[str, Any]]) -> dict[str, float]:
    names = dict.fromkeys(name for run in runs for name in run["metrics"] if is_of_a_subgroup(name))
    return {name: float(np.mean([run["metrics"][name] for run in runs if name in run["metrics"]])) for name in names}


def _cell(means: dict[str, float], real: dict[str, float], name: str) -> str:
    if name not in means:
        return ""
    gap = f" ({means[name] - real[name]:+.3f})" if name in real and means is not real else ""
    return f"{means[name]:.3f}{gap}"
