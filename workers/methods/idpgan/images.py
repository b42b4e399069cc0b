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
from workers.generators.released import ImageRelease
from workers.mechanism.image_moments import NOBODY
from workers.mechanism.label_counts import label_counts
from workers.methods.idpgan.training import Idpgan
from workers.networks.enlarged import Enlarged, shrunk, shrunk_sides
from workers.networks.image import ImageCritic
from workers.networks.image_generator import ImageGenerator
from workers.networks.image_perceptron import PerceptronImageGenerator
from workers.networks.table import TableCritic

if TYPE_CHECKING:
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
        self.sizes: ImageNetworks = order.image_networks
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
            rows_per_unit=images.max_images_per_unit,
            networks=(self.make_generator(), self.make_critic()),
        )

    def make_generator(self) -> nn.Module:
        """Of images in [0, 1] from noise and classes."""
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
        """Of records as `_as_records` makes them; none of its layers may mix records."""
        if self.sizes.layers == "perceptrons":
            # The same perceptron as of tables, whose gradients have formulas.
            return TableCritic(math.prod(self.seen) + self.label_width, self.sizes.critic_hidden)
        return ImageCritic(self.seen, self.sizes.critic_channels, classes=self.label_width)

    @property
    def noise_dimension(self) -> int:
        """Of the generator's input noise."""
        return self.sizes.noise_dimension

    @property
    def component_labels(self) -> tuple[int, ...]:
        """The class of everything that the generator may be asked for: here every class once."""
        return tuple(range(len(self.component_frequencies)))

    @property
    def component_frequencies(self) -> tuple[float, ...]:
        """Of every class, as bought."""
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
        """With a preview: whoever may see it sees the state that training goes on from, and nothing later."""
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
        return label_counts(
            self.images.labels.astype(np.uint16),
            categories=self.classes,
            unit_starts=self.images.unit_starts,
            max_rows_per_unit=self.images.max_images_per_unit,
        )

    def _rows(self, units: np.ndarray) -> tuple[Tensor, Tensor, Tensor | None]:
        """An image is a null record where its label is none of the classes.

        Of a unit that may have several images, as many places; empty ones hold null records, so that the others keep
        theirs however many images it has.
        """
        images, empty = self._places_of(units)
        labels = torch.from_numpy(np.where(empty, NOBODY, self.images.labels[images])).to(self.device)
        present = (labels >= 0) & (labels < self.classes)
        conditions = torch.where(present, labels, 0)
        pixels = torch.from_numpy(self.images.pixels[images]).to(self.device).float() / 255.0
        records = self._as_records(pixels, conditions)
        return torch.where(present.unsqueeze(1), records, 0.0), present, conditions

    def _places_of(self, units: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(R,) which image is in every place of these units, and whether none is."""
        starts, places = self.images.unit_starts, self.images.max_images_per_unit
        if starts is None:
            return units, np.zeros(len(units), dtype=np.bool_)
        images = starts[units][:, None] + np.arange(places)  # (U, places)
        empty = images >= starts[units + 1][:, None]
        return np.where(empty, 0, images).ravel(), empty.ravel()

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
