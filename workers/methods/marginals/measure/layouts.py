"""The forms that tables may have, from the order and the columns alone."""

from __future__ import annotations

from service.methods.marginals.order import MarginalsOrder
from service.methods.marginals.pair_rules import pair_widths
from workers.encoding.table import TableDomain
from workers.mechanism.marginals import TableLayout


def condition_of(order: MarginalsOrder, domain: TableDomain) -> int | None:
    """The column whose values are strata. A column that is alone is measured as it is: there is nothing to split by it."""
    condition = order.condition_on if len(domain.columns) > 1 else None
    return None if condition is None else domain.index(condition)


def layout_of(order: MarginalsOrder, domain: TableDomain) -> TableLayout:
    """All tables of these columns, before bins are grouped."""
    condition = condition_of(order, domain)
    free = [column for column in range(len(domain.columns)) if column != condition]
    widths = pair_widths([domain.widths[column] for column in free], pair_cells=order.pair_cells)
    grouped = dict(zip(free, widths, strict=True))
    return TableLayout(
        widths=domain.widths,
        pair_widths=tuple(grouped.get(column, width) for column, width in enumerate(domain.widths)),
        has_missing=tuple(column.missing for column in domain.columns),
        label=condition,
        pairs_are_sliced=order.pairs_within != "table",
    )


def looks_of(order: MarginalsOrder, layout: TableLayout) -> tuple[TableLayout, ...]:
    """The forms of one-way tables before all others; the last has the most strata.

    All rows together; each stratum where pairs are chosen in strata; both where all pairs of the strata may be measured.
    """
    of_all_rows = layout.of_all_rows()
    if layout.slices == 1 or not layout.pairs_are_sliced or order.pairs == "none":
        return (of_all_rows,)
    return (layout,) if order.pairs == "chosen" else (of_all_rows, layout)
