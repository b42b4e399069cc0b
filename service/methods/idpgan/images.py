"""`method: idpgan` for images before any record is read: networks by the declared size, and defaults of their own."""

from __future__ import annotations

import math
from typing import Any, TypeVar

from service.base.errors import InvalidOrder
from service.base.messages import Message
from service.domain.shapes import ImageShape
from service.methods.facts import Facts
from service.methods.idpgan.knobs import (
    FixedThresholds,
    FromNothing,
    ImageNetworks,
    OneGroup,
    Optimizer,
    TablesFirst,
)
from service.methods.idpgan.order import GanOrder, IdpganOrder
from service.methods.whole_noise import whole_noise
from service.privacy.schedules import ConstantNoise

G = TypeVar("G", bound=GanOrder)

LABEL = "label"
"""What a resolved order of labelled images is conditioned on: the class, whose frequencies are charged."""

MOST_PIXELS = 3 * 64 * 64
"""The networks are made for images of up to 64 × 64 in colour."""

MOST_IDPGAN_IMAGES_PER_UNIT = 100
"""Of a unit that is drawn, a step goes over as many places as it may have images, filled or not."""

SMALLEST_SIDE = 6
"""By default sides are halved while they stay at least this long."""
_CHANNELS = (32, 64, 128)

MOST_PIXELS_OF_PERCEPTRONS = 32 * 32
"""Up to this many numbers both networks are perceptrons, of a hundredth of the convolutions' work."""

SHRUNK_SIDE = 24
"""Sides from which perceptrons see images of half the sides."""

DEFAULTS: dict[str, Any] = {
    "steps": 5_000,
    "critic_steps_per_generator_step": 5,
    "noise_decay": ConstantNoise(),
    "thresholds": FixedThresholds(clip_norm=0.5),
    "clusters": OneGroup(),
    "optimizer": Optimizer(
        critic_learning_rate=1e-3,
        generator_learning_rate=3e-4,
        beta1=0.0,
        beta2=0.99,
        moving_average_decay=0.999,
    ),
}
"""Where an order of convolutions names none. From the literature and small runs, not tuned on a GPU (docs/results/images.md)."""

PERCEPTRON_DEFAULTS: dict[str, Any] = {"steps": 5_000, "critic_steps_per_generator_step": 2}
"""The same for perceptrons, beside IDPGAN's own three strategies; chosen on held-out training images (docs/results/images.md)."""

NEAR_MIXTURE_DEFAULTS: dict[str, Any] = {
    **PERCEPTRON_DEFAULTS,
    "steps": 600,
    "noise_decay": ConstantNoise(),
    "thresholds": FixedThresholds(clip_norm=1.0),
    "clusters": OneGroup(),
}
"""The same where a perceptron corrects a mixture, which more steps lead away from it (docs/results/images.md)."""

WEIGHT_BOUND, WEIGHT_BOUND_IN_NOISE = 0.1, 0.05
MOST_NOISE_PER_IMAGE = 4e-5
"""The wider bound of a perceptron critic's weights is for at most so much noise, of one release with the whole price, divided by n."""


def resolve_images(order: IdpganOrder, facts: Facts, shape: ImageShape) -> IdpganOrder:
    """Fill in what was not ordered; refuse sizes that the images do not allow."""
    if isinstance(order.warm_start, TablesFirst):
        raise InvalidOrder(
            Message("warm_start: images have no tables to begin from; `mixture` or `none`"), where="warm_start"
        )
    networks = networks_of(order, shape, from_nothing=not order.corrects_mixture)
    defaults = _defaults(order, networks, facts)
    update = {name: value for name, value in defaults.items() if name not in order.model_fields_set}
    update["image_networks"] = networks
    update["warm_start"] = order.warm_start or FromNothing()
    return with_classes(order.model_copy(update=update), shape)


