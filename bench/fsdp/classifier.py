"""A private classifier: cross-entropy on the same clipping, noise and knobs as the generators. Not a method of the service.

Every step is one `sampled_step` of the price list: a Poisson draw, per-unit gradients, clipped, summed, one Gaussian release.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from service.methods.idpgan.knobs import OneGroup
from service.methods.idpgan.private_step import PrivateStep
from service.privacy.calibration import least_noise
from service.privacy.events import Events, SampledStepEvent
from service.privacy.schedules import ConstantNoise, NoiseDecay, noise_levels
from workers.engines.held import HELD_ROUNDING, HELD_UNITS, HeldGradients
from workers.mechanism import DrawBounds
from workers.mechanism.clipping import clip_and_sum
from workers.mechanism.noise import release
from workers.mechanism.sampling import poisson_sample
from workers.mechanism.secure_random import SecureRandom
from workers.methods.idpgan.step_knobs.step import ShapedStep
from workers.numerics.activations import Activation, TemperedSigmoid
from workers.numerics.adam import Adam
from workers.numerics.workspace import Workspace

DELTA = 1e-5
TANH = TemperedSigmoid(2.0, 2.0, 1.0)
CLASSES = 10
CONSTANT = ConstantNoise()


class Classifier(nn.Module):
    """A perceptron of logits."""

    def __init__(self, width: int, hidden: int, activation: Activation = TANH) -> None:
        super().__init__()
        self.first, self.last, self.activation = nn.Linear(width, hidden), nn.Linear(hidden, CLASSES), activation

    def logits(self, records: Tensor) -> Tensor:
        found: Tensor = self.last(self.activation.value(self.first(records)))
        return found

    def forward(self, records: Tensor) -> Tensor:
        """Of the class that each record is taken for: what relevance is of."""
        return self.logits(records).amax(dim=1)


def cross_entropy_gradients(classifier: Classifier, records: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
    """The gradient of every record's loss (U, *size), in the order of `classifier.parameters()`.

    Adjacency:   zero-out one unit; a unit is one record.
    Sensitivity: unbounded; nothing may be released before clipping.
    """
    with torch.no_grad():
        state = classifier.activation.value(classifier.first(records))
        late = classifier.last(state).softmax(dim=1) - F.one_hot(labels, CLASSES).to(state.dtype)
        early = classifier.activation.slope(state) * (late @ classifier.last.weight)
        return (
            early.unsqueeze(2) * records.unsqueeze(1),
            early,
            late.unsqueeze(2) * state.unsqueeze(1),
            late,
        )


@dataclass(frozen=True)
class Setting:
    """The settings of one training; public."""

    epsilon: float | None
    """None: neither noise nor a price; what comes out may never be released."""
    steps: int
    batch: int
    hidden: int = 64
    clip_norm: float = 1.0
    learning_rate: float = 5e-3
    decay: NoiseDecay = CONSTANT


@dataclass(frozen=True)
class Ticket:
    """A lottery ticket (Frankle, Carbin 2019; DPLTH: Gondara et al. 2020): the weights that become largest on labelled public rows."""

    records: Tensor
    labels: Tensor
    share: float
    """Of each tensor; the rest is zero."""
    steps: int = 300
    batch: int = 256


def events_of(setting: Setting, units: int, sigma: float) -> Events:
    """The list of a training whose first step has this noise multiplier."""
    q = setting.batch / units
    levels = noise_levels(setting.decay, steps=setting.steps, sampling_probability=q)
    return tuple(SampledStepEvent(q, sigma * level, None, count) for level, count in levels)


def noise_multiplier(setting: Setting, units: int) -> float:
    """The noise multiplier of the first step, by the same calibration as that of orders."""
    if setting.epsilon is None:
        return 1e-9
    return least_noise(lambda sigma: events_of(setting, units, sigma), setting.epsilon, DELTA)[0]


def trained(
    setting: Setting,
    knobs: dict[str, Any],
    records: Tensor,
    labels: Tensor,
    *,
    public: Tensor,
    sigma: float,
    seed: int,
    ticket: Ticket | None = None,
) -> Classifier:
    """A classifier after all steps. `public` records say which inputs are relevant, where that is asked for; `ticket`, which weights are trained."""
    torch.manual_seed(seed)
    randomness, units, q = SecureRandom.from_test_seed(seed), len(records), setting.batch / len(records)
    classifier = Classifier(records.shape[1], setting.hidden)
    tensors = list(classifier.parameters())
    step = ShapedStep(PrivateStep.model_validate(knobs), tensors, mask_share=ticket.share if ticket else None)
    if ticket is not None:
        _find(ticket, classifier, step, setting.learning_rate)
    blocks, clip = len(step.shapes), setting.clip_norm if setting.epsilon is not None else 1e6
    groups = step.groups((clip / math.sqrt(blocks),) * blocks, OneGroup())
    most = min(units, 2 * setting.batch + 200)
    bounds, space = DrawBounds(most, HELD_UNITS, 1, block_rounding=HELD_ROUNDING), Workspace()
    adam = Adam(tensors, learning_rate=setting.learning_rate, betas=(0.9, 0.999))
    noises = [each.gradient_noise_multiplier for each in _steps(events_of(setting, units, sigma))]
    for number, noise in enumerate(noises):
        step.prepare(number, classifier, lambda: public)
        drawn = poisson_sample(units=units, sampling_probability=q, randomness=randomness)[:most]
        gradients = (
            step.seen(
                HeldGradients(
                    cross_entropy_gradients(classifier, records[some], labels[some]),
                    torch.ones(len(some), dtype=torch.bool),
                    space,
                ),
                groups,
            )
            for some in (torch.from_numpy(drawn[at : at + HELD_UNITS]) for at in range(0, len(drawn), HELD_UNITS))
        )
        clipped = clip_and_sum(
            gradients, groups=groups.groups, clip_norms=groups.clip_norms, shapes=step.shapes, bounds=bounds
        )
        noisy = release(clipped.sum, noise_multiplier=noise, randomness=randomness, importance=step.importance)
        applied = step.applied([total.to(torch.float32) / setting.batch for total in noisy])
        for tensor, gradient in zip(tensors, applied, strict=True):
            tensor.grad = gradient
        adam.step()
    return classifier


def _steps(events: Events) -> list[SampledStepEvent]:
    """One for each step."""
    return [event for event in events if isinstance(event, SampledStepEvent) for _ in range(event.count)]


def _find(ticket: Ticket, classifier: Classifier, step: ShapedStep, learning_rate: float) -> None:
    """Train on public rows without noise, take the mask, go back to the first weights, and prune."""
    tensors = list(classifier.parameters())
    first = [tensor.detach().clone() for tensor in tensors]
    adam = Adam(tensors, learning_rate=learning_rate, betas=(0.9, 0.999))
    for _ in range(ticket.steps):
        some = torch.randint(len(ticket.records), (ticket.batch,))
        adam.zero_grad()
        F.cross_entropy(classifier.logits(ticket.records[some]), ticket.labels[some]).backward()  # type: ignore[no-untyped-call]
        adam.step()
    step.take_mask(tensors)
    with torch.no_grad():
        for tensor, was in zip(tensors, first, strict=True):
            tensor.copy_(was)
    step.prune(tensors)
    adam.zero_grad()


@torch.no_grad()
def accuracy(classifier: Classifier, records: Tensor, labels: np.ndarray) -> float:
    """Accuracy in per cent."""
    named = classifier.logits(records).argmax(dim=1).numpy()
    return 100.0 * float((named == labels).mean())
