"""How much `rdpcgan` is: the private steps of an autoencoder, then those of a GAN whose generator ends in its decoder."""

from __future__ import annotations

from service.domain.shapes import TableShape
from service.methods.facts import Facts
from service.methods.idpgan.work import KEPT_ARRAYS, KEPT_ARRAYS_PASSES, KEPT_ROWS, Network
from service.methods.idpgan.work import estimate as gan_work
from service.methods.rdpcgan.order import RdpcganOrder
from service.methods.work import FLOAT, Work, perceptron_weights

PASSES = 3
"""Of a row through the autoencoder: forward, and back by rows and by weights."""
DECODER_PASSES = 4
"""Of a row of the critic's step, and of a generator step's, through the decoder."""
CHANNELS = (8, 16)
KERNEL = 4
"""As `workers.networks.autoencoder` has them."""


def estimate(order: RdpcganOrder, facts: Facts) -> Work:
    """Gradients of the autoencoder are kept in full, one row at a time."""
    shape = facts.table(order.numeric_bins)
    coder, rows = autoencoder_of(order, shape), facts.units * (order.sampling_probability or 1.0)
    rows *= shape.max_rows_per_unit
    kept = min(float(KEPT_ROWS), rows)
    step = coder.passes(rows, PASSES) + Work(
        elements=KEPT_ARRAYS_PASSES * rows * coder.weights,
        draws=coder.weights,
        calls=1.0 + rows / KEPT_ROWS,
    )
    decoded = coder.passes(rows, DECODER_PASSES)
    held = KEPT_ARRAYS * FLOAT * (kept + 10.0) * coder.weights
    return gan_work(order, facts) + (step.times(order.autoencoder.steps) + decoded.times(order.steps)).holding(held)


def autoencoder_of(order: RdpcganOrder, shape: TableShape) -> Network:
    """Both halves, as if the decoder made the condition, too."""
    width, knobs = sum(shape.cells.values()), order.autoencoder
    if knobs.layers == "perceptrons":
        widths = (width, *knobs.hidden, knobs.latent)
        return Network.perceptron(*widths, *reversed(widths[:-1]))
    short = -(-width // 2 ** len(CHANNELS)) + 1
    ends = 2 * perceptron_weights((knobs.latent, CHANNELS[-1] * short))
    kernels = 2 * KERNEL * (CHANNELS[0] + CHANNELS[0] * CHANNELS[1])
    activations = 4.0 * width * CHANNELS[0]
    return Network(ends + kernels, ends + KERNEL * activations * CHANNELS[1], activations, convolves=True)
