"""Generator and critic of mixed-type tables: multi-layer perceptrons over one-hot columns."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from workers.numerics.activations import Activation, LeakyRelu

LEAKY_SLOPE = 0.2
LEAKY = LeakyRelu(LEAKY_SLOPE)
CONDITION_LOGIT = 50.0
"""Logit of the condition's own category (the others have 0): a softmax of it is the one-hot to float precision."""

MOST_PADDING = 4
"""Columns are sampled together while padding them to the widest makes them at most this many times as large."""


class TableGenerator(nn.Module):
    """(z, condition) -> logits of every column, side by side.

    Where there is a condition its column's logits are the condition itself, so that a row is an independent draw from
    every column's softmax, without exception.
    """

    def __init__(
        self, widths: Sequence[int], *, noise_dimension: int, hidden: Sequence[int], condition_index: int | None = None
    ) -> None:
        super().__init__()
        self.condition_index = condition_index
        free = sum(widths)
        sizes = (noise_dimension, *hidden)
        self.inputs = nn.Linear(sizes[0], sizes[1])
        self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(sizes[1:]))
        self.norms = nn.ModuleList(nn.LayerNorm(size) for size in hidden)
        if condition_index is not None:
            categories = widths[condition_index]
            free -= categories
            self.split = sum(widths[:condition_index])
            # A one-hot times a matrix is a row of it: an embedding is the condition's part of the first layer.
            self.condition = nn.Embedding(categories, sizes[1])
            self.register_buffer("condition_logits", CONDITION_LOGIT * torch.eye(categories), persistent=False)
        with warnings.catch_warnings():
            # Where the condition is the only column there is nothing to initialize, of which torch would tell the log.
            warnings.filterwarnings("ignore", "Initializing zero-element tensors", UserWarning)
            self.output = nn.Linear(sizes[-1], free)

    def forward(self, noise: Tensor, condition: Tensor | None = None) -> Tensor:
        logits = self.free_logits(noise, condition)
        return logits if condition is None else self._beside(logits, self.get_buffer("condition_logits")[condition])

    def free_logits(self, noise: Tensor, condition: Tensor | None = None) -> Tensor:
        """(B, total_width - condition's width): those of all columns but the condition's."""
        first = self.inputs(noise)  # (B, hidden_1)
        if condition is not None:
            first = first + self.condition(condition)
        state = F.relu(self.norms[0](first))
        for layer, norm in zip(self.hidden, list(self.norms)[1:], strict=True):
            state = F.relu(norm(layer(state)))
        logits: Tensor = self.output(state)
        return logits

    def with_condition(self, free: Tensor, condition: Tensor | None) -> Tensor:
        """(B, total_width): records of the other columns, and at its place the condition's one-hot."""
        return free if condition is None else self._beside(free, F.one_hot(condition, self.condition.num_embeddings))

    def _beside(self, free: Tensor, condition: Tensor) -> Tensor:
        before, after = torch.split(free, [self.split, free.shape[1] - self.split], dim=1)
        return torch.cat((before, condition.to(free.dtype), after), dim=1)


class TableCritic(nn.Module):
    """LeakyReLU perceptron on one record. No layer mixes records; no last bias, whose gradient is always zero."""

    def __init__(self, total_width: int, hidden: Sequence[int], activation: Activation = LEAKY) -> None:
        super().__init__()
        self.activation = activation
        sizes = (total_width, *hidden)
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(sizes))
        self.output = nn.Linear(sizes[-1], 1, bias=False)

    def forward(self, record: Tensor) -> Tensor:
        state = record  # (B, total_width)
        for layer in self.layers:
            state = self.activation.value(layer(state))
        return self.output(state).squeeze(-1)  # type: ignore[no-any-return]  # (B,)


class PairProducts(nn.Module):
    """Fixed random sums of products of two cells, beside a record: (B, total_width) -> (B, total_width + count).

    Product k is (a_k·x)(b_k·x)·scale with public signs a_k, b_k: a random projection of x xᵀ. A function of one record alone, and zero
    for a null record. Of a one-hot record both factors are whole numbers, so nothing rounds but the last product. Together the
    products are about as long as the record.
    """

    def __init__(self, total_width: int, columns: int, count: int) -> None:
        super().__init__()
        drawn = torch.randint(2, (2, total_width, count), generator=torch.Generator().manual_seed(0))
        self.count = count
        self.scale = 1.0 / math.sqrt(columns * count) if count else 0.0
        self.register_buffer("signs", 2.0 * drawn.float() - 1.0, persistent=False)

    def forward(self, records: Tensor) -> Tensor:
        if not self.count:
            return records
        first, second = self.get_buffer("signs")
        return torch.cat((records, (records @ first) * (records @ second) * self.scale), dim=1)


