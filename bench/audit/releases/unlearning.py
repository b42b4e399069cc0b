"""Unlearning: a dataset is released, a unit is deleted, and what is left is released again; the adversary sees both.

Chen et al. 2021 (*When machine unlearning jeopardizes privacy*). The second release makes the first one easier to read: everything but
the deleted row is the same. The ledger keeps the charge of the first one, so the sum of both prices is the bound.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench.audit.releases.likelihood import log_densities
from bench.audit.releases.making import Attacked
from bench.audit.releases.verdicts import Finding, Price, finding_of_scores

Pair = tuple[Sequence[Attacked], Sequence[Attacked]]
"""First releases, and second ones of the same histories."""


def scores(row: np.ndarray, pair: Pair) -> np.ndarray:
    """(histories,) log p of the row in the first release, less that in the second."""
    return log_densities(pair[0], row) - log_densities(pair[1], row)


def attack(
    target: str,
    row: np.ndarray,
    made_by: tuple[str, bool],
    price: Price,
    histories: tuple[Pair, Pair],
) -> Finding:
    """histories: in which the row was never there, or came after the first release; and in which it was deleted after it."""
    other, deleted = (scores(row, pair) for pair in histories)
    return finding_of_scores(("unlearning", target), made_by, price, (other, deleted))
