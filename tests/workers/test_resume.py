"""Killed anywhere and gone on with: the events that run are the events that were charged, in their order, with fresh noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from service.base.errors import Unavailable
from service.domain.grids import shape_of
from service.domain.shapes import ImageShape
from service.domain.table_schema import TableSchema
from service.methods.catalogue import parse_order
from service.methods.idpgan.order import IdpganOrder
from service.methods.marginals.order import MarginalsOrder
from service.methods.mixture.order import MixtureOrder
from service.privacy.events import Events, GaussianEvent, SampledStepEvent
from service.privacy.filters import open_budget
from tests.orders import price_order, resolve_order
from tests.recorded_runs import Kept, Killed, RecordedPlan
from tests.runs import train, train_images
from tests.tiny_images import make_images
from workers.checkpoints import Checkpoint
from workers.encoding.images import EncodedImages
from workers.encoding.table import EncodedTable, TableDomain
from workers.generators.released import ImageRelease, TableRelease
from workers.hooks import Hooks, TrainingStopped
from workers.mechanism.secure_random import SecureRandom
from workers.plan import Plan

SCHEMA = TableSchema.model_validate(
    {
        "fields": [
            {"name": name, "type": "string", "constraints": {"enum": ["a", "b"], "required": True}}
            for name in ("kind", "other")
        ]
    }
)
DOMAIN = TableDomain.from_schema(SCHEMA, numeric_bins=8)
TABLE = EncodedTable((np.arange(120) % 2).astype(np.uint16).reshape(60, 2), 60, None, 1)
EVENTS: Events = (
    GaussianEvent("label_counts", 2.0),
    SampledStepEvent(0.5, 1.0, 3.0, 4),
    SampledStepEvent(0.5, 0.5, 3.0, 5),
)
STEPS, EVENTS_IN_ALL, EVERY = 9, 10, 3
ORDER = IdpganOrder.model_validate(
    {
        "method": "idpgan",
        "epsilon": 1.0,
        "sampling_probability": 0.5,
        "steps": STEPS,
        "device": "cpu",
        "condition_on": "kind",
        "networks": {"noise_dimension": 4, "generator_hidden": [4], "critic_hidden": [4]},
    }
)


LIST = [(1, 2.0)] + [(place, 1.0) for place in range(2, 6)] + [(place, 0.5) for place in range(6, 11)]


def run(plan: Plan, store: Kept) -> None:
    train(ORDER, plan, TABLE, DOMAIN, SecureRandom(), Hooks(checkpoints=store, checkpoint_every_steps=EVERY))


@pytest.mark.parametrize("die_before", range(2, EVENTS_IN_ALL))
def test_one_that_is_stopped_at_once_stands_where_the_last_one_came_to(die_before: int) -> None:
    """A cancelled release is settled by that: steps that ran, and may have been seen, are not given back."""
    store, second = Kept(), Plan(EVENTS)
    with pytest.raises(Killed):
        run(RecordedPlan(EVENTS, die_before), store)
    kept = Plan(EVENTS, Checkpoint.from_bytes(store.get() or b"").values["position"])
    with pytest.raises(TrainingStopped):
        train(ORDER, second, TABLE, DOMAIN, SecureRandom(), Hooks(checkpoints=store, should_stop=lambda: True))
    assert second.position == kept.position > 0
    assert second.steps_done == kept.steps_done


@pytest.mark.parametrize("die_before", range(EVENTS_IN_ALL))
def test_killed_before_any_event_the_rest_of_the_list_runs_and_nothing_else(die_before: int) -> None:
    store, first, second = Kept(), RecordedPlan(EVENTS, die_before), RecordedPlan(EVENTS)
    with pytest.raises(Killed):
        run(first, store)
    assert first.run == LIST[:die_before]
    position = store.position
    assert position <= die_before
    run(second, store)
    assert second.run == LIST[position:]
    assert (second.position, second.steps_done) == (EVENTS_IN_ALL, STEPS)
    # What counts is what the checkpoint kept of the first run and all of the second: the list, each event once.
    assert first.run[:position] + second.run == LIST


def test_steps_that_run_again_draw_fresh_noise() -> None:
    """Two runs from one checkpoint part ways, so nothing of a lost step is in the step that replaces it."""
    store = Kept()
    with pytest.raises(Killed):
        run(RecordedPlan(EVENTS, 5), store)
    bought, saved = store.all
    assert [Checkpoint.from_bytes(kept).values["position"] for kept in (bought, saved)] == [1, 4]
    later = []
    for _ in range(2):
        again = Kept()
        again.put(saved)
        run(RecordedPlan(EVENTS), again)
        assert len(again.all) == 2
        later.append(Checkpoint.from_bytes(again.all[-1]))
    assert later[0].values["position"] == later[1].values["position"] == 7
    critic = [name for name in later[0].tensors if name.startswith("critic.")]
    assert critic
    assert all(not torch.equal(later[0].tensors[name], later[1].tensors[name]) for name in critic)


# -- killed right after something was bought ---------------------------------------------------------------------------


class Silent(Kept):
    """A store that does not answer."""

    def put(self, checkpoint: bytes) -> None:
        super().put(checkpoint)
        raise Unavailable("no answer")


class KilledOnceKept(Kept):
    """Dies with the first checkpoint that it keeps."""

    def put(self, checkpoint: bytes) -> None:
        super().put(checkpoint)
        raise Killed


BUDGET = open_budget(8.0, 1e-5)
SMALL: dict[str, Any] = {"epsilon": 4.0, "device": "cpu"}
TABLE_RUN = SMALL | {"method": "idpgan", "steps": 4, "condition_on": "kind", "networks": ORDER.networks.model_dump()}
IMAGE_RUN = SMALL | {"method": "idpgan", "steps": 4, "sampling_probability": 0.2}
MARGINALS_RUN = SMALL | {"method": "marginals", "condition_on": "kind", "pairs": "all", "components": 4, "steps": 3}
TABLES = {"kind": "tables", "generator_steps": 2, "critic_steps": 2}
BOUGHT: dict[str, tuple[dict[str, Any], int]] = {
    "label counts": (TABLE_RUN | {"warm_start": {"kind": "none"}}, 1),
    "tables of all pairs": (TABLE_RUN | {"warm_start": TABLES | {"pairs": "all"}}, 1),
    "tables of chosen pairs": (TABLE_RUN | {"warm_start": TABLES | {"pairs": "chosen"}, "condition_on": None}, 3),
    "marginals": (MARGINALS_RUN | {"pair_groups": "declared"}, 1),
    "marginals of groups": (MARGINALS_RUN | {"pair_groups": "counted"}, 2),
    "marginals of all rows": (MARGINALS_RUN | {"pair_groups": "counted", "pairs_within": "table"}, 2),
    "marginals of few pairs or all": (MARGINALS_RUN | {"pairs": "few_or_all", "condition_on": None}, 3),
    "class counts": (IMAGE_RUN, 1),
    "a mixture to begin with": (IMAGE_RUN | {"warm_start": {"kind": "mixture", "cells": 2}}, 6),
    "a mixture": (SMALL | {"method": "mixture", "cells": 2}, 7),
}


def make_run(ordered: dict[str, Any]) -> tuple[Events, Callable[..., TableRelease | ImageRelease]]:
    """Price list of an order, and what runs it: on a table of units with up to two rows, or on images."""
    pixels, labels = make_images(60, (6, 5, 1), 3, seed=3)
    images = EncodedImages(pixels.reshape(60, -1), labels.astype(np.int64), (6, 5, 1), 3)
    table = EncodedTable(TABLE.codes, 30, np.arange(0, 61, 2), 2)
    of_table = "condition_on" in ordered  # a class is no column
    shape = shape_of(SCHEMA, numeric_bins=8) if of_table else ImageShape(6, 5, 1, 3)
    units = table.units if of_table else 60
    order = resolve_order(parse_order(ordered), units=units, shape=shape, budget=BUDGET)

    def go(plan: Plan, store: Kept, **more: Any) -> TableRelease | ImageRelease:
        hooks = Hooks(checkpoints=store, **more)
        if isinstance(order, MixtureOrder):
            return train_images(order, plan, images, SecureRandom(), hooks)
        if of_table:
            assert isinstance(order, IdpganOrder | MarginalsOrder)
            return train(order, plan, table, DOMAIN, SecureRandom(), hooks)
        assert isinstance(order, IdpganOrder)
        return train_images(order, plan, images, SecureRandom(), hooks)

    return price_order(order, units=units, budget=BUDGET).events, go


def bought_by(made: TableRelease | ImageRelease) -> list[Any]:
    """What it tells of purchases, all of it noisy: frequencies, and the rows of a unit that its certificate names."""
    names = ("condition_frequencies", "component_labels", "component_frequencies", "rows_per_unit")
    return [getattr(made, name, None) for name in names]


@pytest.mark.parametrize("kind", BOUGHT)
def test_killed_right_after_a_purchase_nothing_is_bought_again(kind: str) -> None:
    ordered, purchases = BOUGHT[kind]
    events, go = make_run(ordered)
    store, first = KilledOnceKept(), RecordedPlan(events)
    with pytest.raises(Killed):
        go(first, store)
    assert len(first.run) == store.position == purchases
    told = []
    for _ in range(2):
        again, second = Kept(), RecordedPlan(events)
        again.put(store.all[0])
        made = go(second, again)
        assert [place for place, _ in second.run] == list(range(purchases + 1, sum(e.count for e in events) + 1))
        assert made.is_private
        told.append(bought_by(made))
    # Two purchases would have two noises.
    assert told[0] == told[1]
    assert any(value is not None for value in told[0])


@pytest.mark.parametrize("kind", BOUGHT)
def test_what_cannot_be_kept_is_not_shown(kind: str) -> None:
    """A run that went on would show what the next one, after a crash, measures anew, with other noise."""
    events, go = make_run(BOUGHT[kind][0])
    shown: list[float] = []
    with pytest.raises(Unavailable):
        go(RecordedPlan(events), Silent(), on_progress=shown.append, on_warm_up=shown.append)
    assert not any(shown)


def test_where_nothing_is_bought_nothing_is_kept_before_the_first_step() -> None:
    store, unconditional = KilledOnceKept(), ORDER.model_copy(update={"condition_on": None})
    plan = RecordedPlan(EVENTS[1:])
    with pytest.raises(Killed):
        train(unconditional, plan, TABLE, DOMAIN, SecureRandom(), Hooks(checkpoints=store, checkpoint_every_steps=2))
    assert store.position == len(plan.run) == 2
