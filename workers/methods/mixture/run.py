"""The frame around a method for images: measure once, keep it, build. It reads no record itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from workers.hooks import UNATTENDED, Hooks
from workers.methods.mixture.measuring import ImageMixture
from workers.training import training_threads

if TYPE_CHECKING:
    from service.methods.orders import MixtureOrder
    from workers.encoding.images import EncodedImages
    from workers.mechanism.secure_random import SecureRandom
    from workers.networks.gaussian_mixture import GaussianMixture
    from workers.plan import Plan


@dataclass(frozen=True)
class MeasuredImages:
    """What a release of images is made of. It may be published only if `is_private`."""

    generator: GaussianMixture
    component_labels: tuple[int, ...]
    component_frequencies: tuple[float, ...]
    is_private: bool
    engine: str = "none: noised moments"
    rows_per_unit: float | None = None
    """Mean images of a unit, where that was charged."""


def measure_images(
    order: MixtureOrder,
    plan: Plan,
    images: EncodedImages,
    randomness: SecureRandom,
    hooks: Hooks = UNATTENDED,
) -> MeasuredImages:
    """Measure by the events of `plan`, or take what an earlier attempt measured; then build, which reads no record.

    Every measurement is charged from the beginning, so that stopping in between would save nothing: it is asked before.
    """
    hooks.stop_if_asked(plan.steps_done)
    torch.set_num_threads(training_threads())
    method = ImageMixture(order, plan, images, randomness)
    hooks.measure_or_restore(method)
    hooks.on_progress(order.steps)
    return MeasuredImages(
        method.build(),
        method.component_labels,
        method.component_frequencies,
        method.is_private,
        rows_per_unit=method.rows_per_unit,
    )
