"""How much `dpsyn` is: its autoencoders, and rounds of EM over all records."""

from __future__ import annotations

from service.methods.dpgm.work import Sizes, training
from service.methods.dpsyn.order import DpsynOrder
from service.methods.facts import Facts
from service.methods.work import Work


def estimate(order: DpsynOrder, facts: Facts) -> Work:
    """One pass of the encoder, then every round over all codes."""
    sizes = Sizes.of(order, facts, blocks=None)
    latent, gaussians = float(order.autoencoder.latent_numbers), float(order.gaussians * sizes.classes)
    a_round = Work(
        products=4.0 * sizes.rows * order.gaussians * latent**2,
        elements=sizes.rows * (12.0 * gaussians + 8.0 * latent * order.gaussians),
        draws=gaussians * (1.0 + latent + latent**2),
        calls=1.0 + gaussians,
    )
    encoded = Work(
        products=2.0 * sizes.rows * sizes.weights,
        elements=4.0 * sizes.rows * (sizes.width + sizes.hidden),
        memory_bytes=8.0 * sizes.rows * (latent + 1.0),
    )
    return training(order, facts, sizes) + encoded + a_round.times(order.em_rounds)
