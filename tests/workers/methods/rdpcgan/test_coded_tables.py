"""`rdpcgan`: all of the autoencoder gets noise, whatever a unit is moves a step by its clip norm, and codes become declared values."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest
import torch
from safetensors.torch import load

from bench.audit.worlds import DOMAIN, null_table
from service.methods.rdpcgan.order import RdpcganOrder
from service.privacy.events import GaussianEvent, SampledStepEvent
from service.samples.table.sampler import TableSampler
from tests.catalogue import case_of
from tests.exact_changes import squared_change
from tests.forced_outputs import Outputs, heard
from tests.neighbouring_tables import random_table, zeroed_out
from workers.encoding.table import EncodedTable
from workers.hooks import Hooks
from workers.mechanism.secure_random import SecureRandom
from workers.methods import labels
from workers.methods.idpgan import training
from workers.methods.idpgan.step_knobs import columns
from workers.methods.idpgan.step_knobs import step as shaped
from workers.methods.rdpcgan import coded
from workers.methods.rdpcgan.coded import CodedTables
from workers.plan import Plan
from workers.training import make_release

if TYPE_CHECKING:
    from workers.networks.table import TableGenerator

CPU = torch.device("cpu")
UNITS = 12


def order_for(q: float, **knobs: Any) -> RdpcganOrder:
    small = {"noise_dimension": 4, "generator_hidden": [8], "critic_hidden": [4, 3]}
    return RdpcganOrder.model_validate(
        {
            "method": "rdpcgan",
            "epsilon": 1.0,
            "sampling_probability": q,
            "steps": 3,
            "autoencoder": {"steps": 3, "latent": 4, "hidden": [6], "clip_norm": 0.7, **knobs.pop("autoencoder", {})},
            "networks": small,
            "device": "cpu",
            **knobs,
        }
    )


def run_of(order: RdpcganOrder, table: EncodedTable, *, noise: float = 1.0, steps: int = 6) -> CodedTables:
    torch.manual_seed(2)
    events: Any = (SampledStepEvent(order.sampling_probability or 1.0, noise, None, steps),)
    if order.condition_on is not None:
        events = (GaussianEvent("label_counts", 1e6), *events)
    return CodedTables(order, Plan(events), table, DOMAIN, SecureRandom.from_test_seed(5), CPU)


def through_both_phases(order: RdpcganOrder, table: EncodedTable, forced: Any = None) -> tuple[Outputs, CodedTables]:
    run = run_of(order, table)
    with heard(training, coded, labels, forced=forced) as outputs:
        run.measure()
        for _ in range(5):
            run.critic_step()
            if run.generator_is_due():
                run.generator_step()
    return outputs, run


@pytest.mark.parametrize("layers", ["perceptrons", "convolutions"])
@pytest.mark.parametrize("rows_per_unit", [1, 3, 70])
def test_given_the_same_outputs_a_unit_moves_each_sum_by_its_sensitivity_and_nothing_else(
    rows_per_unit: int, layers: str
) -> None:
    order = order_for(0.7, condition_on="label", critic_steps_per_generator_step=1, autoencoder={"layers": layers})
    table = random_table(UNITS, rows_per_unit)
    first, run = through_both_phases(order, table)
    assert len(first.sums) == 1 + 5
    moved = Fraction(0)
    for unit in range(0, UNITS, 3):
        others, other = through_both_phases(order, zeroed_out(table, unit), forced=first.noisy)
        for one, two in zip(first.sums, others.sums, strict=True):
            for change, sensitivity in zip(squared_change(one, two), one.sensitivities, strict=True):
                assert change <= Fraction(sensitivity) ** 2
                moved = max(moved, change / Fraction(sensitivity) ** 2)
        ours, theirs = run.checkpoint(), other.checkpoint()
        assert ours.values == theirs.values
        assert all(torch.equal(tensor, theirs.tensors[name]) for name, tensor in ours.tensors.items())
    assert moved > 0.9


def test_every_tensor_of_encoder_and_decoder_gets_the_noise_that_is_charged() -> None:
    run = run_of(order_for(1e-12, autoencoder={"steps": 60, "clip_norm": 0.7}), null_table(8), noise=2.0, steps=60)
    drawn: dict[str, list[torch.Tensor]] = {name: [] for name, _ in run.autoencoder.named_parameters()}
    for _ in range(60):
        run.critic_step()
        for name, tensor in run.autoencoder.named_parameters():
            assert tensor.grad is not None
            drawn[name].append(tensor.grad.flatten() * run.expected_units)
    assert {name.split(".")[0] for name in drawn} == {"encoder", "decoder"}
    for name, values in drawn.items():
        assert float(torch.cat(values).std()) == pytest.approx(2.0 * 0.7, rel=0.2), name


def test_a_draw_larger_than_a_block_is_one_sum() -> None:
    order = order_for(1.0)
    rng = np.random.default_rng(1)
    codes = np.stack([rng.integers(width, size=600) for width in DOMAIN.widths], axis=1).astype(np.uint16)
    table = EncodedTable(codes, 600, None, 1)
    run = run_of(order, table)
    assert [len(block.contributes) for block in run._reconstructions(np.arange(600))] == [256, 256, 88]


def test_an_autoencoder_without_noise_gives_rows_back() -> None:
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, 300)
    codes = np.stack([kind * 2, kind * 5, kind], axis=1).astype(np.uint16)
    order = order_for(0.5, autoencoder={"steps": 150, "clip_norm": 100.0, "learning_rate": 0.02})
    run = run_of(order, EncodedTable(codes, 300, None, 1), noise=1e-6, steps=150)
    for _ in range(150):
        run.critic_step()
    rows, _, _ = run._rows(np.arange(300))
    told = torch.split(run.autoencoder(rows), list(DOMAIN.widths), dim=1)
    given_back = np.stack([part.argmax(dim=1).numpy() for part in told], axis=1)
    assert (given_back == codes).mean() > 0.98


def test_the_decoder_stays_as_private_steps_left_it() -> None:
    run = run_of(order_for(0.5, critic_steps_per_generator_step=1), random_table(UNITS, 1))
    for _ in range(3):
        assert not run.generator_is_due()
        run.critic_step()
    left = {name: tensor.clone() for name, tensor in run.autoencoder.decoder.state_dict().items()}
    before = run.generator.inputs.weight.clone()
    for _ in range(3):
        run.critic_step()
        assert run.generator_is_due()
        run.generator_step()
    assert not torch.equal(before, run.generator.inputs.weight)
    for generator in (run.generator, run.averaged_generator):
        decoder = generator.output[2].state_dict()  # type: ignore[index]
        assert all(torch.equal(decoder[name], tensor) for name, tensor in left.items())


def test_a_label_says_nothing_of_a_row_until_the_critic_does() -> None:
    """Its random part of the first layer, through a trained decoder, was a relation with columns, in a sign of chance."""
    run = run_of(order_for(0.5, condition_on="label", critic_steps_per_generator_step=1), random_table(UNITS, 1))
    run.measure()
    for _ in range(3):
        run.critic_step()
    noise, labels_of_both = torch.randn(2, 1, 4).expand(2, 2, 4), torch.arange(2)
    for generator in (run.generator, run.averaged_generator):
        for one in noise:
            first, second = cast("TableGenerator", generator).free_logits(one, labels_of_both)
            assert torch.equal(first, second)
    for _ in range(3):
        run.critic_step()
        run.generator_step()
    first, second = run.generator.free_logits(noise[0], labels_of_both)
    assert not torch.equal(first, second)


@pytest.mark.parametrize(
    "knobs",
    [
        {"importance": {"groups": 2, "relevance": "bought"}},
        {"importance": {"groups": 2, "every_steps": 1}},
        {"subspace": {"rank": 2}, "memory": {}, "pre_clip_noise": 0.1, "critic_activation": {"kind": "tanh"}},
    ],
    ids=["bought", "generated", "subspace and more"],
)
def test_its_critic_has_the_knobs_of_the_private_step_by_events_that_are_priced(knobs: dict[str, Any]) -> None:
    case = case_of("rdpcgan", "table", private_step=knobs)
    plan = Plan(case.events)
    made: Any = make_release(case.order, plan, case.source(), SecureRandom(), Hooks())
    assert plan.steps_done == case.order.progress_steps
    assert all(bool(tensor.isfinite().all()) for tensor in made.generator.parameters())


def test_its_critic_looks_at_relevance_before_its_own_first_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its steps were counted from the autoencoder's first."""
    run = run_of(order_for(0.5, private_step={"importance": {"groups": 2}}), random_table(UNITS, 1))
    looks: list[int] = []

    def relevance_of(*given: Any) -> torch.Tensor:
        looks.append(run.plan.steps_done)
        return columns.relevance_of(*given)

    monkeypatch.setattr(shaped, "relevance_of", relevance_of)
    for _ in range(6):
        run.critic_step()
    assert looks == [4]  # at the event of the critic's first step, which comes after three of the autoencoder


