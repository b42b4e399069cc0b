"""The loop: what is learned, progress, stopping, resuming."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from service.base.errors import InvalidOrder
from service.domain.table_schema import TableSchema
from service.methods.idpgan.order import IdpganOrder
from service.privacy.events import Events, GaussianEvent, SampledStepEvent
from tests.memory import Memory
from tests.runs import train
from workers import run as attempts
from workers.checkpoints import Checkpoint
from workers.encoding.table import EncodedTable, TableDomain
from workers.generators.released import TableRelease
from workers.hooks import Hooks, TrainingStopped
from workers.mechanism.secure_random import SecureRandom
from workers.plan import Plan
from workers.training import choose_device

SCHEMA = TableSchema.model_validate(
    {
        "fields": [
            {"name": "kind", "type": "string", "constraints": {"enum": ["a", "b", "c"], "required": True}},
            {"name": "size", "type": "integer", "constraints": {"minimum": 0, "maximum": 3, "required": True}},
        ]
    }
)
DOMAIN = TableDomain.from_schema(SCHEMA, numeric_bins=8)
ROWS = 600
JOINT = np.array([[0.4, 0.05, 0.05, 0.0], [0.0, 0.0, 0.1, 0.2], [0.05, 0.05, 0.05, 0.05]])


def make_table() -> EncodedTable:
    cells = np.random.default_rng(1).choice(12, size=ROWS, p=JOINT.flatten())
    return EncodedTable(np.stack((cells // 4, cells % 4), axis=1).astype(np.uint16), ROWS, None, 1)


def make_order(steps: int, **knobs: Any) -> IdpganOrder:
    return IdpganOrder.model_validate(
        {
            "method": "idpgan",
            "epsilon": 1.0,
            "sampling_probability": 0.2,
            "steps": steps,
            "device": "cpu",
            "networks": {"noise_dimension": 8, "generator_hidden": [32], "critic_hidden": [32, 32]},
            **knobs,
        }
    )


def events_of(order: IdpganOrder, noise: float = 1.0) -> Events:
    steps = SampledStepEvent(0.2, noise, noise, order.steps)
    return (steps,) if order.condition_on is None else (GaussianEvent("label_counts", noise), steps)


def sampled_joint(trained: TableRelease, rows: int = 40_000) -> np.ndarray:
    randomness = SecureRandom.from_test_seed(3)
    noise = randomness.normals(rows, trained.noise_dimension, dtype=torch.float32)
    condition = None
    if trained.condition_frequencies is not None:
        shares = torch.tensor(trained.condition_frequencies)
        condition = torch.multinomial(shares, rows, replacement=True, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        logits = trained.generator(noise, condition)
    gumbel = -torch.log(-torch.log(randomness.uniforms(rows, 7, dtype=torch.float32)))
    kind, size = ((logits + gumbel)[:, part].argmax(dim=1) for part in (slice(0, 3), slice(3, 7)))
    return np.bincount((kind * 4 + size).numpy(), minlength=12).reshape(3, 4) / rows


def total_variation(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a - b).sum() / 2)


@pytest.mark.parametrize("condition_on", [None, "kind"])
def test_with_hardly_any_noise_the_joint_distribution_is_learned(condition_on: str | None) -> None:
    quick = {"critic_learning_rate": 5e-3, "generator_learning_rate": 3e-3, "moving_average_decay": 0.98}
    order = make_order(400, condition_on=condition_on, optimizer=quick, critic_steps_per_generator_step=2)
    trained = train(order, Plan(events_of(order, 1e-3)), make_table(), DOMAIN, SecureRandom.from_test_seed(1))
    independent = np.outer(JOINT.sum(axis=1), JOINT.sum(axis=0))
    learned = total_variation(sampled_joint(trained), JOINT)
    assert learned < 0.25
    assert learned < total_variation(independent, JOINT) / 1.5
    assert not trained.generator.training
    assert (trained.condition_index, trained.engine, trained.device) == (
        None if condition_on is None else 0,
        "outer_products",
        "cpu",
    )


def test_progress_counts_every_step_and_only_real_randomness_is_private() -> None:
    order = make_order(5)
    seen: list[int] = []
    trained = train(order, Plan(events_of(order)), make_table(), DOMAIN, SecureRandom(), Hooks(on_progress=seen.append))
    assert seen == [1, 2, 3, 4, 5]
    assert trained.is_private
    marked = train(order, Plan(events_of(order)), make_table(), DOMAIN, SecureRandom.from_test_seed(1))
    assert not marked.is_private


def test_a_stopped_run_resumes_where_its_checkpoint_was() -> None:
    order = make_order(12, condition_on="kind")
    store, seen = Memory(), list[int]()
    first = Plan(events_of(order))
    with pytest.raises(TrainingStopped) as stop:
        train(
            order,
            first,
            make_table(),
            DOMAIN,
            SecureRandom(),
            Hooks(
                on_progress=seen.append, checkpoints=store, should_stop=lambda: len(seen) == 8, checkpoint_every_steps=3
            ),
        )
    assert stop.value.values == {"steps_done": 8}
    plan = Plan(events_of(order))
    trained = train(
        order, plan, make_table(), DOMAIN, SecureRandom(), Hooks(on_progress=seen.append, checkpoints=store)
    )
    assert seen == list(range(1, 13))
    assert (plan.position, plan.steps_done) == (13, 12)
    assert trained.is_private


def test_a_killed_run_goes_on_from_its_last_checkpoint() -> None:
    class Killed(BaseException):
        pass

    def die_at_eight(step: int) -> None:
        seen.append(step)
        if step == 8:
            raise Killed

    order = make_order(12, condition_on="kind")
    store, seen = Memory(), list[int]()
    with pytest.raises(Killed):
        train(
            order,
            Plan(events_of(order)),
            make_table(),
            DOMAIN,
            SecureRandom(),
            Hooks(on_progress=die_at_eight, checkpoints=store, checkpoint_every_steps=3),
        )
    plan = Plan(events_of(order))
    train(order, plan, make_table(), DOMAIN, SecureRandom(), Hooks(on_progress=seen.append, checkpoints=store))
    assert seen == [1, 2, 3, 4, 5, 6, 7, 8, 7, 8, 9, 10, 11, 12]
    assert (plan.position, plan.steps_done) == (13, 12)


def test_a_checkpoint_holds_no_pickle_no_noise_state_and_no_row_count() -> None:
    order = make_order(4, condition_on="kind", critic_steps_per_generator_step=1)
    store = Memory()
    train(
        order,
        Plan(events_of(order)),
        make_table(),
        DOMAIN,
        SecureRandom(),
        Hooks(checkpoints=store, checkpoint_every_steps=3),
    )
    assert len(store.all) == 2
    checkpoint = Checkpoint.from_bytes(store.all[-1])
    assert set(checkpoint.values) == {
        "plan",
        "position",
        "step",
        "thresholds",
        "generator_steps",
        "last_generator_step",
        "critic_steps",
        "average_accuracy",
        "condition_frequencies",
        "is_private",
    }
    owners = {name.split(".")[0] for name in checkpoint.tensors}
    assert owners == {
        "generator",
        "averaged_generator",
        "critic",
        "generator_adam",
        "critic_adam",
        "average_histogram",
    }
    length = int.from_bytes(store.all[-1][:8], "little")
    assert json.loads(store.all[-1][8 : 8 + length])["__metadata__"]["format"] == "1"


def test_a_missing_gpu_is_said_in_words() -> None:
    assert choose_device("cpu").type == "cpu"
    assert choose_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")
    if not torch.cuda.is_available():
        with pytest.raises(InvalidOrder, match="no GPU"):
            choose_device("cuda")


def test_an_order_for_a_gpu_that_is_not_there_is_not_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a worker cannot make must fail before the charge, which would stand."""
    charged: list[object] = []
    ended: list[str] = []
    known = {"misfit": None, "run_class": None, "lacks_public_rows": False, "reads_public_rows": True}
    for name, says in known.items():
        monkeypatch.setattr(attempts, name, lambda *_, says=says: says)
    monkeypatch.setattr(attempts, "StoredRows", lambda _: SimpleNamespace(are_its_own=lambda: True))

    def attempt(device: str, number: int = 1) -> Any:
        order = SimpleNamespace(device=device, accept=None)
        made = SimpleNamespace(
            release=SimpleNamespace(order=order, cancel_requested=False, step=0, attempts=number),
            context=SimpleNamespace(settings=SimpleNamespace(max_attempts=3)),
            end=lambda *, failure: ended.append(failure),
            dataset=SimpleNamespace(state="ready"),
            public=None,
            finished=lambda: None,
            report=lambda *_: None,
            patiently=lambda action: action(),
            is_paid=lambda: True,
            signing_key=lambda: None,
            charge=lambda: charged.append(device),
            make=lambda *_: None,
        )
        made.has_device = lambda: attempts.Attempt.has_device(made)  # type: ignore[arg-type]
        made.unfit = lambda finished: attempts.Attempt.unfit(made, finished)  # type: ignore[arg-type]
        return made

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for number in (1, 2):  # another worker may have one
        with pytest.raises(InvalidOrder, match="no GPU"):
            attempts.Attempt.run(attempt("cuda", number))
    assert not ended
    attempts.Attempt.run(attempt("cuda", 3))
    assert (ended, charged) == (["no_device"], [])
    attempts.Attempt.run(attempt("auto"))
    assert charged == ["auto"]
