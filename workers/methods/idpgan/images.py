"""IDPGAN of images: records are pixels in [-1, 1] with their one-hot class, both networks convolutions or both perceptrons."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from service.base.errors import InvalidOrder
from service.releases.previews import TENSOR as PREVIEW
from workers.checkpoints import Checkpoint
from workers.encoding.places import records_in_places
from workers.generators.released import ImageRelease
from workers.mechanism.image_moments import NO_CELL
from workers.methods.idpgan.free_start import begin_from_free_records
from workers.methods.idpgan.step_knobs.step import activation_of
from workers.methods.idpgan.training import Idpgan
from workers.methods.labels import counts_of_classes
from workers.networks.enlarged import Enlarged, shrunk, shrunk_sides
from workers.networks.image import ImageCritic
from workers.networks.image_generator import ImageGenerator
from workers.networks.image_perceptron import PerceptronImageGenerator
from workers.networks.table import TableCritic

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import nn

    from service.methods.idpgan.knobs import ImageNetworks
    from service.methods.idpgan.price import TrainedOrder
    from workers.encoding.images import EncodedImages
    from workers.mechanism import PrivateSum
    from workers.mechanism.secure_random import SecureRandom
    from workers.plan import Plan


PREVIEWED = 10
"""Images of a class in a preview, and classes at most."""


class ImageIdpgan(Idpgan):
    """A run on images, each of its own class; a unit is one of them, or several side by side."""

    one_a_run: ClassVar[bool] = False
    """Whether the generator makes all images of a call of one component."""

    def __init__(
        self,
        order: TrainedOrder,
        plan: Plan,
        images: EncodedImages,
        randomness: SecureRandom,
        device: torch.device,
    ) -> None:
        if order.image_networks is None:
            raise InvalidOrder("image_networks must be resolved before training", where="image_networks")
        self.images = images
        self.public: EncodedImages | None = None
        """Images of a dataset that is declared public, to begin from."""
        self.sizes: ImageNetworks = order.image_networks
        self.activation = activation_of(order.private_step)
        self.shape = images.shape
        self.seen = shrunk_sides(images.shape, self.sizes.shrink)
        """Shape of the images that the critic sees, and that the generator makes before they are enlarged."""
        self.classes = max(1, images.classes)
        """Without classes, or with one, all images are of class 0, which no record carries."""
        self.label_width = self.classes if self.classes > 1 else 0
        super().__init__(
            order,
            plan,
            randomness,
            device,
            units=images.units,
            rows_per_unit=images.max_images_per_unit * order.copies,
            networks=(self.make_generator(), self.make_critic()),
        )

    def warm_up(self, on_share: Callable[[float], None]) -> None:
        """Steps on a public dataset, where the order names one and no private step was taken; no private row is read."""
        if self.public is not None and not self.plan.steps_done:
            begin_from_free_records(self, self.public, self.order.free_public_steps, on_share)

    @torch.no_grad()
    def free_batch(self, free: EncodedImages, units: np.ndarray) -> tuple[Tensor, Tensor, Tensor]:
        """Records of these units of a dataset that costs nothing, as many generated ones of the same classes, and the classes of all places."""
        real, present, conditions = self._rows_of(free, units)
        conditions = torch.zeros(len(real), dtype=torch.int64) if conditions is None else conditions
        return real[present], self.made_of(conditions)[present], conditions

    def made_of(self, conditions: Tensor) -> Tensor:
        """Generated records of these classes."""
        return self._fakes(self.generator, conditions)

    def make_generator(self) -> nn.Module:
        """The generator of images in [0, 1] from noise and classes."""
        sizes, shape, classes = self.sizes, self.seen, self.classes
        generator: ImageGenerator | PerceptronImageGenerator
        if sizes.layers == "perceptrons":
            generator = PerceptronImageGenerator(
                shape, noise_dimension=sizes.noise_dimension, hidden=sizes.generator_hidden, classes=classes
            )
        else:
            generator = ImageGenerator(
                shape, noise_dimension=sizes.noise_dimension, channels=sizes.generator_channels, classes=classes
            )
        return generator if sizes.shrink == 1 else Enlarged(generator, self.shape)

    def make_critic(self) -> nn.Module:
        """The critic of records as `_as_records` makes them; none of its layers may mix records."""
        if self.sizes.layers == "perceptrons":
            # The same perceptron as of tables, whose gradients have formulas.
            return TableCritic(math.prod(self.seen) + self.label_width, self.sizes.critic_hidden, self.activation)
        return ImageCritic(self.seen, self.sizes.critic_channels, classes=self.label_width, activation=self.activation)

    @property
    def noise_dimension(self) -> int:
        """How many numbers of noise the generator takes."""
        return self.sizes.noise_dimension

    @property
    def component_labels(self) -> tuple[int, ...]:
        """The class of everything that the generator may be asked for: here every class once."""
        return tuple(range(len(self.component_frequencies)))

    @property
    def component_frequencies(self) -> tuple[float, ...]:
        """The frequency of every class, from noisy counts."""
        return self.condition_frequencies or (1.0,)

    def release(self) -> ImageRelease:
        return ImageRelease(
            generator=self.averaged_generator.cpu(),
            noise_dimension=self.noise_dimension,
            component_labels=self.component_labels,
            component_frequencies=self.component_frequencies,
            one_a_run=self.one_a_run,
            engine=self.engine,
            device=self.device.type,
            is_private=self.is_private,
            rows_per_unit=self.rows_per_unit,
        )

    def checkpoint(self) -> Checkpoint:
        """Everything needed to go on, and a preview, which shows the state that training goes on from, and nothing later."""
        saved = super().checkpoint()
        return Checkpoint({**saved.tensors, PREVIEW: self.preview()}, saved.values)

    @torch.no_grad()
    def preview(self) -> Tensor:
        """(classes, PREVIEWED, height, width, channels) uint8 of the averaged generator; always the same noise."""
        classes = min(self.classes, PREVIEWED)
        noise = torch.randn(PREVIEWED, self.sizes.noise_dimension, generator=torch.Generator().manual_seed(0))
        condition = torch.arange(classes, device=self.device).repeat_interleave(PREVIEWED)
        images: Tensor = self.averaged_generator(noise.repeat(classes, 1).to(self.device), condition)
        return images.mul(255.0).round().to(torch.uint8).reshape(classes, PREVIEWED, *self.shape)

    def _label_counts(self) -> PrivateSum:
        return counts_of_classes(self.images)

    def _rows(self, units: np.ndarray) -> tuple[Tensor, Tensor, Tensor | None]:
        return self._rows_of(self.images, units)

    def _rows_of(self, data: EncodedImages, units: np.ndarray) -> tuple[Tensor, Tensor, Tensor | None]:
        """Records of these units of this dataset. An image is a null record where its label is none of the classes.

        Of a unit that may have several images, as many places; empty ones hold null records, so that the others keep
        theirs however many images it has.
        """
        return self._records(data, *_places_of(data, units), shift=0)

    def _rows_to_clip(self, units: np.ndarray) -> tuple[Tensor, Tensor, Tensor | None]:
        """The same, with all copies of an image beside it: they are of its unit, whose gradient is their mean."""
        images, empty = _places_of(self.images, units)
        copies = self.order.copies
        return self._records(self.images, images.repeat(copies), empty.repeat(copies), shift=self.order.shift_of_copies)

    def _records(
        self, data: EncodedImages, images: np.ndarray, empty: np.ndarray, *, shift: int
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Of these images of a dataset, each shifted by at most so many pixels by coins of its own."""
        labels = torch.from_numpy(np.where(empty, NO_CELL, data.labels[images])).to(self.device)
        present = (labels >= 0) & (labels < self.classes)
        conditions = torch.where(present, labels, 0)
        pixels = torch.from_numpy(data.pixels[images]).to(self.device).float() / 255.0
        if shift:
            pixels = self._shifted(pixels, shift)
        records = self._as_records(pixels, conditions)
        return torch.where(present.unsqueeze(1), records, 0.0), present, conditions

    def _shifted(self, pixels: Tensor, most: int) -> Tensor:
        """Pixels (R, D), every image moved down and across by whole pixels; its edges fill what is left empty."""
        images = pixels.view(-1, *self.shape)
        coins = self.randomness.uniforms(len(images), 2).to(self.device)
        moved = torch.floor(coins * (2 * most + 1)).long().clamp(max=2 * most) - most  # (R, 2)
        down, across = (
            (torch.arange(side, device=self.device) - moved[:, axis : axis + 1]).clamp(0, side - 1)
            for axis, side in enumerate(self.shape[:2])
        )
        place = torch.arange(len(images), device=self.device)
        return images[place[:, None, None], down[:, :, None], across[:, None, :]].flatten(1)

    def _as_records(self, pixels: Tensor, conditions: Tensor) -> Tensor:
        """Pixels (R, D) between 0 and 1 with their classes, as the critic sees them: shrunk, each image by itself."""
        scaled = 2.0 * shrunk(pixels.view(-1, *self.shape), self.sizes.shrink).flatten(1) - 1.0
        if not self.label_width:
            return scaled
        classes = F.one_hot(conditions, self.label_width).float()
        if self.sizes.layers == "perceptrons":
            classes = self.sizes.label_scale * classes
        return torch.cat((scaled, classes), dim=1)

    def _fakes(self, generator: nn.Module, conditions: Tensor | None, rows: int | None = None) -> Tensor:
        """G(z) as records."""
        if conditions is None:
            conditions = torch.zeros(rows or self.generator_batch, dtype=torch.int64, device=self.device)
        size = self.sizes.noise_dimension
        noise = self.randomness.normals(len(conditions), size, dtype=torch.float32, device=self.device)
        return self._as_records(generator(noise, conditions).flatten(1), conditions)


def _places_of(data: EncodedImages, units: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(R,) which image is in every place of these units, and whether none is."""
    return records_in_places(units, data.unit_starts, data.max_images_per_unit)
