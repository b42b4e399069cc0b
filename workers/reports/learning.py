"""Train on synthetic rows, test on real ones: logistic regression and boosting, beside the same trained on real rows."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from service.methods.report import MOST_CLASSES
from workers.reports.subgroups import Answers, group_scores

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from workers.encoding.table import ColumnDomain, TableDomain
    from workers.reports.rows import Rows

LEARNERS = ("logistic_regression", "boosting")
ITERATIONS, TREES = 200, 100
"""Of the one and of the other; no early stopping, so that the work depends on sizes."""


def answers_of(
    learner: str, train: NDArray[np.int64], test: NDArray[np.int64], widths: Sequence[int], label: int
) -> Answers:
    """What a classifier trained on the first rows says of the others. Rows are cells."""
    known, wanted = np.delete(train, label, axis=1), train[:, label]
    asked, truth = np.delete(test, label, axis=1), test[:, label]
    chances = np.zeros((len(test), widths[label]))
    if len(np.unique(wanted)) < 2:
        chances[:, wanted[:1]] = 1.0
        return Answers(chances, truth)
    if learner == "boosting":
        model: Any = HistGradientBoostingClassifier(max_iter=TREES, early_stopping=False, random_state=0)
    else:
        model = logistic_regression(widths, label)
    fit(model, known, wanted)
    chances[:, model.classes_] = model.predict_proba(asked)
    return Answers(chances, truth)


def logistic_regression(widths: Sequence[int], label: int) -> Any:
    """Of all cells of the other columns."""
    cells = [range(width) for place, width in enumerate(widths) if place != label]
    return make_pipeline(OneHotEncoder(categories=cells), LogisticRegression(max_iter=ITERATIONS))


def fit(model: Any, known: NDArray[np.int64], wanted: NDArray[np.int64]) -> None:
    """In place."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fixed number of iterations is meant
        model.fit(known, wanted)


def scores(
    sets: Mapping[str, Rows], test: Rows, domain: TableDomain, target: str, protected: Sequence[str]
) -> list[dict[str, Any]]:
    """Of each learner and each set of training rows: accuracy, AUROC, TPR, and the same by value of each protected field."""
    label, widths = domain.index(target), domain.widths
    if widths[label] > MOST_CLASSES or len(widths) < 2:
        return []
    found = []
    for learner in LEARNERS:
        for name, rows in sets.items():
            answers = answers_of(learner, rows.codes, test.codes, widths, label)
            groups = {
                field: group_scores(
                    answers, test.codes[:, domain.index(field)], names_of(domain.columns[domain.index(field)])
                )
                for field in protected
            }
            found.append(
                {
                    "learner": learner,
                    "trained_on": name,
                    "accuracy": answers.accuracy,
                    "auroc": answers.auroc,
                    "true_positive_rate": answers.true_positive_rate,
                    "protected": groups,
                }
            )
    return found


def names_of(column: ColumnDomain) -> list[str]:
    """Of the values of a categorical column, as people read them."""
    return ["missing" if value is None else str(value) for value in column.values or ()]
