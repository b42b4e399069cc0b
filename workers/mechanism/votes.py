"""How many teachers vote for each of some public records, where each teacher saw a part of the units of its own."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from workers.mechanism import PrivateSum


def vote_counts(votes: Tensor) -> PrivateSum:
    """Votes for each record.

    Adjacency:   zero-out one unit, which is in the part of one teacher at most; that teacher may then vote otherwise on every record.
    Sensitivity: L2 √records: each count moves by one at most.
    Shapes:      votes (teachers, records) bool; returns one float64 tensor (records,), whose noise is drawn on a fine grid: there are more
                 of these releases than the reserve for whole numbers covers.
    Source:      Papernot et al. 2018 (GNMax), of two classes, without its data-dependent price; docs/methods/pategan.md.
    Edge cases:  a teacher whose part is empty votes like any other.
    """
    counts = votes.sum(dim=0).to(torch.float64)
    return PrivateSum((counts,), ((0,),), (math.sqrt(votes.shape[1]),))
