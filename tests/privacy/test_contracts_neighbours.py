"""What a mechanism declares bounds what really happens: every private sum on neighbouring inputs, in exact arithmetic.

Neighbours are D and D with one unit zeroed out. Both sums are computed from the rows anew, with the same coins; the
change is measured with rational numbers, so that no tolerance hides rounding. Declared is declared.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bench.audit.worlds import listening, make_canaries, null_table, order_for
from service.privacy.events import GaussianEvent, SampledStepEvent
from tests.critic_batches import by_unit, without_unit
from tests.exact_changes import assert_bounded
from tests.neighbouring_tables import neighbours, random_table, with_rows_removed
from workers.encoding.table import ABSENT, EncodedTable
from workers.engines.choosing import perceptron_gradients
from workers.mechanism import CriticBatch, CriticLoss, DrawBounds, Perceptron, PerUnitGradients, PrivateSum
from workers.mechanism.clipping import clip_and_sum, sum_rounding
from workers.mechanism.gradients import MaterialisedGradients, vmap_gradients
from workers.mechanism.label_counts import label_counts
from workers.mechanism.outer_products import OuterProduct, OuterProductGradients
from workers.mechanism.thresholds import geometric_grid, norm_histogram
from workers.methods.idpgan.tables import TableIdpgan
from workers.networks.table import LEAKY_SLOPE, TableCritic
from workers.numerics.block_sums import BLOCK_ROWS, block_sum_rounding, sum_in_blocks
from workers.numerics.workspace import Workspace

WIDTH = 7
GROUPS = ((0, 2), (1, 3), (4,))
CLIP_NORMS = (0.3, 0.02, 1.7)
BOUNDS = DrawBounds(most_units=64, units_per_block=64, rows_per_unit=40)
EDGES = geometric_grid(smallest=1e-3, largest=1e2, bins=9)
LOSSES = [CriticLoss(paired=p, gradient_penalty=g) for p in (True, False) for g in (10.0, 0.0)]

pytestmark = pytest.mark.usefixtures("one_thread")


def gradients_of(engine: str, batch: CriticBatch, loss: CriticLoss) -> PerUnitGradients:
    torch.manual_seed(3)
    critic = TableCritic(WIDTH, (5, 4)).to(batch.real.dtype)
    if engine == "vmap":
        return vmap_gradients(critic, batch, loss)
    weights = [layer.weight.detach() for layer in (*critic.layers, critic.output)]
    biases = [layer.bias.detach() for layer in critic.layers]
    return perceptron_gradients(Perceptron(weights, biases, LEAKY_SLOPE), batch, loss)


def sums_of(gradients: PerUnitGradients) -> tuple[PrivateSum, PrivateSum]:
    """The clipped sum and the histogram of norms."""
    shapes = [tensor.shape for tensor in TableCritic(WIDTH, (5, 4)).parameters()]
    clipped = clip_and_sum([gradients], groups=GROUPS, clip_norms=CLIP_NORMS, shapes=shapes, bounds=BOUNDS)
    return clipped.sum, norm_histogram(clipped.tensor_norms, EDGES)


def make_batch(kind: str, dtype: torch.dtype) -> CriticBatch:
    generator = torch.Generator().manual_seed(11)
    rows = {"empty": 0, "one record": 1}.get(kind, 24)
    real, fake = (torch.randn(rows, WIDTH, generator=generator, dtype=torch.float64) for _ in range(2))
    counts = [1] * rows
    if kind == "identical records":
        real, fake = real[:1].repeat(rows, 1), fake[:1].repeat(rows, 1)
    if kind == "fake equals real":
        fake = real.clone()
    if kind == "fake near real":
        fake = real * (1 + 1e-6 * fake)
    if kind == "large and nearly equal":
        real = 1e4 * real
        fake = real * (1 + 1e-7 * fake)
    if kind == "outliers":
        real[:6] *= torch.tensor([[1e3], [1e6], [1e9], [1e-30], [1e15], [1e18]], dtype=torch.float64)
    if kind == "not finite":
        real[0, 0], real[1, 2], fake[2, 3], real[3] = math.nan, math.inf, -math.inf, 1e200
        real[4], fake[4] = 1e30, -1e30
    if kind == "a unit with many rows":
        counts = [18, 2, 1, 3]
    if kind == "many rows, one of them bad":
        counts = [8] * 3
        real[3, 0] = math.nan
    mix = torch.rand(rows, 1, generator=generator, dtype=torch.float64)
    present = torch.ones(rows, dtype=torch.bool)
    return by_unit(CriticBatch(real.to(dtype), fake.to(dtype), mix.to(dtype), present), counts)


KINDS = [
    "empty",
    "one record",
    "random",
    "identical records",
    "fake equals real",
    "fake near real",
    "large and nearly equal",
    "outliers",
    "not finite",
    "a unit with many rows",
    "many rows, one of them bad",
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("engine", ["vmap", "outer_products"])
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_and_histograms_of_one_step(kind: str, engine: str, dtype: torch.dtype) -> None:
    batch = make_batch(kind, dtype)
    for loss in LOSSES:
        full = sums_of(gradients_of(engine, batch, loss))
        assert all(bool(value.isfinite().all()) for private in full for value in private.values)
        for unit in sorted({*range(min(6, batch.units)), *range(0, batch.units, 11)}):
            neighbour = sums_of(gradients_of(engine, without_unit(batch, unit), loss))
            for first, second in zip(full, neighbour, strict=True):
                assert_bounded(first, second)


ENTRIES = st.one_of(
    st.floats(-2, 2, width=32),
    st.sampled_from([0.0, 1e-30, 1e4, -1e8, 1e18, -1e30, 3e38, math.inf, -math.inf, math.nan]),
)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("engine", ["vmap", "outer_products"])
@settings(max_examples=25, deadline=None, derandomize=True)
@given(data=st.data())
def test_whatever_the_rows_are(engine: str, dtype: torch.dtype, data: st.DataObject) -> None:
    rows = st.lists(st.lists(ENTRIES, min_size=WIDTH, max_size=WIDTH), min_size=5, max_size=5)
    real, fake = (torch.tensor(data.draw(rows), dtype=dtype) for _ in range(2))
    if data.draw(st.booleans()):
        fake = real * (1 + 1e-6)
    mix, present = torch.linspace(0, 1, 5, dtype=dtype).unsqueeze(1), torch.ones(5, dtype=torch.bool)
    batch = by_unit(CriticBatch(real, fake, mix, present), data.draw(st.sampled_from([[1] * 5, [3, 2]])))
    loss = data.draw(st.sampled_from(LOSSES))
    full = sums_of(gradients_of(engine, batch, loss))
    for unit in range(batch.units):
        neighbour = sums_of(gradients_of(engine, without_unit(batch, unit), loss))
        for first, second in zip(full, neighbour, strict=True):
            assert_bounded(first, second)


# -- the rounding of the others ---------------------------------------------------------------------------------------


UNITS_PER_BLOCK = 256


def spiteful_units(kind: str, units: int) -> list[PerUnitGradients]:
    """Blocks of gradients that make a float32 sum round as badly as it can; (16,) or (6, 5) a unit, clip norm 1."""
    generator = torch.Generator().manual_seed(0)

    def block(size: int) -> PerUnitGradients:
        usable, padded = torch.ones(size, dtype=torch.bool), -(-size // BLOCK_ROWS) * BLOCK_ROWS
        if kind == "long and alike":
            direction = torch.full((16,), 1e3)
            return MaterialisedGradients((direction * (1 + 0.3 * torch.rand(size, 1, generator=generator)),), usable)
        left, right = torch.randn(2, padded, 6, generator=generator), torch.randn(2, padded, 5, generator=generator)
        if kind == "products that cancel":
            # Two products of norm 1e6 and their sum a millionth of that: what rounds is far longer than what is clipped.
            left, right = 1e6 * torch.stack((left[0], -left[0] * (1 + 1e-6))), torch.stack((right[0], right[0]))
        if kind == "products that cancel a little":
            left, right = 1e6 * torch.stack((left[0], -left[0] * 1.3)), torch.stack((right[0], right[0]))
        if kind == "signs":
            left = 1e4 * left.sign()
        return OuterProductGradients((OuterProduct(left, right, size, 1, Workspace()),), usable)

    sizes = [min(UNITS_PER_BLOCK, units - start) for start in range(0, units, UNITS_PER_BLOCK)]
    return [block(size) for size in sizes]


@pytest.mark.usefixtures("loops_or_torch")
@pytest.mark.parametrize("units", [2, 512, 8_192])
@pytest.mark.parametrize("kind", ["long and alike", "products that cancel", "products that cancel a little", "signs"])
def test_other_units_rounding_is_inside_the_sensitivity(kind: str, units: int) -> None:
    """In one float32 sum over all this moved by up to 21 clip norms when one unit left: the others' rounding."""
    blocks = spiteful_units(kind, units)
    shape = torch.Size((16,) if kind == "long and alike" else (6, 5))
    bounds = DrawBounds(most_units=units, units_per_block=UNITS_PER_BLOCK, rows_per_unit=1)

    def clipped(left_out: int | None) -> PrivateSum:
        parts = []
        for place, block in enumerate(blocks):
            usable = torch.ones(len(block.contributes), dtype=torch.bool)
            if left_out is not None and left_out // UNITS_PER_BLOCK == place:
                usable[left_out % UNITS_PER_BLOCK] = False
            parts.append(replace(block, usable=usable))  # type: ignore[type-var]
        return clip_and_sum(parts, groups=((0,),), clip_norms=(1.0,), shapes=[shape], bounds=bounds).sum

    full = clipped(None)
    assert full.values[0].dtype == torch.float64
    for unit in (0, 1, units // 2, units - 1):
        moved = assert_bounded(full, clipped(unit))
        assert moved > 0.9 or kind == "products that cancel"


def test_a_float32_block_moves_by_no_more_than_its_bound() -> None:
    """Rows that make float32 round upwards: what one row changes beyond itself, against `block_sum_rounding`."""
    rows, kinds = 256, 3
    generator = torch.Generator().manual_seed(2)
    left = 1.0 + torch.rand(kinds * rows, 4, generator=generator) * 2.0**-12
    right = 1.0 + torch.rand(kinds * rows, 3, generator=generator) * 2.0**-12
    bound = block_sum_rounding(units=rows, kinds=kinds, rows_per_unit=1)
    longest = float((left.double().norm(dim=1) * right.double().norm(dim=1)).view(kinds, rows).sum(dim=0).max())
    for unit in (0, 100, 255):
        theirs = torch.arange(kinds * rows) % rows == unit
        without = torch.where(theirs.unsqueeze(1), 0.0, left)
        moved = sum_in_blocks(left, right, Workspace()).double() - sum_in_blocks(without, right, Workspace()).double()
        own = left[theirs].double().T @ right[theirs].double()
        assert 0.0 < float((moved - own).norm()) <= bound * longest


def test_the_bound_on_rounding_is_divided_out_of_every_clip_norm() -> None:
    bounds = DrawBounds(most_units=10**9, units_per_block=8_192, rows_per_unit=4)
    rounding = sum_rounding(bounds)
    assert 0.5 < rounding < 100.0
    # What a usual step pays: its clip norms are shorter by less than a hundredth.
    assert sum_rounding(DrawBounds(most_units=1_224, units_per_block=256, rows_per_unit=1)) < 0.01
    unit = MaterialisedGradients((torch.full((1, 4), 1e3),), torch.ones(1, dtype=torch.bool))
    (value,) = clip_and_sum(
        [unit], groups=((0,),), clip_norms=(1.0,), shapes=[torch.Size((4,))], bounds=bounds
    ).sum.values
    assert float(value.norm()) * (1.0 + rounding) <= 1.0


def test_more_units_than_bounded_are_refused() -> None:
    unit = MaterialisedGradients((torch.ones(3, 4),), torch.ones(3, dtype=torch.bool))
    for bounds in (DrawBounds(2, 5, 1), DrawBounds(5, 2, 1)):
        with pytest.raises(ValueError, match="more units"):
            clip_and_sum([unit], groups=((0,),), clip_norms=(1.0,), shapes=[torch.Size((4,))], bounds=bounds)


@pytest.mark.parametrize("units", [1, 100, 20_000, 10**7])
@pytest.mark.parametrize("q", [1e-7, 1e-3, 0.1, 0.6, 1.0])
def test_a_draw_beyond_the_bound_never_happens(units: int, q: float) -> None:
    table = EncodedTable(np.zeros((0, 3), dtype=np.uint16), units, None, 1)
    method = make_canaries(order_for(q, 1), (SampledStepEvent(q, 1.0, None, 1),), table, 1, TableIdpgan)
    assert method.bounds.most_units >= q * units
    assert stats.binom.sf(method.bounds.most_units, units, q) < 1e-80


# -- the whole step, from the table on --------------------------------------------------------------------------------


def recorded(table: EncodedTable, damage: float | None, **knobs: Any) -> list[PrivateSum]:
    """Everything without noise that one run hands to `release`: label counts, then two steps' sums and histograms."""
    order = order_for(0.7, 2, condition_on="label", **knobs)
    histogram = 1.0 if order.thresholds.kind == "adaptive" else None
    events = (GaussianEvent("label_counts", 1e6), SampledStepEvent(0.7, 1.0, histogram, 2))
    method = make_canaries(order, events, table, 5, TableIdpgan)
    if damage is not None:
        with torch.no_grad():
            method.tensors[0][0, :] = damage
    with listening() as heard:
        method.measure()
        method.condition_frequencies = (0.5, 0.5)
        method.critic_step()
    return heard.sums


KNOBS = [
    pytest.param({}, None, id="fixed"),
    pytest.param({"thresholds": {"kind": "adaptive"}, "clusters": {"kind": "dbscan"}}, None, id="adaptive"),
    pytest.param({"critic_loss": "separate", "gradient_penalty": 0.0}, None, id="separate"),
    pytest.param({"thresholds": {"kind": "adaptive"}}, math.nan, id="NaN weights"),
    pytest.param({}, 1e30, id="overflow"),
    pytest.param(
        {
            "networks": {"noise_dimension": 4, "generator_hidden": [8], "critic_hidden": [4, 3], "pair_products": 6},
            "thresholds": {"kind": "adaptive"},
        },
        None,
        id="pair products",
    ),
]


@pytest.mark.parametrize(("knobs", "damage"), KNOBS)
@pytest.mark.parametrize("rows_per_unit", [1, 3, 70])
def test_every_private_sum_of_a_step(knobs: dict[str, Any], damage: float | None, rows_per_unit: int) -> None:
    table = random_table(12, rows_per_unit)
    full = recorded(table, damage, **knobs)
    for unit in range(0, 12, 2):
        for neighbour in neighbours(table, unit):
            others = recorded(neighbour, damage, **knobs)
            assert len(full) == len(others)
            for first, second in zip(full, others, strict=True):
                assert_bounded(first, second)


def test_rows_of_one_unit_do_not_move_the_others_by_a_single_bit() -> None:
    """Float32 results depend on shapes and places: they must be the same however many rows a unit has."""
    table = random_table(12, 3)
    first = make_canaries(order_for(1.0, 1), (SampledStepEvent(1.0, 1.0, None, 1),), table, 5, TableIdpgan)
    second = make_canaries(order_for(1.0, 1), (SampledStepEvent(1.0, 1.0, None, 1),), table, 5, TableIdpgan)
    second.table = with_rows_removed(table, 4)
    (whole,), (part,) = (list(method._per_unit_gradients(np.arange(12))) for method in (first, second))
    assert whole.contributes.all()
    assert part.contributes.tolist() == [unit != 4 for unit in range(12)]
    for unit in range(12):
        weights = torch.zeros(12, 5, dtype=torch.float64)
        weights[unit] = 1.0
        if unit != 4:
            assert torch.equal(whole.tensor_norms[unit], part.tensor_norms[unit])
            pairs = zip(whole.weighted_sum(weights), part.weighted_sum(weights), strict=True)
            assert all(torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("tensors", range(1, 20))
def test_histograms_of_any_number_of_tensors(tensors: int) -> None:
    norms = torch.logspace(-6, 6, 5 * tensors, dtype=torch.float64).reshape(5, tensors)
    for unit in range(5):
        moved = assert_bounded(
            norm_histogram(norms, EDGES), norm_histogram(torch.cat((norms[:unit], norms[unit + 1 :])), EDGES)
        )
        assert moved == pytest.approx(1.0)


@pytest.mark.parametrize("most", [1, 4])
def test_label_counts(most: int) -> None:
    generator = np.random.default_rng(3)
    counts = generator.integers(0, 9, size=20) if most > 1 else np.ones(20, dtype=np.int64)
    starts = np.concatenate(([0], np.cumsum(counts)))
    labels = generator.choice([0, 1, 2, ABSENT], size=starts[-1]).astype(np.uint16)
    labels[starts[0] : starts[1]] = 1
    bounds = {} if most == 1 else {"unit_starts": starts, "max_rows_per_unit": most}
    full = label_counts(labels, categories=3, **bounds)
    moved = 0.0
    for unit in range(20):
        zeroed = labels.copy()
        zeroed[starts[unit] : starts[unit + 1]] = ABSENT
        moved = max(moved, assert_bounded(full, label_counts(zeroed, categories=3, **bounds)))
    assert moved == 1.0


def test_no_one_present_sums_to_nothing() -> None:
    for rows_per_unit in (1, 3):
        for private in recorded(null_table(12, rows_per_unit=rows_per_unit), None, thresholds={"kind": "adaptive"}):
            assert not any(bool(value.any()) for value in private.values)
