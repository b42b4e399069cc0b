"""The run of `method: pategan`.

  label frequencies    GaussianEvent("label_counts")   once, where the order conditions
  votes of a step      SampledStepEvent, q = 1         all counts of one batch together
Teachers train freely between, on parts of the units, and stay in this process: no checkpoint and no release has anything of them. A run that
goes on has the same parts, from the seed that the checkpoint keeps, and new teachers, which catch up on what the generator makes by then.
How far teachers agree is never looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from service.base.errors import InvalidOrder
from service.methods.pategan.work import GENERATOR_BATCH, STUDENT_BATCH
from workers.checkpoints import Checkpoint, position_of, put_back, resume, tensors_of
from workers.encoding.places import codes_in_places
from workers.generators.released import TableRelease
from workers.mechanism.noise import release
from workers.mechanism.votes import vote_counts
from workers.methods.choose.parts import SEED_BITS
from workers.methods.labels import counts_of_column, drawn_labels, measured_frequencies
from workers.methods.pategan.teachers import Teachers, parts_of
from workers.networks.table import TableCritic, TableGenerator, one_hot_records, sample_records
from workers.numerics.adam import Adam
from workers.numerics.averages import average_of, descend, move_average

if TYPE_CHECKING:
    from service.methods.pategan.order import PateganOrder
    from workers.hooks import Hooks
    from workers.mechanism.secure_random import SecureRandom
    from workers.plan import Plan
    from workers.sources import Source

KEPT = ("generator", "averaged_generator", "student", "generator_adam", "student_adam")
"""By checkpoints."""
MOST_KEPT = 8_192
"""Rows that were voted on, the newest, which the student goes on learning from."""
MOST_CATCHING_UP = 20
"""Times `teacher_steps` that new teachers of a run that goes on take before they vote."""


class Run:
    """Teachers, a vote, the student, the generator; so for each step."""

    def __init__(
        self, order: PateganOrder, plan: Plan, source: Source, randomness: SecureRandom, device: torch.device
    ) -> None:
        if order.teachers is None:
            raise InvalidOrder("teachers must be resolved before training", where="teachers")
        self.order, self.plan, self.randomness, self.device = order, plan, randomness, device
        self.is_private = randomness.is_private
        self.table, self.domain = source.table(numeric_bins=order.numeric_bins)
        torch.manual_seed(randomness.seed())
        self.condition_index = None if order.condition_on is None else self.domain.index(order.condition_on)
        self.condition_frequencies: tuple[float, ...] | None = None
        self.free_widths = [width for i, width in enumerate(self.domain.widths) if i != self.condition_index]
        sizes, optimizer = order.networks, order.optimizer
        self.generator = TableGenerator(
            self.domain.widths,
            noise_dimension=sizes.noise_dimension,
            hidden=sizes.generator_hidden,
            condition_index=self.condition_index,
        ).to(device)
        self.averaged_generator = average_of(self.generator)
        self.student = TableCritic(self.domain.total_width, sizes.critic_hidden).to(device)
        betas = (optimizer.beta1, optimizer.beta2)
        self.student_adam = Adam(self.student.parameters(), learning_rate=optimizer.critic_learning_rate, betas=betas)
        self.generator_adam = Adam(
            self.generator.parameters(), learning_rate=optimizer.generator_learning_rate, betas=betas
        )
        self.generator_steps, self.teachers_count = 0, order.teachers
        self.voted_on = torch.zeros(0, self.domain.total_width, dtype=torch.uint8, device=device)
        self.labels = torch.zeros(0, dtype=torch.uint8, device=device)
        self.seed = randomness.bits(SEED_BITS)
        self.teachers: Teachers | None = None

    def measure(self) -> None:
        """How frequent labels are."""
        place = self.condition_index
        if place is not None:
            width = self.domain.widths[place]
            self.condition_frequencies = measured_frequencies(
                self.plan, lambda: counts_of_column(self.table, place, width=width), self.randomness
            )

    def finish(self, hooks: Hooks) -> TableRelease:
        self.begin(hooks)
        for _ in hooks.steps_of(self):
            self.student_step()
            for _ in range(self.order.generator_steps):
                self.generator_step()
        return TableRelease(
            generator=self.averaged_generator.cpu(),
            domain=self.domain,
            noise_dimension=self.order.networks.noise_dimension,
            condition_index=self.condition_index,
            condition_frequencies=self.condition_frequencies,
            engine="none",
            device=self.device.type,
            is_private=self.is_private,
        )

    def student_step(self) -> None:
        """One charged release: the votes on a batch. The student learns their noisy majority."""
        for _ in range(self.order.teacher_steps):
            self._teach()
        with torch.no_grad():
            records = self._fakes(self.generator, self.order.votes_per_step)
        noise = self.plan.take_sampled_step(sampling_probability=1.0, histogram=False)
        (noisy,) = release(
            vote_counts(self._teachers().votes(records)),
            noise_multiplier=noise.gradient_noise_multiplier,
            randomness=self.randomness,
        )
        labels = noisy > self.teachers_count / 2.0
        self.voted_on = torch.cat((self.voted_on, records.to(torch.uint8)))[-MOST_KEPT:]
        self.labels = torch.cat((self.labels, labels.to(torch.uint8)))[-MOST_KEPT:]
        for _ in range(self.order.student_steps):
            self._learn()

    def _learn(self) -> None:
        """A step of the student, on some of the rows that were voted on; reads no row and no teacher."""
        uniforms = self.randomness.uniforms(STUDENT_BATCH).to(self.device)
        some = (uniforms * len(self.labels)).long().clamp(max=len(self.labels) - 1)
        records, labels = self.voted_on[some].to(torch.float32), self.labels[some].to(torch.float32)
        descend(self.student_adam, F.binary_cross_entropy_with_logits(self.student(records), labels))

    def generator_step(self) -> None:
        """Towards what the student takes for real; reads no row and no teacher."""
        records = self._fakes(self.generator, GENERATOR_BATCH)
        descend(self.generator_adam, F.softplus(-self.student(records)).mean())
        self.generator_steps += 1
        decay = self.order.optimizer.moving_average_decay
        move_average(self.averaged_generator, self.generator.parameters(), decay=decay, taken=self.generator_steps)

    def checkpoint(self) -> Checkpoint:
        """Noisy or public, all of it: student and generator learned from noisy votes; teachers are left out."""
        values = {
            **position_of(self),
            "seed": str(self.seed),
            "condition_frequencies": self.condition_frequencies,
            "generator_steps": self.generator_steps,
        }
        return Checkpoint({**tensors_of(self, KEPT), "voted_on": self.voted_on, "labels": self.labels}, values)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on with the same parts: a unit that was in another part before would have voted twice."""
        values, tensors = checkpoint.values, checkpoint.tensors
        resume(self, values)
        put_back(self, KEPT, tensors)
        self.voted_on, self.labels = tensors["voted_on"].to(self.device), tensors["labels"].to(self.device)
        self.seed, self.generator_steps = int(values["seed"]), values["generator_steps"]
        frequencies = values["condition_frequencies"]
        self.condition_frequencies = None if frequencies is None else tuple(frequencies)

    def begin(self, hooks: Hooks) -> None:
        """Teachers, of the parts that the seed says; of a run that goes on, they first catch up.

        That takes no event: who stops it there finds the release where its checkpoint left it.
        """
        self.parts = np.stack(parts_of(self.table.units, teachers=self.teachers_count, seed=self.seed))
        self.teachers = Teachers(
            self.teachers_count,
            self.domain.total_width,
            hidden=self.order.teacher_hidden,
            learning_rate=self.order.teacher_learning_rate,
            relative=self.order.vote == "relative",
            randomness=self.randomness,
            device=self.device,
        )
        steps = min(self.plan.steps_done, MOST_CATCHING_UP) * self.order.teacher_steps
        for step in range(steps):
            hooks.go_on_warming_up(step / steps, self.plan.steps_done)
            self._teach()

    def _teach(self) -> None:
        """A step of every teacher, on as many units of its part and as many places for their rows, whatever is in them."""
        count, size, places = self.teachers_count, self.order.teacher_batch, self.table.max_rows_per_unit
        uniforms = self.randomness.uniforms(count, size).numpy()
        drawn = np.minimum((uniforms * self.parts.shape[1]).astype(np.int64), self.parts.shape[1] - 1)
        units = np.take_along_axis(self.parts, drawn, axis=1)  # (teachers, size)
        real, present = self._rows(units.reshape(-1))
        with torch.no_grad():
            fake = self._fakes(self.generator, size * places)
        self._teachers().step(
            real.view(count, size * places, -1), present.view(count, size * places).to(torch.float32), fake
        )

    def _teachers(self) -> Teachers:
        if self.teachers is None:
            raise RuntimeError("the run has not begun")
        return self.teachers

    def _rows(self, units: np.ndarray) -> tuple[Tensor, Tensor]:
        """One-hot rows of these units, as many places for each as a unit may have rows; and which are there. Private."""
        codes = codes_in_places(self.table, units).astype(np.int64)
        return one_hot_records(torch.from_numpy(codes).to(self.device), self.domain.widths)

    def _fakes(self, generator: TableGenerator, count: int) -> Tensor:
        """Records (count, total_width) of the generator, with a gradient by its weights."""
        conditions = drawn_labels(self.condition_frequencies, count, self.randomness, self.device)
        size = self.order.networks.noise_dimension
        noise = self.randomness.normals(count, size, dtype=torch.float32, device=self.device)
        logits = generator.free_logits(noise, conditions)
        uniforms = self.randomness.uniforms(*logits.shape, dtype=torch.float32, device=self.device)
        drawn = sample_records(logits, self.free_widths, uniforms, self.order.networks.softmax_temperature)
        return generator.with_condition(drawn, conditions)
