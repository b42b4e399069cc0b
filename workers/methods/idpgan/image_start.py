"""IDPGAN of images that begins with a measured mixture: part of the price list measures it, the rest trains.

The generator is the mixture followed by a perceptron that corrects its images and at first changes none, so that the free
start is the mixture itself and not a network's likeness of it. Private rows are read by `ImageMixture.measure`, by the first
events of the plan, and then by critic steps like any other's.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import torch

from service.base.errors import InvalidOrder
from service.methods.idpgan.start import mixture_of
from service.releases.previews import TENSOR as PREVIEW
from workers.checkpoints import Checkpoint, module_tensors
from workers.methods.idpgan.images import PREVIEWED, ImageIdpgan
from workers.methods.mixture.measuring import ImageMixture
from workers.networks.corrected_mixture import CorrectedMixture

if TYPE_CHECKING:
    from torch import Tensor, nn

    from service.methods.idpgan.price import TrainedOrder
    from workers.encoding.images import EncodedImages
    from workers.mechanism.secure_random import SecureRandom
    from workers.plan import Plan

START = "mixture_first."
"""What tensors of the mixture are called in a checkpoint begins so."""


class MixtureFirstImages(ImageIdpgan):
    """A run that measures a mixture before its first step."""

    def __init__(
        self,
        order: TrainedOrder,
        plan: Plan,
        images: EncodedImages,
        randomness: SecureRandom,
        device: torch.device,
    ) -> None:
        if order.mixture_first is None:
            raise InvalidOrder("this order begins with no mixture", where="warm_start")
        self.mixture_first = order.mixture_first
        self.start = ImageMixture(mixture_of(order.mixture_first), plan, images, randomness)
        super().__init__(order, plan, images, randomness, device)

    @property
    def rows_per_unit(self) -> float | None:
        """Mean images of a unit, by the mixture's noisy counts."""
        return self.start.rows_per_unit

    def measure(self) -> None:
        """The whole mixture, whose counts say how frequent labels are."""
        self.start.measure()
        self._begin()

    @abstractmethod
    def _begin(self) -> None:
        """Everything that follows from the measured mixture; reads no row."""

    def measured_tensors(self) -> dict[str, Tensor]:
        """All that was measured, as checkpoints keep it."""
        return {START + name: tensor for name, tensor in self.start.checkpoint().tensors.items()}

    def take_measured(self, checkpoint: Checkpoint) -> dict[str, Tensor]:
        """The mixture goes on from a checkpoint's tensors; returns those that are not its own."""
        tensors = checkpoint.tensors
        self.start.take_back({n.removeprefix(START): t for n, t in tensors.items() if n.startswith(START)})
        return {name: tensor for name, tensor in tensors.items() if not name.startswith(START)}


class StartedImageIdpgan(MixtureFirstImages):
    """A run whose fakes are a mixture's images, corrected."""

    one_a_run = True

    def make_generator(self) -> nn.Module:
        return CorrectedMixture(self.images.shape, hidden=self.mixture_first.hidden, classes=self.classes)

    @property
    def noise_dimension(self) -> int:
        return self.corrected.noise_dimension

    @property
    def component_labels(self) -> tuple[int, ...]:
        return self.start.component_labels

    @property
    def component_frequencies(self) -> tuple[float, ...]:
        """The frequency of every cell of every class, from the mixture's noisy counts."""
        return self.start.component_frequencies

    @property
    def corrected(self) -> CorrectedMixture:
        if not isinstance(self.generator, CorrectedMixture):
            raise TypeError("the generator corrects no mixture")
        return self.generator

    def _begin(self) -> None:
        labels, mixture = self.start.component_labels, self.start.build().to(self.device)
        for generator in (self.generator, self.averaged_generator):
            if isinstance(generator, CorrectedMixture):
                generator.begin_with(mixture, labels)
        self.generator.to(self.device)
        self.averaged_generator.to(self.device)
        shares = torch.tensor(self.start.component_frequencies, dtype=torch.float64)
        of_class = torch.nn.functional.one_hot(torch.tensor(labels), self.classes).double()  # (K, classes)
        frequencies = shares @ of_class
        if self.order.condition_on is not None:
            self.condition_frequencies = tuple(frequencies.tolist())
        # Of every class, the running sum of its components' shares; those of other classes add nothing.
        within = (shares[:, None] * of_class).cumsum(0)
        empty = within[-1] <= 0.0
        within[:, empty] = of_class.cumsum(0)[:, empty]
        self.within = (within / within[-1].clamp(min=1e-300)).T.contiguous()  # (classes, K)

    def _fakes(self, generator: nn.Module, conditions: Tensor | None, rows: int | None = None) -> Tensor:
        """Corrected images as records, each of a component of its class."""
        if conditions is None:
            conditions = torch.zeros(rows or self.generator_batch, dtype=torch.int64, device=self.device)
        if not isinstance(generator, CorrectedMixture):
            raise TypeError("the generator corrects no mixture")
        uniforms = self.randomness.uniforms(len(conditions), 1)
        components = torch.searchsorted(self.within[conditions.cpu()], uniforms).squeeze(1)
        components = components.clamp(max=self.within.shape[1] - 1).to(self.device)
        size = generator.noise_dimension
        noise = self.randomness.normals(len(conditions), size, dtype=torch.float32, device=self.device)
        return self._as_records(generator.drawn(noise, components), conditions)

    @torch.no_grad()
    def preview(self) -> Tensor:
        """(classes, PREVIEWED, height, width, channels) uint8: of every class, components by their shares."""
        classes = min(self.classes, PREVIEWED)
        noise = torch.randn(PREVIEWED, self.noise_dimension, generator=torch.Generator().manual_seed(0))
        places = (torch.arange(PREVIEWED, dtype=torch.float64) + 0.5) / PREVIEWED
        rows: list[Tensor] = []
        for of_class in self.within[:classes]:
            components = torch.searchsorted(of_class, places).clamp(max=len(of_class) - 1)
            rows.extend(
                self.averaged_generator(noise[k : k + 1].to(self.device), components[k : k + 1].to(self.device))
                for k in range(PREVIEWED)
            )
        return torch.cat(rows).mul(255.0).round().to(torch.uint8).view(classes, PREVIEWED, *self.images.shape)

    def checkpoint(self) -> Checkpoint:
        """Everything needed to go on, with all that was measured."""
        saved = super().checkpoint()
        trained = {name: tensor for name, tensor in saved.tensors.items() if not _is_of_the_mixture(name)}
        return Checkpoint({**trained, **self.measured_tensors(), PREVIEW: self.preview()}, saved.values)

    def restore(self, checkpoint: Checkpoint) -> None:
        """The mixture first, of which the networks' weights are a correction."""
        others = self.take_measured(checkpoint)
        self._begin()
        for generator, name in ((self.generator, "generator"), (self.averaged_generator, "averaged_generator")):
            others |= {key: t for key, t in module_tensors(generator, name).items() if _is_of_the_mixture(key)}
        super().restore(Checkpoint(others, checkpoint.values))


def _is_of_the_mixture(name: str) -> bool:
    """Tensors that both generators share, and that the measurement says once."""
    return ".mixture." in name or name.endswith(".component_labels")
