"""How much it is to choose: every try, a classifier for each, and the last run."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import add

from service.methods.choose.methods import METHODS, public_bins_of
from service.methods.choose.order import ChooseOrder
from service.methods.choose.resolve import units_of_a_part
from service.methods.facts import Facts, PublicRows
from service.methods.idpgan.work import held_public, read_public
from service.methods.knobs import Order
from service.methods.work import FLOAT, Work, coded_rows

FITTING_STEPS, PASSES = 200, 6
"""Of the classifier."""
DRAWN_BATCH = 1_024
"""Synthetic rows that are drawn at once."""


def estimate(order: ChooseOrder, facts: Facts) -> Work:
    """All of it. Public rows are read before the first try, once by each number of bins, and kept."""
    if facts.public is None:
        return _of_all(order, facts)
    shapes = [facts.shape(bins) for bins in public_bins_of(order)]
    at_hand = replace(facts, public=PublicRows(rows=0, held_bytes=0))
    read = reduce(add, (read_public(facts, each) for each in shapes), Work())
    return read + _of_all(order, at_hand).holding(sum(held_public(facts, each) for each in shapes))


def _of_all(order: ChooseOrder, facts: Facts) -> Work:
    """The work of all tries and the last run; of `repeat`, as many tries as are made in any case, each as long as the longest."""
    if order.form == "parts":
        part = replace(facts, units=units_of_a_part(order, facts.units))
        tries = reduce(add, (_of(each, part) for each in order.trials or ()), Work())
        finals = [_of(each, facts) for each in order.candidates]
        return tries + _classifier(order, facts).times(len(order.candidates)) + _longest(finals)
    runs = float(order.padded_runs or 1)
    longest = _longest([_of(each, facts) for each in order.candidates])
    return (longest + _classifier(order, facts)).times(runs) + longest


def _of(candidate: Order, facts: Facts) -> Work:
    work: Work = METHODS[candidate.method].estimate(candidate, facts)  # type: ignore[attr-defined]
    return work


def _longest(works: list[Work]) -> Work:
    longest = max(works, key=lambda each: each.flops)
    return replace(longest, memory_bytes=max(each.memory_bytes for each in works))


def _classifier(order: ChooseOrder, facts: Facts) -> Work:
    shape = facts.table(order.numeric_bins)
    columns, classes = len(shape.cells), shape.cells.get(order.target or "", 1)
    weights = float(sum(shape.cells.values())) * classes
    learned = float(order.rows) * columns * classes + 2.0 * weights
    # Logits of a batch of drawn rows, twice in 8 bytes; scores of rows; weights, their gradient and Adam's means.
    logits = 4.0 * DRAWN_BATCH * sum(shape.cells.values())
    held = FLOAT * (logits + 4.0 * order.rows * classes + 5.0 * weights)
    read = coded_rows(float(facts.units) * shape.max_rows_per_unit, columns, 0)
    return read + Work(elements=FITTING_STEPS * PASSES * learned, calls=0.1 * FITTING_STEPS, memory_bytes=held)
