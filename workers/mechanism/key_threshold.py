"""Which keys are common, where their list is not public: noisy counts above a threshold that one unit alone passes with small probability."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from workers.mechanism import RowsOfUnits
from workers.numerics.exact_geometric import Decay, discrete_laplace


class Words(Protocol):
    """A secure source of integers below 2^63."""

    def words(self, count: int) -> NDArray[np.int64]: ...


def threshold(*, epsilon: float, failure_probability: float, most: int) -> int:
    """The least count at which a key is told.

    A unit alone brings `most` rows: one key with all of them, or as many keys with one each; anything between is less likely to be told,
    as tails fall geometrically. With p = e^(-ε/most): max(p^(τ - most), most·p^(τ - 1))/(1 + p) ≤ failure_probability. For one row this is
    1 + ln(1/(2δ))/ε up to the factor 2/(1 + p), which whole numbers need.
    """
    decay = Decay.of(epsilon, most)
    rate = decay.s / decay.t
    beyond = -math.log(failure_probability * (1.0 + decay.ratio)) * (1.0 + 1e-12)
    return math.ceil(max(most + beyond / rate, 1.0 + (beyond + math.log(most)) / rate))


def frequent_keys(
    keys: NDArray[np.int64],
    counted: NDArray[np.bool_],
    *,
    rows: RowsOfUnits,
    epsilon: float,
    failure_probability: float,
    randomness: Words,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The keys whose noisy count reaches the threshold, in order, and these counts; what comes back is public.

    Adjacency:   zero-out one unit.
    Sensitivity: L1 rows.most over the counts of all keys; ε-DP but for the failure that a key of this unit alone is told, which has the
                 given probability at most and is charged as δ.
    Shapes:      keys and counted (rows,); returns two arrays of equal length.
    Source:      Korolova, Kenthapadi, Mishra, Ntoulas 2009; docs/privacy.md, Failures.
    Edge cases:  rows beyond the most of their unit are left out; as much noise is drawn as there are rows, however many keys they have.
    """
    found, counts = np.unique(keys[rows.used(counted)], return_counts=True)
    noise = discrete_laplace(len(keys), Decay.of(epsilon, rows.most), randomness.words)[: len(found)]
    noisy = counts.astype(np.int64) + noise
    told = noisy >= threshold(epsilon=epsilon, failure_probability=failure_probability, most=rows.most)
    return found[told], noisy[told]
