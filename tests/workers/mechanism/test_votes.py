"""Votes of teachers: one teacher moves every count by one at most, whatever all of them say."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
import torch

from tests.exact_changes import squared_change
from workers.mechanism.votes import vote_counts


@pytest.mark.parametrize("records", [1, 2, 3])
def test_every_vote_of_three_teachers_and_every_other_vote_of_one_of_them(records: int) -> None:
    largest = Fraction(0)
    every = [torch.tensor(bits) for bits in itertools.product([False, True], repeat=records)]
    for rows in itertools.product(every, repeat=3):
        votes = torch.stack(rows)
        private = vote_counts(votes)
        assert private.sensitivities == (math.sqrt(records),)
        assert private.values[0].dtype == torch.float64
        assert private.values[0].tolist() == [sum(column) for column in votes.T.tolist()]
        for other in every:
            neighbour = votes.clone()
            neighbour[1] = other
            (change,) = squared_change(private, vote_counts(neighbour))
            assert change <= records
            largest = max(largest, change)
    assert largest == records
