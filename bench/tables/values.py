"""How good values are, whatever cells somebody drew them from: distances in cells that real rows fill equally, a classifier of values.

Public cells hide what is inside them: nine values of ten in one cell count as nine right ones. These cells come from the real
training rows, as an owner would look at them; no method sees them.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from bench.tables.metrics import total_variation
from service.domain.table_schema import parse_table_schema
from service.domain.value_grids import value_grid
from service.methods.knobs import DEFAULT_NUMERIC_BINS

if TYPE_CHECKING:
    from bench.tables.tables import Table
    from service.domain.field_schema import FieldSchema
    from service.domain.table_schema import TableSchema

QUANTILES = 16


def value_scores(frame: pl.DataFrame, table: Table) -> dict[str, float]:
    """TV1 and TV2 in cells of equally many training rows, of as many synthetic rows; AUROC of boosted trees on values."""
    fields = table.schema.fields
    real, made = _numbers(table.train, fields), _numbers(frame, fields)
    found: dict[str, float] = {}
    cells = [_cells(field, real[:, c], made[: len(real), c]) for c, field in enumerate(fields)]
    one, other = (np.stack([column[side] for column in cells], axis=1) for side in (0, 1))
    widths = tuple(int(max(a.max(), b.max())) + 1 for a, b in cells)
    for ways in (1, 2):
        found[f"value TV{ways}"] = total_variation(one, other, widths, ways)
    if table.target is not None:
        found["GB AUROC on values"] = _auroc(made, _numbers(table.test, fields), table.schema.names.index(table.target))
    return found


def _auroc(made: np.ndarray, real: np.ndarray, label: int) -> float:
    """One against the rest, unweighted mean over classes that the test rows have."""
    wanted, truth = made[:, label], real[:, label]
    if len(np.unique(wanted)) < 2:
        return 0.5
    classifier = HistGradientBoostingClassifier(max_iter=100, early_stopping=False, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fixed number of iterations is meant
        classifier.fit(np.delete(made, label, axis=1), wanted)
    chances = dict(zip(classifier.classes_, classifier.predict_proba(np.delete(real, label, axis=1)).T, strict=True))
    present = [c for c in np.unique(truth) if 0 < (truth == c).sum() < len(truth)]
    return float(np.mean([roc_auc_score(truth == c, chances.get(c, np.zeros(len(truth)))) for c in present]))


def with_quantile_bins(schema: TableSchema, train: pl.DataFrame) -> TableSchema:
    """The schema as an owner would declare who knew the cells of `value_scores`: what bins found under noise can hope for."""
    document = schema.model_dump(mode="json", exclude_unset=True)
    for field, written, values in zip(schema.fields, document["fields"], _numbers(train, schema.fields).T, strict=True):
        if value_grid(field, DEFAULT_NUMERIC_BINS) is None:  # each value has a bin of its own, or the schema has them
            continue
        low, high = field.bounds
        edges = _edges(values)
        if field.type != "number":
            edges = np.unique(np.ceil(edges))
        written["edges"] = [low, *edges[(edges > low) & (edges < high)].tolist(), high]
    return parse_table_schema(document)


def _edges(real: np.ndarray) -> np.ndarray:
    """Inner edges of cells that real values fill equally; a value that many share has a cell to itself."""
    many = 0.5 / QUANTILES
    edges: set[float] = set()
    for value in np.unique(np.nanquantile(real, np.arange(1, QUANTILES) / QUANTILES)).tolist():
        edges |= {value, float(np.nextafter(value, np.inf))} if np.mean(real == value) > many else {value}
    return np.sort(np.array(list(edges)))


def _cells(field: FieldSchema, real: np.ndarray, made: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The cell of every real and every synthetic value."""
    if field.is_categorical:
        return real.astype(int) + 1, made.astype(int) + 1
    ordered, found = _edges(real), []
    for column in (real, made):
        codes = np.searchsorted(ordered, column, side="right")
        found.append(np.where(np.isnan(column), len(ordered) + 1, codes))
    return found[0], found[1]


def _numbers(frame: pl.DataFrame, fields: tuple[FieldSchema, ...]) -> np.ndarray:
    """(rows, columns): categories by their place, -1 where missing; other values as they are, NaN where missing."""
    columns = []
    for field in fields:
        column = frame[field.name]
        if field.constraints.enum is not None:
            places = {value: float(place) for place, value in enumerate(field.constraints.enum)}
            columns.append(np.array([places.get(value, -1.0) for value in column.to_list()]))
        elif field.type == "boolean":
            columns.append(column.cast(pl.Float64).fill_null(-1.0).to_numpy())
        else:
            columns.append(column.to_physical().cast(pl.Float64).fill_null(float("nan")).to_numpy())
    return np.stack(columns, axis=1)
