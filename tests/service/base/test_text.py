"""What is said of a value that cannot be read."""

import pytest
from pydantic import ValidationError

from service.base.faults import sentence_of
from service.datasets.schemas import DatasetChange


@pytest.mark.parametrize("moment", ["2030-01-01", "2030-01-01T00:00:00", "tomorrow", "", None, []])
def test_what_is_no_moment_is_told_how_one_is_written(moment):
    with pytest.raises(ValidationError) as raised:
        DatasetChange(rows_expire_at=moment)
    (fault,) = raised.value.errors()
    assert sentence_of(fault) == "give a moment with its time zone, like 2027-01-31T00:00:00Z"
