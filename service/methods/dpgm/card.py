"""What people are told about `dpgm`."""

from __future__ import annotations

from service.methods.dpgm.price import CLUSTER_COUNTS, CLUSTER_MEANS
from service.methods.interface import Card, Measured
from service.privacy.events import SAMPLED_STEPS

STEPS = Measured(
    "gradients of a step, clipped per unit over all autoencoders together and summed",
    "the clip norm, over all autoencoders together",
)

CARD = Card(
    summary="Records are put into clusters by private k-means; every cluster has a variational autoencoder that is trained with noisy "
    "gradients. A comparison, not a recommendation.",
    makes="small neural networks that were trained with noisy gradients, one for each cluster of records",
    source="Acs, Melis, Castelluccia, De Cristofaro 2018 (DPGM)",
    paper_holds="Not as published: there every cluster is trained apart, with its number of records as if it were public. Here one Poisson draw "
    "from all units serves all clusters, a unit is clipped once over all of them, and clusters and their sizes are those of noisy counts and sums "
    "(docs/methods/dpgm.md).",
    releases={
        CLUSTER_MEANS: Measured(
            "number of records and sum of their random features, for each cluster",
            "{rows} in counts, {rows}·R in sums, R the clip norm of features",
        ),
        CLUSTER_COUNTS: Measured(
            "number of records of each cluster and value of the condition", "{rows} in all counts"
        ),
        SAMPLED_STEPS: STEPS,
    },
)
