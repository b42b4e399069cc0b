"""The run of `method: gswgan`.

What touches private rows, and what pays for it:
  class frequencies       GaussianEvent("label_counts")      once, where they are bought
  discriminators          nothing: they are never released, and a checkpoint does not hold them
  slopes of a step        DrawnPartEvent                     of one discriminator, drawn secretly, clipped together, with noise
A discriminator follows from its own part, public coins and what was released before. Which one is drawn decides the slopes of that step and
nothing else: not who is trained on, nor when (docs/privacy.md, One part of many).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from service.methods.gswgan.price import parts_of, trained_a_step_of
from service.methods.gswgan.work import AT_ONCE
from workers.checkpoints import Checkpoint, position_of, put_back, resume, tensors_of
from workers.generators.released import ImageRelease
from workers.mechanism.joint_clipping import clip_jointly
from workers.mechanism.noise import release
from workers.mechanism.sampling import draw_part
from workers.methods.gswgan.discriminators import Discriminators
from workers.methods.labels import counts_of_classes, measured_frequencies
from workers.networks.image_perceptron import PerceptronImageGenerator
from workers.numerics.adam import Adam
from workers.numerics.averages import average_of, descend, move_average

if TYPE_CHECKING:
    from service.methods.gswgan.order import GswganOrder
    from workers.encoding.images import EncodedImages
    from workers.hooks import Hooks
    from workers.mechanism.secure_random import SecureRandom
    from workers.plan import Plan
    from workers.sources import Source

KEPT = ("generator", "averaged_generator", "adam")
"""By checkpoints. Discriminators are private and begin anew."""

LABEL_SCALE = 4.0
"""A discriminator sees a class as this number in its place."""


class Run:
    """Class frequencies; then discriminators begin, for free; then private steps."""

    def __init__(
        self, order: GswganOrder, plan: Plan, source: Source, randomness: SecureRandom, device: torch.device
    ) -> None:
        self.order, self.plan, self.randomness = order, plan, randomness
        self.device = torch.device("cpu")  # many small networks: a GPU would wait for Python
        del device
        self.images: EncodedImages = source.images()
        self.is_private = randomness.is_private
        self.parts = parts_of(order)
        self.classes = max(1, self.images.classes)
        self.label_width = self.classes if self.classes > 1 else 0
        self.pixels = math.prod(self.images.shape)
        # Initial weights, batches of free steps and latent noise are public coins; they only must not repeat.
        torch.manual_seed(randomness.seed())
        self.generator = PerceptronImageGenerator(
            self.images.shape,
            noise_dimension=order.noise_dimension,
            hidden=order.generator_hidden,
            classes=self.classes,
        )
        self.averaged_generator = average_of(self.generator)
        betas = (order.optimizer.beta1, order.optimizer.beta2)
        self.adam = Adam(
            self.generator.parameters(), learning_rate=order.optimizer.generator_learning_rate, betas=betas
        )
        self.discriminators = Discriminators(
            self.parts,
            self.pixels + self.label_width,
            order.critic_hidden,
            learning_rate=order.optimizer.critic_learning_rate,
            betas=betas,
        )
        self.images_of_part = split_images(self.images, self.parts, torch.randperm(self.images.units).numpy())
        self.frequencies: tuple[float, ...] = (1.0 / self.classes,) * self.classes

    def measure(self) -> None:
        """Class frequencies, where they are bought."""
        if self.order.condition_on is not None:
            self.frequencies = measured_frequencies(self.plan, lambda: counts_of_classes(self.images), self.randomness)

    def finish(self, hooks: Hooks) -> ImageRelease:
        """Discriminators begin anew in every attempt: they may not be kept."""
        self._start(hooks)
        for _ in hooks.steps_of(self):
            self.private_step()
            self.train_next()
        return ImageRelease(
            generator=self.averaged_generator,
            noise_dimension=self.order.noise_dimension,
            component_labels=tuple(range(self.classes)),
            component_frequencies=self.frequencies,
            one_a_run=False,
            engine="none",
            device=self.device.type,
            is_private=self.is_private,
        )

    def private_step(self) -> None:
        """Generated images, one drawn discriminator's slopes at them, clipped together, noise, and a step of the generator along them."""
        noise_multiplier = self.plan.take_drawn_part(sampling_probability=1.0 / self.parts)
        drawn = draw_part(parts=self.parts, randomness=self.randomness)
        conditions = self._conditions(self.order.batch)
        pixels = self._generated(conditions)
        share = 1.0 / math.sqrt(self.order.batch)
        slopes = share * self.discriminators.slope(drawn, self._as_records(pixels, conditions))[:, : self.pixels]
        private = clip_jointly(slopes, clip_norm=self.order.clip_norm)
        (noisy,) = release(private, noise_multiplier=noise_multiplier, randomness=self.randomness)
        descend(self.adam, pixels, along=share * noisy.to(pixels.dtype))
        decay = self.order.optimizer.moving_average_decay
        move_average(self.averaged_generator, self.generator.parameters(), decay=decay, taken=self.plan.steps_done)

    def train_next(self) -> None:
        """The discriminators whose turn it is, by the number of the step alone."""
        count = trained_a_step_of(self.order)
        first = self.plan.steps_done * count
        for which in torch.split((first + torch.arange(count)) % self.parts, AT_ONCE):
            self._train(which, self.order.discriminator_steps)

    def _start(self, hooks: Hooks) -> None:
        blocks = torch.split(torch.arange(self.parts), AT_ONCE)
        for place, which in enumerate(blocks):
            for step in range(self.order.start_steps):
                done = (place + step / self.order.start_steps) / len(blocks)
                hooks.go_on_warming_up(done, self.plan.steps_done)
                self._train(which, 1)

    def _train(self, which: Tensor, steps: int) -> None:
        """Free steps of these discriminators, each on images of its own part and generated ones of the same classes."""
        for _ in range(steps):
            places, filled = self._batches(which)
            labels = torch.from_numpy(self.images.labels[places])
            present = torch.from_numpy(filled) & (labels >= 0) & (labels < self.classes)
            conditions = torch.where(present, labels, 0)
            pixels = torch.from_numpy(self.images.pixels[places]).float() / 255.0
            with torch.no_grad():
                generated = self._generated(conditions.flatten())
            real, fake = (
                self._as_records(each.view(-1, self.pixels), conditions.flatten()).view(*conditions.shape, -1)
                for each in (pixels, generated)
            )
            self.discriminators.step(which, real, fake, present, gradient_penalty=self.order.gradient_penalty)

    def _batches(self, which: Tensor) -> tuple[np.ndarray, np.ndarray]:
        """(C, B) places of images, drawn from each one's own part, and whether there are any."""
        uniforms = torch.rand(len(which), self.order.batch).numpy()
        places = np.zeros(uniforms.shape, dtype=np.int64)
        filled = np.zeros(uniforms.shape, dtype=np.bool_)
        for row, part in enumerate(which.tolist()):
            own = self.images_of_part[part]
            if len(own):
                places[row] = own[np.minimum((uniforms[row] * len(own)).astype(np.int64), len(own) - 1)]
                filled[row] = True
        return places, filled

    def _generated(self, conditions: Tensor) -> Tensor:
        """(B, pixels) between 0 and 1."""
        noise = torch.randn(len(conditions), self.order.noise_dimension)
        return self.generator(noise, conditions).flatten(1)  # type: ignore[no-any-return]

    def _conditions(self, count: int) -> Tensor:
        """Classes from the bought frequencies, never from images."""
        return torch.multinomial(torch.tensor(self.frequencies), count, replacement=True)

    def _as_records(self, pixels: Tensor, conditions: Tensor) -> Tensor:
        """Pixels between -1 and 1, and the class."""
        scaled = 2.0 * pixels - 1.0
        if not self.label_width:
            return scaled
        return torch.cat((scaled, LABEL_SCALE * F.one_hot(conditions, self.label_width).float()), dim=1)

    def checkpoint(self) -> Checkpoint:
        """The generator and what was measured."""
        values = {**position_of(self), "step": self.plan.steps_done, "frequencies": self.frequencies}
        return Checkpoint(tensors_of(self, KEPT), values)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Continue where the checkpoint was taken; noise is drawn afresh, and so is the split."""
        resume(self, checkpoint.values)
        put_back(self, KEPT, checkpoint.tensors)
        self.frequencies = tuple(checkpoint.values["frequencies"])


def split_images(images: EncodedImages, parts: int, order: np.ndarray) -> list[np.ndarray]:
    """Places of the images of each part: units in this order, cut into parts of almost as many; all images of a unit are in one part."""
    starts = images.unit_starts
    if starts is None:
        return list(np.array_split(order, parts))
    found = []
    for units in np.array_split(order, parts):
        of_units = [
            np.arange(starts[unit], min(starts[unit + 1], starts[unit] + images.max_images_per_unit)) for unit in units
        ]
        found.append(np.concatenate(of_units) if of_units else np.zeros(0, dtype=np.int64))
    return found
