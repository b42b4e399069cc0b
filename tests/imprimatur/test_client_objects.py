"""What the client gives: typed answers, names instead of ids, orders that are never paid twice."""

from __future__ import annotations

import asyncio
import datetime as dt
import inspect
import io
import json
import sys
from dataclasses import FrozenInstanceError

import pytest
from rich.console import Console

import imprimatur
from imprimatur import AsyncClient, Client, progress
from imprimatur.errors import AmbiguousName, InvalidInput, NotFound, OrderedNotDelivered, Unreachable
from imprimatur.naming import id_among
from imprimatur.replies import Budget, Quote, Release
from imprimatur.where import where_texts
from tests.wires import Wire

RELEASE = {
    "id": "0199aaaa-0000-7000-8000-000000000000",
    "dataset_id": "d",
    "state": "charged",
    "order": {"epsilon": 1},
    "price": {"epsilon": 1.0, "delta": 1e-6, "shares": {"simple": 1, "renyi": 2}},
    "progress": {"step": 3, "steps": 9, "phase": "training"},
    "certificate": None,
    "failure": None,
    "created_at": "2026-01-02T03:04:05Z",
    "links": {},
    "of_a_newer_service": [1],
}


@pytest.fixture
def reader(stack, published):
    """A client of the tenant that has one published release."""
    with Client(stack.url, published.api_key) as client:
        yield client


def test_an_answer_has_attributes_and_is_what_the_service_said():
    release = Release.of(RELEASE)
    assert (release.stage.step, release.stage.steps, release.price.shares.renyi) == (3, 9, 2)
    assert release.created_at == dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
    assert (release.estimate, release.priority, release.has_ended) == (None, None, False)
    assert release["progress"]["phase"] == "training"
    assert release.raw["of_a_newer_service"] == release["of_a_newer_service"] == [1]
    assert release == RELEASE
    assert json.loads(json.dumps({"items": [release]}, default=dict)) == {"items": [RELEASE]}
    assert release.get("none", 5) == 5
    with pytest.raises(FrozenInstanceError):
        release.state = "published"
    with pytest.raises(AttributeError):
        _ = release.of_a_newer_service
    with pytest.raises(ValueError, match=r"lacks 'state'.*another version"):
        Release.of({name: value for name, value in RELEASE.items() if name != "state"})


def test_a_dataset_says_what_can_be_asked_of_it(reader, published, tmp_path):
    (dataset,) = reader.datasets()
    assert isinstance(dataset, imprimatur.Dataset)
    assert isinstance(dataset.created_at, dt.datetime)
    assert isinstance(dataset.budget, Budget)
    assert dataset.budget.remaining_epsilon == reader.budget("small").largest_next_epsilon > 0
    quote = dataset.quote(epsilon=0.5)
    assert isinstance(quote, Quote)
    assert (
        (quote.fits, quote.order["epsilon"])
        == (True, 0.5)
        == (True, reader.quote(dataset, {"epsilon": 0.5}).order["epsilon"])
    )
    assert dataset.ledger().entries[0].kind == "reserve"
    (release,) = dataset.releases()
    assert [now.state for now in release.progress()] == ["published"]
    assert release.wait() == release.refreshed() == reader.release(published.release_id)
    sample = release.sample(50, seed=3)
    assert sample.to_polars().to_dicts() == sample.to_arrow().to_pylist()
    frame = sample.to_pandas()
    assert frame.shape == (50, 3)
    assert frame["colour"].dtype == "category"
    assert release.save_sample(tmp_path / "x.jsonl", 5) == (tmp_path / "x.jsonl").stat().st_size
    assert len((tmp_path / "x.jsonl").read_text().splitlines()) == 5
    assert sample.save(tmp_path / "x.arrow") > 0
    assert b"".join(sample.chunks()).count(b"\n") == 51
    with pytest.raises(InvalidInput, match="end it in"):
        release.save_sample(tmp_path / "x.doc")
    with sample as chunks:
        assert next(chunks).startswith(b"colour")
    many = reader.sample(release, 10_000_000).chunks()
    next(many)
    many.close()  # in the middle, which ends the connection and raises nothing


