"""How a candidate is chosen: parts without a common unit, errors that fall with a unit, a choice that is paid for, runs that no one can count."""

from __future__ import annotations

import json
import logging
import uuid
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from service.methods.choose.price import ERRORS, REPEATED, TRIALS
from service.methods.choose.runs import gamma_of
from service.privacy.events import ExponentialEvent, ParallelEvent
from tests.catalogue import case_of
from tests.memory import Memory
from workers.checkpoints import Checkpoint
from workers.encoding.table import EncodedTable
from workers.encoding.units import with_units
from workers.generators.released import TableRelease
from workers.hooks import Hooks, TrainingStopped
from workers.mechanism import RowsOfUnits
from workers.mechanism.errors import error_count, error_losses
from workers.mechanism.exponential import choose
from workers.mechanism.secure_random import SecureRandom
from workers.methods.choose import trying
from workers.methods.choose.by_parts import ByParts
from workers.methods.choose.by_repeating import Best, ByRepeating
from workers.methods.choose.classifier import drawn_codes, fitted, wrong
from workers.methods.choose.parts import units_of_part
from workers.methods.idpgan.tables import TableIdpgan
from workers.numerics.exact_runs import number_of_runs
from workers.plan import Plan
from workers.sources import GivenTable
from workers.training import make_release

CPU = torch.device("cpu")


# -- parts


@pytest.mark.parametrize("seed", [0, 1, 2**127 + 5])
def test_no_unit_is_in_two_parts_and_all_parts_have_the_size_that_is_priced(seed: int) -> None:
    parts = [units_of_part(103, seed=seed, parts=5, part=part) for part in range(5)]
    assert [len(part) for part in parts] == [20] * 5
    assert len(set(np.concatenate(parts).tolist())) == 100
    again = [units_of_part(103, seed=seed, parts=5, part=part) for part in range(5)]
    assert all((one == other).all() for one, other in zip(parts, again, strict=True))
    assert (units_of_part(103, seed=seed + 1, parts=5, part=0) != parts[0]).any()


def test_the_rows_of_a_unit_stay_together() -> None:
    lengths = np.array([3, 0, 1, 4, 2])
    starts = np.concatenate(([0], np.cumsum(lengths)))
    of_unit = np.repeat(np.arange(5), lengths)
    codes = np.stack([of_unit, np.arange(10)], axis=1).astype(np.uint16)
    table = EncodedTable(codes, 5, starts, 4, {1: np.arange(10, dtype=np.uint32)})
    part = with_units(table, np.array([1, 3, 4]))
    assert part.units == 3
    assert part.unit_starts is not None
    assert part.unit_starts.tolist() == [0, 0, 4, 6]
    assert part.codes[:, 0].tolist() == [3] * 4 + [4] * 2
    assert part.codes[:, 1].tolist() == [4, 5, 6, 7, 8, 9]
    assert part.places[1].tolist() == [4, 5, 6, 7, 8, 9]
    assert with_units(replace(table, unit_starts=None, units=10), np.array([2, 9])).codes[:, 1].tolist() == [2, 9]


# -- errors and the choice


@pytest.mark.parametrize("seed", range(5))
def test_zeroing_out_a_unit_lowers_every_loss_by_its_rows_at_most(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 6, 30)
    starts = np.concatenate(([0], np.cumsum(lengths)))
    found = rng.random((4, starts[-1])) < 0.5
    most = 3
    whole = error_losses(found, rows=RowsOfUnits(starts, most))
    assert (whole.sensitivity, whole.is_monotone) == (most, True)
    for unit in range(30):
        kept = np.repeat(np.arange(30), lengths) != unit
        without = np.concatenate(([0], np.cumsum(np.where(np.arange(30) == unit, 0, lengths))))
        change = _losses(whole) - _losses(error_losses(found[:, kept], rows=RowsOfUnits(without, most)))
        assert (change >= 0).all()
        assert (change <= most).all()
        one = error_count(found[0], rows=RowsOfUnits(starts, most))
        assert one.sensitivity == most


def _losses(private: Any) -> Any:
    return getattr(private, "values")  # noqa: B009 - what only a test may read


def test_a_broken_candidate_is_rarely_chosen_among_nine() -> None:
    rng = np.random.default_rng(0)
    found = rng.random((9, 300)) < 0.2
    found[4] = rng.random(300) < 0.5
    losses, randomness = error_losses(found, rows=RowsOfUnits()), SecureRandom.from_test_seed(1)
    chosen = Counter(choose(losses, epsilon=0.2, randomness=randomness) for _ in range(200))
    assert chosen[4] < 10
    assert len(chosen) > 3  # it is a choice by chance


