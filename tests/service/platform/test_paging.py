"""What a page asks of the database."""

import uuid

import pytest
from sqlalchemy import select
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

from service.auth.models import ApiKey
from service.platform.paging import is_among


@pytest.mark.parametrize("count", [0, 1, 1_000])
def test_a_page_of_any_length_is_asked_for_by_the_same_statement(count):
    """Each connection remembers the last hundred statements by their text."""
    ids = [uuid.uuid4() for _ in range(count)]
    asked = select(ApiKey.id).where(is_among(ApiKey.id, ids)).compile(dialect=PGDialect_psycopg())
    asked = asked.construct_expanded_state() if hasattr(asked, "construct_expanded_state") else asked
    assert asked.statement.count("%(") == 1
    assert list(asked.parameters.values()) == [ids]
