from __future__ import annotations

import pytest

from service.datasets.privacy_unit import PrivacyUnit, parse_privacy_unit
from service.errors import InvalidInput


def test_a_good_one():
    unit = parse_privacy_unit({"column": "customer", "max_rows_per_unit": 20})
    assert unit == PrivacyUnit(column="customer", max_rows_per_unit=20)
    assert unit.model_dump() == {"column": "customer", "max_rows_per_unit": 20}


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
        ("c", "privacy_unit"),
        (None, "privacy_unit"),
    ],
)
def test_bad_ones_name_the_field(document, where):
    with pytest.raises(InvalidInput) as caught:
        parse_privacy_unit(document)
    assert caught.value.values["where"] == where