def test_the_choice_has_the_probabilities_of_a_monotone_exponential_mechanism() -> None:
    """exp(-ε·z/R), without the ½: two more errors of units with two rows are e^-ε as likely."""
    found = np.array([[True, True, False, False], [False] * 4])
    losses = error_losses(found, rows=RowsOfUnits(np.array([0, 2, 4]), 2))
    randomness = SecureRandom.from_test_seed(1)
    drawn = sum(choose(losses, epsilon=1.0, randomness=randomness) for _ in range(4_000)) / 4_000
    assert drawn == pytest.approx(1.0 / (1.0 + np.exp(-1.0)), abs=0.03)


class Scripted(ByParts):
    """Candidates that are never run, with errors that are known."""

    found: Any = None

    def errors(self, _classifiers: Any) -> Any:
        return self.found

    @property
    def test_units(self) -> RowsOfUnits:
        return RowsOfUnits()


def _choices(epsilon: float, rounds: int) -> Counter[int]:
    case = case_of("choose", "table")
    scripted = Scripted(case.order, Plan(case.events), case.source(), SecureRandom.from_test_seed(1), CPU)
    scripted.found = np.array([[True] * 40, [False] * 40])
    events = (ExponentialEvent(ERRORS, epsilon),)
    return Counter(scripted._chosen(Plan(events)) for _ in range(rounds))


def test_the_choice_has_the_epsilon_of_its_event() -> None:
    assert _choices(1.0, 100) == {1: 100}
    nearly_none = _choices(0.001, 400)
    assert 130 < nearly_none[0] < 270


# -- the classifier


def test_the_classifier_learns_from_synthetic_rows_what_predicts_the_target() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 4, 3_000), rng.integers(0, 3, 3_000)
    codes = np.stack([first, second, (first >= 2).astype(np.int64)], axis=1)
    weights = fitted(codes, (4, 3, 2), 2)
    assert wrong(weights, codes, (4, 3, 2), 2).mean() < 0.01
    blind = np.stack([rng.permutation(first), second, codes[:, 2]], axis=1)
    assert wrong(fitted(blind, (4, 3, 2), 2), codes, (4, 3, 2), 2).mean() > 0.3


def test_rows_are_drawn_in_the_cells_that_the_classifier_sees() -> None:
    """A candidate with four bins, and a classifier that sees thirty-two: values lie evenly in what was drawn."""
    case = case_of("choose", "table", candidates=[{"method": "marginals", "steps": 3, "numeric_bins": 4}])
    _, seen = case.source().table(numeric_bins=32)
    made: Any = make_release(case.order, Plan(case.events), case.source(), SecureRandom.from_test_seed(1))
    codes = drawn_codes(made, seen, 5_000, seed=3)
    assert codes.shape == (5_000, len(seen.columns))
    assert (codes >= 0).all()
    assert (codes < np.array(seen.widths)).all()
    weight = seen.index("weight")
    assert len(set(codes[:, weight].tolist())) > 25
    assert (codes == drawn_codes(made, seen, 5_000, seed=3)).all()


# -- whole runs


