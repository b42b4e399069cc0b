"""The private step end to end: sensitivity, noise, normaliser, and that nothing else reads a row."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
import torch

from service.base.errors import InvalidOrder
from service.domain.table_schema import TableSchema
from service.methods.idpgan.order import IdpganOrder
from service.privacy.events import Events, GaussianEvent, SampledStepEvent
from workers.checkpoints import Checkpoint
from workers.encoding.places import codes_in_places
from workers.encoding.table import ABSENT, EncodedTable, TableDomain
from workers.engines import choosing as engines
from workers.mechanism.clipping import clip_and_sum
from workers.mechanism.noise import allocate
from workers.mechanism.sampling import poisson_sample
from workers.mechanism.secure_random import SecureRandom
from workers.methods.idpgan.tables import TableIdpgan
from workers.plan import Plan, StepNotOnPlan

SCHEMA = TableSchema.model_validate(
    {
        "fields": [
            {"name": "colour", "type": "string", "constraints": {"enum": ["r", "g", "b"], "required": True}},
            {"name": "size", "type": "integer", "constraints": {"minimum": 0, "maximum": 5, "required": True}},
            {"name": "label", "type": "boolean", "constraints": {"required": True}},
        ]
    }
)
DOMAIN = TableDomain.from_schema(SCHEMA, numeric_bins=8)
SMALL = {"networks": {"noise_dimension": 4, "generator_hidden": [16], "critic_hidden": [12, 8]}}
TINY_NOISE = 1e-9
FIXED = {"thresholds": {"kind": "fixed", "clip_norm": 0.5}, "clusters": {"kind": "none"}}


def make_table(rows: int = 40, rows_per_unit: int = 1) -> EncodedTable:
    generator = np.random.default_rng(1)
    codes = np.stack([generator.integers(width, size=rows) for width in DOMAIN.widths], axis=1).astype(np.uint16)
    if rows_per_unit == 1:
        return EncodedTable(codes, rows, None, 1)
    starts = np.arange(0, rows + 1, rows_per_unit, dtype=np.int64)
    return EncodedTable(codes, rows // rows_per_unit, starts, rows_per_unit)


def without_unit(table: EncodedTable, unit: int) -> EncodedTable:
    """The zero-out neighbour."""
    codes = table.codes.copy()
    rows = slice(unit, unit + 1)
    if table.unit_starts is not None:
        rows = slice(table.unit_starts[unit], table.unit_starts[unit + 1])
    codes[rows] = ABSENT
    return EncodedTable(codes, table.units, table.unit_starts, table.max_rows_per_unit)


def make_method(
    table: EncodedTable,
    *,
    sampling_probability: float = 0.5,
    gradient_noise: float = TINY_NOISE,
    histogram_noise: float | None = TINY_NOISE,
    steps: int = 10,
    seed: int = 1,
    domain: TableDomain = DOMAIN,
    **knobs: Any,
) -> TableIdpgan:
    order = IdpganOrder.model_validate(
        {
            "method": "idpgan",
            "epsilon": 1.0,
            "sampling_probability": sampling_probability,
            "steps": steps,
            **SMALL,
            **knobs,
        }
    )
    if order.thresholds.kind == "fixed":
        histogram_noise = None
    step = SampledStepEvent(sampling_probability, gradient_noise, histogram_noise, steps)
    events: Events = (step,) if order.condition_on is None else (GaussianEvent("label_counts", TINY_NOISE), step)
    torch.manual_seed(seed)
    method = TableIdpgan(order, Plan(events), table, domain, SecureRandom.from_test_seed(seed), torch.device("cpu"))
    method.measure()
    return method


def released(method: TableIdpgan) -> list[torch.Tensor]:
    """The noisy sums of the last critic step."""
    return [tensor.grad.double() * method.expected_units for tensor in method.tensors]


VARIANTS = [
    pytest.param({"condition_on": "label"}, 1, id="conditional"),
    pytest.param({"condition_on": "label"}, 4, id="conditional, four rows a unit"),
    pytest.param({"critic_loss": "separate"}, 1, id="separate"),
    pytest.param({"allocation": "flat"} | FIXED, 4, id="fixed, four rows a unit"),
]


@pytest.mark.parametrize(("knobs", "rows_per_unit"), VARIANTS)
def test_zeroing_out_a_unit_moves_the_step_by_at_most_its_sensitivity(
    knobs: dict[str, Any], rows_per_unit: int
) -> None:
    """Same coins, same noise, neighbouring tables: the whole difference is the unit's."""
    table = make_table(rows_per_unit=rows_per_unit)
    moved = 0.0
    for unit in range(0, table.units, 3):
        methods = [make_method(t, **knobs) for t in (table, without_unit(table, unit))]
        frequencies = [method.condition_frequencies for method in methods]
        for method in methods:
            method.condition_frequencies = frequencies[0]  # bought earlier, on their own event
            groups = method.clip_groups
            method.critic_step()
        first, second = (released(method) for method in methods)
        for group, clip_norm in zip(groups.groups, groups.clip_norms, strict=True):
            change = math.sqrt(sum(float((first[t] - second[t]).square().sum()) for t in group))
            assert change <= clip_norm * (1 + 1e-5) + 1e-5
            moved += change
        if methods[0].average_histogram is not None:
            histograms = [method.average_histogram / (1 - method.adaptive.average_decay) for method in methods]
            assert float((histograms[0] - histograms[1]).norm()) <= math.sqrt(len(first)) * (1 + 1e-6)
    assert moved > 0.0


