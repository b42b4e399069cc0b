"""Conditions, weights and completion over HTTP: what cannot be met is refused before the first byte."""

import io
import json
import uuid

import polars as pl
import pytest

from imprimatur import Client
from imprimatur.errors import InvalidInput
from tests.reservations import claim
from tests.service.http.test_datasets_api import _assert_problem
from workers.run import Attempt

pytestmark = pytest.mark.slow

MIXTURE = {"method": "marginals", "epsilon": 1.0, "steps": 20}


@pytest.fixture
def release(api, context, dataset_id, signing_key):  # noqa: ARG001 - what signs certificates
    found = api.order(dataset_id, MIXTURE)
    assert found.status_code == 202, found.text
    with context.transaction() as session:
        lease = claim(session, uuid.UUID(found.json()["id"]))
    Attempt(context, lease).run()
    return found.json()["id"]


def test_conditions_weights_and_completion(api, release, subtests):
    def sample(**query):
        query = {"rows": 200, "format": "jsonl", "seed": 1} | query
        reply = api.http.get(f"/v1/releases/{release}/sample", params=query, headers=api.reader)
        if reply.status_code != 200:
            return reply
        return [json.loads(line) for line in reply.text.splitlines()]

    def complete(content, kind, **query):
        headers = {**api.reader, "Content-Type": kind}
        return api.http.post(f"/v1/releases/{release}/complete", content=content, headers=headers, params=query)

    with subtests.test("several conditions, in one text and in several"):
        for where in ("age>=65&age<70&city in [Rome, Oslo]", ["age>=65", "age<70", "city!=Bonn"]):
            rows = sample(where=where)
            assert len(rows) == 200
            assert all(65 <= row["age"] < 70 and row["city"] != "Bonn" for row in rows)
        assert {row["city"] for row in sample(where="city:Rome")} == {"Rome"}
    with subtests.test("a refusal is a problem, not a stream that breaks off"):
        for where, words in (
            ("agee>3", "did you mean 'age'"),
            ("city=Roma", "did you mean 'Rome'"),
            ("age>200", "from 0 to 120"),
            ("age<3&age>4", "no value meets all"),
        ):
            reply = sample(where=where)
            _assert_problem(reply, 422, "invalid_input")
            assert words in reply.json()["detail"]
        _assert_problem(sample(weights='{"city": {"Roma": 1}}'), 422, "invalid_input")
        _assert_problem(sample(weights="{"), 422, "invalid_input")
    with subtests.test("weights"):
        rows = sample(weights='{"city": {"Rome": 3, "Bonn": 1}}')
        assert [sum(row["city"] == city for row in rows) for city in ("Rome", "Bonn", "Oslo")] == [150, 50, 0]
    with subtests.test("rows completed, out as they came in"):
        reply = complete("age,city\n30,Rome\n41,\n", "text/csv", seed=1)
        assert reply.status_code == 200, reply.text
        assert complete("age,city\n30,Rome\n41,\n", "text/csv; charset=utf-8", seed=1).text == reply.text
        frame = pl.read_csv(io.BytesIO(reply.content))
        assert frame.columns == ["age", "income", "city", "smoker", "born"]
        assert frame["age"].to_list() == [30, 41]
        assert frame["city"][0] == "Rome"
        assert frame["city"].null_count() == 0
        reply = complete('{"age": 50, "born": "1950-01-02"}\n', "application/x-ndjson")
        assert reply.json()["born"] == "1950-01-02"
        sent = io.BytesIO()
        pl.DataFrame({"age": [20, 21], "born": ["1960-01-02", None]}).with_columns(
            pl.col("born").str.to_date()
        ).write_parquet(sent)
        reply = complete(sent.getvalue(), "application/vnd.apache.parquet")
        assert reply.status_code == 200, reply.text
        frame = pl.read_parquet(io.BytesIO(reply.content))
        assert (frame["age"].to_list(), str(frame["born"][0])) == ([20, 21], "1960-01-02")
    with subtests.test("rows that cannot be completed"):
        for content, kind, words in (
            ("age\n30\n200\n", "text/csv", "row 2: age"),
            ("agee\n30\n", "text/csv", "did you mean 'age'"),
            ("[]", "application/x-ndjson", "row 1 is not a JSON object"),
        ):
            reply = complete(content, kind)
            _assert_problem(reply, 422, "invalid_input")
            assert words in reply.json()["detail"]
        _assert_problem(complete("age\n30\n", "text/plain"), 422, "invalid_input")
        reply = complete(b"PAR1 and no more", "application/vnd.apache.parquet")
        assert reply.status_code == 422
        assert reply.headers["content-type"] == "application/problem+json"
        _assert_problem(complete("age\n" + "3\n" * 50_001, "text/csv"), 413, "too_large")
        _assert_problem(complete(b"x" * ((16 << 20) + 1), "text/csv"), 413, "too_large")
        keyless = api.http.post(f"/v1/releases/{release}/complete", content="age\n3\n")
        _assert_problem(keyless, 401, "unauthenticated")


def _parquet(columns) -> bytes:
    sent = io.BytesIO()
    pl.DataFrame(columns).write_parquet(sent)
    return sent.getvalue()


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ("age,smoker\n" + ",\n" * 5_000_000, "text/csv"),
        ('{"age":3}\n' * 50_001, "application/x-ndjson"),
        (_parquet({f"c{number}": [None] * 30_000 for number in range(80)}), "application/vnd.apache.parquet"),
        (_parquet({"city": ["R" * 1_000] * 20_000}), "application/vnd.apache.parquet"),
    ],
    ids=["rows of CSV", "JSON lines", "cells of Parquet", "text of Parquet"],
)
def test_more_rows_or_cells_than_are_completed_at_once_are_refused(api, release, content, kind):
    headers = {**api.reader, "Content-Type": kind}
    reply = api.http.post(f"/v1/releases/{release}/complete", content=content, headers=headers)
    _assert_problem(reply, 413, "too_large")
    assert ("too many cells" if "parquet" in kind else "more than 50000 rows") in reply.json()["detail"]


def test_the_client_says_conditions_as_mappings(api, release):
    client = Client("http://testserver")
    client._session._http = api.http
    api.http.headers.update(api.reader)
    with client.sample(
        release, 20, format="jsonl", where={"smoker": True, "age": {"minimum": 65}}, weights={"city": "uniform"}
    ) as chunks:
        rows = [json.loads(line) for line in b"".join(chunks).splitlines()]
    assert all(row["smoker"] is True and row["age"] >= 65 for row in rows)
    assert client.complete(release, [{"age": 30, "city": None}], seed=1)[0]["age"] == 30
    assert client.complete(release, b"age\n30\n", seed=1).startswith(b"age,income,city")
    frame = pl.DataFrame({"age": [30, 41], "city": ["Rome", None]})
    for table in (frame, frame.to_pandas(), frame.to_arrow()):
        completed = client.complete(release, table, seed=1)
        assert type(completed) is type(table)
        whole = pl.DataFrame(completed)
        assert (whole["age"].to_list(), whole["city"][0], whole["city"].null_count()) == ([30, 41], "Rome", 0)
    for wrong in ("age=30", {"age": 30}, [30], 5):
        with pytest.raises(InvalidInput, match="list of dictionaries"):
            client.complete(release, wrong)
