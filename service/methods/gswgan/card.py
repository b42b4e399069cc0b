"""What people are told about `gswgan`."""

from __future__ import annotations

from service.methods.idpgan.card import STEP_RELEASES
from service.methods.interface import Card, Measured
from service.methods.label_counts import LABEL_COUNTS
from service.privacy.drawn_parts import DRAWN_PARTS

CARD = Card(
    summary="A generator that is shown clipped and noisy slopes of discriminators trained on disjoint parts; a comparison, not a recommendation.",
    makes="a small neural network that was trained with noisy slopes of discriminators",
    source="Chen, Orekondy, Fritz 2020 (GS-WGAN)",
    paper_holds="The published one does not hold: the slopes of a batch are clipped and charged one by one as if each had a draw of its own, while one "
    "drawn discriminator gives all of them; and a discriminator that is trained when it is drawn lets later slopes depend on earlier draws, which "
    "must stay secret. Here the slopes of a step are clipped as one and charged as one release, and discriminators are trained in turn, whichever "
    "is drawn (docs/privacy.md, One part of many).",
    releases={
        LABEL_COUNTS: STEP_RELEASES[LABEL_COUNTS],
        DRAWN_PARTS: Measured(
            "slopes of one discriminator at all generated images of a step, clipped together",
            "twice the clip norm of all of them together",
        ),
    },
    cannot_learn="Noise is added to every pixel of every generated image of a step, so that fine detail needs many more images than a service "
    "usually has.",
)
