"""What people are told about `ganobfuscator`."""

from __future__ import annotations

from service.methods.idpgan.card import STEP_RELEASES
from service.methods.interface import Card

PUBLIC = (
    "The paper's public records are of the same kind as the private ones. Here they are made up from the declaration alone, "
    "uniform over its bins or as smooth random images: this costs no privacy, but their gradients say less about the private ones."
)

CARD = Card(
    summary="A WGAN-GP whose clip norm follows the gradients of public records; a comparison, not a recommendation.",
    makes="a small neural network that was trained with noisy gradients",
    source="Xu, Ren, Zhang, Zhang, Qin, Ren 2019 (GANobfuscator)",
    paper_holds=f"Clip norms depend on public records alone, so they cost nothing. {PUBLIC} Every step draws a "
    "fresh Poisson sample (docs/privacy.md, One private step).",
    releases=STEP_RELEASES,
)
