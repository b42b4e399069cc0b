"""Which units a release is not made of: on one side each, the same at every attempt, and whatever the rows are."""

import uuid
from dataclasses import replace

import numpy as np
import pytest

from service.methods.catalogue import CATALOGUE, parse_order
from tests.catalogue import UNITS, case_of
from workers.encoding.table import EncodedTable, TableDomain
from workers.held_out import Split, training_rows
from workers.hooks import Hooks
from workers.mechanism.secure_random import SecureRandom
from workers.plan import Plan
from workers.sources import GivenTable
from workers.training import make_release

RELEASE = uuid.UUID("00000000-0000-4000-8000-000000000001")
ORDER = parse_order({"method": "marginals", "epsilon": 1.0, "report": {"held_out": 0.2}})
MAKES_TABLES = [name for name, method in CATALOGUE.items() if "table" in method.takes and method.returns == "generator"]


def sides(units=103, release=RELEASE):
    split = Split.of(ORDER, release)
    return split.units(units, held_out=False), split.units(units, held_out=True)


def test_every_unit_is_on_one_side():
    training, held_out = sides()
    assert len(held_out) == 21
    assert sorted([*training, *held_out]) == list(range(103))
    assert (np.diff(training) > 0).all()


def test_another_attempt_has_the_same_sides_and_another_release_has_others():
    assert all((one == other).all() for one, other in zip(sides(), sides(), strict=True))
    assert set(sides()[1]) != set(sides(release=uuid.UUID(int=RELEASE.int + 1))[1])


def test_the_sides_stay_what_they_are_when_numpy_changes():
    """A release may be gone on with by a newer worker."""
    assert sides(units=20)[1].tolist() == [1, 4, 11, 15]


def test_whether_a_unit_is_held_out_depends_on_nothing_that_others_have():
    table = EncodedTable(np.arange(40, dtype=np.uint16)[:, None], 40, None, 1)
    domain = TableDomain(())
    other = replace(table, codes=table.codes[::-1].copy())
    places = [
        Split.of(ORDER, RELEASE).held_out(GivenTable(each, domain)).table(numeric_bins=4)[0].codes[:, 0]
        for each in (table, other)
    ]
    assert (places[0] == 39 - places[1]).all()


def test_all_rows_of_a_unit_are_on_one_side():
    lengths = np.array([3, 0, 1, 4, 2] * 20)
    starts = np.concatenate(([0], np.cumsum(lengths)))
    table = EncodedTable(np.repeat(np.arange(100), lengths).astype(np.uint16)[:, None], 100, starts, 4)
    split = Split.of(ORDER, RELEASE)
    found = [
        side(GivenTable(table, TableDomain(()))).table(numeric_bins=4)[0] for side in (split.training, split.held_out)
    ]
    assert [each.units for each in found] == [80, 20]
    owners = [set(each.codes[:, 0].tolist()) for each in found]
    assert not owners[0] & owners[1]
    assert sum(len(each.codes) for each in found) == len(table.codes)


def test_a_table_mapped_from_a_file_is_split_in_place(tmp_path):
    codes = np.memmap(tmp_path / "codes", dtype=np.uint16, mode="w+", shape=(200_000, 2))
    codes[:] = np.arange(400_000).reshape(-1, 2) % 60_000
    plain = EncodedTable(np.array(codes), 200_000, None, 1)
    split = Split.of(ORDER, RELEASE)
    (kept, _), (same, _) = (
        split.training(GivenTable(each, TableDomain(()))).table(numeric_bins=4)
        for each in (replace(plain, codes=codes), plain)
    )
    assert np.shares_memory(kept.codes, codes)
    assert (kept.codes == same.codes).all()


def test_without_held_out_units_nothing_is_kept_back():
    source = object()
    assert training_rows(ORDER.model_copy(update={"report": None}), RELEASE, source) is source
    assert training_rows(parse_order({"method": "marginals", "epsilon": 1.0, "report": {}}), RELEASE, source) is source


class Watched:
    """Rows of a case, each held-out one of which would be an error to read."""

    holds_images = False

    def __init__(self, whole, split):
        self.whole, self.split, self.given = whole, split, []

    def table(self, **how):
        table, domain = self.whole.table(**how)
        codes = table.codes.copy()
        # No column has this code: a held-out row that gets through shows in the largest code.
        codes[self.split.units(table.units, held_out=True)] = 60_000
        return replace(table, codes=codes), domain


@pytest.mark.parametrize("method", MAKES_TABLES)
def test_every_method_makes_its_release_of_the_other_units(method):
    case = case_of(method, "table", report={"share": 0.1, "held_out": 0.25})
    split = Split.of(case.order, RELEASE)
    seen = []

    class Noted:
        holds_images = False

        def __init__(self, source):
            self.source = source

        def table(self, **how):
            table, domain = self.source.table(**how)
            seen.append((table.units, int(table.codes.max())))
            return table, domain

    source = Noted(training_rows(case.order, RELEASE, Watched(case.source(), split)))
    plan = Plan(case.events[:-1])
    made = make_release(case.order, plan, source, SecureRandom(), Hooks())
    assert made.is_private
    assert plan.upcoming() is None
    assert seen
    assert all(units == UNITS * 3 // 4 and largest < 60_000 for units, largest in seen)


@pytest.mark.parametrize(
    "method", [name for name in MAKES_TABLES if "public_dataset" in CATALOGUE[name].order.model_fields]
)
def test_public_rows_are_of_another_dataset_and_none_is_held_out(method):
    knobs = {"warm_start": {"kind": "none"}} if method == "idpgan" else {}
    start = {"public_dataset": str(uuid.UUID(int=7)), "public_steps": 2}
    case = case_of(method, "table", report={"share": 0.1, "held_out": 0.25}, **start, **knobs)
    rows, domain = case.source().table(numeric_bins=case.order.numeric_bins)
    source = GivenTable(rows, domain, given_public=(rows, domain))
    plan = Plan(case.events[:-1])
    made = make_release(case.order, plan, training_rows(case.order, RELEASE, source), SecureRandom(), Hooks())
    assert made.is_private
    assert plan.upcoming() is None
