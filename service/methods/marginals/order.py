"""`method: marginals`: its knobs."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from service.base.messages import Message
from service.methods.knobs import DEFAULT_NUMERIC_BINS, SMALLEST_SHARE, Order, ShareOrNothing

COMPONENTS = 2_048
"""Of the mixture of each value of a condition, and of one that networks begin near."""


class MarginalsOrder(Order):
    """One measurement of one- and two-way tables, within each value of the condition unless said, and a mixture fitted to it."""

    method: Literal["marginals"]
    numeric_bins: Annotated[
        int, Field(ge=2, le=256, description="Bins of the public grid of a numeric field that declares none.")
    ] = DEFAULT_NUMERIC_BINS
    pair_cells: Annotated[
        int,
        Field(
            ge=2,
            le=256,
            description="In two-way tables a column has at most this many bins: neighbouring ones are counted together. "
            "Fewer where the table is wide.",
        ),
    ] = 64
    pair_groups: Annotated[
        Literal["counted", "declared"] | None,
        Field(
            description="What two-way tables count: the bins as they are declared, or groups of them, in which rare bins are "
            "together, found from one-way tables that are measured first. Default: counted with `pairs: auto`; else declared."
        ),
    ] = None
    grouping_precision_share: Annotated[
        float,
        Field(
            ge=SMALLEST_SHARE,
            lt=0.5,
            description="Part of the Gaussian precision spent on one-way tables before all pairs, where their bins are grouped by them: "
            "half of it on those of all rows, or all of it where pairs are of all rows.",
        ),
    ] = 0.2
    pairs: Annotated[
        Literal["auto", "all", "few_or_all", "chosen", "none"],
        Field(
            description="Which pairs of columns are measured: all; chosen: those whose noisy scores say that they depend on each other; "
            "few_or_all: the same, from less precise scores; or none, only columns, of all rows and within each value of the condition; "
            "auto: all, chosen or none by the noise at this n."
        ),
    ] = "auto"
    pairs_within: Annotated[
        Literal["condition", "table"] | None,
        Field(
            description="Whether pairs of columns are measured within each value of the condition, as single columns always are, or "
            "in all rows together, where noise is smaller. Default: condition; but `pairs: auto` chooses pairs of all rows."
        ),
    ] = None
    selection_precision_share: Annotated[
        float,
        Field(
            ge=SMALLEST_SHARE,
            lt=0.25,
            description="Part of the Gaussian precision spent on scores where pairs are chosen; as much again is spent on one-way tables "
            "before them, unless these are of all rows.",
        ),
    ] = 0.075
    few_precision_share: Annotated[
        float,
        Field(
            ge=SMALLEST_SHARE,
            lt=0.5,
            description="Part of the Gaussian precision spent on scores with `pairs: few_or_all`.",
        ),
    ] = 0.01
    all_rows_precision_share: Annotated[
        float,
        Field(
            ge=SMALLEST_SHARE,
            lt=0.5,
            description="Part of the Gaussian precision spent on one-way tables of all rows, beside those within each value of the "
            "condition, where no pairs are measured or pairs of all rows are chosen.",
        ),
    ] = 0.25
    tree_precision_share: Annotated[
        ShareOrNothing | None,
        Field(
            ge=0.0,
            lt=0.5,
            description="Part of the Gaussian precision spent on trees of counts of ranges that declare neither `bins` nor `edges`. They say "
            "where values lie, so which cells a range has, and which single values many rows share, such as 4.99 or 40 hours; 0: cells are "
            "equal, and values are drawn evenly within a cell. Default: by the noise at this n.",
        ),
    ] = None
    one_way_weight: Annotated[
        float | None,
        Field(
            ge=1e-3,
            le=1e3,
            description="Precision of one-way tables relative to two-way ones of their size. Default: 5 where one-way tables are measured "
            "first; else 1.",
        ),
    ] = None
    precision_exponent: Annotated[
        float, Field(ge=0.0, le=2.0, description="The precision of a table grows with its cells to this power.")
    ] = 2 / 3
    components: Annotated[
        int | None,
        Field(
            ge=2,
            le=8_192,
            description="Product distributions in the mixture of each value of the condition; a power of two; fewer where it has few rows. "
            "Default: 2,048, and 4,096 without a condition where all columns have at most 2,048 cells.",
        ),
    ] = None
    steps: Annotated[int, Field(ge=1, le=100_000, description="Fitting steps; they read no row and cost nothing.")] = (
        800
    )
    learning_rate: Annotated[float, Field(gt=0.0, le=10.0, description="Adam's, falling to zero.")] = 0.2

    @model_validator(mode="after")
    def _power_of_two(self) -> Self:
        if self.components is not None and self.components & (self.components - 1):
            raise ValueError(Message("components must be a power of two"))
        return self

    @property
    def counts_values(self) -> bool:
        """Whether open ranges get trees of counts."""
        return bool(self.tree_precision_share)

    @property
    def looks_at_single_columns_first(self) -> bool:
        """Whether one-way tables are measured before others: before it is known what else is, or of all rows before strata."""
        if self.pairs == "none":
            return self.condition_on is not None
        return self.pairs in {"chosen", "few_or_all"} or (self.pairs == "all" and self.pair_groups == "counted")
