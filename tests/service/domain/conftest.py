import pytest

from service.base.errors import InvalidInput
from tests.service.untranslated import note_errors, untranslated


@pytest.fixture(autouse=True)
def every_refusal_can_be_said_in_german(request, monkeypatch):
    """Of all declarations that these tests have refused. Foreign ones are converted by the command line alone."""
    noted = note_errors(monkeypatch, InvalidInput)
    yield
    if request.module.__name__.rpartition(".")[2] != "test_foreign_schemas":
        assert [left for said in noted for left in untranslated(said)] == []
