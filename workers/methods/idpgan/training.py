"""IDPGAN: a conditional WGAN-GP with decaying noise, adaptive thresholds and clustered clipping.

Reads like the paper's Algorithm 4, with its privacy analysis replaced by docs/privacy.md, One private step. Every line that touches
private rows is preceded by taking its event from the plan:
  tables              GaussianEvent("marginals"), …              once, where a table's networks begin near them
  label frequencies   GaussianEvent("label_counts")              once, where the order conditions and no tables say them
  critic step         SampledStepEvent                           gradient sum and histogram of norms on one Poisson draw
Everything else (generator step, averages, thresholds, clusters) is post-processing of what those released.
What a record is, and which networks see it, is the business of `TableIdpgan` and `ImageIdpgan`.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from service.base.errors import InvalidOrder
from service.methods.idpgan.knobs import AdaptiveCriticSteps, AdaptiveThresholds, DbscanClusters
from service.methods.idpgan.price import LABEL_COUNTS
from workers.checkpoints import Checkpoint, adam_tensors, module_tensors, restore_adam, restore_module
from workers.engines.choosing import choose_engine
from workers.mechanism import CriticBatch, CriticLoss, PerUnitGradients, PrivateSum
from workers.mechanism.clipping import clip_and_sum
from workers.mechanism.clusters import ClipGroups, dbscan_groups, one_group
from workers.mechanism.label_counts import frequencies_from
from workers.mechanism.noise import release, release_counts
from workers.mechanism.sampling import poisson_sample
from workers.mechanism.thresholds import geometric_grid, norm_histogram, thresholds_from
from workers.numerics.adam import Adam
from workers.numerics.workspace import Workspace
from workers.plan import Plan, StepNotOnPlan

if TYPE_CHECKING:
    from service.methods.idpgan.price import TrainedOrder
    from workers.generators.released import Released
    from workers.mechanism.secure_random import SecureRandom

GENERATOR_BATCH = (64, 4_096)
"""Smallest and largest generator batch; in between it is a part of the expected draw, which is public."""

SMALLEST_SQUARED_SLOPE = 1e-12
"""Keeps the gradient of ‖∇D‖ finite where ∇D is zero."""

CRITIC_STEPS_CLIMB = (1, 2, 5, 10, 20, 50, 100, 200)


class Idpgan(ABC):
    """The state of one run and its three moves: measure, critic step, generator step."""

    generator_batch_share: ClassVar[float] = 1.0
    """How large a generator batch is, as a part of the expected draw."""

    def __init__(
        self,
        order: TrainedOrder,
        plan: Plan,
        randomness: SecureRandom,
        device: torch.device,
        *,
        units: int,
        rows_per_unit: int,
        networks: tuple[nn.Module, nn.Module],
    ) -> None:
        """Networks: generator and critic."""
        if order.sampling_probability is None:
            raise InvalidOrder("sampling_probability must be resolved before training", where="sampling_probability")
        self.order, self.plan, self.units = order, plan, units
        self.randomness, self.device = randomness, device
        self.is_private = randomness.is_private
        self.sampling_probability = order.sampling_probability
        # The normaliser is the constant q·n, never the drawn batch size.
        self.expected_units = order.sampling_probability * units
        self.generator_batch = int(
            np.clip(math.ceil(self.generator_batch_share * self.expected_units), *GENERATOR_BATCH)
        )
        self.loss = CriticLoss(paired=order.critic_loss == "paired", gradient_penalty=order.gradient_penalty)

        # Separate loss: a penalty at generated records touches no row either, and is added with D(G(z)).
        self.penalty_of_fakes = 0.0
        if order.gradient_penalty_at == "generated" and not self.loss.paired:
            self.loss, self.penalty_of_fakes = CriticLoss(paired=False, gradient_penalty=0.0), order.gradient_penalty

        self.condition_frequencies: tuple[float, ...] | None = None
        self.generator, self.critic = (network.to(device) for network in networks)
        self.averaged_generator = copy.deepcopy(self.generator).eval().requires_grad_(requires_grad=False)
        self.tensors = list(self.critic.parameters())  # W_1, b_1, …, b_{L-1}, W_L
        self.gradients = choose_engine(self.critic, rows_per_unit=rows_per_unit, workspace=Workspace())
        self.engine = self.gradients.name
        self.bounds = self.gradients.bounds(units=units, expected_units=self.expected_units)
        betas = (order.optimizer.beta1, order.optimizer.beta2)
        self.critic_adam = Adam(self.tensors, learning_rate=order.optimizer.critic_learning_rate, betas=betas)
        self.generator_adam = Adam(
            self.generator.parameters(), learning_rate=order.optimizer.generator_learning_rate, betas=betas
        )
        self.generator_steps, self.last_generator_step = 0, 0
        self.critic_steps = CRITIC_STEPS_CLIMB[0]
        self.average_accuracy = 1.0

        rule = order.thresholds
        self.adaptive = rule if isinstance(rule, AdaptiveThresholds) else None
        clip_norm = rule.initial_clip_norm if isinstance(rule, AdaptiveThresholds) else rule.clip_norm
        self.thresholds = (clip_norm / math.sqrt(len(self.tensors)),) * len(self.tensors)
        self.clip_groups = self._cluster(self.thresholds)
        self.average_histogram: Tensor | None = None
        if self.adaptive is not None:
            self.edges = geometric_grid(
                smallest=self.adaptive.smallest, largest=self.adaptive.largest, bins=self.adaptive.bins
            )

    def measure(self) -> None:
        """All private releases before the first step: noised label counts, which say how frequent the labels of fakes are.

        A label is part of its record.
        """
        if self.order.condition_on is None:
            return
        noise_multiplier = self.plan.take_gaussian(LABEL_COUNTS)
        counts = self._label_counts()
        (noised,) = release_counts(
            counts,
            noise_stds=[noise_multiplier * counts.sensitivities[0]],
            noise_multiplier=noise_multiplier,
            randomness=self.randomness,
        )
        self.condition_frequencies = frequencies_from(noised)

    def critic_step(self) -> None:
        """One private step: draw, clip, sum, noise, update; then thresholds and clusters for the next one."""
        rule = self.adaptive
        noise = self.plan.take_sampled_step(
            sampling_probability=self.sampling_probability, histogram=False if rule is None else None
        )
        # S ~ Poisson(q); it may be empty and the step is like any other: noise only.
        drawn = poisson_sample(
            units=self.units, sampling_probability=self.sampling_probability, randomness=self.randomness
        )[: self.bounds.most_units]
        clipped = clip_and_sum(
            self._per_unit_gradients(drawn),
            groups=self.clip_groups.groups,
            clip_norms=self.clip_groups.clip_norms,
            shapes=[tensor.shape for tensor in self.tensors],
            bounds=self.bounds,
            device=self.device,
        )
        # Noise once, on the sum; the groups together have multiplier σ_t whatever K is.
        noised = release(
            clipped.sum,
            noise_multiplier=noise.gradient_noise_multiplier,
            randomness=self.randomness,
            allocation=self.order.allocation,
        )
        gradients = [total.to(torch.float32) / self.expected_units for total in noised]
        if not self.loss.paired:
            # Separate loss: the mean of D(G(z)) touches no row, so it is added without noise.
            gradients = [a + b for a, b in zip(gradients, self._gradient_of_fakes(), strict=True)]
        for tensor, gradient in zip(self.tensors, gradients, strict=True):
            tensor.grad = gradient
        self.critic_adam.step()
        if self.order.critic_weight_bound is not None:
            # Noise walks the weights away, and the penalty alone calls them back; of what was released, so free.
            with torch.no_grad():
                for tensor in self.tensors:
                    tensor.clamp_(-self.order.critic_weight_bound, self.order.critic_weight_bound)

        if rule is not None and noise.histogram_noise_multiplier is not None:
            # The second half of the same joint Gaussian release: norms of the same draw, before clipping.
            histogram = norm_histogram(clipped.tensor_norms, self.edges)
            (noised_histogram,) = release(
                histogram, noise_multiplier=noise.histogram_noise_multiplier, randomness=self.randomness
            )
            self._adapt(rule, noised_histogram.cpu().double())

    def generator_step(self) -> None:
        """Follow the critic with public noise and bought frequencies; reads no row, so it is post-processing."""
        records, distance = self._batch_to_follow()
        scores = self.critic(records)
        wanted = distance - scores.mean()
        gradients = torch.autograd.grad(wanted, list(self.generator.parameters()))
        for parameter, gradient in zip(self.generator.parameters(), gradients, strict=True):
            # A critic that overflowed must not end the run: whether it did would be told by the error.
            parameter.grad = gradient.nan_to_num(0.0, 0.0, 0.0)
        self.generator_adam.step()
        self.generator_steps, self.last_generator_step = self.generator_steps + 1, self.plan.steps_done
        taken = self.generator_steps
        # A short run must not end as an average of its initial weights: the decay grows with the steps taken.
        weight = 1.0 - min(self.order.optimizer.moving_average_decay, (1.0 + taken) / (10.0 + taken))
        with torch.no_grad():
            torch._foreach_lerp_(list(self.averaged_generator.parameters()), list(self.generator.parameters()), weight)
            if self.order.adaptive_critic_steps is not None:
                self._climb(self.order.adaptive_critic_steps, float((scores < 0.0).double().mean()))

    @property
    def rows_per_unit(self) -> float | None:
        """Mean rows of a unit, where that was charged."""
        return None

    def warm_up(self, on_share: Callable[[float], None]) -> None:  # noqa: B027 - only tables have any
        """What is free between the measurements and the first private step. `on_share` is told how much of it is done."""

    @abstractmethod
    def release(self) -> Released:
        """What is published of it."""

    def _batch_to_follow(self) -> tuple[Tensor, Tensor | float]:
        """Records of the generator, and what its loss has beside the critic's scores of them; from what was released before."""
        return self._fakes(self.generator, self._drawn_conditions(self.generator_batch)), 0.0

    def generator_is_due(self) -> bool:
        """Whether as many critic steps have been taken since the last generator step as the order says."""
        steps = self.order.critic_steps_per_generator_step
        if self.order.adaptive_critic_steps is not None:
            steps = self.critic_steps
        return self.plan.steps_done - self.last_generator_step >= steps

    def _climb(self, rule: AdaptiveCriticSteps, accuracy: float) -> None:
        """More critic steps per generator step once the critic no longer sees through generated records."""
        self.average_accuracy += (1.0 - rule.average_decay) * (accuracy - self.average_accuracy)
        if self.average_accuracy < rule.threshold and self.critic_steps < CRITIC_STEPS_CLIMB[-1]:
            self.critic_steps = CRITIC_STEPS_CLIMB[CRITIC_STEPS_CLIMB.index(self.critic_steps) + 1]
            self.average_accuracy = 1.0

    def _per_unit_gradients(self, drawn: np.ndarray) -> Iterator[PerUnitGradients]:
        """The draw in blocks of whole units, each as per-unit gradients of the critic's loss."""
        for start in range(0, len(drawn), self.bounds.units_per_block):
            batch = self._critic_batch(drawn[start : start + self.bounds.units_per_block])
            yield self.gradients.gradients(batch, self.loss)

    @torch.no_grad()
    def _critic_batch(self, units: np.ndarray) -> CriticBatch:
        """Rows of these units, with a fake of the same label and a place x̂ between the two for each."""
        real, present, conditions = self._rows(units)
        mix = self.randomness.uniforms(len(real), 1, dtype=torch.float32, device=self.device)
        return CriticBatch(
            real=real,
            fake=self._fakes(self.generator, conditions, len(real)),
            mix=mix if self.order.gradient_penalty_at == "interpolates" else torch.zeros_like(mix),
            present=present,
            rows_per_unit=self.bounds.rows_per_unit,
        )

    @abstractmethod
    def _label_counts(self) -> PrivateSum:
        """How many records every value of the condition has. Private."""

    @abstractmethod
    def _rows(self, units: np.ndarray) -> tuple[Tensor, Tensor, Tensor | None]:
        """Records (R, W) of these units, which of them are present (R,), and their conditions (R,). Private."""

    @abstractmethod
    def _fakes(self, generator: nn.Module, conditions: Tensor | None, rows: int | None = None) -> Tensor:
        """G(z) as records: one per condition, or `rows`, or a generator batch."""

    def _drawn_conditions(self, count: int) -> Tensor | None:
        """Labels from the bought frequencies, never from rows."""
        if self.condition_frequencies is None:
            return None
        cumulative = torch.tensor(self.condition_frequencies, dtype=torch.float64).cumsum(0)
        drawn = torch.searchsorted(cumulative, self.randomness.uniforms(count) * cumulative[-1])
        return drawn.clamp(max=len(cumulative) - 1).to(self.device)

    def _gradient_of_fakes(self) -> tuple[Tensor, ...]:
        """Gradient of the mean of D(G(z)), and of a penalty there, over public noise and bought frequencies."""
        with torch.no_grad():
            records = self._fakes(self.generator, self._drawn_conditions(self.generator_batch))
        penalty: Tensor | float = 0.0
        if self.penalty_of_fakes:
            records.requires_grad_()
            (slope,) = torch.autograd.grad(self.critic(records).sum(), records, create_graph=True)
            lengths = (slope.square().sum(dim=1) + SMALLEST_SQUARED_SLOPE).sqrt()
            penalty = self.penalty_of_fakes * (lengths - 1.0).square().mean()
        return torch.autograd.grad(self.critic(records).mean() + penalty, self.tensors)

    def _adapt(self, rule: AdaptiveThresholds, noised_histogram: Tensor) -> None:
        """ACTS: average the noised histograms, read off thresholds; WC: regroup. Post-processing, for later steps."""
        if self.average_histogram is None:
            self.average_histogram = torch.zeros_like(noised_histogram)
        self.average_histogram.lerp_(noised_histogram, 1.0 - rule.average_decay)
        thresholds = thresholds_from(self.average_histogram, self.edges, rule=rule.rule, quantile=rule.quantile)
        if thresholds != self.thresholds:
            self.thresholds = thresholds
            self.clip_groups = self._cluster(thresholds)

    def _cluster(self, thresholds: tuple[float, ...]) -> ClipGroups:
        clusters = self.order.clusters
        if not isinstance(clusters, DbscanClusters):
            return one_group(thresholds)
        return dbscan_groups(
            thresholds,
            is_bias=[tensor.dim() == 1 for tensor in self.tensors],
            eps=clusters.eps,
            min_samples=clusters.min_samples,
        )

    def checkpoint(self) -> Checkpoint:
        """Everything needed to go on; all of it noised or public."""
        tensors = {
            **module_tensors(self.generator, "generator"),
            **module_tensors(self.averaged_generator, "averaged_generator"),
            **module_tensors(self.critic, "critic"),
            **adam_tensors(self.generator_adam, "generator_adam"),
            **adam_tensors(self.critic_adam, "critic_adam"),
        }
        if self.average_histogram is not None:
            tensors["average_histogram"] = self.average_histogram
        values = {
            "plan": self.plan.digest(),
            "position": self.plan.position,
            "step": self.plan.steps_done,
            "thresholds": self.thresholds,
            "condition_frequencies": self.condition_frequencies,
            "generator_steps": self.generator_steps,
            "last_generator_step": self.last_generator_step,
            "critic_steps": self.critic_steps,
            "average_accuracy": self.average_accuracy,
            "is_private": self.is_private,
        }
        return Checkpoint(tensors, values)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Continue where the checkpoint was taken; noise is drawn afresh."""
        values, tensors = checkpoint.values, checkpoint.tensors
        if values["plan"] != self.plan.digest():
            raise StepNotOnPlan("this checkpoint belongs to another price list; start the release again")
        self.plan.resume(values["position"])
        # A run that was touched by a test seed stays marked.
        self.is_private = self.is_private and values["is_private"]
        for module, name in (
            (self.generator, "generator"),
            (self.averaged_generator, "averaged_generator"),
            (self.critic, "critic"),
        ):
            restore_module(module, tensors, name)
        restore_adam(self.generator_adam, tensors, "generator_adam")
        restore_adam(self.critic_adam, tensors, "critic_adam")
        self.average_histogram = tensors.get("average_histogram")
        self.thresholds = tuple(values["thresholds"])
        self.clip_groups = self._cluster(self.thresholds)
        self.generator_steps, self.last_generator_step = values["generator_steps"], values["last_generator_step"]
        self.critic_steps, self.average_accuracy = values["critic_steps"], values["average_accuracy"]
        frequencies = values["condition_frequencies"]
        self.condition_frequencies = None if frequencies is None else tuple(frequencies)
