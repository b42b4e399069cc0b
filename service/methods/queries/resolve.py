"""What an order of questions leaves open: nothing. Refused here is what its price leaves too little for."""

from __future__ import annotations

from service.base.errors import InvalidOrder
from service.base.messages import Figure, Message
from service.methods.facts import Facts
from service.methods.knobs import DEFAULT_NUMERIC_BINS
from service.methods.queries.order import Mean, Median, Quantiles, QueriesOrder
from service.methods.queries.price import COUNT_SHARE

SMALLEST_EPSILON = 1e-4
"""Of one release: noise of sums still fits into 64 bits (`service.methods.queries.lattice`)."""


def resolve(order: QueriesOrder, facts: Facts) -> QueriesOrder:
    """The same order: questions leave nothing open."""
    most = facts.table(DEFAULT_NUMERIC_BINS).max_rows_per_unit
    epsilon = order.epsilon if order.epsilon is not None else float(order.share or 0.0) * facts.budget.epsilon
    for place, (question, share) in enumerate(zip(order.questions, order.shares, strict=True)):
        where = f"questions.{place}"
        if isinstance(question, Median) and most > 1:
            raise InvalidOrder(
                Message(
                    "%(where)s: a unit may have %(most)s rows here, and `median` is for units of one row; ask for quantiles "
                    "with probability 0.5",
                    where=where,
                    most=most,
                ),
                where=where,
            )
        part = COUNT_SHARE if isinstance(question, Mean) else 1.0
        part /= len(question.probabilities) if isinstance(question, Quantiles) else 1
        if epsilon * share * part < SMALLEST_EPSILON:
            raise InvalidOrder(
                Message(
                    "%(where)s: this price leaves an epsilon of %(epsilon)s for one number, and %(least)s is the least: give "
                    "more, or ask less at once",
                    where=where,
                    epsilon=Figure(f"{epsilon * share * part:.2g}"),
                    least=Figure(f"{SMALLEST_EPSILON:g}"),
                ),
                where=where,
            )
    return order
