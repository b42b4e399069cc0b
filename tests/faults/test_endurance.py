"""The smallest run of `python -m bench.endurance`: a few thousand requests, the API and the relay killed."""

import pytest

from bench.endurance.__main__ import endure

pytestmark = pytest.mark.slow


@pytest.mark.long
def test_mixed_load_with_faults_loses_doubles_and_overspends_nothing(tmp_path):
    tmp_path.chmod(0o755)
    run = endure(tmp_path, requests=3_000, seconds=120.0, fault_seconds=8.0, clients=8)
    assert run.verdict.broken == []
    assert run.errors == 0
    assert run.faults["api SIGKILL"]
    assert run.faults["relay SIGKILL"]
    assert run.verdict.counts["releases published"] >= 1
    assert run.verdict.counts["orders accepted"] > 20