def networks_of(order: GanOrder, shape: ImageShape, *, from_nothing: bool) -> ImageNetworks:
    """The networks of the order, or the default ones for such images; `InvalidOrder` where the images do not allow them."""
    if shape.pixels > MOST_PIXELS:
        raise InvalidOrder(
            Message(
                "method: this one makes images of at most %(most)s numbers (64 × 64 in colour); method: mixture takes larger "
                "ones",
                most=MOST_PIXELS,
            ),
            where="method",
        )
    if shape.max_images_per_unit > MOST_IDPGAN_IMAGES_PER_UNIT:
        raise InvalidOrder(
            Message(
                "method: this one goes over at most %(most)s images of a unit, and this dataset declares up to %(declared)s; "
                "method: mixture reads them all",
                most=MOST_IDPGAN_IMAGES_PER_UNIT,
                declared=shape.max_images_per_unit,
            ),
            where="method",
        )
    if shape.max_images_per_unit * order.copies > MOST_IDPGAN_IMAGES_PER_UNIT:
        most = MOST_IDPGAN_IMAGES_PER_UNIT // shape.max_images_per_unit
        raise InvalidOrder(
            Message(
                "augmentation.copies: a step goes over at most %(most)s images of a unit, and this dataset declares up to "
                "%(declared)s; %(instead)s",
                most=MOST_IDPGAN_IMAGES_PER_UNIT,
                declared=shape.max_images_per_unit,
                instead=Message("order at most %(most)s copies", most=most)
                if most > 1
                else Message("order no augmentation"),
            ),
            where="augmentation.copies",
        )
    networks = order.image_networks or default_networks(shape, from_nothing=from_nothing)
    least = -(-min(shape.height, shape.width) // networks.shrink)
    if least < 2:
        raise InvalidOrder(
            Message("method: this one needs images of at least 2 × 2 pixels, once they are shrunk"), where="method"
        )
    most = math.floor(math.log2(least))
    for name in ("generator_channels", "critic_channels") if networks.layers == "convolutions" else ():
        if len(getattr(networks, name)) > most:
            raise InvalidOrder(
                Message(
                    "image_networks.%(name)s: sides of %(least)s can be halved %(most)s times",
                    name=name,
                    least=least,
                    most=most,
                ),
                where=f"image_networks.{name}",
            )
    return networks


def with_classes(order: G, shape: ImageShape) -> G:
    """Labelled images are made by class, whose frequencies are measured."""
    return order.model_copy(update={"condition_on": LABEL}) if shape.classes > 1 else order


def _defaults(order: IdpganOrder, networks: ImageNetworks, facts: Facts) -> dict[str, Any]:
    if networks.layers == "convolutions":
        return DEFAULTS
    if order.corrects_mixture:
        return NEAR_MIXTURE_DEFAULTS
    is_noisy = whole_noise(order, facts.budget) > MOST_NOISE_PER_IMAGE * facts.units
    return {**PERCEPTRON_DEFAULTS, "critic_weight_bound": WEIGHT_BOUND_IN_NOISE if is_noisy else WEIGHT_BOUND}


def default_networks(shape: ImageShape, *, from_nothing: bool) -> ImageNetworks:
    """Perceptrons where images are small; else up to three halvings, with twice the channels after each.

    Perceptrons that learn from nothing see images at half of their sides where those are long enough (docs/results/images.md).
    """
    halvings = math.floor(math.log2(max(2.0, min(shape.height, shape.width) / SMALLEST_SIDE)))
    channels = _CHANNELS[: min(halvings, len(_CHANNELS))]
    is_small = shape.pixels <= MOST_PIXELS_OF_PERCEPTRONS
    return ImageNetworks(
        layers="perceptrons" if is_small else "convolutions",
        shrink=2 if is_small and from_nothing and min(shape.height, shape.width) >= SHRUNK_SIDE else 1,
        noise_dimension=32 if is_small else 64,
        generator_channels=tuple(2 * c for c in reversed(channels)),
        critic_channels=channels,
    )
