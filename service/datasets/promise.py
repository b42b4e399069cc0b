"""The budget that a dataset's row stands for."""

from __future__ import annotations

from service.privacy.filters import Budget
from service.privacy.renyi import renyi_capacity


def promised(epsilon: float, delta: float, renyi_order: int, capacity: float) -> Budget:
    """Of a stored promise: its capacity, but never more than ε and δ give at this order.

    Until the first charge, the API's role may write any capacity. Costs in the Rényi account are shares of it, so with a larger one
    every release would cost next to nothing there, and the account would never be full.
    """
    return Budget(epsilon, delta, renyi_order, min(capacity, renyi_capacity(epsilon, delta / 2.0, renyi_order)))
