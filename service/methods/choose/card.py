"""What people are told about `choose`."""

from __future__ import annotations

from service.methods.choose.price import ERRORS, REPEATED, SCORE, TRIAL, TRIALS, WINNER
from service.methods.interface import Card, Measured

RELEASES = {
    TRIALS: Measured(
        "which candidate is best: each is made of its own part of the units, and an exponential mechanism chooses one by the errors "
        "of a classifier in one more part; public coins say which unit is in which part; nothing else of the tries is published",
        "of a try, as its method says; the number of errors falls by at most {rows}, of every candidate, when a unit is zeroed out, so that "
        "probabilities are in proportion to exp(-epsilon · errors / {rows}), without the factor of 2",
    ),
    ERRORS: Measured("the candidate with few errors", "{rows} errors, of each candidate"),
    WINNER: Measured("the generator of the chosen candidate, made of all units", "as its method says"),
    REPEATED: Measured(
        "the generator with the fewest noisy errors of a random number of tries, each of a random candidate on all units; the number of "
        "tries, the other tries and all errors stay unpublished. The time that a release took reveals how many tries were made beyond `padded_runs` "
        "of the order, if any, and roughly which candidates they were",
        "of a try, as its method says",
    ),
    TRIAL: Measured("the generator of a random candidate", "as its method says"),
    SCORE: Measured(
        "how many rows a classifier that learned from the synthetic ones gets wrong, with geometric noise", "{rows}"
    ),
}

CARD = Card(
    summary="Several orders are tried, and the one whose rows train the better classifier is published, for one price.",
    makes="the generator of one of the candidates of the order, which certificate.json names under `choice`",
    source="IDPGAN paper, 3.1, corrected; Papernot and Steinke 2022 (repeat)",
    paper_holds="Not the paper's: it charges neither its tries nor the choice. Here both are events of the price (docs/choose.md).",
    releases=RELEASES,
    cannot_learn="Which candidate is best for anything but the classifier: errors in `target` decide.",
)