def _related_table(units: int) -> GivenTable:
    """`size` says which `colour`."""
    case = case_of("choose", "table")
    _, domain = case.source().table(numeric_bins=32)
    rng = np.random.default_rng(1)
    codes = np.stack([rng.integers(0, width, units) for width in domain.widths], axis=1).astype(np.uint16)
    size = domain.index("size")
    codes[:, domain.index("colour")] = np.minimum(codes[:, size] * 3 // domain.widths[size], 2)
    return GivenTable(EncodedTable(codes, units, None, 1), domain)


@pytest.mark.parametrize("form", ["parts", "repeat"])
def test_the_better_of_two_candidates_is_published(form: str) -> None:
    """Without pairs, rows say nothing of how columns depend on each other."""
    candidates = [
        {"method": "marginals", "steps": 3, "pairs": "none", "purpose": "tables", "tree_precision_share": 0.0},
        {"method": "marginals", "steps": 60, "tree_precision_share": 0.0},
    ]
    knobs = {"form": form, "candidates": candidates, "rows": 1_000, "epsilon": 18.0}
    if form == "repeat":
        knobs |= {"mean_runs": 8.0, "padded_runs": 1}
    case = case_of("choose", "table", **knobs)
    made = make_release(case.order, Plan(case.events), _related_table(1_200), SecureRandom.from_test_seed(1))
    assert isinstance(made, TableRelease)
    assert made.choice is not None
    assert made.choice["candidates"] == 2
    if form == "parts":  # of a few random runs, all may be of the worse one
        assert made.choice["candidate"] == 1


def test_a_checkpoint_holds_no_errors_and_progress_is_the_candidates_in_turn() -> None:
    case, memory, told = case_of("choose", "table"), Memory(), []
    make_release(
        case.order, Plan(case.events), case.source(), SecureRandom(), Hooks(checkpoints=memory, on_progress=told.append)
    )
    assert told == [1, 2, 3]
    known = {"plan", "position", "is_private", "seed", "tried", "winner", "inner"}
    for saved in memory.all:
        assert set(Checkpoint.values_of(saved)) <= known
    assert Checkpoint.values_of(memory.all[-1])["winner"] in {0, 1}


def test_a_resumed_run_keeps_parts_and_tries_no_candidate_again() -> None:
    case, memory = case_of("choose", "table"), Memory()
    asked = 0

    def stop() -> bool:
        """Within the second candidate."""
        nonlocal asked
        asked += 1
        return bool(memory.all) and Checkpoint.values_of(memory.all[-1])["tried"] == 1

    with pytest.raises(TrainingStopped):
        make_release(
            case.order, Plan(case.events), case.source(), SecureRandom(), Hooks(checkpoints=memory, should_stop=stop)
        )
    before = Checkpoint.values_of(memory.all[-1])
    assert (before["tried"], before["position"], before["winner"]) == (1, 1, None)
    plan = Plan(case.events)
    going_on = ByParts(case.order, plan, case.source(), SecureRandom(), CPU)
    going_on.restore(Checkpoint.from_bytes(memory.all[-1]))
    first = going_on.classifiers[0]
    made = going_on.finish(Hooks(checkpoints=memory))
    assert torch.equal(going_on.classifiers[0], first)
    assert Checkpoint.values_of(memory.all[-1])["seed"] == before["seed"]
    assert plan.position == 2
    assert made.choice is not None


@pytest.mark.parametrize("knobs", [{}, {"form": "repeat", "padded_runs": 1}])
def test_who_fits_a_classifier_is_asked_whether_to_stop(knobs: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    case, fitting = case_of("choose", "table", **knobs), [0]

    def fitted(_codes: Any, _widths: Any, _target: int, on_step: Any) -> None:
        fitting[0] += 1
        on_step()

    monkeypatch.setattr(trying, "fitted", fitted)
    with pytest.raises(TrainingStopped):
        make_release(
            case.order, Plan(case.events), case.source(), SecureRandom(), Hooks(should_stop=lambda: fitting[0] > 0)
        )
    assert fitting == [1]


def test_each_candidate_runs_all_of_its_list_on_its_own_part() -> None:
    case = case_of("choose", "table")
    seen: list[tuple[Any, Any, int]] = []

    class Watched(ByParts):
        def tried(self, candidate: Any, events: Any, source: Any, hooks: Hooks) -> Any:
            run, made = super().tried(candidate, events, source, hooks)
            table, _ = source.table(numeric_bins=4)
            assert run.plan.position == sum(event.count for event in events)
            seen.append((candidate, events, table.units))
            return run, made

    watched = Watched(case.order, Plan(case.events), case.source(), SecureRandom(), CPU)
    watched.measure()
    made = watched.finish(Hooks())
    trials, winner = case.events
    assert isinstance(trials, ParallelEvent)
    assert [events for _, events, _ in seen[:2]] == list(trials.parts[:2])
    assert [units for _, _, units in seen] == [133, 133, 400]
    assert made.choice is not None
    assert seen[2][1] == winner.lists[made.choice["candidate"]]  # type: ignore[attr-defined]


# -- repeated runs


def test_the_number_of_runs_has_the_distribution_that_is_priced() -> None:
    randomness = SecureRandom.from_test_seed(1)
    for mean, shape in ((3.0, 1.0), (4.0, 0.0), (2.0, 0.5)):
        gamma = gamma_of(mean, shape)
        drawn = np.array([number_of_runs(gamma, shape, randomness.bits) for _ in range(4_000)])
        weights = [1.0]
        for k in range(1, 400):
            weights.append(weights[-1] * (1.0 - gamma) * (k + shape) / (k + 1))
        expected = np.array(weights) / sum(weights)
        for k in (1, 2, 3):
            assert (drawn == k).mean() == pytest.approx(expected[k - 1], abs=0.035)
        assert drawn.min() == 1
        assert drawn.mean() == pytest.approx(mean, rel=0.12)


class Repeated(ByRepeating):
    """Runs with errors that are known."""

    script: tuple[int, ...] = ()

    def _run(self, _plan: Plan, _hooks: Hooks) -> Best:
        errors = self.script[self.done]
        return Best(errors, errors % 2, Checkpoint({"weights": torch.tensor([float(errors)])}, {"errors": errors}))

    def _best_again(self, _base: Any, _hooks: Hooks) -> Any:
        assert self.best is not None
        return TableRelease(  # type: ignore[call-arg]
            is_private=True, engine="none", generator=None, domain=None, noise_dimension=1, condition_index=None,
            condition_frequencies=None,
        ), self.best.errors  # fmt: skip


def _repeated(script: tuple[int, ...], runs: int, hooks: Hooks) -> tuple[Repeated, Any]:
    case = case_of("choose", "table", form="repeat", padded_runs=len(script))
    repeated = Repeated(case.order, Plan(case.events), case.source(), SecureRandom(), CPU)
    repeated.measure()
    repeated.script, repeated.runs = script, runs
    return repeated, repeated.finish(hooks)


def test_the_best_of_the_runs_that_count_is_published_and_padding_is_thrown_away() -> None:
    repeated, made = _repeated((9, 5, 7, 1, 0), 3, Hooks())
    assert made.choice["candidate"] == 5
    assert repeated.done == 5
    assert _repeated((4, 4, 4), 3, Hooks())[1].choice["candidate"] == 4


def test_progress_logs_and_what_is_published_tell_nothing_of_the_runs(caplog: pytest.LogCaptureFixture) -> None:
    told: list[int] = []
    with caplog.at_level(logging.DEBUG):
        case = case_of("choose", "table", form="repeat", mean_runs=2.0, padded_runs=4)
        hooks = Hooks(on_progress=told.append, checkpoints=Memory())
        made = make_release(case.order, Plan(case.events), case.source(), SecureRandom(), hooks)
    assert told == [1]
    assert caplog.messages == []
    assert made.choice is not None
    assert set(made.choice) == {"form", "candidate", "candidates"}
    assert case.order.progress_steps == 1


def test_so_many_runs_are_made_whatever_number_counts() -> None:
    case = case_of("choose", "table", form="repeat", mean_runs=1.5, padded_runs=3)
    for runs in (1, 2, 3):
        made: list[int] = []

        class Watched(ByRepeating):
            def _run(self, plan: Plan, hooks: Hooks) -> Best:
                best = super()._run(plan, hooks)
                made.append(plan.position)  # noqa: B023
                return best

        watched = Watched(case.order, Plan(case.events), case.source(), SecureRandom(), CPU)
        watched.measure()
        watched.runs = runs
        watched.finish(Hooks())
        assert made == [2, 2, 2]  # the candidate and its score, from the list of one run


def test_a_resumed_selection_keeps_its_number_of_runs_and_its_best() -> None:
    memory = Memory()
    _, made = _repeated((9, 5, 7, 1), 2, Hooks(checkpoints=memory))
    assert made.choice["candidate"] == 5
    case = case_of("choose", "table", form="repeat", padded_runs=4)
    for saved in memory.all:
        values = Checkpoint.values_of(saved)
        assert values["runs"] == 2
        going_on = Repeated(case.order, Plan(case.events), case.source(), SecureRandom(), CPU)
        going_on.script = (9, 5, 7, 1)
        going_on.restore(Checkpoint.from_bytes(saved))
        assert going_on.plan.taken_before(type(case.events[0]), REPEATED) == case.events[0]
        assert going_on.finish(Hooks()).choice["candidate"] == 5
        assert going_on.best is not None
        assert going_on.best.left.tensors["weights"].item() == 5.0


def test_both_forms_are_named_in_the_order_that_is_stored() -> None:
    for form in ("parts", "repeat"):
        case = case_of("choose", "table", form=form)
        stored = json.loads(case.order.model_dump_json())
        assert stored["form"] == form
        assert (stored["trials"] is None) == (form == "repeat")
    assert case_of("choose", "table").events[0].purpose == TRIALS


@pytest.mark.parametrize("form", ["parts", "repeat"])
def test_candidates_begin_from_all_public_rows_and_at_no_price(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    idpgan = {"method": "idpgan", "steps": 2, "public_steps": 2, "warm_start": {"kind": "none"}}
    begun = [{**idpgan, "public_dataset": str(uuid.UUID(int=7)), **more} for more in ({}, {"public_mask_share": 0.5})]
    knobs = {"form": form, "padded_runs": 2, "mean_runs": 1.0} if form == "repeat" else {"form": form}
    case = case_of("choose", "table", candidates=[*begun, idpgan], rows=100, **knobs)
    elsewhere = case_of("choose", "table", candidates=[idpgan] * 3, rows=100, **knobs)
    assert case.events == elsewhere.events
    rows, domain = case.source().table(numeric_bins=32)
    public = with_units(rows, np.arange(60))
    taken: list[int] = []
    first = TableIdpgan.warm_up

    def noted(gan: TableIdpgan, on_progress: Any) -> None:
        assert (gan.public is None) == (gan.order.public_dataset is None)
        taken.append(0 if gan.public is None else gan.public.units)
        first(gan, on_progress)

    monkeypatch.setattr(TableIdpgan, "warm_up", noted)
    made = make_release(
        case.order, Plan(case.events), GivenTable(rows, domain, given_public=(public, domain)), SecureRandom()
    )
    assert made.is_private
    assert set(taken) <= {0, 60}
    if form == "parts":
        assert taken[:3] == [60, 60, 0]
