"""How good rows are, all on the same public cells. Smaller is better for distances, larger for scores."""

from __future__ import annotations

import datetime as dt
import warnings
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from service.intake.table.canonical import declared_values
from service.intake.table.exclusions import excluded

if TYPE_CHECKING:
    from bench.tables.tables import Table
    from service.domain.table_schema import TableSchema

TRIPLES = 100
NEIGHBOUR_ROWS = 2_000


def total_variation(a: np.ndarray, b: np.ndarray, widths: tuple[int, ...], ways: int) -> float:
    """Mean over all sets of `ways` columns (100 fixed ones of three) of half the L1 distance of their tables."""
    sets = list(combinations(range(len(widths)), ways))
    if ways == 3 and len(sets) > TRIPLES:
        chosen = np.random.default_rng(0).choice(len(sets), TRIPLES, replace=False)
        sets = [sets[place] for place in chosen]
    distances = []
    for columns in sets:
        sizes = tuple(widths[column] for column in columns)
        one, other = (
            np.bincount(np.ravel_multi_index(tuple(codes[:, c] for c in columns), sizes), minlength=np.prod(sizes))
            / len(codes)
            for codes in (a, b)
        )
        distances.append(0.5 * np.abs(one - other).sum())
    return float(np.mean(distances))


def classifier_scores(synthetic: np.ndarray, table: Table) -> dict[str, float]:
    """Logistic regression (one-hot cells) and gradient boosting (cells as numbers): AUROC and accuracy, and per class.

    More than two classes: AUROC is one against the rest, unweighted mean over classes that the test rows have.
    """
    if table.target is None:
        return {}
    label, widths, real = table.domain.index(table.target), table.domain.widths, table.test_codes
    known, wanted = np.delete(synthetic, label, axis=1), synthetic[:, label]
    asked, truth = np.delete(real, label, axis=1), real[:, label]
    one_hot = OneHotEncoder(categories=[range(w) for i, w in enumerate(widths) if i != label])
    found: dict[str, float] = {}
    for name, classifier in {
        "LR": make_pipeline(one_hot, LogisticRegression(max_iter=300)),
        "GB": HistGradientBoostingClassifier(max_iter=100, early_stopping=False, random_state=0),
    }.items():
        if len(np.unique(wanted)) < 2:
            found |= {f"{name} AUROC": 0.5, f"{name} accuracy": float((truth == wanted[0]).mean())}
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a fixed number of iterations is meant
            classifier.fit(known, wanted)
        chances = np.zeros((len(truth), widths[label]))
        chances[:, classifier.classes_] = classifier.predict_proba(asked)
        answers = chances.argmax(axis=1)
        present = [c for c in range(widths[label]) if 0 < (truth == c).sum() < len(truth)]
        found[f"{name} AUROC"] = float(np.mean([roc_auc_score(truth == c, chances[:, c]) for c in present]))
        found[f"{name} accuracy"] = float((answers == truth).mean())
        for c in present:
            found[f"{name} recall of {label_name(table, c)}"] = float((answers[truth == c] == c).mean())
    return found


def label_name(table: Table, code: int) -> str:
    column = table.domain.columns[table.domain.index(table.target or "")]
    return str(column.values[code] if column.values is not None else code)


def correlation_error(a: np.ndarray, b: np.ndarray) -> float:
    """Mean absolute difference of the correlations of all pairs of columns' codes; a column of one value has none, which counts as 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        one, other = (np.nan_to_num(np.corrcoef(codes.T)) for codes in (a, b))
    upper = np.triu_indices(a.shape[1], 1)
    return float(np.abs(one - other)[upper].mean())


def breaking_share(frame: pl.DataFrame, schema: TableSchema) -> float:
    """Part of the rows with a value outside the declared domain, missing where it is required, or excluded. Must be 0."""
    bad = pl.lit(value=False)
    for field in schema.fields:
        column = pl.col(field.name)
        if field.constraints.required:
            bad |= column.is_null()
        if field.constraints.enum is not None:
            values = declared_values(field, field.constraints.enum)
            bad |= ~column.cast(values.dtype).is_in(values.implode()) & column.is_not_null()
        elif field.type in {"integer", "number"}:
            low, high = field.bounds
            bad |= (column < low) | (column > high)
        elif field.type == "date":
            low, high = (dt.date(1970, 1, 1) + dt.timedelta(days=bound) for bound in field.bounds)
            bad |= (column < low) | (column > high)
        elif field.type == "datetime":
            low, high = (dt.datetime(1970, 1, 1) + dt.timedelta(seconds=bound) for bound in field.bounds)  # noqa: DTZ001 - UTC, as frames hold it
            bad |= (column < low) | (column > high)
    for exclusion in schema.exclusions:
        bad |= excluded(schema, exclusion)
    return float(frame.select(bad.fill_null(value=False)).to_series().mean() or 0.0)


def nearest_neighbour_ratio(synthetic: np.ndarray, table: Table) -> float:
    """Distance (cells that differ) from synthetic rows to the nearest training row, divided by that from test rows.

    About 1: no closer to the training rows than fresh rows are. Far below 1: copies.
    """
    train = table.train_codes

    def distance(rows: np.ndarray) -> float:
        found, _ = NearestNeighbors(n_neighbors=1, metric="hamming").fit(train).kneighbors(rows[:NEIGHBOUR_ROWS])
        return float(found.mean())

    fresh = distance(table.test_codes)
    return distance(synthetic) / fresh if fresh > 0.0 else float("nan")
