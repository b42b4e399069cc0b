"""The hash chain names every entry that was changed, removed or moved; balances follow from entries."""

import datetime as dt
import uuid
from dataclasses import dataclass, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from imprimatur.verify.chain import GENESIS, Totals, entry_hash, totals_of, verify_chain

DATASET = uuid.UUID(int=1)


@dataclass(frozen=True)
class Line:
    dataset_id: uuid.UUID
    seq: int
    release_id: uuid.UUID
    kind: str
    simple: int
    renyi: int
    created_at: dt.datetime
    previous_hash: bytes
    hash: bytes = b""


def chain(moves):
    lines, previous = [], GENESIS
    for seq, (release, kind, simple, renyi) in enumerate(moves, 1):
        at = dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=seq)
        line = Line(DATASET, seq, uuid.UUID(int=release), kind, simple, renyi, at, previous)
        fields = {name: getattr(line, name) for name in Line.__dataclass_fields__ if name != "hash"}
        previous = entry_hash(**fields)
        lines.append(replace(line, hash=previous))
    return lines


MOVES = st.lists(
    st.tuples(st.integers(1, 5), st.sampled_from(["reserve", "post", "void"]), st.integers(0, 9), st.integers(0, 9)),
    min_size=2,
    max_size=8,
)


@settings(deadline=None)
@given(MOVES, st.data())
def test_any_changed_removed_or_swapped_entry_is_noticed(moves, data):
    lines = chain(moves)
    assert verify_chain(lines) == []
    place = data.draw(st.integers(0, len(lines) - 1))
    change = data.draw(st.sampled_from(["simple", "renyi", "kind", "release_id", "created_at", "remove", "swap"]))
    broken = list(lines)
    if change == "remove":
        del broken[place]
        if place == len(lines) - 1:
            return  # a cut tail leaves a whole chain; the balance's head and count notice it
    elif change == "swap":
        other = (place + 1) % len(lines)
        broken[place], broken[other] = broken[other], broken[place]
    else:
        old = getattr(lines[place], change)
        new = {
            "kind": "settle",
            "release_id": uuid.UUID(int=99),
            "created_at": dt.datetime(2027, 1, 1, tzinfo=dt.UTC),
        }.get(change)
        broken[place] = replace(lines[place], **{change: old + 1 if new is None else new})
    faults = verify_chain(broken)
    assert faults
    assert any("entry" in fault for fault in faults)


def test_totals_follow_the_last_word_on_each_release():
    lines = chain(
        [
            (1, "reserve", 10, 20),
            (2, "reserve", 5, 5),
            (1, "post", 10, 20),
            (3, "reserve", 7, 7),
            (2, "void", 5, 5),
            (1, "settle", 10, 12),
        ]
    )
    assert totals_of(lines) == Totals(simple_pending=7, simple_posted=10, renyi_pending=7, renyi_posted=12)
