"""Steps run = steps charged: the plan hands out the list and refuses everything else."""

from __future__ import annotations

import pytest

from service.privacy.events import (
    Events,
    ExponentialEvent,
    GaussianEvent,
    InterleavedStepsEvent,
    LaplaceEvent,
    ParallelEvent,
    PureEvent,
    SampledStepEvent,
)
from workers.plan import Plan, StepNotOnPlan

EVENTS: Events = (
    GaussianEvent("label_counts", 9.0),
    SampledStepEvent(0.1, 3.0, 24.0, 1),
    SampledStepEvent(0.1, 3.0, None, 2),
    SampledStepEvent(0.1, 2.0, None, 1),
)
HISTOGRAMS = (True, False, False, False)


def run_out(plan: Plan) -> list[float]:
    taken = []
    while plan.steps_done < plan.steps:
        histogram = HISTOGRAMS[plan.steps_done]
        taken.append(plan.take_sampled_step(sampling_probability=0.1, histogram=histogram).gradient_noise_multiplier)
    return taken


def test_the_list_is_executed_in_order_and_no_further() -> None:
    plan = Plan(EVENTS)
    assert (plan.steps, plan.steps_done, plan.position) == (4, 0, 0)
    assert plan.take_gaussian("label_counts") == 9.0
    first = plan.take_sampled_step(sampling_probability=0.1, histogram=True)
    assert first.histogram_noise_multiplier == 24.0
    assert run_out(plan) == [3.0, 3.0, 2.0]
    assert (plan.steps_done, plan.position) == (4, 5)
    for _ in range(2):
        with pytest.raises(StepNotOnPlan):
            plan.take_sampled_step(sampling_probability=0.1, histogram=False)
    with pytest.raises(StepNotOnPlan):
        plan.take_gaussian("label_counts")


def test_it_says_what_comes_next_and_spends_nothing() -> None:
    plan = Plan((GaussianEvent("tables", 2.0), GaussianEvent("scores", 3.0, count=2), *EVENTS[1:]))
    plan.expect((GaussianEvent("tables", 1.0), GaussianEvent("scores", 1.0), GaussianEvent("scores", 1.0)))
    for purposes in (["tables"], ["scores", "tables"], ["tables", "scores"], ["tables", "scores", "scores", "values"]):
        with pytest.raises(StepNotOnPlan):
            plan.expect(tuple(GaussianEvent(purpose, 1.0) for purpose in purposes))
    assert plan.position == 0
    taken = []
    while (purpose := plan.upcoming()) is not None:
        assert plan.upcoming() == purpose
        plan.take_gaussian(purpose)
        taken.append(purpose)
    assert taken == ["tables", "scores", "scores"]
    run_out(plan)
    assert plan.upcoming() is None


def test_what_is_not_next_is_refused_and_nothing_is_spent() -> None:
    plan = Plan(EVENTS)
    with pytest.raises(StepNotOnPlan):
        plan.take_sampled_step(sampling_probability=0.1, histogram=True)
    with pytest.raises(StepNotOnPlan):
        plan.take_gaussian("bounds")
    assert plan.position == 0
    plan.take_gaussian("label_counts")
    for arguments in (
        {"sampling_probability": 0.1, "histogram": False},
        {"sampling_probability": 0.2, "histogram": True},
    ):
        with pytest.raises(StepNotOnPlan) as refusal:
            plan.take_sampled_step(**arguments)
        assert refusal.value.code == "step_not_on_plan"
        assert refusal.value.values == {"position": 1}
    with pytest.raises(StepNotOnPlan):
        plan.take_gaussian("label_counts")
    assert plan.position == 1


@pytest.mark.parametrize("position", range(1, 6))
def test_resume_continues_the_list_exactly(position: int) -> None:
    plan = Plan(EVENTS, position)
    assert (plan.position, plan.steps_done) == (position, position - 1)
    assert run_out(plan) == [3.0, 3.0, 3.0, 2.0][position - 1 :]


