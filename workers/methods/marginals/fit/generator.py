"""From noisy tables to the mixture that is published. Post-processing."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from service.methods.marginals.order import COMPONENTS, MarginalsOrder
from workers.encoding.table import TableDomain
from workers.mechanism.marginals import TableLayout
from workers.methods.marginals.estimate.denoising import by_ratios, by_shared_relations, by_singular_values
from workers.methods.marginals.estimate.table_estimates import (
    Denoiser,
    TableEstimates,
    estimates_of,
    slice_by_slice,
    spans_of,
)
from workers.methods.marginals.estimate.totals import Units
from workers.methods.marginals.fit.mixture_fit import MixtureFit
from workers.methods.marginals.fit.raking import rake_where_better
from workers.methods.marginals.fit.stopping import EstimatedRisk, shifted
from workers.methods.marginals.measure.measurements import Measurements
from workers.networks.mixture import MixtureGenerator
from workers.networks.table import CONDITION_LOGIT

MOST_LOGITS = 32_000_000
"""Logits of all components together (128 MB as float32). More strata or bins mean fewer components each."""

UNITS_OF_A_COMPONENT, FEWEST_COMPONENTS = 2, 512
"""In each stratum a mixture has at most one component for so many units, and always so many components if the order does.

More take longer, and are no more accurate: less where noise is small (docs/log.md).
"""

SMALLEST_SHARE = 1e-4
"""Of a bin whose noisy count is about zero, where nothing is fitted."""

DENOISERS: tuple[Denoiser, ...] = (slice_by_slice(by_singular_values), slice_by_slice(by_ratios))
"""A mixture is fitted after each; the one of least estimated error after its first steps goes on."""

FEWEST_STRATA_THAT_SHARE = 3
"""From so many strata on, a mixture is also fitted after a denoiser that pools what they share; with two it gained little (docs/decisions/0022)."""

FIRST_STEPS = 100
"""Of 800, after which no two fits were seen to change places: docs/log.md."""


def components_of(order: MarginalsOrder, layout: TableLayout, domain: TableDomain, units: Units) -> int:
    """The order's, halved until all logits together fit in memory, and where a stratum has few units."""
    components = order.components or COMPONENTS
    while components > 2 and components * layout.slices * domain.total_width > MOST_LOGITS:
        components //= 2
    while components > max(FEWEST_COMPONENTS, units.count / layout.slices / UNITS_OF_A_COMPONENT):
        components //= 2
    return components


def generator_of_single_columns(known: Measurements, estimates: TableEstimates) -> MixtureGenerator:
    """Nothing has to be fitted where only single columns were measured: two equal components, the fewest there can be."""
    fine, _, _ = estimates.one_way()
    shares = np.concatenate([fine[column] / estimates.totals[:, None] for column in known.layout.free], axis=1)
    logits = np.log(np.maximum(shares, SMALLEST_SHARE)).astype(np.float32)
    return _generator(known, _without_missing(torch.from_numpy(logits)[:, None, :].repeat(1, 2, 1), estimates))


def fitted_generator(
    known: Measurements,
    order: MarginalsOrder,
    units: Units,
    *,
    seed: int,
    device: torch.device,
    on_step: Callable[[int], None],
) -> MixtureGenerator:
    """A mixture fitted to all tables, by the denoiser of least estimated error."""
    layout, twin = known.layout, shifted(known.tables, seed=seed)
    spans = spans_of(layout.free, [layout.pair_widths[column] for column in layout.free])
    cells = spans_of(layout.free, [layout.widths[column] for column in layout.free])
    risk = EstimatedRisk(known.tables, twin, spans, cells)
    estimates, of_twin = (estimates_of(tables, layout, known.domain, units) for tables in (known.tables, twin))
    fits = [
        MixtureFit(
            estimates.noisy_tables(denoise),
            (of_twin.noisy_tables(denoise), risk),
            components=components_of(order, layout, known.domain, units),
            steps=order.steps,
            learning_rate=order.learning_rate,
            randomness=torch.Generator().manual_seed(seed),
            device=device,
        )
        for denoise in _denoisers(layout)
    ]
    first_steps = min(FIRST_STEPS, order.steps)
    for place, fit in enumerate(fits):
        fit.run(_taking_turns(on_step, before=place * first_steps, fits=len(fits)), until=first_steps)
    # One denoiser for all strata: where two strata differ in it, a classifier would learn that difference as the label's.
    best = min(fits, key=MixtureFit.error)
    del fits, fit  # the others' memory
    best.run(on_step)
    return _generator(known, _without_missing(rake_where_better(best.with_twin(), risk), estimates))


def _without_missing(logits: Tensor, estimates: TableEstimates) -> Tensor:
    """The logits (slices, components, W), with none for missing cells in columns that show none beyond the noise.

    A fit leaves every cell a share, about 1 in 1,000 rows: of most cells a value that may occur, of these a hole that no row had.
    """
    cells = spans_of(estimates.layout.free, [estimates.layout.widths[column] for column in estimates.layout.free])
    for column in estimates.without_missing():
        own = cells[column]
        largest = logits[..., own.start : own.stop - 1].amax(dim=2)
        logits[..., own.stop - 1] = largest - CONDITION_LOGIT
    return logits


def _denoisers(layout: TableLayout) -> tuple[Denoiser, ...]:
    return DENOISERS if layout.pair_slices < FEWEST_STRATA_THAT_SHARE else (*DENOISERS, by_shared_relations)


def _generator(known: Measurements, logits: Tensor) -> MixtureGenerator:
    """logits: (slices, components, width of all free columns). The label's own are put beside them."""
    label = known.layout.label
    if label is not None:
        slices, components, _ = logits.shape
        given = CONDITION_LOGIT * torch.eye(slices)[:, None, :].expand(-1, components, -1)
        before = sum(known.domain.widths[:label])
        logits = torch.cat((logits[..., :before], given, logits[..., before:]), dim=2)
    return MixtureGenerator(logits).eval()


def _taking_turns(on_step: Callable[[int], None], *, before: int, fits: int) -> Callable[[int], None]:
    """First steps of one of several fits, of which others took `before`, as first steps of them all."""
    return lambda step: on_step(math.ceil((before + step) / fits))
