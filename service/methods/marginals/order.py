"""`method: marginals`: its knobs."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from service.methods.knobs import DEFAULT_NUMERIC_BINS, SMALLEST_SHARE, Order, ShareOrNothing

COMPONENTS = 2_048
"""Of the mixture of each value of a condition, and of one that networks begin near."""


class MarginalsOrder(Order):
    """One measurement of one- and two-way tables, within each value of the condition unless said, and a mixture fitted to it."""

    method: Literal["marginals"]
    numeric_bins: Annotated[
        int, Field(ge=2, le=256, description="Cells of the public grid of a numeric field that declares none.")
    ] = DEFAULT_NUMERIC_BINS
    pair_cells: Annotated[
        int,
        Field(
            ge=2,
            le=256,
            description="In two-way tables a column has at most this many cells: neighbouring ones are counted together. "
            "Fewer where the table is wide.",
        ),
    ] = 64
    numeric_cells: Annotated[
        Literal["counted", "declared"] | None,
        Field(
            description="Cells of a numeric field or date that declares neither `bins` nor `edges`: equal ones, or cut where "
            "one-way tables that are measured first say that rows are. Default: counted with `pairs: auto` where pairs are measured, "
            "unless noise leaves only chosen ones of all rows; else declared."
        ),
    ] = None
    pair_groups: Annotated[
        Literal["counted", "declared"] | None,
        Field(
            description="What two-way tables count: the cells as they are declared, or groups of them, in which rare cells are "
            "together, found from one-way tables that are measured first. Default: counted with `pairs: auto`, unless noise is "
            "small beside the declared cells and no range is open; else declared."
        ),
    ] = None
    grouping_precision_share: Annotated[
        float,
        Field(
            ge=SMALLEST_SHARE,
            lt=0.5,
            description="Part of the Gaussian precision spent on one-way tables before all pairs, where their cells are grouped by them: "
            "half of it on those of all rows, or all of it where pairs are of all rows.",
        ),
    ] = 0.2
    pairs: Annotated[
        Literal["auto", "all", "few_or_all", "chosen", "none"],
        Field(
            description="Which pairs of columns are measured: all; few, if noised scores say that these explain nearly all others, "
            "and else all; those whose noised scores say that they depend on each other; or none, only columns, of all rows and "
            "within each value of the condition; auto: by the noise at this n."
        ),
    ] = "auto"
    pairs_within: Annotated[
        Literal["condition", "table"] | None,
        Field(
            description="Whether pairs of columns are measured within each value of the condition, as single columns always are, or "
            "in all rows together, where noise is smaller. Default: condition, but table for few pairs. `pairs: auto` takes table, too, where "
            "the condition has more than two values and noise within each would allow only chosen pairs, none, or coarse groups; and "
            "where no pairs can be chosen within the values, but some of all rows."
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
    values_precision_share: Annotated[
        ShareOrNothing | None,
        Field(
            ge=0.0,
            lt=0.25,
            description="Part of the Gaussian precision spent on finding single values that many rows share, such as 4.99 or 40 hours, "
            "among those that open ranges may hold; 0: none, and values are drawn evenly within a cell. Default: by the noise at this n, "
            "from 0.005 to 0.04, or 0.",
        ),
    ] = None
    one_way_weight: Annotated[
        float | None,
        Field(
            ge=1e-3,
            le=1e3,
            description="Precision of one-way tables relative to two-way ones of their size. Default: 20 where pairs are chosen, or noise "
            "within the condition allows all of them in coarse groups only; 5 where cells are grouped by counts, or `pairs: auto` chooses pairs "
            "of all rows of more than seven columns besides the condition; else 1.",
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
            raise ValueError("components must be a power of two")
        return self

    @property
    def counts_values(self) -> bool:
        """Whether single values of ranges are counted."""
        return bool(self.values_precision_share)

    @property
    def cuts_cells_by_counts(self) -> bool:
        """Whether cells of open ranges are found from one-way tables that are measured first."""
        return self.pairs != "none" and self.looks_at_single_columns_first and self.numeric_cells == "counted"

    @property
    def looks_at_single_columns_first(self) -> bool:
        """Whether one-way tables are measured before others: before it is known what else is, or of all rows before slices."""
        if self.pairs == "none":
            return self.condition_on is not None
        in_counted_cells = "counted" in {self.pair_groups, self.numeric_cells}
        return self.pairs in {"chosen", "few_or_all"} or (self.pairs == "all" and in_counted_cells)
