"""How far the engines of a device are from `vmap` on the CPU: what a bench asks before it spends a GPU's time."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn

from workers.engines.choosing import choose_engine
from workers.mechanism import CriticBatch, CriticLoss, DrawBounds, PerUnitGradients
from workers.mechanism.clipping import clip_and_sum
from workers.mechanism.copies import mean_of_copies
from workers.mechanism.gradients import vmap_gradients
from workers.networks.image import ImageCritic
from workers.networks.table import TableCritic
from workers.numerics.workspace import Workspace

CHECKED_NORM = 0.5
CPU = torch.device("cpu")


def engines_off(device: torch.device) -> dict[str, float]:
    """How far clipped sums of the engines on this device are from those of `vmap` on the CPU, of made-up records."""
    torch.manual_seed(0)
    shape, classes, units, copies = (14, 14, 1), 10, 40, 4
    width = 196 + classes
    loss = CriticLoss(paired=True, gradient_penalty=10.0)
    critics = {
        "perceptron": (TableCritic(width, (64, 64)), 1),
        "perceptron, copies": (TableCritic(width, (64, 64)), copies),
        "convolutions": (ImageCritic(shape, (8, 16), classes=classes), 1),
    }
    off = {}
    for name, (critic, rows) in critics.items():
        labels = torch.eye(classes)[torch.arange(units * rows) % classes]
        real, fake = (torch.cat((torch.rand(units * rows, 196) * 2 - 1, labels), dim=1) for _ in range(2))
        present = torch.arange(units * rows) // rows % 7 > 0
        batch = CriticBatch(real, fake, torch.rand(units * rows, 1), present, rows)
        truth = vmap_gradients(critic, batch, loss)
        critic.to(device)
        engine = choose_engine(critic, rows_per_unit=rows, workspace=Workspace())
        bounds = engine.bounds(units=units, expected_units=float(units))
        sums = partial(_clipped, critic=critic, bounds=bounds)
        wanted = sums(mean_of_copies(truth, rows), CPU)
        parts = (part.to(device) for part in (batch.real, batch.fake, batch.mix, batch.present))
        there = CriticBatch(*parts, rows_per_unit=rows)
        # The third time a GPU replays what the first ones recorded.
        made = [sums(mean_of_copies(engine.gradients(there, loss), rows), device) for _ in range(3)][-1]
        off[name] = float((made - wanted).abs().max() / wanted.abs().max())
    return off


def _clipped(found: PerUnitGradients, device: torch.device, *, critic: nn.Module, bounds: DrawBounds) -> Tensor:
    """All sums, one after the other, on the CPU; `found` is on this device."""
    shapes = [tensor.shape for tensor in critic.parameters()]
    groups, norms = [range(len(shapes))], [CHECKED_NORM]
    made = clip_and_sum([found], groups=groups, clip_norms=norms, shapes=shapes, bounds=bounds, device=device)
    return torch.cat([value.flatten().cpu() for value in made.sum.values])
