"""What an order of `gswgan` leaves open, settled from the declared schema and n."""

from __future__ import annotations

from service.base.errors import InvalidOrder
from service.base.messages import Message, whole
from service.domain.image_schema import DeclaredSchema
from service.domain.shapes import ImageShape
from service.methods.facts import Facts
from service.methods.gswgan.order import GswganOrder
from service.methods.idpgan.images import LABEL, MOST_PIXELS

UNITS_OF_A_PART, MOST_BY_DEFAULT = 60, 1_000
"""As the paper has it for MNIST: 1,000 discriminators of 60,000 images."""


def check(order: GswganOrder, _schema: DeclaredSchema) -> None:
    """Many discriminators side by side have one optimiser."""
    if order.optimizer.kind != "adam":
        raise InvalidOrder(Message("optimizer.kind: gswgan has adam only"), where="optimizer.kind")


def shape_of_images(facts: Facts) -> ImageShape:
    """The declared size; refused where perceptrons of it would be too large."""
    shape = facts.images()
    if shape.pixels > MOST_PIXELS:
        raise InvalidOrder(
            Message(
                "method: gswgan makes images of at most %(most)s numbers (64 × 64 in colour); method: mixture takes larger "
                "ones",
                most=MOST_PIXELS,
            ),
            where="method",
        )
    return shape


def resolve(order: GswganOrder, facts: Facts) -> GswganOrder:
    """How many discriminators, how many are trained at a step, and whether class frequencies are bought."""
    shape = shape_of_images(facts)
    parts = order.discriminators or max(2, min(MOST_BY_DEFAULT, facts.units // UNITS_OF_A_PART))
    if parts > facts.units:
        raise InvalidOrder(
            Message(
                "discriminators: the dataset has %(units)s units, and every discriminator needs one; order fewer",
                units=whole(facts.units),
            ),
            where="discriminators",
        )
    trained = parts if order.trained_a_step is None else min(order.trained_a_step, parts)
    update: dict[str, object] = {"discriminators": parts, "trained_a_step": trained}
    if shape.classes > 1 and order.label_precision_share > 0.0:
        update["condition_on"] = LABEL
    return order.model_copy(update=update)
