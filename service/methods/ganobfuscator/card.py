"""What people are told about `ganobfuscator`."""

from __future__ import annotations

from service.methods.idpgan.card import STEP_RELEASES
from service.methods.interface import Card

PUBLIC = (
    "The paper's public records are of the same kind as the private ones. None are declared here, so they are made up from the "
    "declaration alone, uniform over its bins or smooth random images: as private, and a worse guess of a clip norm."
)

CARD = Card(
    summary="A WGAN-GP whose clip norm follows the gradients of public records; a comparison, not a recommendation.",
    makes="a small neural network that was trained on",
    source="Xu, Ren, Zhang, Zhang, Qin, Ren 2019 (GANobfuscator)",
    paper_holds=f"The clip norms read no private record, so they are free. {PUBLIC} Every step is a fresh Poisson draw "
    "(docs/privacy.md, One private step).",
    releases=STEP_RELEASES,
)
