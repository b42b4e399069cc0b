"""Knobs of the private step in a run: sensitivities on neighbours, maps that learn from releases alone, noise as priced, resuming."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from scipy import optimize

from service.domain.shapes import ImageShape
from service.methods.catalogue import parse_order
from service.methods.idpgan.order import IdpganOrder
from service.methods.idpgan.private_step import PrivateStep
from service.privacy.events import GaussianEvent, SampledStepEvent
from tests.exact_changes import squared_change
from tests.orders import resolve_order
from tests.tiny_generators import MIXED, domain_of
from workers.checkpoints import Checkpoint
from workers.encoding.images import EncodedImages
from workers.encoding.table import ABSENT, EncodedTable
from workers.engines.held import HeldGradients
from workers.hooks import UNATTENDED
from workers.mechanism import DrawBounds, sampling
from workers.mechanism.noise import allocate
from workers.mechanism.secure_random import SecureRandom
from workers.methods.idpgan import training
from workers.methods.idpgan.step_knobs import columns
from workers.methods.idpgan.step_knobs import step as shaped
from workers.methods.idpgan.step_knobs.bought import relevance_sum
from workers.methods.idpgan.step_knobs.step import ShapedStep
from workers.methods.idpgan.step_knobs.subspace import Subspace, funk_svd
from workers.methods.idpgan.tables import TableIdpgan
from workers.methods.interface import run_class
from workers.numerics.workspace import Workspace
from workers.plan import Plan, StepNotOnPlan
from workers.sources import GivenImages

DOMAIN = domain_of(MIXED)
KNOBS: dict[str, dict[str, Any]] = {
    "tanh": {"critic_activation": {"kind": "tanh"}},
    "pre_clip_noise": {"pre_clip_noise": 0.2},
    "sparse by coins": {"sparse": {"share": 0.3}},
    "sparse by coins of the run": {"sparse": {"share": 0.3, "chosen_by": "coins_of_the_run"}},
    "sparse by weights": {"sparse": {"share": 0.3, "chosen_by": "weights"}},
    "memory": {"memory": {"share": 0.2}},
    "scale": {"scale": {"decay": 0.5}},
    "subspace": {"subspace": {"rank": 3, "every_steps": 2}},
    "subspace alone, coins": {"subspace": {"rank": 3, "residual": False, "source": "random"}},
    "importance": {"importance": {"groups": 3, "every_steps": 2}},
    "importance, bought": {"importance": {"groups": 3, "relevance": "bought"}},
}
MAPS = [name for name in KNOBS if name not in {"tanh", "memory", "pre_clip_noise"}]
NOISE = 0.5


def make_table(rows: int = 30, rows_per_unit: int = 1) -> EncodedTable:
    generator = np.random.default_rng(1)
    codes = np.stack([generator.integers(width, size=rows) for width in DOMAIN.widths], axis=1).astype(np.uint16)
    starts = None if rows_per_unit == 1 else np.arange(0, rows + 1, rows_per_unit, dtype=np.int64)
    return EncodedTable(codes, rows // rows_per_unit, starts, rows_per_unit)


def without_unit(table: EncodedTable, unit: int) -> EncodedTable:
    codes, most = table.codes.copy(), table.max_rows_per_unit
    codes[unit * most : (unit + 1) * most] = ABSENT
    return EncodedTable(codes, table.units, table.unit_starts, most)


def begin(
    name: str, table: EncodedTable, *, events: tuple[Any, ...] | None = None, measured: bool = True, **knobs: Any
) -> TableIdpgan:
    order = IdpganOrder.model_validate(
        {
            "method": "idpgan",
            "epsilon": 1.0,
            "sampling_probability": 1.0,
            "steps": 10,
            "networks": {"noise_dimension": 4, "generator_hidden": [8], "critic_hidden": [6, 5]},
            "private_step": KNOBS[name],
            **knobs,
        }
    )
    histogram = NOISE if order.thresholds.kind == "adaptive" else None
    bought = (GaussianEvent("relevance", NOISE),) if "bought" in name else ()
    plan = Plan((*bought, SampledStepEvent(1.0, NOISE, histogram, 10)) if events is None else events)
    torch.manual_seed(3)
    run = TableIdpgan(order, plan, table, DOMAIN, SecureRandom.from_test_seed(1), torch.device("cpu"))
    if measured:
        run.measure()
    return run


def state_of(run: TableIdpgan) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in run.step.tensors().items()}


@pytest.mark.parametrize("loss", ["paired", "separate"])
@pytest.mark.parametrize("rows_per_unit", [1, 3])
@pytest.mark.parametrize("name", KNOBS)
def test_a_unit_moves_what_is_released_by_its_sensitivity_at_most(
    name: str, rows_per_unit: int, loss: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After three steps on the same table, so that the maps have learnt; the same coins on both sides."""
    table, sums = make_table(rows_per_unit=rows_per_unit), []
    plain_release = training.release

    def keeping(private: Any, **rest: Any) -> Any:
        if "allocation" in rest:
            sums.append((private, rest["noise_multiplier"]))
        return plain_release(private, **rest)

    monkeypatch.setattr(training, "release", keeping)
    last = []
    for neighbour in (table, without_unit(table, 2), without_unit(table, 7)):
        run = begin(name, table, critic_loss=loss)
        for _ in range(3):
            run.critic_step()
        run.table = neighbour
        torch.manual_seed(5)
        run.critic_step()
        last.append(sums[-1])
    assert {noise for _, noise in sums} == {NOISE}  # as priced, whatever came before the clipping
    moved = []
    for private, _ in last[1:]:
        changes = squared_change(last[0][0], private)
        for change, sensitivity in zip(changes, private.sensitivities, strict=True):
            assert change <= Fraction(sensitivity) ** 2
            moved.append(math.sqrt(change) / sensitivity)
    assert max(moved) > 0.01  # a unit does count


