"""Tables that begin from public rows, and masks that are found there: what is read, what it costs, what is clipped and released."""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np
import pytest
import torch

from service.base.errors import InvalidOrder
from service.domain.alike import first_difference
from service.domain.shapes import ImageShape, TableShape
from service.domain.table_schema import TableSchema
from service.methods.catalogue import check_order, parse_order
from service.privacy.events import GaussianEvent, SampledStepEvent
from tests.neighbouring_tables import zeroed_out
from tests.orders import BUDGET, price_order, resolve_order
from workers.checkpoints import Checkpoint
from workers.encoding.images import EncodedImages
from workers.encoding.table import EncodedTable, TableDomain
from workers.hooks import Hooks
from workers.mechanism.secure_random import SecureRandom
from workers.methods.idpgan import training
from workers.methods.interface import run_class
from workers.plan import Plan
from workers.sources import GivenImages, GivenTable

pytestmark = pytest.mark.slow

COLOURS = ["r", "g", "b"]
METHODS = ["idpgan", "dpgan", "ganobfuscator"]
ID = str(uuid.UUID(int=7))
NETWORKS = {"noise_dimension": 4, "generator_hidden": [16], "critic_hidden": [12, 8]}


def schema_of(**changed: Any) -> TableSchema:
    size = {"name": "size", "type": "integer", "constraints": {"minimum": 0, "maximum": 5, "required": True}}
    number = {"name": "much", "type": "number", "constraints": {"minimum": 0, "maximum": 1}, "bins": 4}
    colour = {"name": "colour", "type": "string", "constraints": {"enum": COLOURS, "required": True}}
    fields = {"colour": colour, "size": size, "much": number}
    return TableSchema.model_validate(
        {"fields": [{**field, **changed.get(name, {})} for name, field in fields.items()]}
    )


DOMAIN = TableDomain.from_schema(schema_of(), numeric_bins=8)


