"""Gradients of autoencoders in blocks: what autograd finds row by row, one block at a time."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F

from workers.engines.autoencoders import AutoencoderBatch, AutoencoderLoss, autoencoder_gradients
from workers.networks.autoencoders import Autoencoders, pass_through
from workers.numerics.workspace import Workspace

WIDTHS = (3, 4)
BLOCKS, LATENT, LABELS, UNITS = 3, 2, 2, 9


def made(
    rows_per_unit: int, *, variational: bool, pixels: bool
) -> tuple[Autoencoders, AutoencoderBatch, AutoencoderLoss]:
    torch.manual_seed(rows_per_unit)
    networks = Autoencoders(
        blocks=BLOCKS, hidden=5, latent=LATENT, labels=LABELS, width=sum(WIDTHS), is_variational=variational
    )
    rows = UNITS * rows_per_unit
    cells = [F.one_hot(torch.randint(0, width, (rows,)), width).float() for width in WIDTHS]
    seen = torch.rand(rows, sum(WIDTHS)) if pixels else torch.cat(cells, dim=1)
    labels = F.one_hot(torch.randint(0, LABELS, (rows,)), LABELS).float()
    batch = AutoencoderBatch(
        torch.cat((seen, labels), dim=1),
        torch.randint(0, BLOCKS, (rows,)),
        torch.randn(rows, LATENT),
        torch.rand(rows) > 0.2,
        rows_per_unit,
    )
    return networks, batch, AutoencoderLoss(None if pixels else WIDTHS, 0.3, 0.7)


def loss_of(networks: Autoencoders, batch: AutoencoderBatch, loss: AutoencoderLoss, row: int) -> torch.Tensor:
    records, own = batch.records[row : row + 1], F.one_hot(batch.blocks[row : row + 1], BLOCKS).float()
    passed = pass_through(networks, records, own, batch.normals[row : row + 1], loss.latent_norm)
    logits, targets = passed.sums[3], records[:, : sum(WIDTHS)]
    if loss.widths is None:
        error = F.binary_cross_entropy_with_logits(logits, targets, reduction="sum")
    else:
        places = list(pairwise((0, WIDTHS[0], sum(WIDTHS))))
        error = sum(
            (F.cross_entropy(logits[:, a:b], targets[:, a:b], reduction="sum") for a, b in places), torch.zeros(())
        )
    return error + loss.latent_weight * passed.pull.sum()


@pytest.mark.parametrize("rows_per_unit", [1, 3])
@pytest.mark.parametrize(("variational", "pixels"), [(True, False), (False, False), (True, True)])
def test_every_unit_has_the_gradient_of_its_rows_in_their_blocks(
    rows_per_unit: int, variational: bool, pixels: bool
) -> None:
    networks, batch, loss = made(rows_per_unit, variational=variational, pixels=pixels)
    found = autoencoder_gradients(networks, batch, loss, Workspace())
    norms, contributes = found.tensor_norms, found.contributes
    seen = 0
    for unit in range(UNITS):
        rows = [row for row in range(unit * rows_per_unit, (unit + 1) * rows_per_unit) if batch.present[row]]
        assert bool(contributes[unit]) == bool(rows)
        if not rows:
            continue
        networks.zero_grad()
        torch.stack([loss_of(networks, batch, loss, row) for row in rows]).sum().backward()  # type: ignore[no-untyped-call]
        weights = torch.zeros(UNITS, norms.shape[1], dtype=torch.float64)
        weights[unit] = 1.0
        for place, (tensor, sums) in enumerate(zip(networks.parameters(), found.weighted_sum(weights), strict=True)):
            assert tensor.grad is not None
            assert torch.allclose(sums, tensor.grad.double(), atol=1e-5)
            length = float(tensor.grad.double().norm())
            assert length * (1.0 - 1e-6) <= norms[unit, place] <= length * (1.0 + 1e-4) + 1e-5
        seen += 1
    assert seen > UNITS // 2


def test_other_blocks_get_nothing_of_a_unit() -> None:
    networks, batch, loss = made(1, variational=True, pixels=False)
    found = autoencoder_gradients(networks, batch, loss, Workspace())
    weights = (batch.blocks == 1).double().unsqueeze(1).expand(-1, len(found.parts))
    for sums, axis in zip(found.weighted_sum(weights.contiguous()), networks.block_axes(), strict=True):
        by_block = [part.abs().sum() for part in sums.chunk(BLOCKS, dim=axis)]
        assert by_block[0] == by_block[2] == 0.0
        assert by_block[1] > 0.0


def test_no_units_have_no_gradients() -> None:
    networks, batch, loss = made(1, variational=True, pixels=False)
    none = AutoencoderBatch(batch.records[:0], batch.blocks[:0], batch.normals[:0], batch.present[:0])
    found = autoencoder_gradients(networks, none, loss, Workspace())
    assert found.tensor_norms.shape == (0, 8)
    assert all(float(sums.abs().sum()) == 0.0 for sums in found.weighted_sum(torch.zeros(0, 8, dtype=torch.float64)))
