"""Autoencoders in blocks, trained by joint private steps; what a block is, and where codes are drawn from, is each method's own.

Every line that touches private rows is preceded by taking its event from the plan:
  counts of parts     GaussianEvent             before the steps; they say how frequent parts are, and are the normalisers
  step                SampledStepEvent          one Poisson draw from all units; every unit's gradient is clipped once, over all blocks
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from service.methods.knobs import settled_rate
from workers.checkpoints import Checkpoint, position_of, put_back, resume, tensors_of
from workers.engines.autoencoders import NAME, AutoencoderBatch, AutoencoderLoss, autoencoder_gradients, draw_bounds
from workers.generators.released import ImageRelease, TableRelease
from workers.mechanism import PrivateSum
from workers.mechanism.clipping import clip_and_sum
from workers.mechanism.label_counts import frequencies_from, label_counts
from workers.mechanism.noise import release
from workers.mechanism.sampling import poisson_sample
from workers.methods.dpgm.records import PlacedRecords, with_labels
from workers.methods.whole_sums import NoisySums, release_whole
from workers.networks.autoencoders import Autoencoders
from workers.networks.latent_mixture import LatentGaussians, LatentImages, LatentRows
from workers.numerics.adam import Adam
from workers.numerics.averages import average_of, move_average
from workers.numerics.workspace import Workspace, keep_freed_memory

if TYPE_CHECKING:
    from service.methods.dpgm.order import AutoencoderOrder
    from workers.encoding.table import TableDomain
    from workers.hooks import Hooks
    from workers.mechanism.secure_random import SecureRandom
    from workers.plan import Plan
    from workers.sources import Source

KEPT = ("networks", "averaged", "adam")
"""By checkpoints."""
BETAS = (0.9, 0.99)
AVERAGE_DECAY = 0.99
"""Of the weights that are published; a short run's average grows into it."""
SMALLEST_COUNT = 30.0
"""A part that was measured to be nearly empty is treated as holding this many records."""

Floats = NDArray[np.float64]


