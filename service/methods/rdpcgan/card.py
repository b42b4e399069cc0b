"""What people are told about `rdpcgan`."""

from __future__ import annotations

from service.methods.idpgan.card import STEP_RELEASES
from service.methods.idpgan.price import RELEVANCE
from service.methods.interface import Card, Measured
from service.methods.label_counts import LABEL_COUNTS
from service.privacy.events import SAMPLED_STEPS

CARD = Card(
    summary="An autoencoder trained with noisy gradients, then a Wasserstein GAN that makes its codes; a comparison, not a recommendation.",
    makes="a small neural network that was trained with noisy gradients",
    source="Torfi, Fox, Reddy 2020 (RDP-CGAN); the codes and the decoder as in medGAN (Choi et al. 2017)",
    paper_holds="It holds only if the whole gradient of the autoencoder is noisy. Code that adds noise to the decoder alone, since only the decoder "
    "is released, is not private: an encoder without noise carries each unit into the decoder's gradients of all others. Here encoder and "
    "decoder are clipped as one gradient, all of it gets noise, every step draws a fresh Poisson sample, and both phases are on one price "
    "list (docs/methods/rdpcgan.md).",
    releases={
        LABEL_COUNTS: STEP_RELEASES[LABEL_COUNTS],
        RELEVANCE: STEP_RELEASES[RELEVANCE],
        SAMPLED_STEPS: Measured(
            "gradients of a step, clipped per unit and summed: first of the autoencoder, encoder and decoder together, then of the critic",
            "the clip norm of the whole gradient",
        ),
    },
)
