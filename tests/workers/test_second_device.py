"""Every training on a device that is not the CPU ends where it ends on the CPU: nothing lies, or is looked at, in the wrong place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from service.domain.shapes import ImageShape, TableShape
from service.methods.catalogue import parse_order
from service.privacy.filters import open_budget
from tests.orders import price_order, resolve_order
from tests.runs import train, train_images
from tests.second_device import ELSEWHERE, IS_A_GPU, MixedDevices, There, brought_back, elsewhere
from tests.tiny_images import make_images
from tests.workers.test_training import DOMAIN, ROWS, Memory, make_table
from workers import training
from workers.encoding.images import EncodedImages
from workers.encoding.table import EncodedTable
from workers.engines import choosing as engines
from workers.generators.released import TableRelease
from workers.hooks import Hooks
from workers.mechanism import CriticBatch, CriticLoss
from workers.mechanism.secure_random import SecureRandom
from workers.numerics.workspace import Workspace
from workers.plan import Plan

BUDGET = open_budget(50.0, 1e-4)
NETWORKS = {"noise_dimension": 8, "generator_hidden": [32], "critic_hidden": [32, 32]}
COLD = {"method": "idpgan", "sampling_probability": 0.2, "networks": NETWORKS, "warm_start": {"kind": "none"}}
CONVOLUTIONS = {"layers": "convolutions", "generator_channels": [6, 4], "critic_channels": [4, 5]}
IMAGES, SHAPE = 60, (8, 8, 1)

TABLES = {
    "from nothing": COLD,
    "separate": COLD | {"critic_loss": "separate", "gradient_penalty_at": "generated"},
    "bounded": COLD | {"critic_weight_bound": 0.05},
    "products of pairs": COLD | {"networks": NETWORKS | {"pair_products": 8}},
    "adaptive critic steps": COLD | {"adaptive_critic_steps": {}},
    "near tables": COLD | {"warm_start": {"kind": "tables", "generator_steps": 5, "critic_steps": 5}},
    "marginals": {"method": "marginals", "components": 16, "steps": 40, "pairs": "all"},
    "marginals without pairs": {"method": "marginals", "components": 16, "steps": 40, "pairs": "none"},
}
PICTURES: dict[str, dict[str, Any]] = {
    "perceptrons": {},
    "perceptrons, shrunk": {"image_networks": {"layers": "perceptrons", "shrink": 2}},
    "convolutions": {"image_networks": CONVOLUTIONS},
    "convolutions, separate": {"image_networks": CONVOLUTIONS, "critic_loss": "separate"},
    "from a mixture": {"warm_start": {"kind": "mixture"}},
    "after free samples": {"warm_start": {"kind": "mixture", "generator": "trained", "free_steps": 3}},
    "copies": {"augmentation": {"copies": 4}},
}


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch) -> Callable[[torch.device, Callable[[], TableRelease]], nn.Module]:
    """Runs a training with this device chosen, and brings its generator back."""

    def run(device: torch.device, trains: Callable[[], TableRelease]) -> nn.Module:
        monkeypatch.setattr(training, "choose_device", lambda _wanted: device)
        if not IS_A_GPU:
            monkeypatch.setattr(nn.Module, "cpu", brought_back)
        if device.type == "cpu":
            return trains().generator
        with elsewhere():
            trained = trains()
        assert trained.device == device.type
        return trained.generator

    return run


def on_table(knobs: dict[str, Any], rows_per_unit: int = 1, hooks: Hooks = training.UNATTENDED) -> TableRelease:
    table, rows = make_table(), rows_per_unit
    if rows > 1:
        table = EncodedTable(table.codes, ROWS // rows, np.arange(0, ROWS + 1, rows, dtype=np.int64), rows)
    shape = TableShape({"kind": 3, "size": 4}, max_rows_per_unit=rows)
    ordered = parse_order({"epsilon": 5.0, "condition_on": "kind", "steps": 6, **knobs})
    order = resolve_order(ordered, units=table.units, shape=shape, budget=BUDGET)
    plan = Plan(price_order(order, units=table.units, budget=BUDGET).events)
    return train(order, plan, table, DOMAIN, SecureRandom.from_test_seed(1), hooks)  # type: ignore[arg-type]


def on_images(knobs: dict[str, Any]) -> TableRelease:
    pixels, labels = make_images(IMAGES, SHAPE, 3, seed=3)
    images = EncodedImages(pixels.reshape(IMAGES, -1), labels.astype(np.int64), SHAPE, 3)
    ordered = parse_order({"method": "idpgan", "epsilon": 5.0, "steps": 6, "sampling_probability": 0.3, **knobs})
    order = resolve_order(ordered, units=IMAGES, shape=ImageShape(*SHAPE, 3), budget=BUDGET)
    plan = Plan(price_order(order, units=IMAGES, budget=BUDGET).events)
    return train_images(order, plan, images, SecureRandom.from_test_seed(1))  # type: ignore[arg-type]


def assert_same(one: nn.Module, other: nn.Module) -> None:
    """Up to the rounding of other products."""
    first, second = one.state_dict(), other.state_dict()
    assert first.keys() == second.keys()
    for name, tensor in first.items():
        assert not isinstance(second[name], There), name
        torch.testing.assert_close(second[name], tensor, rtol=1e-4, atol=1e-5)


@pytest.mark.skipif(IS_A_GPU, reason="a GPU refuses by itself")
def test_the_device_refuses_what_a_gpu_refuses() -> None:
    with elsewhere():
        far, near = torch.ones(3, device=ELSEWHERE), torch.ones(3)
        assert float((far + far).sum()) == 6.0
        assert far.add_(1.0) is far
        with pytest.raises(MixedDevices):
            far + near
        with pytest.raises(Exception, match=r"numpy|NumPy|storage"):
            far.numpy()
        assert (far.cpu() + near).tolist() == [3.0, 3.0, 3.0]


@pytest.mark.slow
@pytest.mark.parametrize("rows_per_unit", [1, 3])
@pytest.mark.parametrize("name", TABLES)
def test_tables(name: str, rows_per_unit: int, on: Callable[..., nn.Module]) -> None:
    if IS_A_GPU and name == "near tables":
        pytest.skip("warming up draws public noise from the device's own generator")
    made = [on(device, lambda: on_table(TABLES[name], rows_per_unit)) for device in (torch.device("cpu"), ELSEWHERE)]
    assert_same(*made)


@pytest.mark.parametrize("name", PICTURES)
def test_images(name: str, on: Callable[..., nn.Module]) -> None:
    if IS_A_GPU and name == "after free samples":
        pytest.skip("free steps draw public noise from the device's own generator")
    made = [on(device, lambda: on_images(PICTURES[name])) for device in (torch.device("cpu"), ELSEWHERE)]
    assert_same(*made)


def test_a_run_goes_on_from_its_checkpoint_on_either_device(on: Callable[..., nn.Module]) -> None:
    memory = Memory()
    hooks = Hooks(checkpoints=memory, checkpoint_every_steps=4)
    on(ELSEWHERE, lambda: on_table(COLD, hooks=hooks))
    assert len(memory.all) == 2  # what was measured first, and after four steps
    resumed = [on(device, lambda: on_table(COLD, hooks=hooks)) for device in (torch.device("cpu"), ELSEWHERE)]
    assert_same(*resumed)


def test_per_unit_gradients_where_no_formula_knows_the_critic() -> None:
    torch.manual_seed(1)
    critic = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1))
    batch = [torch.randn(7, 5), torch.randn(7, 5), torch.rand(7, 1), torch.ones(7, dtype=torch.bool)]

    def norms(device: torch.device) -> torch.Tensor:
        engine = engines.choose_engine(critic.to(device), rows_per_unit=1, workspace=Workspace())
        assert engine.name == "vmap"
        real, fake, mix, present = (tensor.to(device) for tensor in batch)
        found = engine.gradients(
            CriticBatch(real=real, fake=fake, mix=mix, present=present, rows_per_unit=1),
            CriticLoss(paired=True, gradient_penalty=10.0),
        )
        return found.tensor_norms.cpu()

    near = norms(torch.device("cpu"))
    with elsewhere():
        far = norms(ELSEWHERE)
    torch.testing.assert_close(far, near, rtol=1e-5, atol=1e-6)