class AutoencoderRun(ABC):
    """The state of one attempt. Subclasses say what a block is and measure how many records each has."""

    is_variational: ClassVar[bool]

    def __init__(
        self, order: AutoencoderOrder, plan: Plan, source: Source, randomness: SecureRandom, device: torch.device
    ) -> None:
        keep_freed_memory()
        self.order, self.plan, self.randomness, self.device = order, plan, randomness, device
        self.is_private = randomness.is_private
        self.domain: TableDomain | None = None
        self.shape = (0, 0, 0)
        condition = None
        if source.holds_images:
            images = source.images()
            self.shape = images.shape
            self.records = PlacedRecords(images, None, None, device)
        else:
            table, self.domain = source.table(numeric_bins=order.numeric_bins)
            condition = None if order.condition_on is None else self.domain.index(order.condition_on)
            self.records = PlacedRecords(table, self.domain, condition, device)
        self.condition = condition
        self.classes = self.records.classes
        self.sampling_probability = settled_rate(order.sampling_probability)
        torch.manual_seed(randomness.seed())
        sizes = order.autoencoder
        self.networks = Autoencoders(
            blocks=self.blocks,
            hidden=sizes.hidden_units,
            latent=sizes.latent_numbers,
            labels=self.label_inputs,
            width=self.records.width,
            is_variational=self.is_variational,
        ).to(device)
        self.averaged = average_of(self.networks)
        self.tensors = list(self.networks.parameters())
        self.adam = Adam(self.tensors, learning_rate=order.learning_rate, betas=BETAS)
        self.loss = AutoencoderLoss(self.records.widths, order.latent_weight, self.latent_norm)
        expected = self.sampling_probability * self.records.units
        self.bounds = draw_bounds(units=self.records.units, expected_units=expected, rows_per_unit=self.records.places)
        self.workspace = Workspace()
        self.counts: Floats = np.zeros((self.classes, self.parts))
        """Noisy numbers of records of every label and part."""

    # -- what a method says

    @property
    @abstractmethod
    def blocks(self) -> int:
        """How many autoencoders there are."""

    @property
    def parts(self) -> int:
        """Parts of every label that are counted."""
        return 1

    @property
    def label_inputs(self) -> int:
        """Numbers of a one-hot label that the networks are told; 0 where a block has one label."""
        return 0

    @property
    def latent_norm(self) -> float:
        """The norm that codes are clipped to, where they are no distributions."""
        return 1.0

    @abstractmethod
    def measure(self) -> None:
        """Whatever comes before the steps, with `counts`."""

    @abstractmethod
    def members(self) -> NDArray[np.int64]:
        """(places,) the block of every record, by a public rule on that record alone; any block where there is no record."""

    @abstractmethod
    def block_counts(self) -> Floats:
        """(blocks,) noisy numbers of records, of what was released."""

    @abstractmethod
    def gaussians(self, hooks: Hooks) -> LatentGaussians:
        """What decoders are fed from, found when the steps are done. One that takes long asks whether to stop."""

    # -- private

    def counted(self, cells: NDArray[np.int64], categories: int) -> PrivateSum:
        """(places,) a cell of every record -> how many records are in each; those beyond the last are in none."""
        return label_counts(
            cells,
            categories=categories,
            unit_starts=self.records.owners.starts,
            max_rows_per_unit=self.records.places,
        )

    def release_whole(self, purpose: str, sums: Callable[[], PrivateSum], shares: Sequence[float]) -> NoisySums:
        """Takes the event, then calls `sums`; its noise is on all that comes out."""
        return release_whole(self.plan, purpose, sums, shares, randomness=self.randomness)

    @cached_property
    def _members(self) -> NDArray[np.int64]:
        """For all steps: first looked for when the first of them has its event."""
        return self.members()

    def step(self) -> None:
        """One private step for all blocks: draw, clip over all of them, sum, noise, update."""
        noise = self.plan.take_sampled_step(sampling_probability=self.sampling_probability, histogram=False)
        members = self._members
        drawn = poisson_sample(
            units=self.records.units, sampling_probability=self.sampling_probability, randomness=self.randomness
        )[: self.bounds.most_units]
        size = self.bounds.units_per_block
        clipped = clip_and_sum(
            (
                autoencoder_gradients(
                    self.networks, self._batch(drawn[start : start + size], members), self.loss, self.workspace
                )
                for start in range(0, len(drawn), size)
            ),
            groups=[range(len(self.tensors))],
            clip_norms=[self.order.clip_norm],
            shapes=[tensor.shape for tensor in self.tensors],
            bounds=self.bounds,
            device=self.device,
        )
        noisy = release(clipped.sum, noise_multiplier=noise.gradient_noise_multiplier, randomness=self.randomness)
        normalisers = torch.from_numpy(self.normalisers()).to(self.device)
        for tensor, total, axis in zip(self.tensors, noisy, self.networks.block_axes(), strict=True):
            each = normalisers.repeat_interleave(total.shape[axis] // self.blocks)
            tensor.grad = (total / (each.unsqueeze(1) if axis == 0 and total.dim() == 2 else each)).float()
        self.adam.step()
        move_average(self.averaged, self.tensors, decay=AVERAGE_DECAY, taken=self.plan.steps_done)

    def _batch(self, units: NDArray[np.int64], members: NDArray[np.int64]) -> AutoencoderBatch:
        """Rows of these units. Coins are dealt by place."""
        given, places = self.records.of(units), self.records.places
        where = (units[:, None] * places + np.arange(places)).ravel()
        normals = self.randomness.normals(
            len(where), self.order.autoencoder.latent_numbers, dtype=torch.float32, device=self.device
        )
        blocks = torch.from_numpy(members[where]).to(self.device)
        return AutoencoderBatch(with_labels(given, self.label_inputs), blocks, normals, given.present, places)

    # -- post-processing

    def normalisers(self) -> Floats:
        """(blocks,) how many of a block's records a draw is expected to hold, by noisy counts: true ones are private."""
        expected: Floats = self.sampling_probability * np.maximum(self.block_counts(), SMALLEST_COUNT)
        return expected

    @property
    def rows_per_unit(self) -> float | None:
        """Mean rows of a unit by noisy counts, where a unit may have several."""
        if self.records.places == 1:
            return None
        most = float(self.records.most)
        return float(np.clip(self.counts.sum(), min(SMALLEST_COUNT, most), most)) / self.records.units

    def finish(self, hooks: Hooks) -> TableRelease | ImageRelease:
        """The steps, with a checkpoint now and then; then what decoders are fed from."""
        for _ in hooks.steps_of(self):
            self.step()
        return self.released(self.gaussians(hooks))

    def released(self, gaussians: LatentGaussians) -> TableRelease | ImageRelease:
        """The published generator."""
        decoder = copy.deepcopy(self.averaged.decoder).cpu()
        frequencies = frequencies_from(torch.from_numpy(self.counts.clip(min=0.0).sum(axis=1)))
        common: dict[str, Any] = {
            "engine": NAME,
            "device": self.device.type,
            "is_private": self.is_private,
            "rows_per_unit": self.rows_per_unit,
        }
        if self.domain is None:
            images = LatentImages(decoder, gaussians, label_inputs=self.label_inputs, shape=self.shape).eval()
            shares = torch.tensor(frequencies, dtype=torch.float64).unsqueeze(1) * gaussians.shares
            return ImageRelease(
                generator=images,
                noise_dimension=images.noise_dimension,
                component_labels=tuple(gaussians.labels.tolist()),
                component_frequencies=tuple(shares.flatten().tolist()),
                one_a_run=False,
                **common,
            )
        condition = None
        if self.condition is not None:
            widths = self.domain.widths
            condition = sum(widths[: self.condition]), widths[self.condition]
        rows = LatentRows(decoder, gaussians, label_inputs=self.label_inputs, condition=condition).eval()
        return TableRelease(
            generator=rows,
            domain=self.domain,
            noise_dimension=rows.noise_dimension,
            condition_index=self.condition,
            condition_frequencies=None if self.condition is None else frequencies,
            **common,
        )

    def checkpoint(self) -> Checkpoint:
        """Everything needed to go on; all of it noisy or public."""
        tensors = {**tensors_of(self, KEPT), "counts": torch.from_numpy(self.counts)}
        return Checkpoint(tensors, {**position_of(self), "step": self.plan.steps_done})

    def restore(self, checkpoint: Checkpoint) -> None:
        """Continue where the checkpoint was taken; noise is drawn afresh."""
        resume(self, checkpoint.values)
        put_back(self, KEPT, checkpoint.tensors)
        self.counts = checkpoint.tensors["counts"].numpy()


def shares_of(counts: Floats, *, least: float) -> Tensor:
    """(labels, parts) of noisy counts -> shares of every label's parts; those below `least`, which may be noise, have none."""
    kept = np.where(counts >= least, counts, 0.0)
    kept = np.where(kept.sum(axis=1, keepdims=True) > 0.0, kept, np.clip(counts, 0.0, None))
    kept = np.where(kept.sum(axis=1, keepdims=True) > 0.0, kept, 1.0)
    return torch.from_numpy(kept / kept.sum(axis=1, keepdims=True))
