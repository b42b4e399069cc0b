"""`pategan`: a unit has one teacher, every vote is charged, and what is published follows from noisy votes alone."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from bench.audit.worlds import DOMAIN
from service.methods.pategan.order import PateganOrder
from service.privacy.events import GaussianEvent, SampledStepEvent
from tests.catalogue import case_of
from tests.exact_changes import squared_change
from tests.forced_outputs import Outputs, heard
from tests.memory import Memory
from tests.neighbouring_tables import neighbours, random_table
from workers.checkpoints import Checkpoint
from workers.encoding.table import EncodedTable
from workers.hooks import Hooks, TrainingStopped
from workers.mechanism.secure_random import SecureRandom
from workers.methods import labels as frequencies
from workers.methods.pategan import run as pategan
from workers.methods.pategan.run import Run
from workers.methods.pategan.teachers import Teachers, parts_of
from workers.plan import Plan
from workers.sources import GivenTable

CPU = torch.device("cpu")
UNITS, TEACHERS, STEPS, BATCH = 23, 5, 3, 7
VALUES = {"plan", "position", "seed", "condition_frequencies", "generator_steps", "is_private"}
MODULES = {"generator", "averaged_generator", "student", "generator_adam", "student_adam", "voted_on", "labels"}


def order_for(**knobs: Any) -> PateganOrder:
    small = {"noise_dimension": 4, "generator_hidden": [8], "critic_hidden": [4]}
    fixed = {"steps": STEPS, "votes_per_step": BATCH, "teachers": TEACHERS, "teacher_steps": 4, "teacher_batch": 8}
    return PateganOrder.model_validate(
        {
            "method": "pategan",
            "epsilon": 1.0,
            "device": "cpu",
            "networks": small,
            "condition_on": "label",
            **fixed,
            **knobs,
        }
    )


class Watched(Teachers):
    """Remembers all votes."""

    heard: list[Tensor]

    def votes(self, records: Tensor) -> Tensor:
        self.heard.append(super().votes(records))
        return self.heard[-1]


def run_of(table: EncodedTable, **knobs: Any) -> Run:
    plan = Plan((GaussianEvent("label_counts", 2.0), SampledStepEvent(1.0, 1.5, None, STEPS)))
    return Run(order_for(**knobs), plan, GivenTable(table, DOMAIN), SecureRandom.from_test_seed(5), CPU)


def whole_run(
    table: EncodedTable, forced: Any = None, monkeypatch: Any = None, **knobs: Any
) -> tuple[Outputs, Run, list[Tensor]]:
    votes: list[Tensor] = []
    monkeypatch.setattr(Watched, "heard", votes, raising=False)
    monkeypatch.setattr(pategan, "Teachers", Watched)
    run = run_of(table, **knobs)
    with heard(pategan, frequencies, forced=forced) as outputs:
        run.measure()
        run.finish(Hooks())
    return outputs, run, votes


@pytest.mark.parametrize("seed", [0, 2**127 + 5])
def test_no_unit_has_two_teachers(seed: int) -> None:
    parts = parts_of(103, teachers=10, seed=seed)
    assert [len(part) for part in parts] == [10] * 10
    assert len(set(np.concatenate(parts).tolist())) == 100


@pytest.mark.slow
@pytest.mark.parametrize(("rows_per_unit", "vote"), [(1, "real"), (3, "real"), (1, "relative"), (3, "relative")])
def test_given_the_same_outputs_a_unit_moves_the_votes_of_its_own_teacher_and_nothing_else(
    rows_per_unit: int, vote: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = random_table(UNITS, rows_per_unit)
    first, run, votes = whole_run(table, monkeypatch=monkeypatch, vote=vote)
    assert len(first.sums) == 1 + STEPS
    teacher_of = {int(unit): teacher for teacher, part in enumerate(run.parts) for unit in part}
    moved = set()
    for unit in range(UNITS):
        for neighbour in neighbours(table, unit):
            others, other, other_votes = whole_run(neighbour, forced=first.noisy, monkeypatch=monkeypatch, vote=vote)
            for one, two in zip(first.sums, others.sums, strict=True):
                (change,) = squared_change(one, two)
                assert change <= Fraction(one.sensitivities[0]) ** 2
            for one, two in zip(votes, other_votes, strict=True):
                changed = set((one != two).any(dim=1).nonzero().flatten().tolist())
                assert changed <= {teacher_of.get(unit, -1)}
                moved |= changed
            for one, two in zip(run._teachers().tensors, other._teachers().tensors, strict=True):
                changed = set((one != two).flatten(1).any(dim=1).nonzero().flatten().tolist())
                assert changed <= {teacher_of.get(unit, -1)}
            ours, theirs = run.checkpoint(), other.checkpoint()
            assert ours.values == theirs.values
            assert all(torch.equal(tensor, theirs.tensors[name]) for name, tensor in ours.tensors.items())
    assert len(moved) > 1


def test_what_is_published_and_told_follows_from_noisy_votes_alone() -> None:
    """No ε from how far teachers agree, no stop by it, no count of them: of two tables that differ in every row all is the same."""
    case = case_of("pategan", "table")
    made, told = [], []
    forced: Any = None
    for table in (
        random_table(UNITS, 1, seed=1),
        replace(random_table(UNITS, 1), codes=np.zeros((UNITS, 3), dtype=np.uint16)),
    ):
        run, progress = run_of(table), []
        with heard(pategan, frequencies, forced=forced) as outputs:
            run.measure()
            made.append(run.finish(Hooks(on_progress=progress.append)))
        forced = outputs.noisy
        told.append(progress)
    for name, value in vars(made[0]).items():
        if name != "generator":
            assert vars(made[1])[name] == value, name
    assert made[0].choice is None
    state, other = (each.generator.state_dict() for each in made)
    assert all(torch.equal(tensor, other[name]) for name, tensor in state.items())
    assert told == [[1, 2, 3]] * 2
    assert case.events[-1].count == case.order.progress_steps


def test_each_batch_of_votes_is_an_event_of_the_list_with_its_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    class Counted(Plan):
        taken = 0

        def _advance(self, count: int) -> None:
            self.taken += count
            super()._advance(count)

    noise: list[float] = []
    real = pategan.release

    def release(private: Any, *, noise_multiplier: float, **knobs: Any) -> Any:
        assert run.plan.taken == len(noise) + 2  # label counts, and this one
        noise.append(noise_multiplier)
        return real(private, noise_multiplier=noise_multiplier, **knobs)

    monkeypatch.setattr(pategan, "release", release)
    run: Any = run_of(random_table(UNITS, 1))
    run.plan = Counted((GaussianEvent("label_counts", 2.0), SampledStepEvent(1.0, 1.5, None, STEPS)))
    run.measure()
    run.finish(Hooks())
    assert noise == [1.5] * STEPS


def test_noise_on_a_vote_is_that_of_the_whole_batch() -> None:
    run = run_of(random_table(UNITS, 1), steps=1, votes_per_step=4_000)
    with heard(pategan, frequencies) as outputs:
        run.measure()
        run.begin(Hooks())
        run.student_step()
    added = outputs.noisy[1][0] - outputs.sums[1].values[0]
    assert float(added.std()) == pytest.approx(1.5 * 4_000**0.5, rel=0.1)


def test_a_teacher_votes_for_what_it_takes_for_real_or_for_half_of_the_batch() -> None:
    """The first takes every record for synthetic, the second for real; a score that is not a number is no vote."""
    scores = torch.tensor([[-9.0, -3.0, -5.0, -7.0], [1.0, 4.0, 3.0, 2.0], [torch.nan] * 4])

    class Fixed(Teachers):
        def scores(self, _records: Tensor) -> Tensor:
            return scores

    def votes(*, relative: bool) -> list[list[bool]]:
        coins = SecureRandom.from_test_seed(1)
        teachers = Fixed(3, 2, hidden=1, learning_rate=0.1, relative=relative, randomness=coins, device=CPU)
        found: list[list[bool]] = teachers.votes(torch.zeros(4, 2)).tolist()
        return found

    assert votes(relative=False) == [[False] * 4, [True] * 4, [False] * 4]
    assert votes(relative=True) == [[False, True, True, False], [False, True, True, False], [False] * 4]


def test_a_run_that_goes_on_has_the_same_parts_and_no_teacher_is_kept() -> None:
    memory, first = Memory(), run_of(random_table(UNITS, 1))
    asked = iter((False, False))
    hooks = Hooks(checkpoints=memory, should_stop=lambda: next(asked, True))
    hooks.measure_or_restore(first)
    with pytest.raises(TrainingStopped):
        first.finish(hooks)
    assert memory.get() is not None
    kept = Checkpoint.from_bytes(memory.get())
    assert set(kept.values) == VALUES
    assert {name.split(".")[0] for name in kept.tensors} == MODULES
    plan = Plan((GaussianEvent("label_counts", 2.0), SampledStepEvent(1.0, 1.5, None, STEPS)))
    second = Run(order_for(), plan, GivenTable(random_table(UNITS, 1), DOMAIN), SecureRandom.from_test_seed(99), CPU)
    assert second.seed != first.seed
    warmed: list[float] = []
    stopped = Hooks(checkpoints=memory, on_warm_up=warmed.append, should_stop=lambda: len(warmed) == 2)
    stopped.measure_or_restore(second)
    before = len(memory.all)
    with pytest.raises(TrainingStopped) as stop:
        second.finish(stopped)
    assert warmed == [0.0, 0.25]  # of the four steps that new teachers take after one step of the run
    assert (stop.value.values["steps_done"], len(memory.all)) == (first.plan.steps_done, before)
    second.finish(Hooks(checkpoints=memory))
    assert np.array_equal(first.parts, second.parts)
    assert second.plan.steps_done == STEPS


def test_teachers_learn_to_tell_rows_apart_each_from_its_own() -> None:
    """With next to no noise the student learns what the teachers know, and the generator makes likelier rows."""
    codes = np.tile(np.array([[2, 5, 1]], dtype=np.uint16), (200, 1))
    order = order_for(condition_on=None, teachers=4, steps=60, votes_per_step=64, teacher_batch=16, generator_steps=5)
    plan = Plan((SampledStepEvent(1.0, 1e-6, None, 60),))
    table = EncodedTable(codes, 200, None, 1)
    run = Run(order, plan, GivenTable(table, DOMAIN), SecureRandom.from_test_seed(3), CPU)
    with torch.no_grad():
        before = float(run._fakes(run.generator, 2_000)[:, [2, 8, 10]].mean())
    run.finish(Hooks())
    with torch.no_grad():
        after = float(run._fakes(run.generator, 2_000)[:, [2, 8, 10]].mean())
    assert after > before + 0.15
