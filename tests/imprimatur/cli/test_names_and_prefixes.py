"""What a person may type for a dataset or a release, and what is said where it is none or several."""

from __future__ import annotations

import pytest

from imprimatur.cli.named import Thing, find, nearest
from imprimatur.cli.output import Failure

FIRST = Thing("7f1c2a3b-0000-4000-8000-000000000001", "first", "people")
SECOND = Thing("7f1c9999-0000-4000-8000-000000000002", "second", "people")
OTHER = Thing("ab120000-0000-4000-8000-000000000003", "first", "visits")
ALL = [FIRST, SECOND, OTHER]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("second", SECOND),
        ("7f1c2", FIRST),
        ("7F1C9", SECOND),
        ("ab12", OTHER),
        ("7f1c2a3b0000", FIRST),
        ("7f1c2a3b-00", FIRST),
        ("people/first", FIRST),
        ("visits/first", OTHER),
    ],
)
def test_a_name_or_the_beginning_of_an_id_is_enough(typed, meant):
    assert find("release", typed, ALL) == meant


@pytest.mark.parametrize("typed", ["7f1c", "first"])
def test_what_may_be_several_lists_them(typed):
    with pytest.raises(Failure) as refused:
        find("release", typed, ALL)
    assert refused.value.code == "ambiguous_name"
    listed = [FIRST.id, SECOND.id] if typed == "7f1c" else [FIRST.id, OTHER.id]
    assert [each["id"] for each in refused.value.values["candidates"]] == listed
    assert all(each in refused.value.detail for each in listed)


def test_a_name_goes_before_the_beginning_of_an_id():
    named = Thing("00000000-0000-4000-8000-000000000009", "7f1c")
    assert find("dataset", "7f1c", [FIRST, named]) == named


@pytest.mark.parametrize(
    ("typed", "said"), [("secnod", "Nearest: second"), ("7f1", "at least four"), ("beef", "lists all 3")]
)
def test_what_is_unknown_names_the_nearest(typed, said):
    with pytest.raises(Failure) as refused:
        find("release", typed, ALL)
    assert said in refused.value.detail
    assert refused.value.code == "not_found"


def test_nearest_looks_past_capitals():
    assert nearest("ADMITED", ["Admitted", "age"]) == ["Admitted"]
