"""IDPGAN: a conditional WGAN-GP with decaying noise, adaptive thresholds and clustered clipping.

Reads like the paper's Algorithm 4, with its privacy analysis replaced by docs/privacy.md, One private step. Every line that touches
private rows is preceded by taking its event from the plan:
  tables or a mixture  GaussianEvent(…)                          once, where networks begin near them
  label frequencies   GaussianEvent("label_counts")              once, where the order conditions and no tables say them
  relevance           GaussianEvent("relevance")                 once, where the order buys it
  critic step         SampledStepEvent                           gradient sum and histogram of norms on one Poisson draw
Everything else (generator step, averages, thresholds, clusters) is post-processing of what those released.
What a record is, and which networks see it, is the business of `TableIdpgan` and `ImageIdpgan`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from service.methods.idpgan.knobs import AdaptiveCriticSteps, AdaptiveThresholds
from service.methods.idpgan.price import RELEVANCE
from service.methods.idpgan.work import GENERATOR_BATCH
from service.methods.knobs import settled_rate
from workers.checkpoints import Checkpoint, position_of, put_back, resume, tensors_of
from workers.engines.choosing import choose_engine
from workers.mechanism import CriticBatch, CriticLoss, PerUnitGradients, PrivateSum
from workers.mechanism.clipping import clip_and_sum
from workers.mechanism.clusters import ClipGroups
from workers.mechanism.copies import mean_of_copies
from workers.mechanism.noise import release
from workers.mechanism.sampling import poisson_sample
from workers.mechanism.thresholds import geometric_grid, norm_histogram, thresholds_from
from workers.methods.idpgan.step_knobs.bought import bought_relevance
from workers.methods.idpgan.step_knobs.step import ShapedStep
from workers.methods.labels import drawn_labels, measured_frequencies
from workers.numerics.averages import average_of, descend, move_average
from workers.numerics.optimizers import OF_KIND
from workers.numerics.slopes import squared_distance_from_one
from workers.numerics.workspace import Workspace

if TYPE_CHECKING:
    from service.methods.idpgan.price import TrainedOrder
    from workers.generators.released import Released
    from workers.mechanism.secure_random import SecureRandom
    from workers.plan import Plan

CRITIC_STEPS_CLIMB = (1, 2, 5, 10, 20, 50, 100, 200)


class Idpgan(ABC):
    """The state of one run and its three moves: measure, critic step, generator step."""

    kept: ClassVar[tuple[str, ...]] = ("generator", "averaged_generator", "critic", "generator_adam", "critic_adam")
    """By checkpoints."""
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
        self.order, self.plan, self.units = order, plan, units
        self.randomness, self.device = randomness, device
        self.is_private = randomness.is_private
        self.sampling_probability = settled_rate(order.sampling_probability)
        # The normaliser is the constant q·n, never the drawn batch size.
        self.expected_units = self.sampling_probability * units
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
        self.averaged_generator = average_of(self.generator)
        self.tensors = list(self.critic.parameters())  # W_1, b_1, …, b_{L-1}, W_L
        self.step = ShapedStep(order.private_step, self.tensors, mask_share=order.mask_share)
        self.gradients = choose_engine(
            self.critic, rows_per_unit=rows_per_unit, workspace=Workspace(), in_full=self.step.in_full
        )
        self.engine = self.gradients.name
        self.bounds = self.gradients.bounds(units=units, expected_units=self.expected_units)
        betas, optimizer = (order.optimizer.beta1, order.optimizer.beta2), OF_KIND[order.optimizer.kind]
        self.critic_adam = optimizer(self.tensors, learning_rate=order.optimizer.critic_learning_rate, betas=betas)
        self.generator_adam = optimizer(
            self.generator.parameters(), learning_rate=order.optimizer.generator_learning_rate, betas=betas
        )
        self.generator_steps, self.last_generator_step = 0, 0
        self.critic_steps = CRITIC_STEPS_CLIMB[0]
        self.average_accuracy = 1.0

        rule = order.thresholds
        self.adaptive = rule if isinstance(rule, AdaptiveThresholds) else None
        clip_norm = rule.initial_clip_norm if isinstance(rule, AdaptiveThresholds) else rule.clip_norm
        self.thresholds = (clip_norm / math.sqrt(len(self.step.shapes)),) * len(self.step.shapes)
        self.clip_groups = self._cluster(self.thresholds)
        self.average_histogram: Tensor | None = None
        if self.adaptive is not None:
            self.edges = geometric_grid(
                smallest=self.adaptive.smallest, largest=self.adaptive.largest, bins=self.adaptive.bins
            )

    @property
    def steps_before(self) -> int:
        """Private steps of the plan that come before the critic's first."""
        return 0

    def measure(self) -> None:
        """All private releases before the first step: noisy label counts, which say how frequent the labels of fakes are.

        Then the relevance of inputs, where the order buys it.
        """
        if self.order.condition_on is not None:
            self.condition_frequencies = measured_frequencies(self.plan, self._label_counts, self.randomness)
        if self.order.private_step is not None and self.order.private_step.buys_relevance:
            self._measure_relevance()

    def _measure_relevance(self) -> None:
        noise_multiplier = self.plan.take_gaussian(RELEVANCE)
        self.step.take_relevance(
            bought_relevance(
                self.critic,
                (self._rows(units)[:2] for units in self._blocks(np.arange(self.units))),
                self._generated(),
                noise_multiplier=noise_multiplier,
                randomness=self.randomness,
                bounds=replace(self.bounds, most_units=self.units),
            )
        )

    @torch.no_grad()
    def _generated(self) -> Tensor:
        """Records of the generator, by bought frequencies."""
        return self._fakes(self.generator, self._drawn_conditions(self.generator_batch))

    def critic_step(self) -> None:
        """One private step: draw, clip, sum, noise, update; then thresholds and clusters for the next one."""
        rule = self.adaptive
        noise = self.plan.take_sampled_step(
            sampling_probability=self.sampling_probability, histogram=False if rule is None else None
        )
        # The step's own number, from 0: its event is taken already.
        self.step.prepare(self.plan.steps_done - 1 - self.steps_before, self.critic, self._generated)
        # S ~ Poisson(q); it may be empty and the step is like any other: noise only.
        drawn = poisson_sample(
            units=self.units, sampling_probability=self.sampling_probability, randomness=self.randomness
        )[: self.bounds.most_units]
        clipped = clip_and_sum(
            self._per_unit_gradients(drawn),
            groups=self.clip_groups.groups,
            clip_norms=self.clip_groups.clip_norms,
            shapes=self.step.shapes,
            bounds=self.bounds,
            device=self.device,
        )
        # Noise once, on the sum; the groups together have multiplier σ_t whatever K is.
        noisy = release(
            clipped.sum,
            noise_multiplier=noise.gradient_noise_multiplier,
            randomness=self.randomness,
            allocation=self.order.allocation,
            importance=self.step.importance,
        )
        gradients = [total.to(torch.float32) / self.expected_units for total in noisy]
        gradients = self.step.applied(gradients)
        if not self.loss.paired:
            # Separate loss: the mean of D(G(z)) touches no row, so it is added without noise.
            fakes = self.step.map.kept(self._gradient_of_fakes())
            gradients = [a + b for a, b in zip(gradients, fakes, strict=True)]
        for tensor, gradient in zip(self.tensors, gradients, strict=True):
            tensor.grad = gradient
        self.critic_adam.step()
        self.keep_within_bound()

        if rule is not None and noise.histogram_noise_multiplier is not None:
            # The second half of the same joint Gaussian release: norms of the same draw, before clipping.
            histogram = norm_histogram(clipped.tensor_norms, self.edges)
            (noisy_histogram,) = release(
                histogram, noise_multiplier=noise.histogram_noise_multiplier, randomness=self.randomness
            )
            self._adapt(rule, noisy_histogram.cpu().double())

    @torch.no_grad()
    def keep_within_bound(self) -> None:
        """Noise walks the critic's weights away, and the penalty alone calls them back; of what was released, so free."""
        bound = self.order.critic_weight_bound
        if bound is not None:
            for tensor in self.tensors:
                tensor.clamp_(-bound, bound)

    def generator_step(self) -> None:
        """Follow the critic with public noise and noisy frequencies; reads no row, so it is post-processing."""
        records, distance = self._batch_to_follow()
        scores = self.critic(records)
        descend(self.generator_adam, distance - scores.mean())
        self.generator_steps, self.last_generator_step = self.generator_steps + 1, self.plan.steps_done
        decay = self.order.optimizer.moving_average_decay
        move_average(self.averaged_generator, self.generator.parameters(), decay=decay, taken=self.generator_steps)
        if self.order.adaptive_critic_steps is not None:
            self._climb(self.order.adaptive_critic_steps, float((scores < 0.0).double().mean()))

    @property
    def rows_per_unit(self) -> float | None:
        """Mean rows of a unit, where that was charged."""
        return None

    def warm_up(self, on_share: Callable[[float], None]) -> None:  # noqa: B027 - runs from nothing have none
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
        for units in self._blocks(drawn):
            batch = self._critic_batch(units)
            found = mean_of_copies(self.gradients.gradients(batch, self.loss), self.order.copies)
            yield self.step.seen(found, self.clip_groups)

    def _blocks(self, units: np.ndarray) -> Iterator[np.ndarray]:
        for start in range(0, len(units), self.bounds.units_per_block):
            yield units[start : start + self.bounds.units_per_block]

    @torch.no_grad()
    def _critic_batch(self, units: np.ndarray) -> CriticBatch:
        """What the critic's loss is of for these units. Private."""
        return self._batch_of(*self._rows_to_clip(units))

    @torch.no_grad()
    def _batch_of(self, real: Tensor, present: Tensor, conditions: Tensor | None) -> CriticBatch:
        """Records, private or public, with a fake of the same label and a place x̂ between the two for each."""
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

    def _rows_to_clip(self, units: np.ndarray) -> tuple[Tensor, Tensor, Tensor | None]:
        """The same as a private step reads them, with copies where the order has any. Private."""
        return self._rows(units)

    @abstractmethod
    def _fakes(self, generator: nn.Module, conditions: Tensor | None, rows: int | None = None) -> Tensor:
        """G(z) as records: one per condition, or `rows`, or a generator batch."""

    def _drawn_conditions(self, count: int) -> Tensor | None:
        """Labels from the noisy frequencies, never from rows."""
        return drawn_labels(self.condition_frequencies, count, self.randomness, self.device)

    def _gradient_of_fakes(self) -> tuple[Tensor, ...]:
        """Gradient of the mean of D(G(z)), and of a penalty there, over public noise and noisy frequencies."""
        with torch.no_grad():
            records = self._fakes(self.generator, self._drawn_conditions(self.generator_batch))
        penalty: Tensor | float = 0.0
        if self.penalty_of_fakes:
            records.requires_grad_()
            (slope,) = torch.autograd.grad(self.critic(records).sum(), records, create_graph=True)
            penalty = self.penalty_of_fakes * squared_distance_from_one(slope).mean()
        return torch.autograd.grad(self.critic(records).mean() + penalty, self.tensors)

    def _adapt(self, rule: AdaptiveThresholds, noisy_histogram: Tensor) -> None:
        """ACTS: average the noisy histograms, read off thresholds; WC: regroup. Post-processing, for later steps."""
        if self.average_histogram is None:
            self.average_histogram = torch.zeros_like(noisy_histogram)
        self.average_histogram.lerp_(noisy_histogram, 1.0 - rule.average_decay)
        thresholds = thresholds_from(self.average_histogram, self.edges, rule=rule.rule, quantile=rule.quantile)
        if thresholds != self.thresholds:
            self.thresholds = thresholds
            self.clip_groups = self._cluster(thresholds)

    def _cluster(self, thresholds: tuple[float, ...]) -> ClipGroups:
        return self.step.groups(thresholds, self.order.clusters)

    def checkpoint(self) -> Checkpoint:
        """Everything needed to go on; all of it noisy or public."""
        tensors = {**tensors_of(self, self.kept), **self.step.tensors()}
        if self.average_histogram is not None:
            tensors["average_histogram"] = self.average_histogram
        values = {
            **position_of(self),
            "step": self.plan.steps_done,
            "thresholds": self.thresholds,
            "condition_frequencies": self.condition_frequencies,
            "generator_steps": self.generator_steps,
            "last_generator_step": self.last_generator_step,
            "critic_steps": self.critic_steps,
            "average_accuracy": self.average_accuracy,
        }
        return Checkpoint(tensors, values)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Continue where the checkpoint was taken; noise is drawn afresh."""
        values, tensors = checkpoint.values, checkpoint.tensors
        resume(self, values)
        put_back(self, self.kept, tensors)
        self.average_histogram = tensors.get("average_histogram")
        self.step.restore(tensors)
        self.thresholds = tuple(values["thresholds"])
        self.clip_groups = self._cluster(self.thresholds)
        self.generator_steps, self.last_generator_step = values["generator_steps"], values["last_generator_step"]
        self.critic_steps, self.average_accuracy = values["critic_steps"], values["average_accuracy"]
        frequencies = values["condition_frequencies"]
        self.condition_frequencies = None if frequencies is None else tuple(frequencies)
