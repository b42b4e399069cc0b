"""A short run of `python -m bench.schemathesis`: no server error and no reply that the OpenAPI document does not name."""

import pytest

from bench.schemathesis import explore, serve

CASES = 20
NO_INPUT = {
    "GET /healthz",
    "GET /readyz",
    "GET /metrics",
    "GET /v1/ledger/head",
    "GET /v1/ledger/keys",
    "GET /v1/methods",
}


@pytest.mark.slow
def test_every_operation_answers_as_documented(context):
    with serve(context) as world:
        outcomes = list(explore(world, CASES))
    found = {outcome.name: dict(outcome.failures) for outcome in outcomes if outcome.failures}
    assert not found
    assert all(outcome.cases >= CASES for outcome in outcomes if outcome.name not in NO_INPUT)
    assert len(outcomes) >= 25