@pytest.mark.parametrize("seed", [1, 2])
def test_the_normaliser_is_the_expected_draw_not_the_drawn_one(seed: int) -> None:
    table = make_table()
    method, twin = (make_method(table, seed=seed, **FIXED) for _ in range(2))
    drawn = poisson_sample(units=40, sampling_probability=0.5, randomness=twin.randomness)
    assert len(drawn) != 20
    wanted = clip_and_sum(
        twin._per_unit_gradients(drawn),
        groups=twin.clip_groups.groups,
        clip_norms=twin.clip_groups.clip_norms,
        shapes=[tensor.shape for tensor in twin.tensors],
        bounds=twin.bounds,
    )
    method.critic_step()
    for got, value in zip(method.tensors, wanted.sum.values, strict=True):
        torch.testing.assert_close(got.grad, (value / 20).float())


def test_an_empty_draw_is_noise_alone_and_noise_follows_the_schedule() -> None:
    big = {"networks": {"noise_dimension": 4, "generator_hidden": [16], "critic_hidden": [300, 200]}}
    method = make_method(make_table(), sampling_probability=1e-12, **{**big, **FIXED})
    method.plan = Plan((SampledStepEvent(1e-12, 3.0, None, 1), SampledStepEvent(1e-12, 0.5, None, 2)))
    for sigma in (3.0, 0.5, 0.5):
        method.critic_step()
        noise = torch.cat([total.flatten() for total in released(method)])
        (std,) = allocate((0.5,), (len(noise),), noise_multiplier=sigma, allocation="least_noise")
        assert float(noise.std()) == pytest.approx(std, rel=0.02)


def test_an_empty_draw_reads_no_one() -> None:
    method = make_method(make_table(), sampling_probability=1e-12, **FIXED)
    method.critic_step()
    assert max(float(total.abs().max()) for total in released(method)) < 1e-6


def test_noise_of_every_group_follows_the_thresholds_in_force() -> None:
    big = {"networks": {"noise_dimension": 4, "generator_hidden": [16], "critic_hidden": [300, 200]}}
    method = make_method(make_table(), gradient_noise=2.0, sampling_probability=1e-12, **big)
    for _ in range(3):
        groups = method.clip_groups  # noisy empty histograms move the thresholds about
        method.critic_step()
        noise = released(method)
        sizes = [sum(noise[t].numel() for t in group) for group in groups.groups]
        stds = allocate(groups.clip_norms, sizes, noise_multiplier=2.0, allocation="least_noise")
        for group, std in zip(groups.groups, stds, strict=True):
            values = torch.cat([noise[t].flatten() for t in group])
            assert float(values.std()) == pytest.approx(std, rel=5 / math.sqrt(2 * len(values)))


def test_the_generator_step_reads_no_row() -> None:
    method = make_method(make_table(), condition_on="label")
    del method.table
    before = method.checkpoint().tensors["generator.output.weight"].clone()
    method.generator_step()
    assert not torch.equal(before, method.checkpoint().tensors["generator.output.weight"])


def test_a_step_that_is_not_on_the_list_is_refused_before_a_row_is_read() -> None:
    method = make_method(make_table(), steps=1)
    method.critic_step()
    del method.table
    with pytest.raises(StepNotOnPlan):
        method.critic_step()
    other = make_method(make_table(), **FIXED)
    other.plan = Plan((SampledStepEvent(0.5, 1.0, 8.0, 5),))
    del other.table
    with pytest.raises(StepNotOnPlan):
        other.critic_step()


@pytest.mark.parametrize("damage", [math.nan, math.inf, 1e30])
@pytest.mark.parametrize("rows_per_unit", [1, 4])
def test_overflow_raises_nothing_and_reaches_nothing(damage: float, rows_per_unit: int) -> None:
    method = make_method(make_table(rows_per_unit=rows_per_unit))
    with torch.no_grad():
        method.tensors[0][0, :] = damage
    method.critic_step()
    assert all(bool(total.isfinite().all()) for total in released(method))
    method.generator_step()
    assert all(bool(p.isfinite().all()) for p in method.averaged_generator.parameters())


def test_units_of_very_many_rows_fall_back_to_vmap() -> None:
    assert make_method(make_table(rows_per_unit=4)).engine == "outer_products"
    method = make_method(make_table(rows=400, rows_per_unit=100))
    assert method.engine == "vmap"
    method.critic_step()


