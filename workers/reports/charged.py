"""The report for everybody: how far a finished generator is from the real rows, measured with noise that the price list has.

    take the event -> count real rows -> noise -> compare with rows of the generator

Which tables are counted follows from the declaration. What comes back is public, and whether a release is accepted is decided on it alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from service.methods.report import purpose_of, target_of
from service.methods.report_noise import MOST_PAIRS, NUMERIC_BINS, PAIR_CELLS, PRECISION_EXPONENT, pairs_of
from workers.mechanism.marginals import TableLayout, count_tables
from workers.mechanism.noise import count_noise_stds, drawn_std, most_moved, release_counts
from workers.reports.accuracy import figures, noisy_answers
from workers.reports.noisy_distance import MeanDistance, NoisyTable, mean_distance
from workers.reports.rows import draw_frame, modelled, rows_of, unsigned_bundle

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from service.domain.table_schema import TableSchema
    from service.methods.knobs import Accept, Order
    from workers.encoding.table import EncodedTable, TableDomain
    from workers.mechanism.marginals import Columns
    from workers.mechanism.secure_random import SecureRandom
    from workers.plan import Plan
    from workers.sources import Source

FORMAT = 1
SYNTHETIC_ROWS = 200_000
"""Drawn from the generator; their own error is in the variances."""

SAYS = (
    "Noisy tables of counts of the real rows, charged as the last event of the price list, compared with rows of the finished generator. `noisy_tv` is total "
    "variation with what noise adds, `of_noise_alone` what a generator without any error would show, `noise_std` its standard error at most. "
    "The truth of the means is between `low` and `high` 19 times in 20; `tv` is an estimate without the bias of noise. Where `noise_hides_it`, `tv` says nothing: it "
    "may be many times too large, and only the bounds count. "
)
OF_ALL = "All real rows were used to make the generator."
OF_OTHERS = (
    "Tables are of the units that the generator was made of. `accuracy` is on rows of the held-out units, which it was not made of: how often a "
    "logistic regression, trained on synthetic rows alone, predicts the target right; `low` and `high` hold 19 times in 20, by noise and as units "
    "are drawn. Bounds and categories that were bought, if any, are of all units. Always answering the `most_frequent` value would be right as often as its `share` says."
)


def charged_report(
    order: Order,
    plan: Plan,
    source: Source,
    randomness: SecureRandom,
    files: Mapping[str, bytes],
    schema: TableSchema,
    *,
    held_out: Source | None = None,
) -> dict[str, Any]:
    """The whole report, as JSON. plan: of the report's event. files: of the generator, before they are certified.

    source: the units that it was made of. held_out: those that it was not, where the order holds some out. No unit is in both, so that
    one event pays for both: a unit moves the tables, or the answers, each of which has the noise of the whole.
    """
    if (held_out is None) != (order.held_out is None):
        raise ValueError("held-out units are those of the order")
    noise_multiplier = plan.take_gaussian(purpose_of(order))
    table, domain = source.table(numeric_bins=NUMERIC_BINS)
    layout = layout_of(domain)
    tables = tables_of(domain, schema.target)
    counts, variances = _noisy_counts(table, layout, tables, noise_multiplier, randomness)
    drawn = rows_of(modelled(draw_frame(unsigned_bundle(files), SYNTHETIC_ROWS), schema), domain)
    made = count_tables(drawn.codes.astype(np.uint16), layout, tables).values
    rows = _rows(table, counts, variances, len(layout.widths))
    compared = [
        _compared(noisy, variance, own.numpy().ravel(), rows)
        for noisy, variance, own in zip(counts, variances, made, strict=True)
    ]
    singles, pairs = compared[: len(layout.widths)], compared[len(layout.widths) :]
    report = {
        "format": FORMAT,
        "says": SAYS + (OF_ALL if held_out is None else OF_OTHERS),
        "synthetic_rows": SYNTHETIC_ROWS,
        "one_way": _mean(singles),
        "two_way": _mean(pairs) if pairs else None,
        "columns": [{"column": domain.names[c], **_figures(one)} for (c,), one in zip(tables, singles, strict=False)],
        "pairs": [
            {"columns": [domain.names[c] for c in columns], **_figures(one)}
            for columns, one in zip(tables[len(singles) :], pairs, strict=True)
        ],
    }
    if held_out is not None:
        target = target_of(order, schema)
        frequent = _most_frequent(domain, domain.index(target), made, counts, variances, rows)
        tested, _ = held_out.table(numeric_bins=NUMERIC_BINS)
        answers = noisy_answers(
            tested, domain, target, drawn.codes, noise_multiplier=noise_multiplier, randomness=randomness
        )
        report["accuracy"] = figures(answers, target=target, held_out_units=tested.units, most_frequent=frequent)
    return report | verdict(order.accept, report)


def _most_frequent(
    domain: TableDomain,
    column: int,
    made: Sequence[Tensor],
    counts: Sequence[NDArray[np.float64]],
    variances: Sequence[float],
    rows: float,
) -> tuple[Any, float, float]:
    """By the synthetic rows; its share of the real ones by their noisy table, and the standard deviation of that. Post-processing."""
    cell = int(made[column].ravel().argmax())
    values = domain.columns[column].values or ()
    return values[cell], float(counts[column][cell] / rows), float(np.sqrt(variances[column]) / rows)


def verdict(accept: Accept | None, report: Mapping[str, Any]) -> dict[str, Any]:
    """What was asked for before the order, and whether the noisy figures meet it; None where nothing was."""
    if accept is None:
        return {"accept": None, "accepted": None}
    limits = accept.model_dump(exclude_none=True, exclude={"by"})
    by_bound = accept.by == "bound"
    accuracy = limits.pop("accuracy", None)
    figures_of = {"one_way_tv": report["one_way"], "two_way_tv": report["two_way"]}
    met = [figures_of[name]["high" if by_bound else "tv"] <= limit for name, limit in limits.items()]
    if accuracy is not None:
        met.append(report["accuracy"]["low" if by_bound else "accuracy"] >= accuracy)
    return {"accept": accept.model_dump(exclude_none=True), "accepted": all(met)}


def layout_of(domain: TableDomain) -> TableLayout:
    """The form of the tables, from the declared columns."""
    most = tuple(min(column.size, PAIR_CELLS) for column in domain.columns)
    return TableLayout(
        widths=domain.widths,
        pair_widths=tuple(max(width, 1 + column.missing) for width, column in zip(most, domain.columns, strict=True)),
        has_missing=tuple(column.missing for column in domain.columns),
        label=None,
    )


def tables_of(domain: TableDomain, target: str | None) -> list[Columns]:
    """Every column, and the first pairs: those with the target before others."""
    return [*((column,) for column in range(len(domain.columns))), *pairs_of(domain.names, target, MOST_PAIRS)]


def _noisy_counts(
    table: EncodedTable,
    layout: TableLayout,
    tables: Sequence[Columns],
    noise_multiplier: float,
    randomness: SecureRandom,
) -> tuple[list[NDArray[np.float64]], list[float]]:
    """Of each table its cells with noise, and the variance of that; together one Gaussian of this noise multiplier."""
    private = count_tables(
        table.codes, layout, tables, unit_starts=table.unit_starts, max_rows_per_unit=table.max_rows_per_unit
    )
    sizes = [layout.size(columns) for columns in tables]
    stds = count_noise_stds(
        private.sensitivities, sizes, noise_multiplier=noise_multiplier, exponent=PRECISION_EXPONENT
    )
    noisy = release_counts(private, noise_stds=stds, noise_multiplier=noise_multiplier, randomness=randomness)
    moved = most_moved(private)
    return [one.numpy().ravel().astype(np.float64) for one in noisy], [drawn_std(s, moved=moved) ** 2 for s in stds]


def _rows(
    table: EncodedTable, counts: Sequence[NDArray[np.float64]], variances: Sequence[float], singles: int
) -> float:
    """How many real rows there are: n is public where a unit is a row, else estimated from the noisy tables of columns."""
    if table.unit_starts is None:
        return float(table.units)
    weights = [1.0 / (variance * len(cells)) for cells, variance in zip(counts[:singles], variances, strict=False)]
    totals = [float(cells.sum()) for cells in counts[:singles]]
    return max(1.0, float(np.average(totals, weights=weights)))


def _compared(noisy: NDArray[np.float64], variance: float, made: NDArray[np.int64], rows: float) -> NoisyTable:
    shares = made / max(1, int(made.sum()))
    return NoisyTable(noisy / rows - shares, variance / rows**2 + shares * (1.0 - shares) / SYNTHETIC_ROWS)


def _figures(table: NoisyTable) -> dict[str, float]:
    return {
        "noisy_tv": table.total_variation,
        "noise_std": table.noise_std,
        "of_noise_alone": table.of_noise_alone,
    }


def _mean(tables: Sequence[NoisyTable]) -> dict[str, float]:
    found: MeanDistance = mean_distance(tables)
    return {
        "tables": len(tables),
        "noisy_tv": found.noisy,
        # What they are of is a share: more than 1 is noise.
        "tv": min(1.0, found.estimate),
        "low": min(1.0, found.low),
        "high": min(1.0, found.high),
        "noise_hides_it": found.is_hidden,
    }
