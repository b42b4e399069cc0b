"""What people are told about `dpgan`."""

from __future__ import annotations

from service.methods.idpgan.card import STEP_RELEASES
from service.methods.interface import Card

CARD = Card(
    summary="A Wasserstein GAN whose critic has bounded weights and noisy gradients; a comparison, not a recommendation.",
    makes="a small neural network that was trained with noisy gradients",
    source="Xie, Lin, Wang, Wang, Zhou 2018 (DPGAN); with published_as: ppgan, Liu, Peng, Yu, Wu 2019 (PPGAN)",
    paper_holds="The published one does not hold: the papers take the bound on the critic's weights for a bound on its gradients, and account for "
    "batches of a fixed size as if they were Poisson samples. Here gradients are clipped per unit, and every step draws a fresh "
    "Poisson sample (docs/privacy.md, One private step).",
    releases=STEP_RELEASES,
)
