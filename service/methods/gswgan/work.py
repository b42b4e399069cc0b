"""How much a run of `gswgan` is: of free steps of discriminators, and private steps of the generator."""

from __future__ import annotations

from service.methods.facts import Facts
from service.methods.gswgan.order import GswganOrder
from service.methods.gswgan.price import parts_of, trained_a_step_of
from service.methods.gswgan.resolve import shape_of_images
from service.methods.work import FLOAT, Work, perceptron_weights

CRITIC_PASSES, SLOPE_PASSES, GENERATOR_PASSES = 24.0, 4.0, 8.0
"""Of a record, forth and back: a discriminator's step with its penalty, the slope, the generator's step."""
NUMBERS_PER_WEIGHT = 3
"""Of a discriminator that is kept: itself and Adam's two means."""
AT_ONCE = 64
"""Discriminators that are trained side by side, at the start and between private steps."""
ARRAYS = 16
"""That long as a batch of records, alive at once."""


def estimate(order: GswganOrder, facts: Facts) -> Work:
    """Reading, the start, and `steps` private steps with what is trained on between them."""
    shape, parts = shape_of_images(facts), parts_of(order)
    record = shape.pixels + (shape.classes if shape.classes > 1 else 0)
    critic = perceptron_weights((record, *order.critic_hidden, 1))
    generator = perceptron_weights((order.noise_dimension, *order.generator_hidden, shape.pixels))
    images, batch = float(facts.units) * shape.max_images_per_unit, float(order.batch)

    together = float(min(AT_ONCE, parts))
    one = Work(
        products=CRITIC_PASSES * batch * critic + 2.0 * batch * generator,
        elements=10.0 * critic + ARRAYS * batch * record,
        draws=batch * (order.noise_dimension + 1.0),
    )
    free_step = one + Work(
        calls=1.0, memory_bytes=FLOAT * together * (8.0 * critic + ARRAYS * batch * (record + sum(order.critic_hidden)))
    )
    start = one.times(float(parts * order.start_steps)) + Work(
        calls=order.start_steps * max(1.0, parts / AT_ONCE), memory_bytes=free_step.memory_bytes
    )
    trained = trained_a_step_of(order)
    between = one.times(float(trained * order.discriminator_steps)) + Work(
        calls=order.discriminator_steps * max(1.0, trained / AT_ONCE)
    )
    private = Work(
        products=SLOPE_PASSES * batch * critic + GENERATOR_PASSES * batch * generator,
        elements=10.0 * generator + ARRAYS * batch * record,
        draws=batch * shape.pixels,
        calls=1.0,
    )
    reading = Work(elements=2.0 * images * shape.pixels, memory_bytes=2.0 * images * shape.pixels)
    held = FLOAT * (NUMBERS_PER_WEIGHT * parts * critic + 6.0 * generator)
    return (reading + start + (between + private).times(float(order.steps))).holding(held)
