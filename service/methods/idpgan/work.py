"""How much a trained generator is: of networks, private steps, free steps, and what they begin with."""

from __future__ import annotations

import math
from dataclasses import dataclass

from service.base.errors import InvalidOrder
from service.domain.shapes import ImageShape, TableShape
from service.methods.facts import Facts
from service.methods.idpgan.knobs import ImageNetworks, TablesFirst
from service.methods.idpgan.price import TrainedOrder
from service.methods.idpgan.start import mixture_of
from service.methods.marginals.pair_rules import pair_widths
from service.methods.marginals.work import estimate as marginals_work
from service.methods.mixture.work import estimate as mixture_work
from service.methods.work import CODES_IN_MEMORY, FLOAT, Work, coded_rows, perceptron_weights

GENERATOR_BATCH = (64, 4_096)
"""Smallest and largest generator batch; in between it is a part of the expected draw, which is public."""
PRIVATE_PASSES, FREE_PASSES = 12, 6
"""Of a record through the critic: real, fake and between with their slopes, and sums of products; through both networks."""
BLOCK_ROWS, KEPT_ROWS = 2_048, 256
"""Records of one block, of engines that know the critic's form, and of one that keeps every unit's gradient."""
MOST_ROWS_OF_A_UNIT = 64
KEPT_ARRAYS, KEPT_ARRAYS_PASSES = 10, 36
"""That long as all gradients of a block of records, alive at once, and how often they are read or written."""
BLOCK_OF_IMAGES, HELD_BYTES = 64, 96 << 20
KERNEL = 4
BYTES_PER_WEIGHT = 50
"""Weights, gradients, averages and Adam's two means in float32; sums, noise and their copies in float64."""
EXPORTED_BYTES_PER_WEIGHT = 10
"""Of the generator, while it is written as ONNX."""
ARRAYS_OF_A_BATCH = 16
"""That long as a block's records, alive at once."""
COPIES_OF_CONVOLUTIONS = 4.0
"""Of what lies between layers, for the way back."""
FREE_BATCH = 256
"""Records of a step on a public dataset, or on samples of a measured mixture."""
MOST_PUBLIC_BYTES = 256 << 20
"""Of its images or coded rows, at most (`service.datasets.public`)."""
MOST_FREE_SAMPLES, MOST_FREE_SAMPLE_BYTES = 20_000, 64 << 20
FREE_SAMPLES_AT_ONCE = 256
"""Of a measured mixture, while they are drawn."""
ROWS_OF_A_STRATUM = 512
"""Of one value of the condition, where the generator is fitted to tables first."""


@dataclass(frozen=True)
class Network:
    """Weights, multiplications of a record, and numbers between its layers."""

    weights: int
    multiplications: float
    activations: float
    convolves: bool = False

    @classmethod
    def perceptron(cls, *widths: int) -> Network:
        weights = perceptron_weights(widths)
        return cls(weights, float(weights), float(sum(widths)))

    def passes(self, records: float, number: float) -> Work:
        """The work of so many passes of so many records through the network."""
        flops = 2.0 * number * records * self.multiplications
        elements = number * records * self.activations
        return (
            Work(convolutions=flops, elements=elements) if self.convolves else Work(products=flops, elements=elements)
        )


@dataclass(frozen=True)
class Networks:
    """Sizes of an order's networks: `record` numbers that the critic sees, `noise` numbers that a generated record begins with."""

    generator: Network
    critic: Network
    record: int
    noise: int


def estimate(order: TrainedOrder, facts: Facts) -> Work:
    """Reading, what comes first, and `steps` private steps with the free ones between. Public rows stay in memory until the end."""
    shape = facts.shape(order.numeric_bins)
    networks = _networks(order, shape)
    most = shape.max_images_per_unit if isinstance(shape, ImageShape) else shape.max_rows_per_unit
    seen = most * order.copies
    expected = facts.units * (order.sampling_probability or 1.0)
    free = float(min(max(math.ceil(expected), GENERATOR_BATCH[0]), GENERATOR_BATCH[1]))
    every = 1.0 if order.adaptive_critic_steps is not None else float(order.critic_steps_per_generator_step)

    private = _private_step(order, networks, expected * seen, seen)
    steps = private + _free_step(networks, free).times(1.0 / every)
    held = BYTES_PER_WEIGHT * (networks.generator.weights + networks.critic.weights)
    held += EXPORTED_BYTES_PER_WEIGHT * networks.generator.weights
    begins = _read(shape, facts.units, most) + _start(order, facts, shape, networks, free)
    if not order.free_public_steps:
        return begins + steps.times(order.steps).holding(held)
    begins += _step_of_both(networks).times(order.free_public_steps)
    after = (begins + steps.times(order.steps).holding(held)).holding(held_public(facts, shape))
    return read_public(facts, shape) + after


