"""The knobs of the private step of one run, put together."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from service.methods.idpgan.knobs import DbscanClusters
from service.methods.idpgan.private_step import PLAIN, PrivateStep, Tanh, TemperedSigmoid
from workers.engines.held import HeldGradients
from workers.mechanism.clusters import ClipGroups, dbscan_groups, one_group
from workers.methods.idpgan.step_knobs.columns import Columns, relevance_of
from workers.methods.idpgan.step_knobs.maps import GradientMap, Masked, Scaled, Sparse
from workers.methods.idpgan.step_knobs.subspace import Subspace
from workers.networks.table import LEAKY
from workers.numerics import activations

if TYPE_CHECKING:
    from torch import nn

    from service.methods.idpgan.knobs import OneGroup
    from workers.mechanism import PerUnitGradients
    from workers.numerics.activations import Activation


def activation_of(knobs: PrivateStep | None) -> Activation:
    """The activation of the critic's hidden layers."""
    named = (knobs or PLAIN).critic_activation
    if isinstance(named, Tanh):
        return activations.TemperedSigmoid(2.0, 2.0, 1.0)
    if isinstance(named, TemperedSigmoid):
        return activations.TemperedSigmoid(named.scale, named.inverse_temperature, named.offset)
    return LEAKY


class ShapedStep:
    """What a step's gradients pass through on their way to the clipping, and on the way back."""

    def __init__(
        self, knobs: PrivateStep | None, tensors: Sequence[Tensor], *, mask_share: float | None = None
    ) -> None:
        """mask_share: part of the coordinates that a mask of public rows is to leave; None: there is none."""
        self.knobs = knobs or PLAIN
        self.map = _map_of(self.knobs, tensors) if mask_share is None else Masked(tensors, mask_share)
        self.carried = [torch.zeros_like(tensor) for tensor in tensors] if self.knobs.memory is not None else []
        """What earlier releases held that was not applied yet."""

    @property
    def in_full(self) -> bool:
        """Whether the engine must hold every gradient."""
        return isinstance(self.map, Masked) or self.knobs.needs_gradients_in_full

    @property
    def shapes(self) -> list[torch.Size]:
        """The shapes of what is clipped and released."""
        return self.map.shapes

    @property
    def importance(self) -> tuple[float, ...] | None:
        return self.map.importance

    def groups(self, thresholds: Sequence[float], clusters: DbscanClusters | OneGroup) -> ClipGroups:
        """Clip groups of all blocks, formed among those of one kind."""
        kinds, is_bias = self.map.kinds, self.map.is_bias
        groups: list[tuple[int, ...]] = []
        clip_norms: list[float] = []
        for kind in sorted(set(kinds)):
            places = [place for place in range(len(thresholds)) if kinds[place] == kind]
            of_kind = [thresholds[place] for place in places]
            found = one_group(of_kind)
            if isinstance(clusters, DbscanClusters):
                biases = [is_bias[place] for place in places]
                found = dbscan_groups(of_kind, is_bias=biases, eps=clusters.eps, min_samples=clusters.min_samples)
            groups += [tuple(places[one] for one in group) for group in found.groups]
            clip_norms += found.clip_norms
        return ClipGroups(tuple(groups), tuple(clip_norms))

    def prepare(self, step: int, critic: nn.Module, generated: Callable[[], Tensor]) -> None:
        """Before a step's rows are read, from what is public. Records are generated where their relevance is due.

        step: of the critic's own, from 0.
        """
        self.map.prepare(step, list(critic.parameters()))
        if isinstance(self.map, Columns) and self.map.is_due(step):
            self.map.take(relevance_of(critic, generated()).mean(dim=0))

    def take_relevance(self, relevance: Tensor) -> None:
        """What was bought."""
        if isinstance(self.map, Columns):
            self.map.take(relevance)

    def take_mask(self, trained: Sequence[Tensor]) -> None:
        """From weights that were trained on public rows alone."""
        if isinstance(self.map, Masked):
            self.map.find(trained)

    def prune(self, tensors: Sequence[Tensor]) -> None:
        """What the mask leaves out is zero from here on."""
        if isinstance(self.map, Masked):
            self.map.prune(tensors)

    def seen(self, gradients: PerUnitGradients, groups: ClipGroups | None = None) -> PerUnitGradients:
        """What is clipped of a block of units. With clip groups, noise comes first where it was ordered; it is no part of the privacy."""
        if not self.in_full:
            return gradients
        if not isinstance(gradients, HeldGradients):
            raise TypeError("this step needs an engine that keeps every unit's gradient")
        blocks = self.map.forward(gradients.gradients)
        if groups is not None and self.knobs.pre_clip_noise:
            norm_of = {
                place: norm for group, norm in zip(groups.groups, groups.clip_norms, strict=True) for place in group
            }
            blocks = [
                block + self.knobs.pre_clip_noise * norm_of[place] * torch.randn_like(block)
                for place, block in enumerate(blocks)
            ]
        return gradients.seen_as(blocks)

    def applied(self, released: Sequence[Tensor]) -> list[Tensor]:
        """Gradients for the optimizer from what was released: post-processing."""
        gradients = self.map.back(released)
        self.map.learn(gradients)
        return self._of_memory(gradients)

    def tensors(self) -> dict[str, Tensor]:
        """State for a checkpoint; all of it released or public."""
        carried = {f"step_memory.{place}": tensor for place, tensor in enumerate(self.carried)}
        return self.map.tensors() | carried

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """What `tensors` gave."""
        self.map.restore(tensors)
        for place, tensor in enumerate(self.carried):
            tensor.copy_(tensors[f"step_memory.{place}"])

    def _of_memory(self, gradients: list[Tensor]) -> list[Tensor]:
        """The largest of all coordinates of what is due; the rest is due at the next step."""
        memory = self.knobs.memory
        if memory is None:
            return gradients
        due = [carried + gradient for carried, gradient in zip(self.carried, gradients, strict=True)]
        sizes = torch.cat([one.abs().flatten() for one in due])
        least = torch.topk(sizes, max(1, math.ceil(memory.share * len(sizes))))[0][-1]
        largest = [torch.where(one.abs() >= least, one, 0.0) for one in due]
        for carried, one, taken in zip(self.carried, due, largest, strict=True):
            carried.copy_(one - taken)
        return largest


def _map_of(knobs: PrivateStep, tensors: Sequence[Tensor]) -> GradientMap:
    if knobs.sparse is not None:
        return Sparse(tensors, knobs.sparse)
    if knobs.scale is not None:
        return Scaled(tensors, knobs.scale)
    if knobs.subspace is not None:
        return Subspace(tensors, knobs.subspace)
    if knobs.importance is not None:
        return Columns(tensors, knobs.importance)
    return GradientMap(tensors)