@pytest.mark.parametrize("position", [-1, 6])
def test_a_position_outside_the_list_is_refused(position: int) -> None:
    with pytest.raises(StepNotOnPlan):
        Plan(EVENTS, position)


def test_a_plan_that_has_begun_cannot_be_moved() -> None:
    plan = Plan(EVENTS, 3)
    with pytest.raises(StepNotOnPlan):
        plan.resume(1)


def test_digest_names_the_list_not_the_position() -> None:
    assert Plan(EVENTS).digest() == Plan(EVENTS, 3).digest()
    assert Plan(EVENTS).digest() != Plan(EVENTS[1:]).digest()


# -- other kinds

MIXED: Events = (
    LaplaceEvent("counts", 4.0, 2),
    PureEvent("counts", 0.5),
    ParallelEvent("classes", ((GaussianEvent("means", 3.0),), (ExponentialEvent("median", 0.2),))),
    SampledStepEvent(0.1, 3.0, None, 1),
)


def test_every_kind_is_taken_in_order_with_its_parameters() -> None:
    plan = Plan(MIXED)
    assert (plan.take(LaplaceEvent, "counts").noise_scale, plan.take(LaplaceEvent, "counts").noise_scale) == (4.0, 4.0)
    assert plan.take(PureEvent, "counts").epsilon == 0.5
    means, median = (Plan(part) for part in plan.take(ParallelEvent, "classes").parts)
    assert (means.take_gaussian("means"), median.take(ExponentialEvent, "median").epsilon) == (3.0, 0.2)
    assert (plan.steps, plan.steps_done, plan.position) == (1, 0, 4)
    plan.take_sampled_step(sampling_probability=0.1, histogram=False)
    assert (plan.steps_done, plan.position) == (1, 5)
    with pytest.raises(StepNotOnPlan):
        plan.take(PureEvent, "counts")


def test_another_kind_or_purpose_is_refused_and_nothing_is_spent() -> None:
    plan = Plan(MIXED, 2)
    for kind, purpose in ((LaplaceEvent, "counts"), (ExponentialEvent, "counts"), (PureEvent, "median")):
        with pytest.raises(StepNotOnPlan, match=f"{kind.kind} for {purpose}"):
            plan.take(kind, purpose)
    with pytest.raises(StepNotOnPlan):
        plan.take_gaussian("counts")
    assert plan.position == 2
    assert plan.take(PureEvent, "counts").epsilon == 0.5


@pytest.mark.parametrize("position", range(6))
def test_other_kinds_are_no_steps(position: int) -> None:
    plan = Plan(MIXED, position)
    assert (plan.position, plan.steps_done) == (position, max(0, position - 4))


@pytest.mark.parametrize("position", range(9))
def test_interleaved_steps_are_handed_out_one_by_one_from_any_position(position: int) -> None:
    events: Events = (InterleavedStepsEvent(0.1, 3.0, 24.0, 3, 1, 7), SampledStepEvent(0.1, 2.0, None, 2))
    plan = Plan(events, position)
    taken = [plan.take_sampled_step(sampling_probability=0.1) for _ in range(9 - position)]
    with_histogram = [False, True, False, False, True, False, False, False, False]
    assert [step.histogram_noise_multiplier for step in taken] == [
        24.0 if has else None for has in with_histogram[position:]
    ]
    assert [step.gradient_noise_multiplier for step in taken] == ([3.0] * 7 + [2.0] * 2)[position:]
    with pytest.raises(StepNotOnPlan):
        plan.take_sampled_step(sampling_probability=0.1)


def test_an_interleaved_step_of_the_wrong_kind_is_refused() -> None:
    plan = Plan((InterleavedStepsEvent(0.1, 3.0, 24.0, 3, 1, 7),))
    with pytest.raises(StepNotOnPlan):
        plan.take_sampled_step(sampling_probability=0.1, histogram=True)
    with pytest.raises(StepNotOnPlan):
        plan.take_sampled_step(sampling_probability=0.2)
    assert plan.position == 0
