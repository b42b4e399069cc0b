"""Whether there are too few images for what an order pays: from the declared size, the classes, n and ε alone. Reads no image."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from service.base.messages import Message, whole
from service.methods.whole_noise import whole_noise

if TYPE_CHECKING:
    from service.methods.facts import Facts
    from service.methods.knobs import Order

NUMBERS = 256
"""Numbers that a mean image is measured in, at most: what is left of larger ones are edges."""


def too_few_images(
    order: Order, facts: Facts, *, precision_share: float = 1.0, numbers: int = NUMBERS
) -> Message | None:
    """A warning where noise on the mean image of a class is larger than that image can be; None where it is not.

    Images are clipped to a norm, which is as large as a mean can be and as far as one image moves a sum: so the norm does not matter. Where units
    have several images it is as if each had all that it may have; classes are taken to be equally large.

    precision_share: what a method spends on means. 1 where it measures none: it would be no better off if it spent all on them.
    """
    shape = facts.images()
    noise = whole_noise(order, facts.budget) / math.sqrt(precision_share)
    needed = noise * math.sqrt(min(numbers, shape.pixels)) * shape.classes
    if needed <= facts.units:
        return None
    least = whole(_rounded_up(needed))
    if shape.classes > 1:
        return Message(
            "There are too few images for this ε: the noise on the mean image of a class is expected to be larger than that image can be, so that hardly "
            "anything of it is left. It takes %(least)s units at least; a larger ε, or fewer classes, helps as well.",
            least=least,
        )
    return Message(
        "There are too few images for this ε: the noise on the mean image is expected to be larger than that image can be, so that hardly anything "
        "of it is left. It takes %(least)s units at least; a larger ε helps as well.",
        least=least,
    )


def _rounded_up(count: float) -> int:
    """To two digits."""
    step = int(10 ** max(0, math.floor(math.log10(count)) - 1))
    return math.ceil(count / step) * step
