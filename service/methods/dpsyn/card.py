"""What people are told about `dpsyn`."""

from __future__ import annotations

from service.methods.dpgm.card import STEPS
from service.methods.dpsyn.price import LATENT_MOMENTS
from service.methods.interface import Card, Measured
from service.methods.label_counts import LABEL_COUNTS
from service.privacy.events import SAMPLED_STEPS

CARD = Card(
    summary="Every class has an autoencoder that is trained with noisy gradients, and a mixture of Gaussians on its codes that is found by "
    "private EM. A comparison, not a recommendation.",
    makes="small neural networks that were trained with noisy gradients, one for each class, and mixtures of Gaussians that they decode",
    source="Abay, Zhou, Kantarcioglu, Thuraisingham, Sweeney 2018 (DP-SYN); EM: Park, Foulds, Chaudhuri, Welling 2017",
    paper_holds="Not as published: there every class is trained apart, with its number of records as if it were public. Here one Poisson draw "
    "from all units serves all classes, class sizes are noisy counts, and each round of EM is one joint Gaussian release of responsibilities, "
    "sums and second moments, each with its share of the noise (docs/methods/dpsyn.md).",
    releases={
        LABEL_COUNTS: Measured("number of records of each value of the condition", "{rows} in all counts"),
        SAMPLED_STEPS: STEPS,
        LATENT_MOMENTS: Measured(
            "responsibilities of all records, their codes and products of two of their codes, summed for each Gaussian of each class",
            "{rows} in responsibilities, {rows}·R in codes, {rows}·R² in products, R the clip norm of codes",
        ),
    },
)
