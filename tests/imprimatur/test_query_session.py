"""Questions from the client and the command line, answered by the running service."""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from imprimatur import ApiError, AsyncClient, Client
from imprimatur.cli.application import app
from tests.conftest import SMALL_SCHEMA, small_table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.fixture
def dataset(stack: Any, api_key: str, tmp_path: Path) -> Iterator[tuple[Client, str]]:
    with Client(stack.url, api_key) as client:
        table = small_table(tmp_path / "asked.csv", rows=1_234)
        yield client, client.create_dataset(table, SMALL_SCHEMA, epsilon=5.0)["id"]


def test_a_session_asks_and_says_what_is_left(stack: Any, api_key: str, dataset: tuple[Client, str]) -> None:
    client, named = dataset
    session = client.session(named, epsilon=0.5)
    before = session.remaining_budget
    count = session.count()
    assert abs(count.value - 1_234) <= 40
    assert count.interval[0] <= count.value <= count.interval[1]
    assert count.is_new
    assert session.remaining_budget == pytest.approx(before - 0.5)
    assert client.certificate(count.release_id)["method"] == "queries"
    again = session.count(epsilon=0.2)
    assert (again.value, again.is_new, again.release_id) == (count.value, False, count.release_id)
    mean, quantiles = session.ask(
        [{"kind": "mean", "column": "size"}, {"kind": "quantiles", "column": "size", "where": "size>=0"}], epsilon=1.0
    )
    assert mean.interval[0] <= mean.value <= mean.interval[1]
    assert len(quantiles.value) == 3
    assert session.price([{"kind": "median", "column": "size"}])["fits"]
    assert session.remaining_budget == pytest.approx(before - 1.5)
    with pytest.raises(ApiError, match="no column"):
        session.histogram("colours")
    with pytest.raises(ValueError, match="say epsilon"):
        client.session(named).count()

    async def asked() -> Any:
        async with AsyncClient(stack.url, api_key) as other:
            theirs = other.session(named, epsilon=0.5)
            return await theirs.count(), await theirs.remaining_budget

    answer, left = asyncio.run(asked())
    assert answer.value == count.value
    assert left == pytest.approx(before - 1.5)


def test_the_command_line_asks(stack: Any, api_key: str, dataset: tuple[Client, str]) -> None:
    _, named = dataset
    where = ["--url", stack.url, "--key", api_key]
    runner = CliRunner()
    done = runner.invoke(app, ["ask", named, "count", "--where", "size>=0", "--epsilon", "0.3", "--json", *where])
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    assert answer["is_new"]
    assert answer["interval"][0] <= answer["value"] <= answer["interval"][1]
    again = runner.invoke(app, ["ask", named, "count", "--where", "size>=0", "--epsilon", "0.3", *where])
    assert "before, nothing now" in again.output
    priced = runner.invoke(app, ["ask", named, "mean", "size", "--epsilon", "0.3", "--dry-run", *where])
    assert "The mean of " in priced.stdout
    assert re.search(r"fits +yes", priced.stdout)
    histogram = runner.invoke(app, ["ask", named, "histogram", "size", "--bins", "2", "--epsilon", "0.3", *where])
    assert "to under" in histogram.stdout