@pytest.mark.parametrize("name", MAPS)
def test_a_map_is_linear_unit_by_unit_and_learns_nothing_from_what_was_not_released(name: str) -> None:
    run = begin(name, make_table())
    run.critic_step()
    step, before = run.step, state_of(run)
    generator = torch.Generator().manual_seed(2)
    first, second = ([torch.randn(4, *tensor.shape, generator=generator) for tensor in run.tensors] for _ in range(2))
    together = step.map.forward([a + b for a, b in zip(first, second, strict=True)])
    for whole, a, b in zip(together, step.map.forward(first), step.map.forward(second), strict=True):
        assert torch.allclose(whole, a + b, atol=1e-4)
    alone = step.map.forward([gradient[1:2] for gradient in first])
    for one, all_of_them in zip(alone, step.map.forward(first), strict=True):
        assert torch.allclose(one[0], all_of_them[1], atol=1e-5)
    step.seen(
        HeldGradients(tuple(100.0 * g for g in first), torch.ones(4, dtype=torch.bool), Workspace()), run.clip_groups
    )
    for key, tensor in state_of(run).items():
        assert torch.equal(tensor, before[key])
    assert [tuple(block.shape[1:]) for block in alone] == [tuple(shape) for shape in step.shapes]


@pytest.mark.parametrize("name", KNOBS)
def test_two_runs_on_different_rows_with_the_same_releases_have_the_same_maps(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is released is replaced; then nothing of the state may depend on the rows."""

    def constant(private: Any, **_rest: Any) -> Any:
        return tuple(torch.full_like(value, 0.1).cumsum(0) for value in private.values)

    monkeypatch.setattr(training, "release", constant)
    states = []
    for rows in (make_table(), without_unit(without_unit(make_table(), 0), 1)):
        run = begin(name.replace(", bought", ""), rows)
        for _ in range(3):
            run.critic_step()
        forward = run.step.map.forward([tensor.detach().unsqueeze(0) for tensor in run.tensors])
        states.append([*state_of(run).values(), *forward])
    for one, other in zip(*states, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("name", KNOBS)
def test_a_run_goes_on_where_its_checkpoint_was_taken(name: str) -> None:
    run = begin(name, make_table())
    for _ in range(3):
        run.critic_step()
    saved = Checkpoint.from_bytes(run.checkpoint().to_bytes())
    later = begin(name, make_table(), measured=False)
    later.restore(saved)
    for key, tensor in state_of(run).items():
        assert torch.equal(tensor, state_of(later)[key])
    assert later.step.shapes == run.step.shapes
    later.critic_step()
    assert later.plan.steps_done == 4


@pytest.mark.parametrize(("every", "looks"), [(100, [0]), (2, [0, 2, 4])])
def test_generated_relevance_is_looked_at_before_the_first_step_and_as_often_as_ordered(
    every: int, looks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events are taken first, so the first look once came at step `every_steps`: an order of fewer steps had none. A resumed run looks when one that never stopped does."""
    monkeypatch.setitem(KNOBS, "importance", {"importance": {"groups": 3, "every_steps": every}})
    found: list[int] = []
    drawn_with: list[torch.Tensor] = []
    run = begin("importance", make_table())

    def relevance_of(*given: Any) -> torch.Tensor:
        found.append(run.plan.steps_done - 1)
        return columns.relevance_of(*given)

    def poisson_sample(**given: Any) -> np.ndarray:
        drawn_with.append(run.step.tensors()["step_map.relevance"].clone())
        return sampling.poisson_sample(**given)

    monkeypatch.setattr(shaped, "relevance_of", relevance_of)
    monkeypatch.setattr(training, "poisson_sample", poisson_sample)
    for _ in range(3):
        run.critic_step()
    saved = run.checkpoint()
    run = begin("importance", make_table(), measured=False)
    run.restore(saved)
    for _ in range(2):
        run.critic_step()
    assert found == looks
    assert not any(torch.equal(relevance, torch.ones_like(relevance)) for relevance in drawn_with)


@pytest.mark.parametrize("source", ["released", "random"])
def test_the_first_basis_is_of_public_coins_and_the_next_comes_with_its_step(source: str) -> None:
    run = begin("subspace", make_table(), private_step={"subspace": {"rank": 3, "every_steps": 2, "source": source}})
    assert isinstance(run.step.map, Subspace)
    first, same = run.step.map.bases[0].clone(), []
    for _ in range(3):
        run.critic_step()
        same.append(torch.equal(run.step.map.bases[0], first))
    assert same == [True, True, False]


def test_bought_relevance_is_charged_before_it_is_read() -> None:
    name = "importance, bought"
    run = begin(name, make_table())
    assert run.plan.position == begin(name, make_table()).plan.position
    with pytest.raises(StepNotOnPlan):
        begin(name, make_table(), events=(SampledStepEvent(1.0, NOISE, NOISE, 10),))
    assert not torch.equal(state_of(run)["step_map.relevance"], torch.ones(sum(DOMAIN.widths)))


def test_relevance_that_is_bought_moves_by_its_clip_norm_at_most() -> None:
    relevance = torch.rand(9, 5, generator=torch.Generator().manual_seed(1)) * torch.logspace(-3, 9, 9).unsqueeze(1)
    usable, bounds = torch.ones(9, dtype=torch.bool), DrawBounds(9, 9, 1)
    full = relevance_sum([(relevance, usable)], inputs=5, clip_norm=0.7, bounds=bounds)
    for unit in range(9):
        there = usable.clone()
        there[unit] = False
        without = relevance_sum([(relevance, there)], inputs=5, clip_norm=0.7, bounds=bounds)
        (change,) = squared_change(full, without)
        assert change <= Fraction(full.sensitivities[0]) ** 2


def test_noise_by_importance_is_the_least_weighted_noise_at_the_same_price() -> None:
    c, sizes, weights = [0.3, 1.0, 2.0], [40, 7, 300], [3.0, 1.0, 0.05]
    weighted = [w * d for w, d in zip(weights, sizes, strict=True)]
    found = allocate(c, weighted, noise_multiplier=1.3, allocation="least_noise")
    assert sum((a / s) ** 2 for a, s in zip(c, found, strict=True)) == pytest.approx(1.3**-2)

    def total(logs: np.ndarray) -> float:
        raw = np.exp(logs)
        scale = 1.3 * math.sqrt(sum((a / s) ** 2 for a, s in zip(c, raw, strict=True)))
        return float(sum(w * (s * scale) ** 2 for w, s in zip(weighted, raw, strict=True)))

    best = optimize.minimize(total, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-9}).fun
    assert sum(w * s * s for w, s in zip(weighted, found, strict=True)) == pytest.approx(best, rel=1e-4)


