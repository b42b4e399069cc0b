"""Generators of rows or images: a decoder for each block, fed from Gaussians. Every label has as many of these as every other."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from workers.networks.autoencoders import Decoder
from workers.networks.table import CONDITION_LOGIT


@dataclass(frozen=True)
class LatentGaussians:
    """Gaussian m of label y is number y·M + m. All of it is noisy or public."""

    shares: Tensor  # (labels, M) float64, each row sums to 1
    blocks: Tensor  # (labels·M,) int64, whose decoder it feeds
    means: Tensor  # (labels·M, latent)
    factors: Tensor  # (labels·M, latent, latent): covariance = factorᵀ·factor

    @classmethod
    def standard(cls, shares: Tensor, latent: int) -> LatentGaussians:
        """One standard normal distribution for each block, whatever the label."""
        labels, blocks = shares.shape
        count = labels * blocks
        means, factors = torch.zeros(count, latent), torch.eye(latent).expand(count, -1, -1)
        return cls(shares, torch.arange(blocks).repeat(labels), means, factors)

    @property
    def labels(self) -> Tensor:
        """(labels·M,)."""
        labels, each = self.shares.shape
        return torch.arange(labels).repeat_interleave(each)


class LatentMixture(nn.Module):
    """What generators of rows and of images share."""

    means: Tensor
    factors: Tensor
    members: Tensor
    named: Tensor

    def __init__(self, decoder: Decoder, gaussians: LatentGaussians, *, label_inputs: int) -> None:
        """label_inputs: of the decoder; 0 where it is told no label."""
        super().__init__()
        self.decoder = decoder
        self.label_inputs = label_inputs
        self.each = gaussians.shares.shape[1]
        self.register_buffer("means", gaussians.means.float().contiguous())
        self.register_buffer("factors", gaussians.factors.float().contiguous())
        self.register_buffer("members", F.one_hot(gaussians.blocks, decoder.blocks).float())
        named = F.one_hot(gaussians.labels, max(1, label_inputs)).float() if label_inputs else None
        self.register_buffer("named", torch.zeros(len(self.means), 0) if named is None else named)

    def decoded(self, normals: Tensor, gaussian: Tensor) -> Tensor:
        """(B, width) logits from normals (B, latent) and the number of a Gaussian each."""
        latent = self.means[gaussian] + torch.bmm(normals.unsqueeze(1), self.factors[gaussian]).squeeze(1)
        logits: Tensor = self.decoder(latent, self.members[gaussian], self.named[gaussian])
        return logits


class LatentRows(LatentMixture):
    """(z, condition) -> logits of every column, side by side; the condition's are the condition itself.

    The first number of z picks one of the label's Gaussians: it lies between two quantiles of the normal distribution.
    """

    quantiles: Tensor

    def __init__(
        self, decoder: Decoder, gaussians: LatentGaussians, *, label_inputs: int, condition: tuple[int, int] | None
    ) -> None:
        """condition: where its column begins, and how many cells it has."""
        super().__init__(decoder, gaussians, label_inputs=label_inputs)
        ends = gaussians.shares.double().cumsum(dim=1)[:, :-1].clamp(0.0, 1.0)
        self.register_buffer("quantiles", torch.special.ndtri(ends).clamp(-40.0, 40.0).float())
        self.condition = condition
        if condition is not None:
            self.register_buffer("condition_logits", CONDITION_LOGIT * torch.eye(condition[1]), persistent=False)

    @property
    def noise_dimension(self) -> int:
        return 1 + int(self.means.shape[1])

    def forward(self, noise: Tensor, condition: Tensor | None = None) -> Tensor:
        label = (0.0 * noise[:, 0]).long() if condition is None else condition
        picked = (noise[:, :1] > self.quantiles[label]).long().sum(dim=1)
        logits = self.decoded(noise[:, 1:], label * self.each + picked)
        if condition is None or self.condition is None:
            return logits
        start = self.condition[0]
        own = self.get_buffer("condition_logits")[condition]
        return torch.cat((logits[:, :start], own, logits[:, start:]), dim=1)


class LatentImages(LatentMixture):
    """(z, Gaussian) -> images (n, height, width, channels) in [0, 1]."""

    def __init__(
        self, decoder: Decoder, gaussians: LatentGaussians, *, label_inputs: int, shape: tuple[int, int, int]
    ) -> None:
        super().__init__(decoder, gaussians, label_inputs=label_inputs)
        self.shape = shape

    @property
    def noise_dimension(self) -> int:
        return int(self.means.shape[1])

    def forward(self, noise: Tensor, condition: Tensor) -> Tensor:
        return torch.sigmoid(self.decoded(noise, condition)).reshape(-1, *self.shape)
