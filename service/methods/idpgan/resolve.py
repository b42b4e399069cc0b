"""What an order of a trained generator leaves open, settled from the declared schema, n and the budget alone."""

from __future__ import annotations

from typing import Any, TypeVar

from service.base.errors import InvalidOrder
from service.base.messages import Message
from service.domain.image_schema import DeclaredSchema, ImageSchema
from service.domain.shapes import ImageShape, TableShape
from service.methods.conditions import MAX_STRATA, categories_of, condition_of
from service.methods.facts import Facts
from service.methods.idpgan.images import networks_of, resolve_images, with_classes
from service.methods.idpgan.knobs import MOST_WEIGHT_BOUND, FromNothing, TablesFirst
from service.methods.idpgan.order import (
    FROM_NOTHING,
    NEAR_TABLES,
    GanOrder,
    IdpganOrder,
    PlainGanOrder,
)
from service.methods.idpgan.start import resolve_start
from service.methods.knobs import DEFAULT_NUMERIC_BINS, AnyOrder, rate_of
from service.methods.marginals.resolve import check_choice, settled

G = TypeVar("G", bound=GanOrder)
P = TypeVar("P", bound=PlainGanOrder)

BECAUSE = Message(
    "idpgan: condition_on has more categories than marginals takes; without condition_on it would be marginals "
    "(docs/results.md)"
)

MOST_NOISE_OF_A_START = 0.8
"""Networks begin near all pairs, in bins as they are declared, while noise alone moves one by at most this much in total variation."""


def offer(order: AnyOrder, facts: Facts) -> str | None:
    """Offers itself for the tables that `marginals` leaves."""
    shape = facts.shape(DEFAULT_NUMERIC_BINS)
    has_many = isinstance(shape, TableShape) and categories_of(order.condition_on, shape) > MAX_STRATA
    return BECAUSE if has_many else None


def check_networks(order: GanOrder, schema: DeclaredSchema) -> None:
    """Knobs of images for images alone, and of tables for tables alone."""
    if order.free_public_steps:
        _check_public_start(order)
    if order.copies > 1 and (order.private_step is not None or order.mask_share is not None):
        raise InvalidOrder(
            Message(
                "augmentation: %(knob)s looks at single gradients, and not at means of copies; choose one",
                knob="private_step" if order.mask_share is None else "public_mask_share",
            ),
            where="augmentation",
        )
    if isinstance(schema, ImageSchema):
        if "networks" in order.model_fields_set:
            raise InvalidOrder(
                Message("networks: these are perceptrons; of images, set image_networks"), where="networks"
            )
        return
    of_images = {
        "image_networks": order.image_networks,
        "warm_start": order.mixture_first,
        "augmentation": order.copies if order.copies > 1 else None,
    }
    for knob in (knob for knob, ordered in of_images.items() if ordered is not None):
        raise InvalidOrder(Message("%(knob)s: the dataset is a table, and this is of images", knob=knob), where=knob)


def _check_public_start(order: GanOrder) -> None:
    """Networks begin at one place, and a gradient is cut down once."""
    where = "public_dataset"
    if order.mixture_first is not None:
        raise InvalidOrder(Message("public_dataset: networks begin from it or from a mixture; choose one"), where=where)
    if order.tables_first is not None:
        raise InvalidOrder(
            Message('public_dataset: networks begin from it or near tables; order warm_start {"kind": "none"}'),
            where=where,
        )
    knobs = order.private_step
    if order.mask_share is not None and knobs is not None and knobs.maps:
        raise InvalidOrder(
            Message(
                "public_mask_share: a gradient is masked or looked at by private_step.%(knob)s; choose one",
                knob=knobs.maps[0],
            ),
            where="public_mask_share",
        )


def resolve(order: IdpganOrder, facts: Facts) -> IdpganOrder:
    """Condition, sampling probability, networks, and where they begin."""
    shape, names_bound = facts.shape(order.numeric_bins), "critic_weight_bound" in order.model_fields_set
    if isinstance(shape, ImageShape):
        order = resolve_start(resolve_images(order, facts, shape), facts, shape)
        order = with_sampling_probability(order, facts.units)
    else:
        order = order.model_copy(update={"condition_on": condition_of(order, shape)})
        order = _with_warm_start(with_sampling_probability(order, facts.units), facts, shape)
    return check_private_step(order if names_bound else order.model_copy(update=_bound_of_mask(order)))