@pytest.mark.parametrize(("rank", "residual"), [(3, True), (50, True), (50, False)])
def test_a_subspace_gives_back_what_it_was_given(rank: int, residual: bool) -> None:
    """At full rank without a residual it is a rotation: lengths stay, so that rotated noise is noise of the same law."""
    tensors = [torch.zeros(6, 11), torch.zeros(6), torch.zeros(1, 6)]
    step = ShapedStep(PrivateStep.model_validate({"subspace": {"rank": rank, "residual": residual}}), tensors)
    gradients = [torch.randn(4, *tensor.shape) for tensor in tensors]
    blocks = step.map.forward(gradients)
    back = step.map.back([block[2] for block in blocks])
    for gradient, found in zip(gradients, back, strict=True):
        assert torch.allclose(gradient[2], found, atol=1e-5)
    if not residual:
        for gradient, block in zip(gradients, blocks, strict=True):
            assert torch.allclose(gradient.flatten(1).norm(dim=1), block.flatten(1).norm(dim=1), atol=1e-5)


def test_a_basis_follows_what_was_released() -> None:
    tensors = [torch.zeros(8, 20)]
    step = ShapedStep(PrivateStep.model_validate({"subspace": {"rank": 2, "every_steps": 3, "ridge": 1e-6}}), tensors)
    assert isinstance(step.map, Subspace)
    generator = torch.Generator().manual_seed(0)
    low_rank = torch.randn(8, 2, generator=generator) @ torch.randn(2, 20, generator=generator)
    first = step.map.bases[0].clone()
    for number in range(1, 4):
        step.applied([block[0] for block in step.map.forward([low_rank.unsqueeze(0)])])
        step.map.prepare(number, tensors)
        assert torch.equal(step.map.bases[0], first) == (number < 3)
    basis = step.map.bases[0]
    assert torch.allclose(basis.T @ basis, torch.eye(2), atol=1e-5)
    assert float((low_rank - low_rank @ basis @ basis.T).norm() / low_rank.norm()) < 1e-3


