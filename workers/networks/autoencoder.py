"""Encoder and decoder of one-hot rows, and a generator whose codes a fixed decoder turns into rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from workers.networks.table import LEAKY_SLOPE, TableGenerator

Layers = Literal["convolutions", "perceptrons"]
KERNEL, STRIDE = 4, 2
CONVOLUTIONS = (8, 16)
"""Channels after each halving of the row's length."""


class PerceptronEncoder(nn.Module):
    """(B, total_width) -> codes (B, latent) between -1 and 1."""

    def __init__(self, total_width: int, hidden: Sequence[int], latent: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise((total_width, *hidden)))
        self.output = nn.Linear((total_width, *hidden)[-1], latent)

    def forward(self, rows: Tensor) -> Tensor:
        state = rows
        for layer in self.layers:
            state = F.leaky_relu(layer(state), LEAKY_SLOPE)
        return torch.tanh(self.output(state))


class PerceptronDecoder(nn.Module):
    """Codes (B, latent) -> logits (B, width)."""

    def __init__(self, latent: int, hidden: Sequence[int], width: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise((latent, *hidden)))
        self.output = nn.Linear((latent, *hidden)[-1], width)

    def forward(self, codes: Tensor) -> Tensor:
        state = codes
        for layer in self.layers:
            state = F.leaky_relu(layer(state), LEAKY_SLOPE)
        logits: Tensor = self.output(state)
        return logits


class ConvolutionEncoder(nn.Module):
    """Rows to codes by 1-D convolutions along a row, each of which halves its length."""

    def __init__(self, total_width: int, latent: int) -> None:
        super().__init__()
        channels = (1, *CONVOLUTIONS)
        self.layers = nn.ModuleList(
            nn.Conv1d(a, b, KERNEL, stride=STRIDE, padding=KERNEL // 2) for a, b in pairwise(channels)
        )
        self.output = nn.Linear(channels[-1] * lengths(total_width)[-1], latent)

    def forward(self, rows: Tensor) -> Tensor:
        state = rows.unsqueeze(1)  # (B, 1, total_width)
        for layer in self.layers:
            state = F.leaky_relu(layer(state), LEAKY_SLOPE)
        return torch.tanh(self.output(state.flatten(1)))


class ConvolutionDecoder(nn.Module):
    """The way back, by transposed convolutions; what is longer than a row is cut off."""

    def __init__(self, latent: int, width: int) -> None:
        super().__init__()
        self.width, self.length, channels = width, lengths(width)[-1], (*reversed(CONVOLUTIONS), 1)
        self.inputs = nn.Linear(latent, channels[0] * self.length)
        self.channels = channels[0]
        self.layers = nn.ModuleList(nn.ConvTranspose1d(a, b, KERNEL, stride=STRIDE) for a, b in pairwise(channels))

    def forward(self, codes: Tensor) -> Tensor:
        state = self.inputs(codes).unflatten(1, (self.channels, self.length))
        for layer in self.layers:
            state = layer(F.leaky_relu(state, LEAKY_SLOPE))
        logits: Tensor = state.squeeze(1)[:, : self.width]
        return logits


class Autoencoder(nn.Module):
    """Rows (B, total_width) -> logits of all columns but the condition (B, width)."""

    def __init__(self, total_width: int, width: int, *, latent: int, hidden: Sequence[int], layers: Layers) -> None:
        super().__init__()
        self.encoder = (
            ConvolutionEncoder(total_width, latent)
            if layers == "convolutions"
            else PerceptronEncoder(total_width, hidden, latent)
        )
        self.decoder = make_decoder(latent, width, hidden=hidden, layers=layers)

    def forward(self, rows: Tensor) -> Tensor:
        logits: Tensor = self.decoder(self.encoder(rows))
        return logits


class DecodedGenerator(TableGenerator):
    """(z, condition) -> a code -> logits. The decoder's numbers are buffers: the generator's optimizer leaves them as they are."""

    def __init__(
        self,
        widths: Sequence[int],
        *,
        noise_dimension: int,
        hidden: Sequence[int],
        condition_index: int | None,
        latent: int,
        decoder: nn.Module,
    ) -> None:
        super().__init__(widths, noise_dimension=noise_dimension, hidden=hidden, condition_index=condition_index)
        if condition_index is not None:
            # A random part of a label would be a relation from the start: a trained decoder makes of any direction one of many columns,
            # in a sign of chance that a short training does not turn (docs/methods/rdpcgan.md).
            nn.init.zeros_(self.condition.weight)
        self.output = nn.Sequential(nn.Linear(hidden[-1], latent), nn.Tanh(), with_buffers(decoder))  # type: ignore[assignment]

    def take_decoder(self, decoder: nn.Module) -> None:
        """The numbers of a decoder that was trained."""
        self.output[2].load_state_dict(decoder.state_dict())  # type: ignore[index]


def make_decoder(latent: int, width: int, *, hidden: Sequence[int], layers: Layers) -> nn.Module:
    """A decoder from codes (B, latent) to logits (B, width)."""
    if layers == "convolutions":
        return ConvolutionDecoder(latent, width)
    return PerceptronDecoder(latent, tuple(reversed(hidden)), width)


def with_buffers(module: nn.Module) -> nn.Module:
    """The module itself, its parameters made buffers of the same names."""
    for part in module.modules():
        for name, value in list(part.named_parameters(recurse=False)):
            delattr(part, name)
            part.register_buffer(name, value.detach())
    return module


def lengths(width: int) -> list[int]:
    """The length of a row after each convolution."""
    found = [width]
    for _ in CONVOLUTIONS:
        found.append((found[-1] + 2 * (KERNEL // 2) - KERNEL) // STRIDE + 1)
    return found
