"""The owner's report: how good a published generator is, by real rows. It is not private, and owner keys alone may read it.

Every set of rows is compared with the same half of the real rows, so that all distances have the same error of sampling: synthetic
rows, the other half (as close as fresh rows come), and that half with each column shuffled (what independent columns would
give). Then the halves change places, and figures are means of both. The generator was made with both halves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from service.intake.table.exclusions import ExclusionReader
from service.intake.table.relations import RelationReader
from service.methods.report_noise import pairs_of
from workers.reports import learning
from workers.reports.attacks import Attacked, attacks_of
from workers.reports.beside import counts_beside
from workers.reports.distances import (
    MOST_PAIRS,
    PAIR_CELLS,
    correlations,
    grouped,
    same_rows,
    total_variation,
    value_distance,
)
from workers.reports.rows import (
    Rows,
    domain_of,
    draw_frame,
    halves_of,
    modelled,
    next_seed,
    one_of_each,
    read_owned,
    rows_of,
)
from workers.reports.subgroups import worst_of

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from service.domain.table_schema import TableSchema
    from workers.encoding.table import TableDomain
    from workers.held_out import Split

MOST_ROWS = 40_000
"""Real rows that are looked at, at random; synthetic ones as many."""

SETS = ("synthetic", "other_half", "independent")
NOT_PRIVATE = "Not private: computed from the real rows without noise. Do not share."
COMPARED = (
    "All sets are compared with a random half of the real rows (of at most 40,000 of them): synthetic rows, as many; the other half, which is as close as "
    "fresh rows come; and that half with each column shuffled by itself (independent columns). Then the halves change places, and each "
    "figure is the mean of both. "
)
ALL_USED = "All real rows were used to make the generator: no row was held out."
SOME_HELD_OUT = "Some of the real rows are of held-out units: the generator was not made from them."


@dataclass(frozen=True)
class Made:
    """How a release was made, as far as attacks on it need to know."""

    epsilon: float
    delta: float
    units: int
    split: Split | None
    """Which units it was not made from."""


def owner_report(
    schema: TableSchema, canonical: BinaryIO, bundle: bytes, made: Made, *, seed: int | None = None
) -> dict[str, Any]:
    """Everything, as JSON. canonical: the decrypted rows. bundle: the published ZIP. seed: of all that is drawn, synthetic rows too."""
    random = np.random.default_rng(seed)
    domain = domain_of(schema)
    frame, owners = read_owned(canonical)
    halves = halves_of(frame, owners, domain, most=MOST_ROWS, random=random)
    drawn = draw_frame(bundle, max(1, sum(map(len, halves))), seed=next_seed(random))
    synthetic = rows_of(modelled(drawn, schema), domain)
    middle = len(synthetic) // 2
    parts = synthetic.at(np.arange(middle)), synthetic.at(np.arange(middle, len(synthetic)))
    looks = [
        _compared(schema, domain, test, {"synthetic": own, "other_half": other, "independent": other.shuffled(random)})
        for test, other, own in ((halves[0], halves[1], parts[0]), (halves[1], halves[0], parts[1]))
    ]
    found = _mean(looks)
    for one in found["learning"]:
        for own in one["protected"].values():
            own["worst_group"] = worst_of(own["groups"])
    for one, cells in zip(found["columns"], counts_beside(domain, halves, synthetic), strict=True):
        one["cells"] = cells
    return {
        "not_private": NOT_PRIVATE,
        "compared": COMPARED + (ALL_USED if made.split is None else SOME_HELD_OUT),
        "rows": {"real": sum(map(len, halves)), "synthetic": len(synthetic)},
        **found,
        "rows_that_break_the_declaration": rows_that_break(drawn, schema),
        "attacks": _attacks(Attacked(bundle, schema), frame, owners, made, random),
    }


def _attacks(
    attacked: Attacked, frame: pl.DataFrame, owners: NDArray[np.int64], made: Made, random: np.random.Generator
) -> dict[str, Any]:
    """One row of each unit that the release was made from, and of each that it was not."""

    def rows(units: NDArray[np.int64]) -> Rows:
        return one_of_each(frame, owners, attacked.domain, units, most=attacked.most_rows, random=random)

    if made.split is None:
        used, held_out = rows(np.arange(made.units)), None
    else:
        used, held_out = (rows(made.split.units(made.units, held_out=side)) for side in (False, True))
    return attacks_of(attacked, (used, held_out), made.epsilon, made.delta, random)


def rows_that_break(frame: pl.DataFrame, schema: TableSchema) -> int:
    """Synthetic rows that meet an exclusion or break a relation, each counted once for each. Must be 0."""
    relations, exclusions = RelationReader(schema), ExclusionReader(schema.modelled)
    relations.read(frame)
    exclusions.read(modelled(frame, schema))
    return sum(problem.count for problem in (*relations.problems(), *exclusions.problems()))


def _compared(schema: TableSchema, domain: TableDomain, test: Rows, sets: dict[str, Rows]) -> dict[str, Any]:
    columns = _columns(domain, test, sets)
    pairs = _pairs(domain, test, sets, schema.target)
    summary: dict[str, Any] = {}
    for name in SETS:
        summary[name] = {
            "one_way_tv": _average([column["tv"][name] for column in columns]),
            "two_way_tv": _average([pair["tv"][name] for pair in pairs]),
            "value_distance": _average([column["value_distance"][name] for column in columns]),
            "correlation_difference": _average([pair["correlation_difference"][name] for pair in pairs]),
            "same_values": same_rows(sets[name].numbers, test.numbers),
            "same_cells": same_rows(sets[name].codes, test.codes),
        }
    learned = [] if schema.target is None else learning.scores(sets, test, domain, schema.target, schema.protected)
    return {"summary": summary, "columns": columns, "pairs": pairs, "learning": learned}


def _columns(domain: TableDomain, test: Rows, sets: dict[str, Rows]) -> list[dict[str, Any]]:
    found = []
    for place, column in enumerate(domain.columns):
        span = 0.0 if column.edges is None else column.edges[-1] - column.edges[0]
        found.append(
            {
                "column": column.name,
                "tv": {
                    name: total_variation(rows.codes[:, [place]], test.codes[:, [place]], (column.size,))
                    for name, rows in sets.items()
                },
                "value_distance": {
                    name: value_distance(rows.numbers[:, place], test.numbers[:, place], span)
                    for name, rows in sets.items()
                },
            }
        )
    return found


def _pairs(domain: TableDomain, test: Rows, sets: dict[str, Rows], target: str | None) -> list[dict[str, Any]]:
    real, widths = grouped(test.codes, domain, PAIR_CELLS)
    coarse = {name: grouped(rows.codes, domain, PAIR_CELLS)[0] for name, rows in sets.items()}
    ranges = [place for place, column in enumerate(domain.columns) if column.edges is not None]
    place_of = {column: place for place, column in enumerate(ranges)}
    wanted = correlations(test, ranges) if len(ranges) > 1 else None
    own = {name: correlations(rows, ranges) for name, rows in sets.items()} if len(ranges) > 1 else {}
    found = []
    for one, other in pairs_of(domain.names, target, MOST_PAIRS):
        both, sizes = [one, other], (widths[one], widths[other])
        differences: dict[str, float | None] = dict.fromkeys(sets)
        if wanted is not None and one in place_of and other in place_of:
            at = place_of[one], place_of[other]
            differences = {name: float(abs(own[name][at] - wanted[at])) for name in sets}
        found.append(
            {
                "columns": [domain.names[one], domain.names[other]],
                "tv": {name: total_variation(codes[:, both], real[:, both], sizes) for name, codes in coarse.items()},
                "correlation_difference": differences,
            }
        )
    return found


def _average(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _mean(looks: list[Any]) -> Any:
    """Of documents of one form: means of their numbers."""
    first = looks[0]
    if isinstance(first, dict):  # a group may be large enough in one half alone
        keys = dict.fromkeys(key for look in looks for key in look)
        return {key: _mean([look[key] for look in looks if key in look]) for key in keys}
    if isinstance(first, list):
        return [_mean(list(each)) for each in zip(*looks, strict=True)]
    if isinstance(first, float) or first is None:
        return _average(looks)
    return first