def test_a_funk_svd_of_full_rank_is_exact() -> None:
    generator = torch.Generator().manual_seed(0)
    matrix = torch.randn(5, 9, generator=generator, dtype=torch.float64)
    left, right = funk_svd(matrix, torch.randn(5, 9, generator=generator, dtype=torch.float64), ridge=0.0)
    assert float((matrix - left @ right).abs().max()) < 1e-6


def test_sparse_updates_touch_what_was_chosen_alone() -> None:
    weights = torch.tensor([[3.0, -5.0, 0.1, 0.2]])
    step = ShapedStep(PrivateStep.model_validate({"sparse": {"share": 0.5, "chosen_by": "weights"}}), [weights])
    step.map.prepare(4, [weights])
    assert step.map.kept([torch.ones(1, 4)])[0].tolist() == [[1.0, 1.0, 0.0, 0.0]]
    drawn = ShapedStep(PrivateStep.model_validate({"sparse": {"share": 0.1}}), [torch.zeros(30, 10)])
    masks = []
    for number in (1, 2, 1):
        drawn.map.prepare(number, [torch.zeros(30, 10)])
        masks.append(drawn.map.kept([torch.ones(30, 10)])[0])
    assert int(masks[0].sum()) == 30
    assert torch.equal(masks[0], masks[2])
    assert not torch.equal(masks[0], masks[1])


