"""Measurements as a checkpoint keeps them: with it, no crash makes a run measure twice. All of it is noisy or public."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from service.methods.marginals.order import MarginalsOrder
from workers.checkpoints import Checkpoint
from workers.methods.marginals.measure.layouts import layout_of
from workers.methods.marginals.measure.measured import Measured
from workers.methods.marginals.measure.measurements import Measurements
from workers.methods.marginals.measure.open_ranges import Cells
from workers.methods.marginals.measure.shared_values import HeavyHitters
from workers.plan import Plan, StepNotOnPlan


def kept(known: Measurements, plan: Plan) -> Checkpoint:
    """What was measured, and how far the plan has come."""
    tensors = {f"counts.{place}": torch.from_numpy(m.counts) for place, m in enumerate(known.tables)}
    values = {
        "plan": plan.digest(),
        "position": plan.position,
        "columns": [m.columns for m in known.tables],
        "variances": [m.variance for m in known.tables],
        "cells": known.layout.cells,
        "grouping": known.layout.grouping,
        "pairs_are_sliced": known.layout.pairs_are_sliced,
        "is_private": known.is_private,
        "standing_out": {str(column): found.to_json() for column, found in known.heavy_hitters.items()},
    }
    return Checkpoint(tensors, values)


def taken_up(checkpoint: Checkpoint, order: MarginalsOrder, begun: Measurements, plan: Plan) -> Measurements:
    """What an earlier attempt measured; the plan goes on where that attempt left it.

    begun: of this attempt, before its first release.
    """
    values = checkpoint.values
    if values["plan"] != plan.digest():
        raise StepNotOnPlan("this checkpoint belongs to another price list; start the release again")
    plan.resume(values["position"])
    domain, layout = begun.domain, begun.layout
    if values["cells"] is not None:
        cells = _by_column(values["cells"])
        domain = domain.merged(cells)
        layout = layout_of(order, domain, cells)
    if values["grouping"] is not None:
        layout = layout.with_groups(_by_column(values["grouping"]))
    if not values["pairs_are_sliced"]:
        layout = layout.with_pairs_of_all_rows()
    tables = tuple(
        Measured(tuple(columns), checkpoint.tensors[f"counts.{place}"].numpy(), variance)
        for place, (columns, variance) in enumerate(zip(values["columns"], values["variances"], strict=True))
    )
    found = values.get("standing_out", {})  # checkpoints of earlier versions have none
    return Measurements(
        domain,
        layout,
        pairs=tuple(m.columns for m in tables if len(m.columns) == 2),
        is_private=begun.is_private and values["is_private"],
        tables=tables,
        heavy_hitters={int(column): HeavyHitters.from_json(one) for column, one in found.items()},
    )


def _by_column(cells_of: Sequence[Sequence[int] | None]) -> dict[int, Cells]:
    return {column: np.array(cells) for column, cells in enumerate(cells_of) if cells is not None}
