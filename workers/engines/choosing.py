"""Which engine finds the per-unit gradients of which critic, and in how large blocks."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import nn

from workers.engines.held import HELD_ROUNDING, HELD_UNITS, HeldGradients
from workers.engines.replayed import ReplayedGradients
from workers.mechanism import CriticBatch, CriticLoss, DrawBounds, Perceptron, PerUnitGradients
from workers.mechanism.compiled_products import compiled_gradients
from workers.mechanism.convolutions import ImageCriticTensors, convolution_gradients
from workers.mechanism.gradients import MaterialisedGradients, perceptron_gradients_in_full, vmap_gradients
from workers.mechanism.outer_products import outer_product_gradients
from workers.networks.image import STRIDE, ImageCritic
from workers.networks.table import LEAKY, LEAKY_SLOPE, TableCritic
from workers.numerics.replays import Replays
from workers.numerics.workspace import Workspace

MOST_ROWS_FOR_OUTER_PRODUCTS = 64
"""Gram matrices of a unit grow with the square of its rows; above this, gradients kept in full are cheaper."""

BLOCK_ROWS = {"outer_products": 2_048, "in_full": 64, "vmap": 256}
BLOCK_ROWS_ON_A_GPU = BLOCK_ROWS | {"outer_products": 16_384}
"""Rows that one call goes over; bounds memory, changes no result but by rounding."""


@dataclass(frozen=True)
class GradientEngine:
    """Per-unit gradients of one critic, by formulas where it is a critic they know and by vmap where it is not."""

    critic: nn.Module
    name: str  # "outer_products", "convolutions", "in_full" or "vmap"; certificates name it
    units_per_block: int
    rows_per_unit: int
    workspace: Workspace
    replays: Replays | None = None
    """For critics on a GPU."""
    holds: bool = False
    """Whether every unit's gradient is kept, as `HeldGradients`."""

    def gradients(self, batch: CriticBatch, loss: CriticLoss) -> PerUnitGradients:
        """Gradients of at most `units_per_block` units; those of the fast engines live until the next call."""
        if self.holds:
            found = self._in_full(batch, loss)
            return HeldGradients(found.gradients, found.usable, self.workspace)
        if self.replays is None or self.name == "vmap":
            return self._found(batch, loss, self.workspace)
        return ReplayedGradients(
            lambda batch, workspace: self._found(batch, loss, workspace),
            batch,
            (loss, *(tensor.data_ptr() for tensor in self.critic.parameters())),
            self.units_per_block,
            self.replays,
            self.workspace,
        )

    def _found(self, batch: CriticBatch, loss: CriticLoss, workspace: Workspace) -> PerUnitGradients:
        critic = self.critic
        if self.name == "outer_products" and isinstance(critic, TableCritic):
            return perceptron_gradients(_perceptron(critic), batch, loss, workspace)
        if self.name == "convolutions" and isinstance(critic, ImageCritic):
            return convolution_gradients(image_critic_tensors(critic), batch, loss, workspace)
        return vmap_gradients(critic, batch, loss)

    def _in_full(self, batch: CriticBatch, loss: CriticLoss) -> MaterialisedGradients:
        if self.name == "in_full" and isinstance(self.critic, TableCritic):
            return perceptron_gradients_in_full(_perceptron(self.critic), self.critic.activation, batch, loss)
        return vmap_gradients(self.critic, batch, loss)

    def bounds(self, *, units: int, expected_units: float) -> DrawBounds:
        """Bounds of draws of this expected size. A larger draw has probability below 1e-90 (Bernstein) and must be cut."""
        most = min(units, math.ceil(2.0 * expected_units) + 200)
        if self.name == "convolutions" and isinstance(self.critic, ImageCritic):
            tensors = image_critic_tensors(self.critic)
            return DrawBounds(most, self.units_per_block, 1, tensors.terms_per_unit(), tensors.block_rounding())
        rounding = HELD_ROUNDING if self.holds else None
        return DrawBounds(most, self.units_per_block, self.rows_per_unit, block_rounding=rounding)


def _perceptron(critic: TableCritic) -> Perceptron:
    tensors = [tensor.detach() for tensor in critic.parameters()]  # W_1, b_1, …, b_{L-1}, W_L
    return Perceptron(weights=tensors[0::2], biases=tensors[1::2], slope=LEAKY_SLOPE)


def perceptron_gradients(
    critic: Perceptron, batch: CriticBatch, loss: CriticLoss, workspace: Workspace | None = None
) -> PerUnitGradients:
    """Per-unit gradients by compiled loops where this machine has them, else by torch's operations; the same up to rounding."""
    compiled = compiled_gradients(critic, batch, loss, workspace)
    return outer_product_gradients(critic, batch, loss, workspace) if compiled is None else compiled


def choose_engine(
    critic: nn.Module, *, rows_per_unit: int, workspace: Workspace, in_full: bool = False
) -> GradientEngine:
    """The fast engine where critic and units fit one, else vmap. A subclass may compute otherwise, so types are exact.

    in_full: every unit's gradient is wanted itself, and not only norms and sums.
    """
    name = "vmap"
    if type(critic) is TableCritic:
        if in_full or critic.activation != LEAKY:
            name = "in_full"
        elif rows_per_unit <= MOST_ROWS_FOR_OUTER_PRODUCTS:
            name = "outer_products"
    on_cpu = all(tensor.device.type == "cpu" for tensor in critic.parameters())
    if type(critic) is ImageCritic and rows_per_unit == 1 and not in_full and critic.activation == LEAKY:
        name, block_rows = "convolutions", image_critic_tensors(critic).units_per_block()
    else:
        block_rows = (BLOCK_ROWS if on_cpu else BLOCK_ROWS_ON_A_GPU)[name]
    replays, units = None if on_cpu else Replays(), max(1, block_rows // rows_per_unit)
    if in_full or name == "in_full":
        return GradientEngine(critic, name, min(units, HELD_UNITS), rows_per_unit, workspace, holds=True)
    return GradientEngine(critic, name, units, rows_per_unit, workspace, replays)


def image_critic_tensors(critic: ImageCritic) -> ImageCriticTensors:
    """What the formulas need of it."""
    tensors = {name: tensor.detach() for name, tensor in critic.named_parameters()}
    layers = range(len(critic.layers))
    return ImageCriticTensors(
        shape=critic.shape,
        kernels=[tensors[f"layers.{layer}.weight"] for layer in layers],
        biases=[tensors.get(f"layers.{layer}.bias") for layer in layers],
        labels=tensors.get("labels.weight"),
        output=tensors["output.weight"],
        stride=STRIDE,
        padding=critic.padding,
        slope=LEAKY_SLOPE,
    )