def _read(shape: TableShape | ImageShape, units: int, most: int) -> Work:
    rows = float(units) * most
    if isinstance(shape, ImageShape):
        return Work(elements=2.0 * rows * shape.pixels, memory_bytes=2.0 * rows * shape.pixels)
    return coded_rows(rows, len(shape.cells), shape.columns_of_values)


def read_public(facts: Facts, shape: TableShape | ImageShape) -> Work:
    """Reading the public rows that an order begins from; nothing where it is not known how many they are."""
    rows = 0 if facts.public is None else facts.public.rows
    return _read(shape, rows, 1)


def held_public(facts: Facts, shape: TableShape | ImageShape) -> float:
    """Bytes of public rows in memory; large tables lie in a file. Where nothing is known of them: the most that may be."""
    size = MOST_PUBLIC_BYTES if facts.public is None else facts.public.held_bytes
    return float(size if isinstance(shape, ImageShape) else min(size, CODES_IN_MEMORY))


def _networks(order: TrainedOrder, shape: TableShape | ImageShape) -> Networks:
    if isinstance(shape, ImageShape):
        return _image_networks(order, shape)
    sizes, width = order.networks, sum(shape.cells.values())
    record = width + sizes.pair_products
    generator = Network.perceptron(sizes.noise_dimension, *sizes.generator_hidden, width)
    return Networks(
        generator, Network.perceptron(record, *sizes.critic_hidden, 1), record, sizes.noise_dimension + width
    )


