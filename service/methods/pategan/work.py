"""How much `pategan` is: all teachers' steps, and those of student and generator."""

from __future__ import annotations

from service.methods.facts import Facts
from service.methods.idpgan.work import BYTES_PER_WEIGHT, EXPORTED_BYTES_PER_WEIGHT, FREE_PASSES, Network
from service.methods.pategan.order import PateganOrder
from service.methods.pategan.resolve import default_teachers
from service.methods.work import FLOAT, Work, coded_rows

GENERATOR_BATCH, STUDENT_BATCH = 256, 256
"""Records of a step of either."""
PASSES = 6
"""Of a row through a teacher: forward, and back by weights, of real and synthetic ones."""
ARRAYS = 8
"""Of a teacher's numbers: weights, gradients, Adam's means, and what is alive between."""


def estimate(order: PateganOrder, facts: Facts) -> Work:
    """Teachers are trained side by side."""
    shape = facts.table(order.numeric_bins)
    width, sizes, most = sum(shape.cells.values()), order.networks, shape.max_rows_per_unit
    teachers = order.teachers or default_teachers(facts.units)
    teacher = Network.perceptron(width, order.teacher_hidden, 1)
    rows = float(teachers * order.teacher_batch * most)
    learned = teacher.passes(rows, PASSES) + Work(
        elements=12.0 * teachers * teacher.weights + 4.0 * rows * width, draws=rows, calls=1.0
    )
    votes = teacher.passes(float(teachers * order.votes_per_step), 1.0)

    generator = Network.perceptron(sizes.noise_dimension, *sizes.generator_hidden, width)
    student = Network.perceptron(width, *sizes.critic_hidden, 1)
    own = student.passes(STUDENT_BATCH, FREE_PASSES) + Work(elements=10.0 * student.weights, calls=1.0)
    followed = (generator.passes(GENERATOR_BATCH, FREE_PASSES) + student.passes(GENERATOR_BATCH, FREE_PASSES)) + Work(
        elements=10.0 * generator.weights, draws=GENERATOR_BATCH * (sizes.noise_dimension + width), calls=1.0
    )
    step = (
        learned.times(order.teacher_steps)
        + votes
        + own.times(order.student_steps)
        + followed.times(order.generator_steps)
    )
    held = FLOAT * (ARRAYS * teachers * teacher.weights + 4.0 * rows * width + 2.0 * teachers * GENERATOR_BATCH)
    held += (BYTES_PER_WEIGHT + EXPORTED_BYTES_PER_WEIGHT) * (generator.weights + student.weights)
    read = coded_rows(float(facts.units) * most, len(shape.cells), 0)
    return read + step.times(order.steps).holding(held)