@pytest.mark.parametrize("condition", ["colour", None])
def test_rows_are_of_the_declared_domain_and_no_encoder_is_published(condition: str | None) -> None:
    case = case_of("rdpcgan", "table", condition_on=condition, purpose=None if condition else "tables")
    made = make_release(case.order, Plan(case.events), case.source(), SecureRandom(), Hooks())
    files = made.files(schema=case.schema, certificate={}, order={})
    names = load(files["generator.safetensors"]).keys()
    assert names
    assert not [name for name in names if "encoder" in name]
    sampler = TableSampler.from_files(json.loads(files["config.json"]), files["generator.onnx"])
    drawn: dict[str, list[Any]] = {"colour": [], "size": [], "weight": []}
    for chunk in sampler.chunks(2_000, seed=3):
        for name, values in chunk.items():
            drawn[name] += list(values)
    assert set(drawn["colour"]) <= {"red", "green", "blue"}
    assert {int(value) for value in drawn["size"]} <= set(range(10))
    assert all(value is None or 0.0 <= float(value) <= 10.0 for value in drawn["weight"])


def test_a_run_goes_on_in_either_phase() -> None:
    order, table = order_for(0.5, critic_steps_per_generator_step=1), random_table(UNITS, 1)
    for stop in (2, 4):
        first = run_of(order, table)
        for _ in range(stop):
            first.critic_step()
        again = run_of(order, table)
        again.restore(first.checkpoint())
        assert again.plan.steps_done == stop
        kept = again.checkpoint().tensors
        assert all(torch.equal(kept[name], tensor) for name, tensor in first.checkpoint().tensors.items())
        while again.plan.steps_done < 6:
            again.critic_step()