def test_names_and_beginnings_of_ids_are_enough(reader, published):
    (dataset,) = reader.datasets()
    for named in ("small", dataset.id, dataset.id[:6], dataset.id[:12].upper(), dataset, dict(dataset)):
        assert reader.dataset(named).id == dataset.id
        assert [each.id for each in reader.releases(named)] == [published.release_id]
    assert reader.certificate(published.release_id[:8])["release_id"] == published.release_id
    name = reader.release(published.release_id)["name"]
    assert reader.release(f"small/{name}").id == published.release_id
    with pytest.raises(NotFound, match=r"no dataset has the name 'smal'.*the newest are: .*\(small\)"):
        reader.budget("smal")
    with pytest.raises(NotFound):
        reader.dataset(dataset.id[:3])
    with pytest.raises(NotFound, match="no release"):
        reader.release("ffffff")


def test_what_fits_several_is_refused_with_all_of_them():
    items = [{"id": "abcdef01-1", "name": "a"}, {"id": "abcdef02-2", "name": "a"}, {"id": "b0", "name": "abcdef"}]
    for named in ("a", "abcdef0"):
        with pytest.raises(AmbiguousName, match=r"abcdef01-1 \(a\), abcdef02-2 \(a\)") as ambiguous:
            id_among(items, named, "dataset")
        assert ambiguous.value.values == {"candidates": ["abcdef01-1", "abcdef02-2"]}
    assert id_among(items, "abcdef02", "dataset") == "abcdef02-2"
    assert id_among(items, "abcdef", "dataset") == "b0", "a name goes before the beginning of an id"


def test_a_release_is_named_with_its_dataset():
    items = [{"id": "aa", "name": "first", "dataset_id": "d1"}, {"id": "bb", "name": "first", "dataset_id": "d2"}]
    datasets = {"d1": "people", "d2": "visits"}
    assert id_among(items, "visits/first", "release", datasets) == "bb"
    with pytest.raises(AmbiguousName):
        id_among(items, "first", "release", datasets)
    with pytest.raises(NotFound):
        id_among(items, "towns/first", "release", datasets)


def test_conditions_as_the_service_reads_them():
    assert where_texts({"Admitted": True}) == ["Admitted:true"]
    assert where_texts({"day": dt.date(2020, 1, 2)}) == ["day:2020-01-02"]
    (text,) = where_texts({"Admitted": True, "age": {"minimum": 65}, "rank": {1, 2}, "day": dt.date(2020, 1, 2)})
    assert json.loads(text) == {"Admitted": True, "age": {"minimum": 65}, "rank": [1, 2], "day": "2020-01-02"}
    assert json.loads(where_texts({"sex": None})[0]) == {"sex": None}
    assert where_texts("age>=65&sex=f") == ["age>=65&sex=f"]
    assert where_texts(["age>=65", "sex=f"]) == ["age>=65", "sex=f"]
    assert where_texts({}) == where_texts(None) == []


def test_an_order_without_an_answer_says_how_to_order_it_again(stack, api_key, small_csv, small_schema, small_order):
    with Client(stack.url, api_key) as direct:
        dataset = direct.create_dataset(small_csv, small_schema, epsilon=5.0)
        wire = Wire(stack.url, lambda _number, _request: "after")
        with Client(wire.url, api_key, retries=1) as cut, pytest.raises(Unreachable) as lost:
            cut.create_release(dataset, small_order)
        wire.listener.close()
        key = lost.value.values["idempotency_key"]
        assert f"idempotency_key={key!r}, which never pays twice" in str(lost.value)
    with Client(stack.url, api_key) as restarted:
        release = restarted.create_release(dataset.id, small_order, idempotency_key=key)
        assert [each.id for each in restarted.releases(dataset)] == [release.id]
        release.cancel()


def test_what_fails_after_an_order_names_the_release(stack, api_key, small_csv, small_schema, small_order):
    wire = Wire(stack.url, lambda _number, request: "middle" if b"/sample?" in request else None)
    with Client(wire.url, api_key) as cut, pytest.raises(OrderedNotDelivered) as failed:
        imprimatur.publish(small_csv, small_schema, small_order, rows=1_000_000, client=cut)
    wire.listener.close()
    release_id = failed.value.release_id
    assert f"client.release('{release_id}')" in str(failed.value)
    assert "no answer" in str(failed.value)
    with Client(stack.url, api_key) as client:
        assert client.release(release_id).wait(progress=False).sample(7).to_polars().height == 7
        assert len(client.releases()) == 1