def _image_networks(order: TrainedOrder, shape: ImageShape) -> Networks:
    sizes = order.image_networks
    if sizes is None:
        raise InvalidOrder("image_networks must be resolved before pricing", where="image_networks")
    height, width = (-(-side // sizes.shrink) for side in (shape.height, shape.width))
    seen = height * width * shape.channels
    record = seen + shape.classes
    if sizes.layers == "perceptrons":
        critic = Network.perceptron(record, *sizes.critic_hidden, 1)
        generator = Network.perceptron(sizes.noise_dimension + shape.classes, *sizes.generator_hidden, seen)
    else:
        critic = _convolving_critic(sizes, (height, width), shape)
        generator = _convolving_generator(sizes, (height, width), shape)
    noise = sizes.noise_dimension
    if order.mixture_first is not None and order.corrects_mixture:
        generator = Network.perceptron(shape.pixels, *order.mixture_first.hidden, shape.pixels)
        noise = mixture_of(order.mixture_first).rank
    return Networks(generator, critic, record, noise)


def _convolving_critic(sizes: ImageNetworks, sides: tuple[int, int], shape: ImageShape) -> Network:
    """Every layer halves the sides."""
    height, width = sides
    weights, multiplications, activations, before = 0, 0.0, 0.0, shape.channels
    for channels in sizes.critic_channels:
        height, width = max(1, height // 2), max(1, width // 2)
        kernel = KERNEL * KERNEL * before * channels
        weights, multiplications = weights + kernel + channels, multiplications + float(kernel * height * width)
        activations, before = activations + channels * height * width, channels
    return Network(weights + before * height * width, multiplications, activations, convolves=True)


def _convolving_generator(sizes: ImageNetworks, sides: tuple[int, int], shape: ImageShape) -> Network:
    """A layer of perceptrons at the smallest sides, then one of convolutions at each doubling."""
    channels = sizes.generator_channels
    first = channels[0] * math.prod(-(-side // 2 ** len(channels)) for side in sides)
    weights = first * (sizes.noise_dimension + shape.classes)
    multiplications, activations = float(weights), float(first)
    for place, (before, after) in enumerate(zip(channels, (*channels[1:], channels[-1]), strict=True)):
        area = math.prod(-(-side // 2 ** (len(channels) - 1 - place)) for side in sides)
        weights, multiplications = weights + 9 * before * after, multiplications + 9.0 * before * after * area
        activations += after * area
    last = 9 * channels[-1] * shape.channels
    return Network(weights + last, multiplications + float(last * math.prod(sides)), activations, convolves=True)


def _private_step(order: TrainedOrder, networks: Networks, records: float, most: int) -> Work:
    """One draw through both networks, its gradients clipped and summed, noise, Adam."""
    critic, generator = networks.critic, networks.generator
    seen = records + float(order.public_records_a_step * most)
    keeps_all = _keeps_every_gradient(order, most)
    block = BLOCK_OF_IMAGES if critic.convolves else KEPT_ROWS if keeps_all else BLOCK_ROWS
    block_units = max(1.0, min(block / most, seen / most))
    work = generator.passes(seen, 1.0) + critic.passes(seen, PRIVATE_PASSES)
    work += Work(
        elements=20.0 * critic.weights + ARRAYS_OF_A_BATCH * seen * networks.record,
        draws=critic.weights + seen * (networks.noise + 1.0),
        calls=1.0 + seen / (most * block_units),
        memory_bytes=ARRAYS_OF_A_BATCH * FLOAT * block_units * most * (networks.record + critic.activations),
    )
    if keeps_all:
        kept = Work(elements=KEPT_ARRAYS_PASSES * seen * critic.weights)
        return (work + kept).holding(KEPT_ARRAYS * FLOAT * min(KEPT_ROWS, seen) * critic.weights)
    if critic.convolves:
        held = min(FLOAT * block_units * critic.weights, float(HELD_BYTES))
        return (work + Work(elements=6.0 * seen * critic.weights)).holding(2.0 * held)
    return work


def _keeps_every_gradient(order: TrainedOrder, most: int) -> bool:
    """Critics that no formula knows, and units of very many records."""
    is_known = order.image_networks is None or most == 1 or order.image_networks.layers == "perceptrons"
    shaped = order.private_step is not None and (
        order.private_step.needs_gradients_in_full or order.private_step.is_smooth
    )
    return shaped or order.mask_share is not None or order.names_classes or not is_known or most > MOST_ROWS_OF_A_UNIT


def _free_step(networks: Networks, records: float) -> Work:
    """A generator's step; reads no row."""
    critic, generator = networks.critic, networks.generator
    copies = COPIES_OF_CONVOLUTIONS if critic.convolves else 1.0
    alive = copies * (generator.activations + critic.activations) + ARRAYS_OF_A_BATCH * networks.record
    return (
        generator.passes(records, FREE_PASSES)
        + critic.passes(records, FREE_PASSES)
        + Work(
            elements=10.0 * generator.weights + ARRAYS_OF_A_BATCH * records * networks.record,
            draws=records * networks.noise,
            calls=1.0,
            memory_bytes=FLOAT * records * alive,
        )
    )


def _step_of_both(networks: Networks) -> Work:
    """Of both networks, on records that may be looked at without a charge."""
    return _free_step(networks, FREE_BATCH) + networks.critic.passes(FREE_BATCH, PRIVATE_PASSES)


def _free_start(order: TrainedOrder, facts: Facts, networks: Networks) -> Work:
    """Free samples of a measured mixture, and steps on them."""
    shape = facts.shape(order.numeric_bins)
    if order.mixture_first is None or not isinstance(shape, ImageShape):
        return Work()
    pixels, rank = float(shape.pixels), float(mixture_of(order.mixture_first).rank)
    count = float(free_samples(shape.pixels))
    drawn = Work(
        products=4.0 * count * pixels * rank,
        elements=20.0 * count * pixels,
        draws=count * rank,
        memory_bytes=2.0 * count * pixels + FLOAT * FREE_SAMPLES_AT_ONCE * (rank**2 + 20.0 * pixels),
    )
    return drawn + _step_of_both(networks).times(order.mixture_first.free_steps)


def free_samples(pixels: int) -> int:
    """How many images of a measured mixture networks are trained on first; they are kept as bytes."""
    return max(FREE_BATCH, min(MOST_FREE_SAMPLES, MOST_FREE_SAMPLE_BYTES // pixels))


def _start(order: TrainedOrder, facts: Facts, shape: TableShape | ImageShape, networks: Networks, free: float) -> Work:
    """What is measured first, and the free steps towards it."""
    if order.mixture_first is not None:
        measured = mixture_work(mixture_of(order.mixture_first), facts)
        return measured if order.corrects_mixture else measured + _free_start(order, facts, networks)
    if order.tables_first is None or order.tables_order is None or isinstance(shape, ImageShape):
        return Work()
    start: TablesFirst = order.tables_first
    strata = shape.cells.get(order.condition_on or "", 1)
    cells = float(sum(pair_widths(tuple(shape.cells.values()), pair_cells=order.tables_order.pair_cells)))
    rows = float(ROWS_OF_A_STRATUM * strata)
    toward = _free_step(networks, rows) + Work(products=4.0 * rows * cells**2, elements=8.0 * strata * cells**2)
    critic = networks.critic.passes(free, PRIVATE_PASSES) + Work(
        draws=2.0 * free * networks.record, elements=ARRAYS_OF_A_BATCH * free * networks.record, calls=1.0
    )
    fits = toward.times(start.generator_steps) + critic.times(start.critic_steps)
    holds = Work(products=4.0 * free * cells**2 * float(start.hold > 0.0)).times(
        order.steps / order.critic_steps_per_generator_step
    )
    return marginals_work(order.tables_order, facts) + fits + holds
