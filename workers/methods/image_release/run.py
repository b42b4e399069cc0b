"""The run of `method: image_release`: choose a size, measure coefficients, build; one private release each."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from service.methods.image_release.price import COEFFICIENTS, SINGULAR_VALUES, SIZE
from service.methods.image_release.resolve import unit_rows_and_columns
from service.privacy.events import ExponentialEvent, PureEvent
from workers.checkpoints import Checkpoint, position_of, resume
from workers.encoding.images import cosines
from workers.generators.released import ImageRelease
from workers.mechanism import PrivateIntegers, PrivateSum
from workers.mechanism import image_coefficients as exact
from workers.mechanism.exponential import choose
from workers.mechanism.geometric import release_integers
from workers.mechanism.noise import release_counts
from workers.methods.image_release.repair import with_values
from workers.networks.released_images import ReleasedImages

if TYPE_CHECKING:
    from service.methods.image_release.order import ImageReleaseOrder
    from workers.encoding.images import EncodedImages
    from workers.hooks import Hooks
    from workers.mechanism.secure_random import SecureRandom
    from workers.plan import Plan
    from workers.sources import Source

HALF_LEVELS = 2.0 * exact.WHITE
"""From black to white."""

Floats = NDArray[np.float64]


class Run:
    """Measure once; then build, which reads no image."""

    def __init__(
        self, order: ImageReleaseOrder, plan: Plan, source: Source, randomness: SecureRandom, _device: torch.device
    ) -> None:
        images = source.images()
        self.order, self.plan, self.randomness, self.shape = order, plan, randomness, images.shape
        rows, columns = unit_rows_and_columns(order, images.shape[:2])
        self.unit = exact.UnitPixels(rows, columns, images.shape[2], images.max_images_per_unit)
        self.pixels, self.present = _placed(images)
        self.is_private = randomness.is_private
        self.released: Floats = np.zeros((0, 1, 1, 1))

    # -- private

    def measure(self) -> None:
        """Every release that is on the plan, each after its event was taken."""
        size = self._choose() if self.order.coefficients is None else self.order.coefficients
        coefficients = self._measure_coefficients(*self._bases(size))
        self.released = coefficients

    def _choose(self) -> int:
        event = self.plan.take(ExponentialEvent, SIZE)
        sizes = self.order.sizes
        bases = [(cosines(self.shape[0], size), cosines(self.shape[1], size)) for size in sizes]
        noises = [self._expected_noise(size) for size in sizes]
        losses = exact.size_losses(self.pixels, self.present, bases, noises, self.unit)
        return sizes[choose(losses, epsilon=event.epsilon, randomness=self.randomness)]

    def _expected_noise(self, size: int) -> float:
        """Norm of the noise on all coefficients of all images, in half levels; from the plan, which is public."""
        down, across = self._bases(size)
        if self.order.noise == "gaussian":
            noise_std = self.plan.upcoming_gaussian(COEFFICIENTS) * math.sqrt(exact.squared_l2(down, across, self.unit))
        else:
            epsilon = self.plan.upcoming_pure(COEFFICIENTS)
            noise_std = math.sqrt(2.0) * exact.l1(down, across, self.unit) / epsilon
        count = len(self.pixels) * size**2 * self.shape[2]
        return noise_std / exact.BASIS_SCALE**2 * math.sqrt(count)

    def _measure_coefficients(self, down: exact.WholeBasis, across: exact.WholeBasis) -> Floats:
        """(n, k, k, channels) with noise, as parts of the way from black to white."""
        if self.order.noise == "gaussian":
            noise_multiplier = self.plan.take_gaussian(COEFFICIENTS)
            private = exact.coefficients_of(self.pixels, self.present, down, across)
            noisy = self._gaussian(exact.gaussian_coefficients(private, down, across, self.unit), noise_multiplier)
        else:
            event = self.plan.take(PureEvent, COEFFICIENTS)
            private = exact.coefficients_of(self.pixels, self.present, down, across)
            whole = exact.whole_coefficients(private, down, across, self.unit)
            noisy = release_integers(whole, epsilon=event.epsilon, randomness=self.randomness).reshape(private.shape)
        found: Floats = noisy / (exact.BASIS_SCALE**2 * HALF_LEVELS)
        if self.order.singular_values_share > 0.0:
            values = self._measure_values(private, down, across)
            for image in range(len(found)):
                for channel in range(self.shape[2]):
                    found[image, :, :, channel] = with_values(found[image, :, :, channel], values[image, channel])
        return found

    def _measure_values(self, private: exact.Integers, down: exact.WholeBasis, across: exact.WholeBasis) -> Floats:
        if self.order.noise == "gaussian":
            noise_multiplier = self.plan.take_gaussian(SINGULAR_VALUES)
            values = exact.singular_values(private)
            moved = exact.values_l2(down, across, self.unit)
            noisy = self._gaussian(exact.gaussian_values(values, moved), noise_multiplier)
        else:
            event = self.plan.take(PureEvent, SINGULAR_VALUES)
            values = exact.singular_values(private)
            whole = PrivateIntegers(values.reshape(-1), exact.values_l1(down, across, self.unit))
            noisy = release_integers(whole, epsilon=event.epsilon, randomness=self.randomness).reshape(values.shape)
        return noisy / (exact.VALUE_SCALE * HALF_LEVELS)

    def _gaussian(self, private: PrivateSum, noise_multiplier: float) -> exact.Integers:
        (noisy,) = release_counts(
            private,
            noise_stds=[noise_multiplier * private.sensitivities[0]],
            noise_multiplier=noise_multiplier,
            randomness=self.randomness,
        )
        return noisy.numpy()

    def _bases(self, size: int) -> tuple[exact.WholeBasis, exact.WholeBasis]:
        down, across = (exact.WholeBasis.of(cosines(side, size)) for side in self.shape[:2])
        return down, across

    # -- post-processing

    def checkpoint(self) -> Checkpoint:
        """All that was measured; nothing of it is private any more."""
        return Checkpoint({"released": torch.from_numpy(self.released)}, position_of(self))

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from what an earlier attempt measured."""
        resume(self, checkpoint.values)
        self.released = checkpoint.tensors["released"].numpy()

    def finish(self, hooks: Hooks) -> ImageRelease:
        """The network that holds the images."""
        hooks.on_progress(self.order.progress_steps)
        count, size = self.released.shape[:2]
        # Rounded bases are not quite orthonormal: their pseudo-inverse undoes the rounding.
        down, across = (np.linalg.pinv(each.numbers / exact.BASIS_SCALE).T for each in self._bases(size))
        return ImageRelease(
            generator=ReleasedImages(*map(torch.from_numpy, (self.released, down, across))).eval(),
            noise_dimension=1,
            component_labels=(0,) * count,
            component_frequencies=(1.0 / count,) * count,
            one_a_run=False,
            copies=True,
            engine="none: noisy coefficients",
            is_private=self.is_private,
        )


def _placed(images: EncodedImages) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """(places, height, width, channels), and which are filled: as many places a unit as it may have images, whatever it has."""
    stacked = images.pixels.reshape(-1, *images.shape)
    if images.unit_starts is None:
        return stacked, images.labels >= 0
    most, starts = images.max_images_per_unit, images.unit_starts
    present = np.zeros((images.units, most), dtype=bool)
    placed = np.zeros((images.units, most, *images.shape), dtype=np.uint8)
    for unit in range(images.units):
        of_unit = slice(starts[unit], min(starts[unit + 1], starts[unit] + most))
        count = of_unit.stop - of_unit.start
        placed[unit, :count] = stacked[of_unit]
        present[unit, :count] = images.labels[of_unit] >= 0
    return placed.reshape(-1, *images.shape), present.reshape(-1)