def test_an_asynchronous_client_does_the_same(stack, published, tmp_path):
    async def all_of_it():
        async with AsyncClient(stack.url, published.api_key) as client:
            dataset = await client.dataset("small")
            assert (await dataset.budget).remaining_epsilon > 0
            assert (await dataset.quote(epsilon=0.5)).fits
            (release,) = await dataset.releases()
            assert [now.state async for now in release.progress()] == ["published"]
            assert (await release.wait()).id == published.release_id
            assert (await release.sample(5).to_pandas()).shape == (5, 3)
            assert (await client.sample(published.release_id[:8], 5).to_polars()).height == 5
            size = await release.save_sample(tmp_path / "x.parquet", 9)
            assert size == (tmp_path / "x.parquet").stat().st_size
            async for chunk in release.sample(10_000_000).chunks():
                assert chunk
                break
            await client.save_generator(release, tmp_path / "g.zip")
            with pytest.raises(NotFound):
                await client.dataset("none")
            return [line async for line in client.audit_log(2)], [each.id async for each in client.iter_releases()]

    lines, ids = asyncio.run(all_of_it())
    assert (len(lines), ids) == (2, [published.release_id])


def test_an_asynchronous_upload_order_and_cancellation(stack, api_key, small_csv, small_schema, small_order):
    heard = []

    async def cancelled():
        async with AsyncClient(stack.url, api_key) as client:
            dataset = await client.create_dataset(
                small_csv, small_schema, epsilon=5.0, on_progress=lambda phase, _: heard.append(phase)
            )
            release = await dataset.order(small_order | {"steps": 2_000})
            waiting = asyncio.create_task(release.wait(progress=False))
            await asyncio.sleep(0.2)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            with pytest.raises(TimeoutError, match=release.id):
                await release.wait(timeout=0)
            return (await release.cancel()).id == release.id

    assert asyncio.run(cancelled())
    assert {"uploading", "reading"} <= set(heard)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (imprimatur.Client, imprimatur.AsyncClient),
        (imprimatur.Dataset, imprimatur.AsyncDataset),
        (imprimatur.Release, imprimatur.AsyncRelease),
        (imprimatur.Sample, imprimatur.AsyncSample),
    ],
)
def test_both_clients_can_do_the_same(one, other):
    public = [{name for name in vars(each) if not name.startswith("_")} for each in (one, other)]
    assert public[0] == public[1]
    for name in public[0]:
        method = getattr(one, name)
        if inspect.isfunction(method):
            assert method.__doc__, f"{one.__name__}.{name} says nothing of itself"
            assert list(inspect.signature(method).parameters) == list(
                inspect.signature(getattr(other, name)).parameters
            )


def test_the_bar_shows_where_somebody_watches(monkeypatch):
    text = io.StringIO()
    with progress.bar(shown=True, console=Console(file=text, force_terminal=True, width=100)) as report:
        report(Release.of(RELEASE))
    assert "training" in text.getvalue()
    assert "3/9" in text.getvalue()
    with progress.bar(shown=None) as report:  # no one watches a test
        report(Release.of(RELEASE))

    shown = []

    class Display:
        def update(self, line, **_):
            shown.append(line)

    monkeypatch.setattr(progress, "_is_notebook", lambda: True)
    monkeypatch.setitem(
        sys.modules,
        "IPython.display",
        type("module", (), {"display": lambda line, **_: shown.append(line) or Display()}),
    )
    monkeypatch.setitem(sys.modules, "IPython", type("module", (), {}))
    with progress.bar(shown=None) as report:
        report(Release.of(RELEASE))
        report(Release.of(RELEASE | {"state": "published"}))
    assert [each["text/plain"] for each in shown] == ["training: 3 of 9", "published: 9 of 9"]
    assert shown[0]["text/html"] == '<progress value="3" max="9"></progress> training: 3 of 9'