def test_every_unit_has_its_maximum_of_places_and_no_more_rows_than_that() -> None:
    table = make_table(rows_per_unit=4)
    method = make_method(EncodedTable(table.codes, 4, np.array([0, 4, 5, 5, 40]), 3))
    codes = codes_in_places(method.table, np.arange(4))
    wanted = np.full((12, 3), ABSENT, dtype=np.uint16)
    wanted[[0, 1, 2, 3, 9, 10, 11]] = table.codes[[0, 1, 2, 4, 5, 6, 7]]
    np.testing.assert_array_equal(codes, wanted)
    batch = method._critic_batch(np.array([3, 1]))
    assert (batch.units, batch.rows_per_unit) == (2, 3)
    assert batch.present.tolist() == [True, True, True, True, False, False]


def test_a_large_draw_is_worked_off_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(engines.BLOCK_ROWS, "outer_products", 7)
    blocks = list(make_method(make_table())._per_unit_gradients(np.arange(40)))
    assert [len(block.contributes) for block in blocks] == [7, 7, 7, 7, 7, 5]


@pytest.mark.parametrize(
    "knobs",
    [
        {"condition_on": "colour", "critic_loss": "separate", "allocation": "equal_share"},
        {"thresholds": {"kind": "adaptive", "rule": "quantile", "quantile": 0.3}, "gradient_penalty": 0.0},
        FIXED,
    ],
)
def test_every_variant_runs(knobs: dict[str, Any]) -> None:
    method = make_method(make_table(), gradient_noise=1.0, histogram_noise=8.0, **knobs)
    for _ in range(4):
        method.critic_step()
        method.generator_step()
    assert method.plan.steps_done == 4
    assert all(bool(tensor.isfinite().all()) for tensor in method.tensors)


def test_a_histogram_only_when_it_is_due() -> None:
    method = make_method(make_table(), thresholds={"kind": "adaptive", "every_steps": 3})
    method.plan = Plan((SampledStepEvent(0.5, 1.0, 8.0, 1), SampledStepEvent(0.5, 1.0, None, 2)) * 2)
    seen = []
    for _ in range(6):
        before = None if method.average_histogram is None else method.average_histogram.clone()
        method.critic_step()
        seen.append(before is None or not torch.equal(before, method.average_histogram))
    assert seen == [True, False, False, True, False, False]


def test_bought_frequencies_are_those_of_the_labels() -> None:
    table = make_table(400)
    method = make_method(table, condition_on="colour")
    wanted = np.bincount(table.codes[:, 0], minlength=3) / 400
    # Next to no noise is charged here; whole counts have a standard deviation of about one all the same.
    np.testing.assert_allclose(method.condition_frequencies, wanted, atol=0.02)
    drawn = method._drawn_conditions(60_000)
    np.testing.assert_allclose(
        np.bincount(drawn.numpy(), minlength=3) / 60_000, method.condition_frequencies, atol=0.01
    )


def test_an_unresolved_order_is_refused() -> None:
    order = IdpganOrder(method="idpgan", epsilon=1.0)
    with pytest.raises(InvalidOrder):
        TableIdpgan(order, Plan(()), make_table(), DOMAIN, SecureRandom(), torch.device("cpu"))


def test_a_checkpoint_restores_everything_but_the_noise() -> None:
    method = make_method(make_table(), condition_on="label", gradient_noise=1.0, histogram_noise=8.0)
    for _ in range(4):
        method.critic_step()
        method.generator_step()
    saved = method.checkpoint().to_bytes()
    other = make_method(make_table(), condition_on="label", gradient_noise=1.0, histogram_noise=8.0, seed=2)
    other.plan = Plan(method.plan._events)
    other.restore(Checkpoint.from_bytes(saved))
    assert other.plan.position == 5
    assert other.clip_groups == method.clip_groups
    assert other.condition_frequencies == method.condition_frequencies
    again = other.checkpoint()
    assert json.dumps(again.values) == json.dumps(method.checkpoint().values)
    wanted = method.checkpoint().tensors
    assert set(again.tensors) == set(wanted)
    assert all(torch.equal(tensor, wanted[name]) for name, tensor in again.tensors.items())
    other.critic_step()
    method.critic_step()
    assert not torch.equal(other.tensors[0], method.tensors[0])


def test_a_checkpoint_of_another_list_is_refused_and_a_test_seed_stays_marked() -> None:
    method = make_method(make_table())
    method.critic_step()
    saved = Checkpoint.from_bytes(method.checkpoint().to_bytes())
    with pytest.raises(StepNotOnPlan):
        make_method(make_table(), gradient_noise=5.0).restore(saved)
    fresh = make_method(make_table())
    fresh.is_private = True
    fresh.restore(saved)
    assert not fresh.is_private
