"""The child process that computes one expensive price: limits first, then one JSON document in and one out.

Run as `python -m service.methods.child`. It has no address, no database, no secret and no row: an order, a budget, a price.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from fractions import Fraction
from typing import Any

from service.base.carried import packed
from service.base.errors import InvalidOrder, TooExpensiveToPrice
from service.base.work import TooMuchWork, at_most
from service.methods.bounded import CHILD_CPU_SECONDS, CHILD_MEMORY_BYTES, WHAT_TO_DO, WORK_OF_A_CHILD
from service.methods.catalogue import parse_resolved_order
from service.methods.pricing import UNPRICED, largest_of, priced
from service.privacy.filters import Budget

NICENESS = 10
"""Requests come first."""


def main() -> int:
    """Answer the document on standard input."""
    resource.setrlimit(resource.RLIMIT_CPU, (CHILD_CPU_SECONDS, CHILD_CPU_SECONDS))
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (CHILD_MEMORY_BYTES, CHILD_MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(NICENESS)
    try:
        with at_most(WORK_OF_A_CHILD):
            answer: dict[str, Any] = {"answer": answer_to(json.load(sys.stdin))}
    except (TooMuchWork, MemoryError):
        answer = {"error": TooExpensiveToPrice.code, "detail": packed(WHAT_TO_DO), "values": {}}
    except InvalidOrder as error:
        answer = {"error": error.code, "detail": packed(error.detail), "values": error.values}
    json.dump(answer, sys.stdout)
    return 0


def answer_to(job: dict[str, Any]) -> Any:
    """A price as JSON, or an ε."""
    order = parse_resolved_order(json.loads(job["order"])).model_copy(update=UNPRICED)
    budget = Budget(**job["budget"])
    if job["kind"] == "largest":
        return largest_of(order, budget, job["renyi_left"])
    share = Fraction(*job["share"])
    return priced(order, share, job["epsilon"], job["delta"], budget).as_json


if __name__ == "__main__":
    sys.exit(main())
