"""What people are told about `idpgan`."""

from __future__ import annotations

from service.methods.idpgan.price import LABEL_COUNTS
from service.methods.interface import Card, Measured
from service.methods.marginals.card import RELEASES as MARGINALS
from service.methods.mixture.card import RELEASES as MIXTURE
from service.privacy.events import SAMPLED_STEPS

STEP_RELEASES = {
    LABEL_COUNTS: Measured("records of each value of the condition", "{rows} in all counts"),
    SAMPLED_STEPS: Measured(
        "gradients of a step, clipped per unit and added up, and where a histogram is priced that of their norms",
        "in each group of tensors its clip norm; √M in histograms of M tensors",
    ),
}
"""Of every generator that is trained by private steps."""

CARD = Card(
    summary="A conditional WGAN-GP trained by private steps, with decaying noise, adaptive thresholds and clustered clipping.",
    makes="a small neural network that was trained on",
    source="IDPGAN; with warm starts and bounds of our own (docs/privacy.md, docs/results/idpgan-on-tables.md)",
    paper_holds="The paper's thresholds read rows unpaid, and its noise is scaled to the drawn batch: neither is private. Here both are "
    "part of one joint Gaussian release of every step, on fresh Poisson draws (docs/privacy.md, One private step).",
    releases={**MARGINALS, **MIXTURE, **STEP_RELEASES},
)
