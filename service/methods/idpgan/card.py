"""What people are told about `idpgan`."""

from __future__ import annotations

from service.methods.idpgan.price import RELEVANCE
from service.methods.interface import Card, Measured
from service.methods.label_counts import LABEL_COUNTS
from service.methods.marginals.card import RELEASES as MARGINALS
from service.methods.mixture.card import RELEASES as MIXTURE
from service.privacy.events import SAMPLED_STEPS

STEP_RELEASES = {
    LABEL_COUNTS: Measured("number of records of each value of the condition", "{rows} in all counts"),
    RELEVANCE: Measured(
        "relevance |x·∂D/∂x| of each input to the critic at its beginning, clipped per unit and summed",
        "the clip norm, from generated records",
    ),
    SAMPLED_STEPS: Measured(
        "gradients of a step, clipped per unit and summed; where a histogram is priced, also the histogram of their norms",
        "the clip norm of each group of tensors; √M in histograms of M tensors",
    ),
}
"""Of every generator that is trained by private steps."""

CARD = Card(
    summary="A conditional WGAN-GP trained by private steps, with decaying noise, adaptive clip norms and clustered clipping.",
    makes="a small neural network that was trained with noisy gradients",
    source="IDPGAN, with warm starts and privacy bounds of our own (docs/privacy.md, docs/results/idpgan-on-tables.md); copies of images: De et al. 2022",
    paper_holds="The published one does not hold: the bins of its clip norms depend on rows, its histograms of all weights are charged as one and so "
    "are all its clip groups, and draws of a fixed size are accounted for as if they were Poisson samples. Here every step is one joint Gaussian "
    "release of gradients and norms, on a fresh Poisson sample, and charged (docs/privacy.md, One private step; docs/explanation/idpgan.md).",
    releases={**MARGINALS, **MIXTURE, **STEP_RELEASES},
)
