"""A dataset with an empty account, in a database of its own."""

import pytest

from service.platform.database import transaction
from tests.bare_rows import add_bare_dataset


@pytest.fixture
def dataset_id(settings):
    with transaction(settings) as session:
        return add_bare_dataset(session)[1]