def one_hot_records(codes: Tensor, widths: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Codes (B, columns) int64 -> one-hot records (B, total_width) and which are present.

    A record with a code outside its column's domain is a null record: a zero row, not present. No code can raise.
    """
    sizes = torch.tensor(widths, device=codes.device)
    present = (codes < sizes).all(dim=1)  # (B,)
    offsets = sizes.cumsum(0) - sizes
    places = torch.where(present.unsqueeze(1), codes, 0) + offsets
    records = torch.zeros(len(codes), sum(widths), device=codes.device)
    records.scatter_(1, places, present.float().unsqueeze(1).expand_as(places).contiguous())
    return records, present


def sample_records(logits: Tensor, widths: Sequence[int], uniforms: Tensor, temperature: float) -> Tensor:
    """One draw per column: a hard one-hot forward, the Gumbel-softmax gradient backward (straight-through).

    Source: Jang et al. 2017. logits and uniforms (B, total_width), uniforms in (0, 1); returns (B, total_width).
    """
    perturbed = logits - torch.log(-torch.log(uniforms))

    def draw(columns: Tensor, widths: tuple[int, ...]) -> Tensor:
        return _Draw.apply(columns, widths, temperature)  # type: ignore[no-any-return, no-untyped-call]

    return _together(draw, perturbed, widths)


def softmax_of_columns(logits: Tensor, widths: Sequence[int]) -> Tensor:
    """(B, total_width) logits -> the probabilities of every column's cells, side by side."""

    def softmax(columns: Tensor, widths: tuple[int, ...]) -> Tensor:
        return _Softmax.apply(columns, widths)  # type: ignore[no-any-return, no-untyped-call]

    return _together(softmax, logits, widths)


def _together(of_columns: Callable[[Tensor, tuple[int, ...]], Tensor], values: Tensor, widths: Sequence[int]) -> Tensor:
    """All columns at once, cell by cell and padded to the widest; one by one where that would be mostly padding."""
    if not widths:  # the condition is the only column
        return values
    if len(widths) * max(widths) <= MOST_PADDING * sum(widths):
        return of_columns(values, tuple(widths))
    parts = torch.split(values, list(widths), dim=1)
    return torch.cat([of_columns(part, (part.shape[1],)) for part in parts], dim=1)


class _Softmax(torch.autograd.Function):
    """The softmax of every column's cells.

    Columns lie side by side in the last dimension, where a softmax over cells is ten times faster than over a short
    last dimension of cells.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, widths: tuple[int, ...]) -> Tensor:
        places, _, real = _padded_places(widths, logits.device)
        soft = F.softmax(_padded(logits, places, -torch.inf, widths), dim=1)
        ctx.widths = widths
        ctx.save_for_backward(soft)
        return soft.flatten(1).index_select(1, real)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (gradient,), (soft,) = gradients, ctx.saved_tensors
        return _through_softmax(gradient, soft, ctx.widths), None


class _Draw(torch.autograd.Function):
    """The largest cell of every column as a one-hot; backward as if it were the column's softmax."""

    @staticmethod
    def forward(ctx: Any, perturbed: Tensor, widths: tuple[int, ...], temperature: float) -> Tensor:
        places, offsets, _ = _padded_places(widths, perturbed.device)
        padded = _padded(perturbed, places, -torch.inf, widths)
        hard = torch.zeros_like(perturbed).scatter_(1, padded.max(dim=1)[1].view(len(perturbed), -1) + offsets, 1.0)
        ctx.widths, ctx.temperature = widths, temperature
        if ctx.needs_input_grad[0]:
            ctx.save_for_backward(F.softmax(padded.div_(temperature), dim=1))
        return hard

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (gradient,), (soft,) = gradients, ctx.saved_tensors
        return _through_softmax(gradient, soft, ctx.widths).div_(ctx.temperature), None, None


def _through_softmax(gradient: Tensor, soft: Tensor, widths: tuple[int, ...]) -> Tensor:
    """The gradient by logits (B, total_width) of one by probabilities, which are padded."""
    places, _, real = _padded_places(widths, gradient.device)
    weighted = _padded(gradient, places, 0.0, widths).mul_(soft)
    pulled = weighted.addcmul_(soft, weighted.sum(dim=1, keepdim=True), value=-1.0)
    return pulled.flatten(1).index_select(1, real)


def _padded(values: Tensor, places: Tensor, filler: float, widths: tuple[int, ...]) -> Tensor:
    """Values (B, total_width) as (B, widest, columns); one column alone as (B, width)."""
    if len(places) > values.shape[1]:
        values = F.pad(values, (0, 1), value=filler)
    padded = values.index_select(1, places)
    return padded.view(len(values), max(widths), len(widths)) if len(widths) > 1 else padded


@lru_cache(maxsize=64)
def _padded_places(widths: tuple[int, ...], device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Which cell stands at each padded place (the one past the last: none), where columns begin, where each cell went."""
    sizes = torch.tensor(widths)
    offsets = sizes.cumsum(0) - sizes
    cell = torch.arange(max(widths)).unsqueeze(1)
    places = torch.where(cell < sizes, offsets + cell, sum(widths)).flatten()  # (widest · columns,)
    real = places.argsort(stable=True)[: sum(widths)]
    return places.to(device), offsets.to(device), real.to(device)