def resolve_plain(order: P, facts: Facts) -> P:
    """Resolve an order of the comparisons from the literature: condition, sampling probability, networks of images."""
    shape = facts.shape(order.numeric_bins)
    if isinstance(shape, ImageShape):
        networks = networks_of(order, shape, from_nothing=True)
        order = with_classes(order.model_copy(update={"image_networks": networks}), shape)
    else:
        order = order.model_copy(update={"condition_on": condition_of(order, shape)})
    if "critic_weight_bound" not in order.model_fields_set:
        order = order.model_copy(update=_bound_of_mask(order))
    return check_private_step(with_sampling_probability(order, facts.units))


def check_private_step(order: G) -> G:
    """Relevance is of the inputs of perceptrons, and is bought before networks that begin from nothing."""
    knobs = order.private_step
    if knobs is None or knobs.importance is None:
        return order
    where = "private_step.importance"
    if order.image_networks is not None and order.image_networks.layers != "perceptrons":
        raise InvalidOrder(
            Message('private_step.importance: of perceptrons alone; order image_networks {"layers": "perceptrons"}'),
            where=where,
        )
    begins_elsewhere = order.tables_first is not None or order.mixture_first is not None or order.free_public_steps > 0
    if knobs.buys_relevance and begins_elsewhere:
        raise InvalidOrder(
            Message(
                "private_step.importance: bought relevance is of networks that begin from nothing; order warm_start "
                '{"kind": "none"} and no public_dataset, or relevance "generated"'
            ),
            where=where,
        )
    return order


def with_sampling_probability(order: G, units: int) -> G:
    """The order with its sampling probability: as ordered, or by the number of units."""
    return order.model_copy(update={"sampling_probability": rate_of(order.sampling_probability, units)})


def _bound_of_mask(order: IdpganOrder | PlainGanOrder) -> dict[str, Any]:
    """As wide as makes up for what a mask leaves out: a critic of a fifth of its weights, each within the usual bound, has next to no slope."""
    share, bound = order.mask_share, order.critic_weight_bound
    return {} if share is None or bound is None else {"critic_weight_bound": min(MOST_WEIGHT_BOUND, bound / share)}


def unnamed(order: GanOrder, defaults: dict[str, Any]) -> dict[str, Any]:
    """The defaults of the knobs that the order leaves open."""
    return {name: value for name, value in defaults.items() if name not in order.model_fields_set}


def _with_warm_start(order: IdpganOrder, facts: Facts, shape: TableShape) -> IdpganOrder:
    """Marginals first, unless the order says otherwise, begins from public rows, or the columns do not allow it."""
    allowed = _allows_tables(order.condition_on, shape)
    start = order.warm_start or (TablesFirst() if allowed and not order.free_public_steps else FromNothing())
    if not isinstance(start, TablesFirst):
        defaults = FROM_NOTHING if isinstance(start, FromNothing) else {}
        return order.model_copy(update={"warm_start": start, **unnamed(order, defaults)})
    if not allowed:
        raise InvalidOrder(
            Message(
                "warm_start: tables need two columns, and a condition of at most %(most)s categories", most=MAX_STRATA
            ),
            where="warm_start",
        )
    check_choice(start.pairs, order.condition_on, shape, where="warm_start.pairs")
    order = order.model_copy(update={"warm_start": start, **unnamed(order, NEAR_TABLES)})
    tables = order.tables_order
    if tables is None:
        return order
    # In bins as they are declared, within each value: networks were only ever begun near such marginals.
    within = None if order.condition_on is None else "condition"
    tables = tables.model_copy(update={"pair_groups": "declared", "pairs_within": within})
    found = settled(tables, facts, shape, precision_share=start.precision_share, most_noise=MOST_NOISE_OF_A_START)
    of_start = {name: value for name, value in found.items() if name in TablesFirst.model_fields}
    return order.model_copy(update={"warm_start": start.model_copy(update=of_start)})


def _allows_tables(condition: str | None, shape: TableShape) -> bool:
    """Whether there are pairs to measure, in few enough strata."""
    free = len(shape.cells) - (condition in shape.cells)
    return free >= 1 and len(shape.cells) >= 2 and categories_of(condition, shape) <= MAX_STRATA
