"""Measurements as a checkpoint keeps them: with it, no crash makes a run measure twice. All of it is noisy or public."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from workers.checkpoints import Checkpoint
from workers.methods.marginals.measure.measured import Measured
from workers.methods.marginals.measure.measurements import Measurements
from workers.methods.marginals.measure.trees import RangeTree
from workers.plan import Plan, StepNotOnPlan


def kept(known: Measurements, plan: Plan) -> Checkpoint:
    """What was measured, and how far the plan has come."""
    tensors = {f"counts.{place}": torch.from_numpy(m.counts) for place, m in enumerate(known.tables)}
    values = {
        "plan": plan.digest(),
        "position": plan.position,
        "columns": [m.columns for m in known.tables],
        "variances": [m.variance for m in known.tables],
        "grouping": known.layout.grouping,
        "pairs_are_sliced": known.layout.pairs_are_sliced,
        "is_private": known.is_private,
        "trees": {str(column): tree.to_json() for column, tree in known.trees.items()},
    }
    return Checkpoint(tensors, values)


def taken_up(
    checkpoint: Checkpoint,
    begun: Measurements,
    plan: Plan,
    with_trees: Callable[[Measurements, Mapping[int, RangeTree]], Measurements],
) -> Measurements:
    """What an earlier attempt measured; the plan goes on where that attempt left it.

    begun: of this attempt, before its first release. with_trees: what trees make of it.
    """
    values = checkpoint.values
    if values["plan"] != plan.digest():
        raise StepNotOnPlan("this checkpoint belongs to another price list; start the release again")
    if values.get("cells") is not None:
        raise StepNotOnPlan("this checkpoint has cells of an earlier version; start the release again")
    plan.resume(values["position"])
    trees = values.get("trees", {})  # checkpoints of earlier versions have none
    known = with_trees(begun, {int(column): RangeTree.from_json(tree) for column, tree in trees.items()})
    layout = known.layout
    if values["grouping"] is not None:
        layout = layout.with_groups(_by_column(values["grouping"]))
    if not values["pairs_are_sliced"]:
        layout = layout.with_pairs_of_all_rows()
    tables = tuple(
        Measured(tuple(columns), checkpoint.tensors[f"counts.{place}"].numpy(), variance)
        for place, (columns, variance) in enumerate(zip(values["columns"], values["variances"], strict=True))
    )
    return replace(
        known,
        layout=layout,
        pairs=tuple(m.columns for m in tables if len(m.columns) == 2),
        is_private=begun.is_private and values["is_private"],
        tables=tables,
    )


def _by_column(cells_of: Sequence[Sequence[int] | None]) -> dict[int, NDArray[np.int64]]:
    return {column: np.array(cells) for column, cells in enumerate(cells_of) if cells is not None}
