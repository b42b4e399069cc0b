"""What people are told about `dpgan`."""

from __future__ import annotations

from service.methods.idpgan.card import STEP_RELEASES
from service.methods.interface import Card

CARD = Card(
    summary="A Wasserstein GAN whose critic has bounded weights and noisy gradients; a comparison, not a recommendation.",
    makes="a small neural network that was trained on",
    source="Xie, Lin, Wang, Wang, Zhou 2018 (DPGAN)",
    paper_holds="The paper takes the bound on the weights for a bound on the gradients, and accounts draws of a fixed size as Poisson draws: "
    "neither holds. Here gradients are clipped per unit, and every step is a fresh Poisson draw (docs/privacy.md, One private step).",
    releases=STEP_RELEASES,
)
