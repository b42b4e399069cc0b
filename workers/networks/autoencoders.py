"""Several autoencoders side by side, of which each record meets one: blocks of one network, told apart by a public rule.

A hidden layer has the units of all blocks, of which those of other blocks are zero. So a record's gradient is zero outside its own
block, and still a sum of outer products, one a layer (`workers.engines.autoencoders`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

MOST_LOG_VARIANCE = 6.0
"""Of a latent number; beyond, the gradient is zero."""


class Decoder(nn.Module):
    """(latent numbers, block, label) -> logits of cells or pixels."""

    def __init__(self, *, blocks: int, hidden: int, latent: int, labels: int, width: int) -> None:
        """labels: numbers of a one-hot label beside the latent ones; 0 for none."""
        super().__init__()
        self.blocks, self.hidden = blocks, hidden
        self.weight = _weights(blocks * hidden, latent + labels)
        self.bias = nn.Parameter(torch.zeros(blocks * hidden))
        self.output_weight = _weights(width, blocks * hidden, inputs=hidden)
        self.output_bias = nn.Parameter(torch.zeros(blocks, width))

    def forward(self, latent: Tensor, block: Tensor, label: Tensor) -> Tensor:
        """Logits; block (B, blocks) and label (B, labels) are one-hot."""
        before = F.linear(torch.cat((latent, label), dim=1), self.weight, self.bias)
        return self.out(in_block(before, block), block)

    def out(self, hidden: Tensor, block: Tensor) -> Tensor:
        """From the hidden layer."""
        return F.linear(hidden, self.output_weight) + block @ self.output_bias


class Autoencoders(nn.Module):
    """The encoder's tensors beside a decoder. Parameters come in the order of `Passed`."""

    def __init__(self, *, blocks: int, hidden: int, latent: int, labels: int, width: int, is_variational: bool) -> None:
        super().__init__()
        self.blocks, self.latent, self.is_variational = blocks, latent, is_variational
        codes = 2 * latent if is_variational else latent
        self.weight = _weights(blocks * hidden, width + labels)
        self.bias = nn.Parameter(torch.zeros(blocks * hidden))
        self.code_weight = _weights(codes, blocks * hidden, inputs=hidden)
        self.code_bias = nn.Parameter(torch.zeros(blocks, codes))
        self.decoder = Decoder(blocks=blocks, hidden=hidden, latent=latent, labels=labels, width=width)

    def block_axes(self) -> list[int]:
        """Along which axis of every tensor the blocks lie side by side."""
        return [0, 0, 1, 0] * 2

    def encode(self, records: Tensor, block: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Records with their labels (B, width + labels) -> before and after the hidden layer, and codes."""
        before = F.linear(records, self.weight, self.bias)
        hidden = in_block(before, block)
        return before, hidden, F.linear(hidden, self.code_weight) + block @ self.code_bias


class Passed(NamedTuple):
    """What went through: inputs of all layers and what they made of them, which gradients are found from."""

    inputs: tuple[Tensor, Tensor, Tensor, Tensor]
    sums: tuple[Tensor, Tensor, Tensor, Tensor]
    """Before the nonlinearity: hidden, codes, hidden, logits."""
    pull: Tensor
    """(B,) how far codes are from a standard normal distribution."""


def pass_through(networks: Autoencoders, records: Tensor, block: Tensor, normals: Tensor, latent_norm: float) -> Passed:
    """Forward. records (B, width + labels) with the label last; normals (B, latent), used where codes are distributions."""
    decoder, width = networks.decoder, networks.decoder.output_weight.shape[0]
    before, hidden, codes = networks.encode(records, block)
    if networks.is_variational:
        mean, log_variance = codes.chunk(2, dim=1)
        log_variance = log_variance.clamp(-MOST_LOG_VARIANCE, MOST_LOG_VARIANCE)
        latent = mean + normals * (0.5 * log_variance).exp()
        pull = 0.5 * (mean.square() + log_variance.exp() - 1.0 - log_variance).sum(dim=1)
    else:
        latent, pull = clipped(codes, latent_norm), 0.5 * codes.square().sum(dim=1)
    decoded = torch.cat((latent, records[:, width:]), dim=1)
    inner = F.linear(decoded, decoder.weight, decoder.bias)
    last = in_block(inner, block)
    return Passed((records, hidden, decoded, last), (before, codes, inner, decoder.out(last, block)), pull)


def clipped(codes: Tensor, norm: float) -> Tensor:
    """Codes (B, d) shortened to the norm."""
    lengths = (codes.square().sum(dim=1, keepdim=True) + 1e-12).sqrt()
    return codes * (norm / lengths).clamp(max=1.0)


def in_block(sums: Tensor, block: Tensor) -> Tensor:
    """ReLU of the block's own units (B, blocks·hidden); zero elsewhere."""
    blocks, units = int(block.shape[1]), int(sums.shape[1])
    own = block.unsqueeze(2)  # (B, blocks, 1)
    return (F.relu(sums).view(-1, blocks, units // blocks) * own).flatten(1)


def _weights(outputs: int, inputs_in_all: int, *, inputs: int | None = None) -> nn.Parameter:
    """He's initial weights; `inputs`: of one block, where the others are zero."""
    return nn.Parameter(torch.randn(outputs, inputs_in_all) * math.sqrt(1.0 / (inputs or inputs_in_all)))
