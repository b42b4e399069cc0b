"""What people are told about `pategan`."""

from __future__ import annotations

from service.methods.idpgan.card import STEP_RELEASES
from service.methods.interface import Card, Measured
from service.methods.label_counts import LABEL_COUNTS
from service.privacy.events import SAMPLED_STEPS

CARD = Card(
    summary="A generator that follows a student, which learned from noisy votes of hidden teachers; a comparison, not a recommendation.",
    makes="a small neural network that was trained by a student of noisy votes",
    source="Jordon, Yoon, van der Schaar 2019 (PATE-GAN); Papernot et al. 2018 (Gaussian noise on votes)",
    paper_holds="Not as a price: the paper's ε depends on how far teachers agree, that is on the private rows. It must not be shown, and nothing may "
    "stop or be paid by it. Here the price is that of the noise alone, whatever the votes are: a unit is in the part of one teacher, so b votes "
    "move by √b. Public coins say which unit is in which part, a resumed run keeps them, and no teacher leaves the worker "
    "(docs/methods/pategan.md).",
    releases={
        LABEL_COUNTS: STEP_RELEASES[LABEL_COUNTS],
        SAMPLED_STEPS: Measured(
            "how many teachers vote for each synthetic row of a batch, as more real than half of it or as real, as numbers with Gaussian noise, "
            "from all units (their sampling probability is 1); the student learns whether they are more than half. Teachers, the true votes and how far they agree stay hidden",
            "one vote on each row of the batch, the square root of their number in all; whatever the rows of the unit",
        ),
    },
)
