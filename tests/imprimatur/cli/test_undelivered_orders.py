"""An order is sent under the same key until what it made is delivered."""

from __future__ import annotations

import os
import stat

import pytest

from imprimatur.cli.output import Failure
from imprimatur.cli.undelivered import Undelivered, check_can_be_kept

ORDER = {"method": "auto", "epsilon": 1.0}


def test_the_same_order_has_the_same_key_until_it_is_delivered():
    first = Undelivered.begin("dataset", ORDER, again=False)
    first.placed("release")
    second = Undelivered.begin("dataset", dict(reversed(ORDER.items())), again=False)
    assert (second.idempotency_key, second.release_id) == (first.idempotency_key, "release")
    assert stat.S_IMODE(second.path.stat().st_mode) == 0o600
    second.end()
    assert Undelivered.begin("dataset", ORDER, again=False).idempotency_key != first.idempotency_key


def test_another_order_another_dataset_or_again_is_paid_anew():
    key = Undelivered.begin("dataset", ORDER, again=False).idempotency_key
    others = [
        Undelivered.begin("dataset", {**ORDER, "epsilon": 2.0}, again=False),
        Undelivered.begin("other", ORDER, again=False),
        Undelivered.begin("dataset", ORDER, again=True),
    ]
    assert len({key, *(each.idempotency_key for each in others)}) == 4
    assert Undelivered.begin("dataset", ORDER, again=False).idempotency_key == others[-1].idempotency_key


def test_what_is_damaged_or_cannot_be_kept_is_refused_before_anything_is_paid(monkeypatch, tmp_path):
    kept = Undelivered.begin("dataset", ORDER, again=False)
    kept.path.write_text("{")
    with pytest.raises(Failure, match="--again"):
        Undelivered.begin("dataset", ORDER, again=False)
    assert Undelivered.begin("dataset", ORDER, again=True).release_id is None
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("IMPRIMATUR_CONFIG", os.fspath(tmp_path / "file"))
    with pytest.raises(Failure, match="IMPRIMATUR_CONFIG=FOLDER"):
        check_can_be_kept()


def test_of_two_runs_at_the_same_moment_one_makes_the_key(monkeypatch):
    """The second has looked before the first has written."""
    looked, first = Undelivered._read, []

    def late(path):
        if not first:
            first.append(None)
            first.append(Undelivered.begin("dataset", ORDER, again=False))
            return None
        return looked(path)

    monkeypatch.setattr(Undelivered, "_read", late)
    second = Undelivered.begin("dataset", ORDER, again=False)
    assert second.idempotency_key == first[1].idempotency_key
