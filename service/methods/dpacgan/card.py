"""What people are told about `dpacgan`."""

from __future__ import annotations

from service.methods.ganobfuscator.card import PUBLIC
from service.methods.idpgan.card import STEP_RELEASES
from service.methods.interface import Card

CARD = Card(
    summary="A GAN whose critic also names the class of an image, with clip norms from public records; a comparison, not a recommendation.",
    makes="a small neural network that was trained with noisy gradients",
    source="Guo et al. 2018 (DPACGAN): an auxiliary classifier (Odena et al. 2017) and the mean gradient norm of a public mini-batch",
    paper_holds="Critic and classifier share one loss, whose gradient is clipped as a whole, so the classifier costs "
    f"nothing more. {PUBLIC} The loss is Wasserstein instead of the paper's logistic loss, as for every method here.",
    releases=STEP_RELEASES,
)