def table_of(code: int, rows: int = 40, most: int = 1) -> EncodedTable:
    """Rows whose first column is always the same."""
    rng = np.random.default_rng(code)
    codes = np.stack([rng.integers(width, size=rows) for width in DOMAIN.widths], axis=1).astype(np.uint16)
    codes[:, 0] = code
    starts = None if most == 1 else np.arange(0, rows + 1, most, dtype=np.int64)
    return EncodedTable(codes, rows // most, starts, most)


def order_of(method: str, **knobs: Any) -> Any:
    ordered = {"method": method, "epsilon": 1.0, "sampling_probability": 0.5, "steps": 4, "public_dataset": ID}
    ordered |= {"public_steps": 40, "critic_steps_per_generator_step": 2, "networks": NETWORKS, **knobs}
    if method == "idpgan":
        ordered |= {"thresholds": {"kind": "fixed"}, "noise_decay": {"kind": "constant"}}
    shape = TableShape(dict(zip(DOMAIN.names, DOMAIN.widths, strict=True)))
    return resolve_order(parse_order(ordered), units=40, shape=shape)


def plan(noise: float = 1e-9) -> Plan:
    return Plan((SampledStepEvent(0.5, noise, None, 4),))


def run_of(method: str, private: EncodedTable, public: EncodedTable, *, noise: float = 1e-9, **knobs: Any) -> Any:
    source = GivenTable(private, DOMAIN, given_public=(public, DOMAIN))
    order = order_of(method, **knobs)
    run: Any = run_class(order)(order, plan(noise), source, SecureRandom.from_test_seed(1), torch.device("cpu"))
    run.measure()
    return run


def begun(method: str, private: EncodedTable, public: EncodedTable, **knobs: Any) -> Any:
    run = run_of(method, private, public, **knobs)
    run.gan.warm_up(lambda _share: None)
    return run


def weights(run: Any) -> torch.Tensor:
    parts = [*run.gan.generator.parameters(), *run.gan.critic.parameters()]
    return torch.cat([part.detach().flatten() for part in parts])


@pytest.mark.parametrize("method", METHODS)
def test_networks_begin_from_public_rows_and_no_private_one(method: str) -> None:
    first = begun(method, table_of(0), table_of(2))
    assert (first.gan.table.codes[:, 0] == 0).all(), "the private ones are back in their place"
    assert first.plan.position == 0
    assert not torch.equal(weights(first), weights(run_of(method, table_of(0), table_of(2))))
    assert torch.equal(weights(first), weights(begun(method, table_of(1), table_of(2))))
    assert not torch.equal(weights(first), weights(begun(method, table_of(0), table_of(1))))


@pytest.mark.parametrize("most", [1, 4])
def test_the_generator_learns_what_public_rows_look_like(most: int) -> None:
    faster = {"critic_learning_rate": 1e-2, "generator_learning_rate": 1e-2}
    run = begun("idpgan", table_of(0), table_of(2, most=most), public_steps=200, optimizer=faster)
    assert run.gan.public.units == 40, "each row by itself"
    logits = run.gan.averaged_generator(torch.randn(200, 4))
    assert float(logits[:, :3].softmax(dim=1)[:, 2].mean()) > 0.7


@pytest.mark.parametrize("method", METHODS)
def test_no_price_changes(method: str) -> None:
    elsewhere = {"warm_start": {"kind": "none"}} if method == "idpgan" else {}
    without = price_order(order_of(method, public_dataset=None, **elsewhere), units=40, budget=BUDGET)
    for knobs in ({}, {"public_mask_share": 0.2}, {"public_steps": 7}):
        found = price_order(order_of(method, **knobs), units=40, budget=BUDGET)
        assert (found.events, found.shares) == (without.events, without.shares)


# -- masks


def places_of(run: Any) -> torch.Tensor:
    return torch.cat(run.gan.step.map.places)


@pytest.mark.parametrize("method", METHODS)
def test_a_mask_comes_from_public_rows_alone(method: str) -> None:
    first = begun(method, table_of(0), table_of(2), public_mask_share=0.2)
    other_private = begun(method, table_of(1), table_of(2), public_mask_share=0.2)
    other_public = begun(method, table_of(0), table_of(1), public_mask_share=0.2)
    assert torch.equal(places_of(first), places_of(other_private))
    assert torch.equal(weights(first), weights(other_private))
    assert not torch.equal(places_of(first), places_of(other_public))


@pytest.mark.parametrize("method", METHODS)
def test_outside_the_mask_the_critic_keeps_its_first_weights(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    noised: list[list[torch.Size]] = []

    def release(total: Any, **how: Any) -> Any:
        noised.append([tensor.shape for tensor in total.values])
        return original(total, **how)

    original = training.release
    monkeypatch.setattr(training, "release", release)
    bound = {"critic_weight_bound": 0.2}
    first = run_of(method, table_of(0), table_of(2), public_mask_share=0.2, **bound)
    initial = [tensor.detach().clamp(-0.2, 0.2).clone() for tensor in first.gan.tensors]
    of_generator = [tensor.detach().clone() for tensor in first.gan.generator.parameters()]
    first.gan.warm_up(lambda _share: None)
    assert all(torch.equal(now, was) for now, was in zip(first.gan.tensors, initial, strict=True)), "gone back"
    assert all(torch.equal(a, b) for a, b in zip(first.gan.generator.parameters(), of_generator, strict=True))
    assert first.gan.generator_steps == 0
    first.finish(Hooks())
    changed: list[torch.Tensor] = []
    counts = [-(-tensor.numel() // 5) for tensor in first.gan.tensors]
    assert noised == [[torch.Size((count,)) for count in counts]] * 4
    for now, was, places in zip(first.gan.tensors, initial, first.gan.step.map.places, strict=True):
        is_masked = torch.zeros(now.numel(), dtype=torch.bool).index_fill_(0, places, value=True).view_as(now)
        assert torch.equal(now[~is_masked], was[~is_masked])
        changed.append(now[is_masked] != was[is_masked])
    assert torch.cat(changed).float().mean() > 0.3, "but for those at their bound"


def test_a_mask_is_of_the_weights_that_became_largest() -> None:
    masked = begun("idpgan", table_of(0), table_of(2), public_mask_share=0.2)
    plain = begun("idpgan", table_of(0), table_of(2), critic_weight_bound=masked.gan.order.critic_weight_bound)
    for places, trained in zip(masked.gan.step.map.places, plain.gan.tensors, strict=True):
        sizes = trained.detach().abs().flatten()
        rest = np.setdiff1d(np.arange(len(sizes)), places.numpy())
        assert len(rest) == 0 or sizes[places].min() >= sizes[rest].max()


def test_a_pruned_critic_is_zero_outside_its_mask() -> None:
    kept = begun("idpgan", table_of(0), table_of(2), public_mask_share=0.2)
    pruned = begun("idpgan", table_of(0), table_of(2), public_mask_share=0.2, public_mask_rest="zero")
    assert torch.equal(places_of(pruned), places_of(kept))
    pruned_first = [tensor.detach().clone() for tensor in pruned.gan.tensors]
    pruned.gan.critic_step()
    for now, was, of_kept, places in zip(
        pruned.gan.tensors, pruned_first, kept.gan.tensors, pruned.gan.step.map.places, strict=True
    ):
        is_masked = torch.zeros(now.numel(), dtype=torch.bool).index_fill_(0, places, value=True).view_as(now)
        assert torch.equal(was[is_masked], of_kept[is_masked]), "the mask has its first weights"
        assert not now[~is_masked].any()


@pytest.mark.parametrize(
    ("method", "knobs", "bound"),
    [
        ("idpgan", {}, 0.1),
        ("idpgan", {"public_mask_share": 0.2}, 0.5),
        ("idpgan", {"public_mask_share": 0.2, "critic_weight_bound": 0.1}, 0.1),
        ("idpgan", {"public_mask_share": 0.2, "critic_weight_bound": None}, None),
        ("idpgan", {"public_mask_share": 1e-6}, 1e3),
        ("dpgan", {}, 0.05),
        ("dpgan", {"public_mask_share": 0.2}, 0.25),
        ("ganobfuscator", {"public_mask_share": 0.2}, None),
    ],
)
def test_fewer_weights_get_a_wider_bound_unless_one_is_ordered(
    method: str, knobs: dict[str, Any], bound: float | None
) -> None:
    order = order_of(method, **knobs)
    assert order.critic_weight_bound == (bound if bound is None else pytest.approx(bound))
    shape = TableShape(dict(zip(DOMAIN.names, DOMAIN.widths, strict=True)))
    stored = parse_order(order.model_dump(mode="json"))
    assert resolve_order(stored, units=40, shape=shape).critic_weight_bound == order.critic_weight_bound


@pytest.mark.parametrize("share", [0.2, 0.5])
def test_a_pruned_critic_may_be_as_steep_as_a_whole_one(share: float) -> None:
    """The penalty wants slopes of 1. Every kept weight at the usual bound of 0.1 gives 0.5 at a fifth, and the critic learned nothing."""

    def steepest(**knobs: Any) -> float:
        wide = {"critic_hidden": [64, 64], "generator_hidden": [8]}
        ordered = {"method": "idpgan", "epsilon": 10.0, "sampling_probability": 0.01, "steps": 1, "public_dataset": ID}
        sizes = {"layers": "perceptrons", **wide}
        document = parse_order({**ordered, "public_steps": 3, "image_networks": sizes, **knobs})
        order = resolve_order(document, units=60_000, shape=ImageShape(14, 14, 1, 10))
        pixels = np.random.default_rng(0).integers(0, 256, (30, 196)).astype(np.uint8)
        images = EncodedImages(pixels, np.arange(30) % 10, (14, 14, 1), 10)
        events = Plan((GaussianEvent("label_counts", 1e6), SampledStepEvent(0.01, 1.0, 1.0, 1)))
        source, randomness = GivenImages(images, given_public=images), SecureRandom.from_test_seed(1)
        run: Any = run_class(order)(order, events, source, randomness, torch.device("cpu"))
        run.measure()
        run.gan.warm_up(lambda _share: None)
        critic, bound = run.gan.critic, order.critic_weight_bound
        with torch.no_grad():
            for tensor in run.gan.tensors:
                tensor.copy_(torch.where(tensor == 0.0, 0.0, bound) if order.mask_share else torch.tensor(bound))
        record = torch.zeros(1, 206, requires_grad=True)
        (slope,) = torch.autograd.grad(critic(record).sum(), record)
        return float(slope.norm())

    pruned = steepest(public_mask_share=share, public_mask_rest="zero")
    assert pruned > 0.3 * steepest()


def clipped_sum(run: Any, units: np.ndarray, clip_norm: float) -> torch.Tensor:
    """What a step would add noise to, if these units were drawn; the same fakes each time."""
    torch.manual_seed(0)
    run.gan.randomness = SecureRandom.from_test_seed(5)
    total = training.clip_and_sum(
        run.gan._per_unit_gradients(units),
        groups=(tuple(range(len(run.gan.tensors))),),
        clip_norms=(clip_norm,),
        shapes=run.gan.step.shapes,
        bounds=run.gan.bounds,
        device=torch.device("cpu"),
    ).sum
    return torch.cat([tensor.flatten().double() for tensor in total.values])


def test_the_masked_gradient_is_what_is_clipped() -> None:
    """Not the whole one: clipped by the whole gradient's norm, a unit would add less than its clip norm."""
    bound = {"critic_weight_bound": 0.1}
    run = begun("idpgan", table_of(0), table_of(2), public_mask_share=0.2, **bound)
    whole = begun("idpgan", table_of(0), table_of(2), public_mask_share=1.0, **bound)
    one = np.array([3])
    masked = clipped_sum(run, one, 30.0)
    everything = clipped_sum(whole, one, 30.0)
    assert float(everything.norm()) < 29.0, "neither is clipped"
    assert masked.norm() < everything.norm()
    places = [
        places + start
        for places, start in zip(
            run.gan.step.map.places,
            np.cumsum([0, *(tensor.numel() for tensor in run.gan.tensors)])[:-1].tolist(),
            strict=True,
        )
    ]
    torch.testing.assert_close(masked, everything[torch.cat(places)])
    clip_norm = float(masked.norm()) / 2.0
    clipped = clipped_sum(run, one, clip_norm)
    torch.testing.assert_close(clipped, masked / 2.0, rtol=1e-3, atol=1e-5)
    assert float(clipped.norm()) <= clip_norm * (1.0 + 1e-6)


@pytest.mark.parametrize("unit", [0, 7])
@pytest.mark.parametrize("most", [1, 4])
def test_a_unit_moves_the_masked_sum_by_its_clip_norm_at_most(unit: int, most: int) -> None:
    private = table_of(0, most=most)
    units = np.arange(private.units)
    sums = [
        clipped_sum(begun("idpgan", rows, table_of(2), public_mask_share=0.2), units, 0.05)
        for rows in (private, zeroed_out(private, unit))
    ]
    moved = float((sums[0] - sums[1]).norm())
    assert 0.0 < moved <= 0.05 * (1.0 + 1e-6)


def test_a_run_with_a_mask_goes_on_where_its_checkpoint_was_taken() -> None:
    run = begun("idpgan", table_of(0), table_of(2), public_mask_share=0.2)
    run.gan.critic_step()
    saved = Checkpoint.from_bytes(run.checkpoint().to_bytes())
    resumed = run_of("idpgan", table_of(0), table_of(1), public_mask_share=0.2)
    resumed.restore(saved)
    resumed.gan.warm_up(lambda _share: None)
    assert torch.equal(places_of(resumed), places_of(run))
    assert torch.equal(weights(resumed), weights(run))
    resumed.finish(Hooks())


def test_before_a_mask_is_found_no_step_is_taken() -> None:
    run = run_of("idpgan", table_of(0), table_of(2), public_mask_share=0.2)
    with pytest.raises(ValueError, match="shorter"):
        run.gan.critic_step()


@pytest.mark.parametrize("layers", ["perceptrons", "convolutions"])
def test_masks_of_critics_of_images(layers: str) -> None:
    def images(seed: int) -> EncodedImages:
        rng = np.random.default_rng(seed)
        return EncodedImages(rng.integers(0, 256, (30, 64)).astype(np.uint8), np.arange(30) % 3, (8, 8, 1), 3)

    sizes = {"layers": layers, "critic_hidden": [8], "critic_channels": [4], "generator_channels": [4]}
    ordered = {"method": "dpgan", "epsilon": 1.0, "sampling_probability": 0.5, "steps": 4, "public_dataset": ID}
    document = {**ordered, "public_steps": 3, "public_mask_share": 0.25, "image_networks": sizes}
    order = resolve_order(parse_order(document), units=30, shape=ImageShape(8, 8, 1, 3))
    source = GivenImages(images(1), given_public=images(2))
    events = Plan((GaussianEvent("label_counts", 1e6), SampledStepEvent(0.5, 1.0, None, 4)))
    run: Any = run_class(order)(order, events, source, SecureRandom.from_test_seed(1), torch.device("cpu"))
    run.measure()
    run.gan.warm_up(lambda _share: None)
    initial = [tensor.detach().clone() for tensor in run.gan.tensors]
    run.finish(Hooks())
    changed = [
        int((now != was).sum()) / now.numel() for now, was in zip(run.gan.critic.parameters(), initial, strict=True)
    ]
    assert all(0.0 < share <= 0.25 + 1.0 / now.numel() for share, now in zip(changed, initial, strict=True))


# -- what is refused


@pytest.mark.parametrize(
    ("knobs", "where", "sentence"),
    [
        ({"warm_start": {"kind": "tables"}}, "public_dataset", "near tables"),
        ({"public_dataset": None, "public_mask_share": 0.2}, "public_mask_share", "name a public_dataset"),
        ({"public_mask_share": 0.2, "private_step": {"sparse": {}}}, "public_mask_share", "private_step.sparse"),
        ({"public_mask_share": 0.0}, "public_mask_share", "greater than 0"),
    ],
)
def test_what_does_not_go_together_is_refused(knobs: dict[str, Any], where: str, sentence: str) -> None:
    with pytest.raises(InvalidOrder, match=sentence) as refused:
        check_order(parse_order({"method": "idpgan", "epsilon": 1.0, "public_dataset": ID, **knobs}), schema_of())
    assert refused.value.values["where"] == where


def test_a_table_with_a_public_start_begins_nowhere_else() -> None:
    assert order_of("idpgan").warm_start.kind == "none"
    assert order_of("idpgan", public_dataset=None).warm_start.kind == "tables"


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({}, None),
        ({"colour": {"title": "Colour"}}, None),
        (
            {"colour": {"constraints": {"enum": ["g", "r", "b"], "required": True}}},
            "'colour' has another list of categories",
        ),
        ({"colour": {"constraints": {"enum": COLOURS}}}, "'colour' has another constraints.required"),
        ({"size": {"constraints": {"minimum": 0, "maximum": 6, "required": True}}}, "'size' has another range"),
        ({"size": {"type": "number"}}, "'size' has another type"),
        ({"size": {"type": "boolean", "constraints": {}}}, "'size' has another type"),
        ({"size": {"constraints": {"enum": [0, 5], "required": True}}}, "'size' has another list of categories"),
        ({"much": {"bins": 5}}, "'much' has another number of bins"),
        ({"much": {"decimals": 2}}, "'much' has another number of decimals"),
        ({"much": {"name": "more"}}, "in the place of 'much' the other one has 'more'"),
        (
            {"much": {"type": "string", "role": "free_text", "constraints": {}, "bins": None}},
            "'much' is in this one alone",
        ),
    ],
)
def test_public_rows_have_the_same_columns(changed: dict[str, Any], says: str | None) -> None:
    found = first_difference(schema_of(**changed), schema_of())
    assert (found is None) if says is None else (found is not None and found.startswith(says)), found


def test_rows_whose_columns_are_declared_otherwise_by_now_are_not_read() -> None:
    other = TableDomain.from_schema(
        schema_of(colour={"constraints": {"enum": ["g", "r", "b"], "required": True}}), numeric_bins=8
    )
    source = GivenTable(table_of(0), DOMAIN, given_public=(table_of(1), other))
    order = order_of("dpgan")
    with pytest.raises(InvalidOrder, match="declared otherwise"):
        run_class(order)(order, plan(), source, SecureRandom.from_test_seed(1), torch.device("cpu"))
