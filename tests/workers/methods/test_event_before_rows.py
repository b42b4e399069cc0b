"""The event is taken from the plan before rows are read for it, not only before its noise is drawn."""

from __future__ import annotations

from typing import Any

import pytest

from tests.catalogue import case_of
from workers.hooks import Hooks
from workers.mechanism.secure_random import SecureRandom
from workers.methods import labels, whole_sums
from workers.methods.dpgm import run as clusters
from workers.methods.dpgm import training
from workers.methods.dpgm.records import PlacedRecords
from workers.methods.dpsyn import run as em
from workers.methods.gswgan import run as gswgan
from workers.methods.gswgan.discriminators import Discriminators
from workers.methods.idpgan import training as gan_training
from workers.methods.idpgan.images import ImageIdpgan
from workers.methods.idpgan.tables import TableIdpgan
from workers.methods.mixture import measuring
from workers.methods.pategan import run as pategan
from workers.methods.pategan.teachers import Teachers
from workers.methods.rdpcgan import coded
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
    *[(kind, "_rows") for kind in (TableIdpgan, ImageIdpgan)],
    (ImageIdpgan, "_rows_to_clip"),
    (labels, "label_counts"),
    # Teachers and discriminators learn from rows for free and stay hidden: what they say is what has to be paid.
    (Teachers, "votes"),
    (Discriminators, "slope"),
)
RELEASES = (
    *[(module, "release") for module in (training, gan_training, coded, pategan, gswgan)],
    *[(module, "release_counts") for module in (whole_sums, labels)],
)
KNOBS: dict[str, dict[str, Any]] = {
    "dpgm": {"cluster_rounds": 2},
    "dpsyn": {"em_rounds": 3},
    "mixture": {"cells": 2, "upright": None},
    "idpgan": {"thresholds": {"kind": "fixed"}},  # a histogram of norms is a second release of the same event
}
OF_TABLES = ("dpgm", "dpsyn", "idpgan", "dpgan", "ganobfuscator", "rdpcgan", "pategan")
OF_IMAGES = ("dpgm", "mixture", "idpgan", "dpgan", "ganobfuscator", "dpacgan", "gswgan")


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(
    ("method", "holds"), [*((name, "table") for name in OF_TABLES), *((name, "image") for name in OF_IMAGES)]
)
def test_rows_are_read_for_an_event_that_was_taken(method: str, holds: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    case = case_of(method, holds, **KNOBS.get(method, {}))
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
    for place, name in RELEASES:
        monkeypatch.setattr(place, name, noted(getattr(place, name), lambda: released.append(plan.position)))

    make_release(case.order, plan, case.source(), SecureRandom.from_test_seed(1), Hooks())
    assert len(released) == sum(event.count for event in case.events)
    assert read
    assert {name for name, open_events in read if open_events != 1} == set()
