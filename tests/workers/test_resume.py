"""Killed anywhere and gone on with: the events that run are the events that were charged, in their order, with fresh noise."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from service.datasets.table_schema import TableSchema
from service.privacy.events import Events, GaussianEvent, SampledStepEvent
from service.privacy.orders import IdpganOrder
from tests.recorded_runs import Kept, Killed, RecordedPlan
from workers.checkpoints import Checkpoint
from workers.encoding.table import EncodedTable, TableDomain
from workers.mechanism.secure_random import SecureRandom
from workers.plan import Plan
from workers.training import train

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
    train(ORDER, plan, TABLE, DOMAIN, SecureRandom(), checkpoints=store, checkpoint_every_steps=EVERY)


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
    (saved,) = store.all
    assert Checkpoint.from_bytes(saved).values["position"] == 4
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
