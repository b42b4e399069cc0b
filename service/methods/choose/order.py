"""`method: choose`: its knobs."""

from __future__ import annotations

from typing import Annotated, Literal, Self, TypeVar

from pydantic import Field, model_validator

from service.base.messages import Message
from service.methods.idpgan.order import IdpganOrder
from service.methods.knobs import DEFAULT_NUMERIC_BINS, Order
from service.methods.marginals.order import MarginalsOrder

MOST_CANDIDATES = 16

C = TypeVar("C", bound=Order)


class MarginalsCandidate(MarginalsOrder):
    """An order of `marginals` without a price."""

    @model_validator(mode="after")
    def _one_price(self) -> Self:
        return _without_price(self)


class IdpganCandidate(IdpganOrder):
    """An order of `idpgan` without a price."""

    @model_validator(mode="after")
    def _one_price(self) -> Self:
        return _without_price(self)


Candidate = Annotated[MarginalsCandidate | IdpganCandidate, Field(discriminator="method")]


def _without_price(candidate: C) -> C:
    if candidate.epsilon is not None or candidate.share is not None:
        raise ValueError(Message("a candidate has no price of its own; leave out epsilon and share"))
    return candidate


class ChooseOrder(Order):
    """The best of several orders of one method: which one, charged errors of a classifier decide."""

    method: Literal["choose"]
    candidates: Annotated[
        tuple[Candidate, ...],
        Field(
            min_length=1,
            max_length=MOST_CANDIDATES,
            description="Orders of `marginals`, or of `idpgan`, without a price. Which one is chosen is told; nothing else of the others is.",
        ),
    ]
    form: Annotated[
        Literal["parts", "repeat"],
        Field(
            description="parts: each candidate is tried on a part of the units, errors are counted on one more part, and the chosen one is "
            "made again of all units. repeat: candidates are tried on all units a random number of times, and the best try is published."
        ),
    ] = "parts"
    selection_share: Annotated[
        float,
        Field(
            ge=0.01,
            le=0.9,
            description="Part of ε: of `parts`, for the tries and, at no further cost, the choice; of `repeat`, for the errors of each try.",
        ),
    ] = 0.2
    target: Annotated[
        str | None,
        Field(max_length=200, description="The column that the classifier predicts. Default: the schema's `target`."),
    ] = None
    rows: Annotated[
        int, Field(ge=100, le=100_000, description="Synthetic rows that the classifier learns from; they cost nothing.")
    ] = 5_000
    numeric_bins: Annotated[
        int, Field(ge=2, le=256, description="Bins that the classifier sees of a range that declares none.")
    ] = DEFAULT_NUMERIC_BINS
    mean_runs: Annotated[
        float | None,
        Field(ge=1.0, le=100.0, description="`repeat`: how many tries on average. Default: as many as candidates."),
    ] = None
    runs_shape: Annotated[
        float,
        Field(
            ge=0.0,
            le=1.0,
            description="`repeat`: η of the truncated negative binomial of the number of tries. 1: geometric; 0: logarithmic, which costs "
            "less ε and sometimes takes much longer.",
        ),
    ] = 1.0
    padded_runs: Annotated[
        int | None,
        Field(
            ge=1,
            le=10_000,
            description="`repeat`: tries are made and thrown away until there are so many, so that time does not tell how many counted. "
            "Default: as many as are exceeded once in a million orders.",
        ),
    ] = None
    trials: Annotated[
        tuple[Candidate, ...] | None,
        Field(description="`parts`: the candidates as a part of the units has them. Filled in; may not be ordered."),
    ] = None

    @model_validator(mode="after")
    def _alike(self) -> Self:
        if len({each.method for each in self.candidates}) > 1:
            raise ValueError(Message("candidates: orders of one method can be compared; choose orders of one method"))
        return self

    @property
    def progress_steps(self) -> int:
        """Tries and the last run; of `repeat` one, so that progress tells nothing of how many there are."""
        return len(self.candidates) + 1 if self.form == "parts" else 1
