"""From noisy tables to the mixture that is published. Post-processing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from service.methods.marginals.components import components_of
from service.methods.marginals.order import MarginalsOrder
from workers.encoding.table import TableDomain
from workers.mechanism.marginals import TableLayout
from workers.methods.marginals.estimate.table_estimates import TableEstimates, estimates_of, spans_of
from workers.methods.marginals.estimate.totals import Units
from workers.methods.marginals.fit.mixture_fit import MixtureFit
from workers.methods.marginals.fit.raking import rake_where_better
from workers.methods.marginals.fit.stopping import EstimatedRisk, shifted
from workers.methods.marginals.measure.measurements import Measurements
from workers.networks.mixture import MixtureGenerator
from workers.networks.table import CONDITION_LOGIT

SMALLEST_SHARE = 1e-4
"""Of a bin whose noisy count is about zero, where nothing is fitted."""


def components_in(layout: TableLayout, order: MarginalsOrder, domain: TableDomain, units: Units) -> int:
    """How many components the mixture of each stratum of this layout has."""
    return components_of(order, strata=layout.slices, width=domain.total_width, units=units.count)


def generator_of_single_columns(known: Measurements, estimates: TableEstimates) -> MixtureGenerator:
    """Nothing has to be fitted where only single columns were measured: two equal components, the fewest there can be."""
    fine = estimates.one_way()
    shares = np.concatenate([fine[column] / estimates.totals[:, None] for column in known.layout.free], axis=1)
    logits = np.log(np.maximum(shares, SMALLEST_SHARE)).astype(np.float32)
    return _generator(known, _without_empty(torch.from_numpy(logits)[:, None, :].repeat(1, 2, 1), estimates))


def fitted_generator(
    known: Measurements,
    order: MarginalsOrder,
    units: Units,
    *,
    seed: int,
    device: torch.device,
    on_step: Callable[[int], None],
) -> MixtureGenerator:
    """A mixture fitted to all tables."""
    layout, twin = known.layout, shifted(known.tables, seed=seed)
    spans = spans_of(layout.free, [layout.pair_widths[column] for column in layout.free])
    cells = spans_of(layout.free, [layout.widths[column] for column in layout.free])
    risk = EstimatedRisk(known.tables, twin, spans, cells)
    estimates, of_twin = (estimates_of(tables, layout, known.domain, units) for tables in (known.tables, twin))
    fit = MixtureFit(
        estimates.noisy_tables(),
        (of_twin.noisy_tables(), risk),
        components=components_in(layout, order, known.domain, units),
        steps=order.steps,
        learning_rate=order.learning_rate,
        randomness=torch.Generator().manual_seed(seed),
        device=device,
    )
    fit.run(on_step)
    return _generator(known, _without_empty(rake_where_better(fit.with_twin(), risk), estimates))


def _without_empty(logits: Tensor, estimates: TableEstimates) -> Tensor:
    """The logits (strata, components, W), with none for missing cells and categories that show no rows.

    A fit leaves every cell a share, about 1 in 1,000 rows: of most cells a value that may occur, of these one that no row had.
    """
    cells = spans_of(estimates.layout.free, [estimates.layout.widths[column] for column in estimates.layout.free])
    for column, empty in estimates.empty_cells().items():
        own, none = logits[..., cells[column]], torch.from_numpy(empty)
        own[..., none] = own[..., ~none].amax(dim=2, keepdim=True) - CONDITION_LOGIT
    return logits


def _generator(known: Measurements, logits: Tensor) -> MixtureGenerator:
    """logits: (strata, components, width of all free columns). The label's own are put beside them."""
    label = known.layout.label
    if label is not None:
        slices, components, _ = logits.shape
        given = CONDITION_LOGIT * torch.eye(slices)[:, None, :].expand(-1, components, -1)
        before = sum(known.domain.widths[:label])
        logits = torch.cat((logits[..., :before], given, logits[..., before:]), dim=2)
    return MixtureGenerator(logits).eval()
