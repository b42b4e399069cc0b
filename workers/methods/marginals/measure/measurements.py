"""What is known after each release. A release makes a new value; none is changed. Public."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations

from service.methods.marginals.order import MarginalsOrder
from workers.encoding.table import TableDomain
from workers.mechanism.marginals import Columns, TableLayout
from workers.methods.marginals.measure.layouts import layout_of
from workers.methods.marginals.measure.measured import Measured
from workers.methods.marginals.measure.trees import RangeTree


@dataclass(frozen=True)
class Measurements:
    """All that was released so far, and what is counted next."""

    domain: TableDomain
    """The columns, with the bins that are counted."""
    layout: TableLayout
    """The form of the tables that are counted next, or were counted last."""
    pairs: tuple[Columns, ...]
    """Pairs of columns that have a two-way table, or may get one."""
    is_private: bool
    """Whether all noise came from a secure source."""
    tables: tuple[Measured, ...] = ()
    trees: Mapping[int, RangeTree] = field(default_factory=dict)
    """Of columns whose values were counted."""

    @classmethod
    def nothing(cls, order: MarginalsOrder, domain: TableDomain, *, is_private: bool) -> Measurements:
        """Before the first release."""
        layout = layout_of(order, domain)
        pairs = () if order.pairs == "none" else tuple(combinations(layout.free, 2))
        return cls(domain, layout, pairs, is_private)
