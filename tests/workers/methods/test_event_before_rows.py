"""The event is taken from the plan before rows are read for it, not only before its noise is drawn."""

from __future__ import annotations

from typing import Any

import pytest

from tests.catalogue import case_of
from workers.hooks import Hooks
from workers.mechanism.secure_random import SecureRandom
from workers.methods import whole_sums
from workers.methods.dpgm import run as clusters
from workers.methods.dpgm import training
from workers.methods.dpgm.records import PlacedRecords
from workers.methods.dpsyn import run as em
from workers.methods.mixture import measuring
from workers.plan import Plan
from workers.training import make_release

READERS = (
    (PlacedRecords, "of"),
    *[(clusters, name) for name in ("first_moments", "nearest_cells")],
    (em, "soft_moments"),
    *[
        (measuring, name)
        for name in (
            *("deskewed", "leaning_counts", "first_moments", "tone_counts"),
            *("shared_moments", "nearest_cells", "second_moments"),
        )
    ],
)
KNOBS: dict[str, dict[str, Any]] = {
    "dpgm": {"cluster_rounds": 2},
    "dpsyn": {"em_rounds": 3},
    "mixture": {"cells": 2, "upright": None},
}


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(
    ("method", "holds"), [("dpgm", "table"), ("dpgm", "image"), ("dpsyn", "table"), ("mixture", "image")]
)
def test_rows_are_read_for_an_event_that_was_taken(method: str, holds: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    case = case_of(method, holds, **KNOBS[method])
    plan, released, read = Plan(case.events), [], []

    def noted(real: Any, note: Any) -> Any:
        def call(*given: Any, **named: Any) -> Any:
            note()
            return real(*given, **named)

        return call

    for place, name in READERS:
        real = getattr(place, name)
        monkeypatch.setattr(
            place, name, noted(real, lambda name=name: read.append((name, plan.position - len(released))))
        )
    for place, name in ((training, "release"), (whole_sums, "release_counts")):
        monkeypatch.setattr(place, name, noted(getattr(place, name), lambda: released.append(plan.position)))

    make_release(case.order, plan, case.source(), SecureRandom.from_test_seed(1), Hooks())
    assert len(released) == sum(event.count for event in case.events)
    assert read
    assert {name for name, open_events in read if open_events != 1} == set()
