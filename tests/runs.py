"""Runs of whole methods on rows or images that a test holds in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from workers.hooks import UNATTENDED, Hooks
from workers.sources import GivenImages, GivenTable
from workers.training import make_release

if TYPE_CHECKING:
    from service.methods.knobs import Order
    from workers.encoding.images import EncodedImages
    from workers.encoding.table import EncodedTable, TableDomain
    from workers.generators.released import ImageRelease, TableRelease
    from workers.mechanism.secure_random import SecureRandom
    from workers.plan import Plan


def train(
    order: Order,
    plan: Plan,
    table: EncodedTable,
    domain: TableDomain,
    randomness: SecureRandom,
    hooks: Hooks = UNATTENDED,
) -> TableRelease:
    """A generator of rows."""
    return cast("TableRelease", make_release(order, plan, GivenTable(table, domain), randomness, hooks))


def train_images(
    order: Order, plan: Plan, images: EncodedImages, randomness: SecureRandom, hooks: Hooks = UNATTENDED
) -> ImageRelease:
    """A generator of images."""
    return cast("ImageRelease", make_release(order, plan, GivenImages(images), randomness, hooks))
