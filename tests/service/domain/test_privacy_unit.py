from __future__ import annotations

import pytest

from service.base.errors import InvalidInput
from service.domain.privacy_unit import ImageUnit, PrivacyUnit, parse_privacy_unit


def test_a_good_one():
    unit = parse_privacy_unit({"column": "customer", "max_rows_per_unit": 20})
    assert unit == PrivacyUnit(column="customer", max_rows_per_unit=20)
    assert unit.as_json() == {"column": "customer", "max_rows_per_unit": 20}


@pytest.mark.parametrize(
    ("document", "where"),
    [
        ({"column": "c", "max_rows_per_unit": 0}, "privacy_unit.max_rows_per_unit"),
        ({"column": "c", "max_rows_per_unit": 10_001}, "privacy_unit.max_rows_per_unit"),
        ({"column": "c", "max_rows_per_unit": 1.5}, "privacy_unit.max_rows_per_unit"),
        ({"column": "c", "max_rows_per_unit": True}, "privacy_unit.max_rows_per_unit"),
        ({"column": "c", "max_rows_per_unit": "3"}, "privacy_unit.max_rows_per_unit"),
        ({"column": "c"}, "privacy_unit.max_rows_per_unit"),
        ({"column": "", "max_rows_per_unit": 1}, "privacy_unit.column"),
        ({"column": " c", "max_rows_per_unit": 1}, "privacy_unit.column"),
        ({"column": "a\nb", "max_rows_per_unit": 1}, "privacy_unit.column"),
        ({"column": "c", "max_rows_per_unit": 1, "more": 2}, "privacy_unit.more"),
        ({"column": "c", "max_rows_per_unit": 1, "missing": "drop"}, "privacy_unit.missing"),
        ({"max_images_per_unit": 0}, "privacy_unit.max_images_per_unit"),
        ({"max_images_per_unit": 1_001}, "privacy_unit.max_images_per_unit"),
        ({"max_images_per_unit": 2, "column": "c"}, "privacy_unit.column"),
        ("c", "privacy_unit"),
        (None, "privacy_unit"),
    ],
)
def test_bad_ones_name_the_field(document, where):
    with pytest.raises(InvalidInput) as caught:
        parse_privacy_unit(document)
    assert caught.value.values["where"] == where


def test_what_is_not_said_is_not_kept():
    """Versions that know no such word read what they always read."""
    own = {"column": "customer", "max_rows_per_unit": 20, "missing": "own_unit"}
    assert parse_privacy_unit(own).as_json() == own
    assert parse_privacy_unit({**own, "missing": "refuse"}).as_json() == {"column": "customer", "max_rows_per_unit": 20}


def test_units_of_images_name_no_column():
    unit = parse_privacy_unit({"max_images_per_unit": 10})
    assert unit == ImageUnit(max_images_per_unit=10)
    assert (unit.most, unit.missing, unit.as_json()) == (10, "refuse", {"max_images_per_unit": 10})
