"""How much autoencoders are: of private steps, of clustering, and of passes over all records."""

from __future__ import annotations

from dataclasses import dataclass

from service.domain.shapes import ImageShape
from service.methods.conditions import categories_of
from service.methods.dpgm.order import AutoencoderOrder, DpgmOrder
from service.methods.facts import Facts
from service.methods.work import FLOAT, Work, coded_rows

PASSES = 8
"""Of a record through all blocks: there, back, norms and sums."""
ARRAYS_OF_A_BATCH = 24
"""That long as a block's records or hidden layers, alive at once."""
BLOCK_ROWS = 2_048
"""Records of one block, as `workers.engines.autoencoders` has it."""
BYTES_PER_WEIGHT = 120
"""Weights, averages and Adam's two means in float32; sums, noise, products and their copies in float64."""


@dataclass(frozen=True)
class Sizes:
    """Sizes of all autoencoders together, and of what they are trained on."""

    rows: float
    """Of the whole dataset, as many as there may be."""
    most: int
    """Of one unit."""
    width: float
    classes: int
    hidden: float
    weights: float

    @classmethod
    def of(cls, order: AutoencoderOrder, facts: Facts, *, blocks: int | None) -> Sizes:
        """blocks: autoencoders; None: one for each class."""
        shape = facts.shape(order.numeric_bins)
        if isinstance(shape, ImageShape):
            most, width, classes = shape.max_images_per_unit, float(shape.pixels), shape.classes
        else:
            most, width = shape.max_rows_per_unit, float(sum(shape.cells.values()))
            classes = categories_of(order.condition_on, shape)
        hidden = float((blocks or classes) * order.autoencoder.hidden_units)
        weights = hidden * (2.0 * width + 3.0 * order.autoencoder.latent_numbers + 2.0 * classes + 2.0)
        return cls(float(facts.units) * most, most, width, classes, hidden, weights)


def training(order: AutoencoderOrder, facts: Facts, sizes: Sizes) -> Work:
    """Reading, and the private steps."""
    shape = facts.shape(order.numeric_bins)
    if isinstance(shape, ImageShape):
        read = Work(elements=2.0 * sizes.rows * sizes.width, memory_bytes=2.0 * sizes.rows * sizes.width)
    else:
        read = coded_rows(sizes.rows, len(shape.cells), 0)
    drawn = sizes.rows * (order.sampling_probability or 1.0)
    block = min(drawn, max(float(BLOCK_ROWS), 64.0 * sizes.most))
    wide = sizes.width + sizes.hidden
    step = Work(
        products=2.0 * PASSES * drawn * sizes.weights,
        elements=ARRAYS_OF_A_BATCH * (drawn * wide + sizes.weights),
        draws=sizes.weights + drawn * order.autoencoder.latent_numbers,
        calls=1.0 + drawn / max(block, 1.0),
        memory_bytes=ARRAYS_OF_A_BATCH * FLOAT * block * wide,
    )
    return read + step.times(order.steps).holding(BYTES_PER_WEIGHT * sizes.weights + read.memory_bytes)


def estimate(order: DpgmOrder, facts: Facts) -> Work:
    """The work of a run, with every round of k-means over all records."""
    sizes = Sizes.of(order, facts, blocks=order.clusters)
    features = float(order.features)
    rounds = Work(
        products=2.0 * sizes.rows * features * (sizes.width + (order.rounds + 1.0) * order.clusters),
        elements=sizes.rows * (2.0 * sizes.width + 12.0 * features * (order.rounds + 1.0)),
        draws=features * order.clusters * (order.rounds + 1.0),
        calls=1.0 + order.rounds,
        memory_bytes=4.0 * sizes.rows * (features + 4.0),
    )
    return training(order, facts, sizes) + rounds