def test_no_unit_of_a_scale_is_nothing() -> None:
    """A coordinate of which nothing was released, and a least unit that is 0 in float32."""
    knob = {"scale": {"decay": 0.0, "smallest": 1e-300}}
    step = ShapedStep(PrivateStep.model_validate(knob), [torch.zeros(1, 3)])
    step.applied([torch.tensor([[0.0, 1.0, 2.0]])])
    assert step.map.kept([torch.ones(1, 3)])[0].flatten().tolist() == pytest.approx([1.0, 1.0, 1.0])


def test_memory_applies_the_largest_and_loses_nothing() -> None:
    step = ShapedStep(PrivateStep.model_validate({"memory": {"share": 0.25}}), [torch.zeros(4, 5), torch.zeros(4)])
    generator = torch.Generator().manual_seed(0)
    released, applied = [torch.zeros(24)], [torch.zeros(24)]
    for _ in range(5):
        gradients = [torch.randn(4, 5, generator=generator), torch.randn(4, generator=generator)]
        released.append(torch.cat([g.flatten() for g in gradients]))
        applied.append(torch.cat([g.flatten() for g in step.applied(gradients)]))
        assert int((applied[-1] != 0).sum()) == 6
        carried = torch.cat([g.flatten() for g in step.carried])
        assert torch.allclose(sum(applied) + carried, sum(released), atol=1e-5)
        assert applied[-1][applied[-1] != 0].abs().min() >= carried.abs().max()


def test_noise_before_clipping_is_of_each_unit_and_its_clip_norm() -> None:
    run = begin(
        "pre_clip_noise", make_table(), thresholds={"kind": "fixed", "clip_norm": 0.5}, clusters={"kind": "none"}
    )
    zeros = HeldGradients(
        tuple(torch.zeros(60, *t.shape) for t in run.tensors), torch.ones(60, dtype=torch.bool), Workspace()
    )
    seen = run.step.seen(zeros, run.clip_groups)
    assert isinstance(seen, HeldGradients)
    noise = torch.cat([block.flatten() for block in seen.gradients])
    assert float(noise.std()) == pytest.approx(0.2 * run.clip_groups.clip_norms[0], rel=0.05)


@pytest.mark.parametrize(
    ("method", "layers", "name", "engine"),
    [
        ("dpgan", "perceptrons", "tanh", "in_full"),
        ("dpgan", "convolutions", "subspace", "vmap"),
        ("ganobfuscator", "perceptrons", "importance", "in_full"),
        ("ganobfuscator", "perceptrons", "subspace", "in_full"),
        ("dpacgan", "perceptrons", "scale", "vmap"),
        ("idpgan", "convolutions", "tanh", "vmap"),
    ],
)
def test_every_generator_trained_by_steps_has_the_knobs(method: str, layers: str, name: str, engine: str) -> None:
    shape = ImageShape(8, 8, 1, 3)
    ordered = {"method": method, "epsilon": 1.0, "sampling_probability": 0.5, "steps": 2, "private_step": KNOBS[name]}
    small = {"critic_hidden": [6], "generator_hidden": [6], "critic_channels": [2], "generator_channels": [2]}
    ordered |= {"image_networks": {"layers": layers, **small}}
    ordered |= {"warm_start": {"kind": "none"}} if method == "idpgan" else {}
    order = resolve_order(parse_order(ordered), units=40, shape=shape)
    generator = np.random.default_rng(0)
    pixels = generator.integers(0, 256, (40, 64)).astype(np.uint8)
    source = GivenImages(EncodedImages(pixels, np.arange(40) % 3, (8, 8, 1), 3))
    histogram = NOISE if order.thresholds.kind == "adaptive" else None
    plan = Plan((GaussianEvent("label_counts", NOISE), SampledStepEvent(0.5, NOISE, histogram, 2)))
    run: Any = run_class(order)(order, plan, source, SecureRandom.from_test_seed(1), torch.device("cpu"))
    run.measure()
    released = run.finish(UNATTENDED)
    assert released.engine == engine
    assert all(bool(tensor.isfinite().all()) for tensor in released.generator.parameters())
