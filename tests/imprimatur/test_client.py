"""The Python client against the real service, directly and through a wire that is cut in bad moments."""

from __future__ import annotations

import csv
import io
import json
import socket
import zipfile
from typing import TYPE_CHECKING

import httpx
import pytest

from imprimatur import ApiError, Client
from imprimatur.streams import server_sent_events
from imprimatur.verify.chain import GENESIS
from tests.wires import Wire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.slow


@pytest.fixture
def wire(stack, api_key) -> Iterator[Callable[..., tuple[Wire, Client]]]:
    """Makes wires with a client at their end."""
    made: list[tuple[Wire, Client]] = []

    def make(cut: Callable[[int, bytes], str | None], key: str = api_key) -> tuple[Wire, Client]:
        wire = Wire(stack.url, cut)
        made.append((wire, Client(wire.url, key)))
        return made[-1]

    yield make
    for wire, client in made:
        client.close()
        wire.listener.close()


def test_the_whole_way(client, small_csv, small_schema, small_order, tmp_path):
    dataset = client.create_dataset(small_csv, small_schema, epsilon=5.0, name="mine")
    assert (dataset["units"], dataset["delta"]) == (200, 1e-6)
    assert [d["id"] for d in client.datasets()] == [client.dataset(dataset["id"])["id"]] == [dataset["id"]]
    assert client.quote(dataset["id"], small_order)["fits"]

    seen = []
    release = client.create_release(dataset["id"], small_order)
    ended = client.wait(release["id"], on_progress=seen.append, timeout=600)
    assert ended["state"] == "published"
    assert {r["id"] for r in seen} == {release["id"]}
    assert [r["id"] for r in client.releases(dataset["id"])] == [release["id"]]

    counted = []
    client.save_sample(release["id"], tmp_path / "out.csv", 30, on_bytes=counted.append)
    with (tmp_path / "out.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 30
    assert counted[-1] == (tmp_path / "out.csv").stat().st_size
    with client.sample(release["id"], 5, format="jsonl", where={"colour": "red"}, seed=1) as chunks:
        rows = [json.loads(line) for line in b"".join(chunks).splitlines()]
    assert {row["colour"] for row in rows} == {"red"}
    client.save_generator(release["id"], tmp_path / "generator.zip")
    with zipfile.ZipFile(io.BytesIO((tmp_path / "generator.zip").read_bytes())) as archive:
        assert json.loads(archive.read("certificate.json")) == client.certificate(release["id"])
    assert client.budget(dataset["id"])["accounts"]["simple"]["posted"] > 0
    ledger = client.ledger(dataset["id"])
    assert ledger["verified"]
    assert ledger["items"][0]["previous_hash"] == GENESIS.hex()

    client.erase_dataset(dataset["id"])
    assert client.dataset(dataset["id"])["state"] == "erased"


def test_an_upload_with_progress_ends_like_one_without(client, small_csv, small_schema):
    heard = []
    watch = lambda phase, share: heard.append((phase, share))  # noqa: E731
    dataset = client.create_dataset(small_csv, small_schema, epsilon=1.0, on_progress=watch)
    assert client.dataset(dataset["id"])["units"] == dataset["units"] == 200
    phases = [phase for phase, _ in heard]
    assert phases == sorted(phases, key=["uploading", "reading", "storing"].index)
    assert {"uploading", "reading"} <= set(phases)
    assert ("uploading", 1.0) in heard
    with pytest.raises(ApiError) as again:
        client.create_dataset(small_csv, small_schema, epsilon=1.0, on_progress=watch)
    assert (again.value.status, again.value.code) == (409, "duplicate_rows")
    assert again.value.values == {"dataset_id": dataset["id"], "same_declaration": True}
    with pytest.raises(ApiError) as early:
        client.create_dataset(small_csv, {"fields": []}, epsilon=1.0, on_progress=watch)
    assert (early.value.status, early.value.code) == (422, "invalid_schema")


def test_a_declaration_is_replaced_and_the_release_is_of_the_new_one(
    client, small_csv, small_schema, small_order, tmp_path
):
    wrong = json.loads(json.dumps(small_schema).replace('"red"', '"Red"'))
    wrong["fields"][0]["constraints"]["required"] = False
    dataset = client.create_dataset(small_csv, wrong, epsilon=5.0)
    assert dataset["notices"]
    heard = []
    corrected = client.replace_declaration(
        dataset["id"], schema=small_schema, name="right", on_progress=lambda phase, _: heard.append(phase)
    )
    assert (corrected["notices"], corrected["name"], corrected["units"]) == ([], "right", 200)
    assert "reading" in heard
    assert client.replace_declaration(dataset["id"], privacy_unit="rows", file=small_csv)["name"] == "right"
    release = client.create_release(dataset["id"], small_order)
    assert client.wait(release["id"], timeout=600)["state"] == "published"
    client.save_sample(release["id"], tmp_path / "out.csv", 200)
    with (tmp_path / "out.csv").open() as file:
        assert "red" in {row["colour"] for row in csv.DictReader(file)}
    with pytest.raises(ApiError) as late:
        client.replace_declaration(dataset["id"], schema=wrong)
    assert (late.value.status, late.value.code) == (409, "already_charged")


def test_publish_in_one_call(client, small_csv, small_schema, small_order, tmp_path):
    release_id, pending = client.publish(
        small_csv, small_schema, small_order, epsilon=3.0, rows=9, path=tmp_path / "out.csv", wait_seconds=600
    )
    assert pending is None
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 10
    assert client.release(release_id)["state"] == "published"


def test_publish_hands_back_what_takes_longer(client, small_csv, small_schema, small_order, tmp_path):
    order = small_order | {"steps": 2_000}
    release_id, pending = client.publish(
        small_csv, small_schema, order, epsilon=3.0, path=tmp_path / "out.csv", wait_seconds=0, priority=6
    )
    assert pending is not None
    assert pending["priority"] == 6
    assert client.create_release(pending["dataset_id"], {**order, "epsilon": 0.1}, priority=1)["priority"] == 1
    assert not (tmp_path / "out.csv").exists()
    client.cancel(release_id)
    assert client.wait(release_id, timeout=600)["state"] in {"voided", "failed", "published"}


def test_errors_carry_code_and_values(client, stack, small_csv, small_schema, small_order):
    dataset = client.create_dataset(small_csv, small_schema, epsilon=1.0)
    with pytest.raises(ApiError) as refused:
        client.create_release(dataset["id"], small_order)
    assert (refused.value.status, refused.value.code) == (409, "budget_exhausted")
    assert set(refused.value.values) == {"remaining", "requested"}
    with pytest.raises(ApiError) as again:
        client.create_dataset(small_csv, small_schema, epsilon=1.0)
    assert (again.value.code, again.value.values["dataset_id"]) == ("duplicate_rows", dataset["id"])
    with pytest.raises(ApiError) as unknown:
        client.release(dataset["id"])
    assert (unknown.value.status, unknown.value.code) == (404, "not_found")
    with Client(stack.url, "imp_wrong") as stranger, pytest.raises(ApiError) as rejected:
        stranger.datasets()
    assert (rejected.value.status, rejected.value.code) == (401, "unauthenticated")


def test_an_order_whose_answer_was_lost_is_not_ordered_twice(wire, small_csv, small_schema, small_order):
    _, direct = wire(lambda _number, _request: None)
    dataset = direct.create_dataset(small_csv, small_schema, epsilon=5.0)
    cut, client = wire(lambda number, _request: "after" if number == 1 else None)
    release = client.create_release(dataset["id"], small_order)
    assert len(cut.requests) == 2
    assert [r["id"] for r in direct.releases(dataset["id"])] == [release["id"]]


def test_an_upload_whose_answer_was_lost_is_not_sent_again(wire, small_csv, small_schema):
    cut, client = wire(lambda number, _request: "after" if number == 1 else None)
    with pytest.raises(ApiError) as lost:
        client.create_dataset(small_csv, small_schema, epsilon=5.0)
    assert (lost.value.status, lost.value.code) == (0, "unreachable")
    assert len(cut.requests) == 1


def test_safe_calls_are_tried_again(wire):
    cut, client = wire(lambda number, _request: "before" if number <= 2 else None)
    assert client.datasets() == []
    assert len(cut.requests) == 3


def test_waits_by_asking_where_events_do_not_get_through(wire, small_csv, small_schema, small_order):
    cut, client = wire(lambda _number, request: "before" if b"/events " in request else None)
    dataset = client.create_dataset(small_csv, small_schema, epsilon=5.0)
    release = client.create_release(dataset["id"], small_order)
    assert client.wait(release["id"], timeout=600)["state"] == "published"
    assert any("/events " in request for request in cut.requests)


def test_a_sample_cut_short_leaves_no_file(wire, published, tmp_path):
    _, client = wire(lambda _number, request: "middle" if b"/sample?" in request else None, published.api_key)
    with pytest.raises(ApiError, match="no answer"):
        client.save_sample(published.release_id, tmp_path / "out.csv", 1_000_000)
    assert list(tmp_path.iterdir()) == []


def test_no_server_answers():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with Client(url, "key", retries=1) as client, pytest.raises(ApiError) as unreachable:
        client.datasets()
    assert (unreachable.value.status, unreachable.value.code) == (0, "unreachable")


def test_reads_server_sent_events():
    lines = [": hello", "event: progress", 'data: {"a":', "data: 1}", "", "", "event: state", 'data:{"a":2}', ""]
    assert list(server_sent_events(iter(lines))) == [("progress", {"a": 1}), ("state", {"a": 2})]


def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(stack, api_key, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    with Client(stack.url, api_key) as client:
        assert client.datasets() == []
    with pytest.raises(httpx.ConnectError):
        httpx.get(stack.url)
