"""The whole path on the real thing: HTTP, Postgres, relay, Redis, Celery worker, training process, storage."""

import csv
import io
import json
import time
import uuid
import zipfile

import httpx
import polars as pl
import psutil
import pytest

from imprimatur import ApiError
from imprimatur.verify.signatures import UNSIGNED, verify_signature
from service.domain.table_schema import parse_table_schema
from service.platform.storage import Storage


def slow_order(small_order, steps=2_000):
    return {**small_order, "steps": steps}


def wait_for(condition, seconds=600.0):
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.05)
    return found


def training_process(release_id):
    """The process that trains this release, if there is one."""
    for process in psutil.process_iter(["cmdline"]):
        command = process.info["cmdline"] or []
        if "workers.run" in command and str(release_id) in command:
            return process
    return None


def post_publish(stack, api_key, table, schema, order, *, wait, **fields):
    return httpx.post(
        f"{stack.url}/v1/publish",
        headers={"Authorization": f"Bearer {api_key}", "Prefer": f"wait={wait}"},
        files={"file": table.open("rb")},
        data={
            "schema": json.dumps(schema),
            "budget": '{"epsilon": 5}',
            "order": json.dumps(order),
            **fields,
        },
        timeout=600,
    )


def test_one_call_turns_a_table_into_a_sample(stack, api_key, client, small_csv, small_schema, small_order):
    reply = post_publish(stack, api_key, small_csv, small_schema, small_order, wait=90, rows="25")
    assert reply.status_code == 200, reply.text
    rows = list(csv.DictReader(io.StringIO(reply.text)))
    assert len(rows) == 25
    assert list(rows[0]) == ["colour", "size", "weight"]
    assert all(row["colour"] in {"red", "green", "blue"} and 0 <= int(row["size"]) <= 1000 for row in rows)
    assert all(row["weight"] == "" or 0 <= float(row["weight"]) <= 10 for row in rows)
    budget = client.budget(reply.headers["x-dataset-id"])
    assert budget["accounts"]["simple"] == {"posted": 400_000_000, "pending": 0, "remaining": 600_000_000}
    assert client.release(reply.headers["x-release-id"])["state"] == "published"


@pytest.mark.slow
def test_exclusions_come_through_the_database_and_hold(stack, api_key, small_csv, small_schema, small_order):
    colours = small_schema["fields"][0]["constraints"]["enum"]
    never = {"size": {"minimum": 0}, "colour": ["black"]}
    small_schema["fields"][0]["constraints"]["enum"] = [*colours, "black"]
    reply = post_publish(
        stack, api_key, small_csv, {**small_schema, "exclusions": [never]}, small_order, wait=90, rows="500"
    )
    assert reply.status_code == 200, reply.text
    rows = list(csv.DictReader(io.StringIO(reply.text)))
    assert {row["colour"] for row in rows if row["size"]} <= set(colours)
    bundle = httpx.get(
        f"{stack.url}/v1/releases/{reply.headers['x-release-id']}/generator",
        headers={"Authorization": f"Bearer {api_key}"},
    )
    with zipfile.ZipFile(io.BytesIO(bundle.content)) as archive:
        config = json.loads(archive.read("config.json"))
    assert [one["column"] for one in config["exclusions"][0]] == ["colour", "size"]
    refused = post_publish(
        stack, api_key, small_csv, {**small_schema, "exclusions": [never | {"colour": colours}]}, small_order, wait=0
    )
    assert refused.status_code == 422
    assert "meet exclusion 1 of the schema" in refused.text


def test_without_patience_the_release_comes_back(stack, api_key, client, small_csv, small_schema, small_order):
    small_schema["fields"][1]["constraints"]["maximum"] = 900
    reply = post_publish(stack, api_key, small_csv, small_schema, small_order, wait=0)
    assert reply.status_code == 202, reply.text
    assert any("'size'" in notice for notice in json.loads(reply.headers["x-notices"]))
    assert reply.headers["location"] == f"/v1/releases/{reply.json()['id']}"
    assert client.wait(reply.json()["id"], timeout=600)["state"] == "published"


def test_a_publish_that_does_not_fit_leaves_no_dataset(stack, api_key, small_csv, small_schema, small_order):
    reply = post_publish(stack, api_key, small_csv, small_schema, {**small_order, "epsilon": 5.5}, wait=0)
    assert reply.status_code == 409
    assert reply.json()["code"] == "budget_exhausted"
    assert "dataset_id" not in reply.json()


def test_the_certificate_is_signed_complete_and_in_the_ledger(stack, published):
    headers = {"Authorization": f"Bearer {published.api_key}"}
    with httpx.Client(base_url=stack.url, headers=headers) as http:
        certificate = http.get(f"/v1/releases/{published.release_id}/certificate").json()
        ledger = http.get(f"/v1/datasets/{published.dataset_id}/ledger").json()
        bundle = http.get(f"/v1/releases/{published.release_id}/generator").content
        release = http.get(f"/v1/releases/{published.release_id}").json()
    signature, public_key = certificate["signature"], certificate["public_key"]
    document = {k: v for k, v in certificate.items() if k not in UNSIGNED}
    assert verify_signature(document, signature, public_key)
    assert not verify_signature({**document, "epsilon": 0.1}, signature, public_key)
    assert certificate["unit"] == "one row"
    assert certificate["adjacency"].startswith("zero-out")
    assert certificate["epsilon"] == release["price"]["epsilon"] == 2.0
    assert 0.99 * 2.0 <= certificate["pld"]["epsilon"] <= 2.0
    assert sum(event["count"] for event in certificate["events"] if event["kind"] == "sampled_step") == 4
    posted = next(entry for entry in ledger["items"] if entry["kind"] == "post")
    assert certificate["ledger_entry"]["hash"] == posted["hash"]
    assert certificate["other_releases"]["with_this"]["shares"] == {
        "simple": posted["simple"],
        "renyi": posted["renyi"],
    }
    assert ledger["verified"] is True
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        assert json.loads(archive.read("certificate.json")) == certificate
        assert not [name for name in archive.namelist() if name.endswith((".pkl", ".pt", ".pth"))]


@pytest.mark.parametrize("sample_format", ["csv", "jsonl", "parquet", "arrow"])
def test_every_format_gives_the_same_rows_for_a_seed(stack, published, sample_format):
    def sample(**query):
        reply = httpx.get(
            f"{stack.url}/v1/releases/{published.release_id}/sample",
            params={"rows": 500, **query},
            headers={"Authorization": f"Bearer {published.api_key}"},
            timeout=600,
        )
        assert reply.status_code == 200, reply.text
        return reply.content

    readers = {
        "csv": pl.read_csv,
        "jsonl": pl.read_ndjson,
        "parquet": pl.read_parquet,
        "arrow": pl.read_ipc_stream,
    }
    frame = readers[sample_format](sample(format=sample_format, seed=11))
    reference = readers["parquet"](sample(format="parquet", seed=11))
    assert frame.height == 500
    assert frame.columns == ["colour", "size", "weight"] == list(parse_table_schema(published.schema).names)
    assert frame["size"].to_list() == reference["size"].to_list()
    assert frame["weight"].to_list() == reference["weight"].to_list()
    assert sample(format=sample_format, seed=12) != sample(format=sample_format, seed=11)
    red = readers[sample_format](sample(format=sample_format, where="colour:red"))
    assert set(red["colour"]) == {"red"}


@pytest.mark.parametrize(
    "query",
    [
        {"rows": -1},
        {"rows": "many"},
        {"rows": 10**12},
        {"format": "xlsx"},
        {"where": "colour"},
        {"where": "colour:mauve"},
        {"where": "shape:round"},
        {"seed": -1},
        {"seed": 2**63},
    ],
    ids=str,
)
def test_a_wrong_sample_request_is_refused_before_the_first_byte(stack, published, query):
    reply = httpx.get(
        f"{stack.url}/v1/releases/{published.release_id}/sample",
        params=query,
        headers={"Authorization": f"Bearer {published.api_key}"},
    )
    assert reply.status_code == 422
    assert reply.json()["code"] == "invalid_input"


@pytest.mark.slow
def test_progress_is_streamed_until_the_release_ends(client, stack, api_key, small_csv, small_schema, small_order):
    dataset = client.create_dataset(small_csv, small_schema, epsilon=5.0)
    release = client.create_release(dataset["id"], slow_order(small_order, steps=150))
    with httpx.stream(
        "GET",
        f"{stack.url}/v1/releases/{release['id']}/events",
        headers={"Authorization": f"Bearer {api_key}"},
        timeout=600,
    ) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        lines = [line for line in stream.iter_lines() if line.startswith("data:")]
    seen = [json.loads(line.removeprefix("data:")) for line in lines]
    assert seen[-1]["state"] == "published"
    assert seen[-1]["progress"]["step"] == 150
    steps = [reply["progress"]["step"] for reply in seen]
    assert steps == sorted(steps)
    assert seen[0]["state"] == "reserved"


@pytest.mark.slow
def test_a_killed_training_process_is_replaced_and_charged_once(client, stack, small_csv, small_schema, small_order):
    dataset = client.create_dataset(small_csv, small_schema, epsilon=5.0)
    release = client.create_release(dataset["id"], slow_order(small_order))
    wait_for(lambda: client.release(release["id"])["progress"]["step"] > 150)
    training_process(release["id"]).kill()
    ended = client.wait(release["id"], timeout=600)
    assert ended["state"] == "published"
    entries = client.ledger(dataset["id"])["items"]
    assert [entry["kind"] for entry in entries] == ["reserve", "post"]
    storage = Storage.from_url(stack.settings.storage_url)
    assert release["id"] not in " ".join(storage.list("checkpoints"))


@pytest.mark.slow
def test_a_cancel_after_the_charge_settles_only_the_renyi_account(client, small_csv, small_schema, small_order):
    dataset = client.create_dataset(small_csv, small_schema, epsilon=5.0)
    release = client.create_release(dataset["id"], slow_order(small_order, steps=50_000))
    wait_for(lambda: client.release(release["id"])["progress"]["step"] > 5)
    client.cancel(release["id"])
    ended = client.wait(release["id"], timeout=600)
    assert (ended["state"], ended["failure"]) == ("failed", "cancelled")
    assert 0 < ended["progress"]["step"] < 50_000
    price, accounts = release["price"]["shares"], client.budget(dataset["id"])["accounts"]
    assert accounts["simple"]["posted"] == price["simple"]
    assert 0 < accounts["renyi"]["posted"] < price["renyi"]
    ledger = client.ledger(dataset["id"])
    assert [entry["kind"] for entry in ledger["items"]] == ["reserve", "post", "settle"]
    assert ledger["verified"] is True
    wait_for(lambda: training_process(release["id"]) is None)


def test_rows_erased_before_the_training_cost_nothing(client, stack, api_key, small_csv, small_schema, small_order):
    dataset = client.create_dataset(small_csv, small_schema, epsilon=5.0)
    httpx.delete(f"{stack.url}/v1/datasets/{dataset['id']}", headers={"Authorization": f"Bearer {api_key}"})
    with pytest.raises(ApiError) as refused:
        client.create_release(dataset["id"], small_order)
    assert (refused.value.status, refused.value.code) == (410, "erased")
    assert client.budget(dataset["id"])["accounts"]["simple"]["posted"] == 0


def test_a_privacy_unit_is_trained_and_certified_as_such(client, tmp_path, small_order):
    table = tmp_path / "visits.csv"
    stamp = time.time_ns()
    table.write_text(
        "who,colour\n" + "\n".join(f"p{stamp}-{i % 30},{('red', 'green')[i % 2]}" for i in range(120)), encoding="utf-8"
    )
    schema = {"fields": [{"name": "colour", "type": "string", "constraints": {"enum": ["red", "green"]}}]}
    dataset = client.create_dataset(table, schema, epsilon=5.0, privacy_unit={"column": "who", "max_rows_per_unit": 3})
    assert dataset["units"] == 30
    ended = client.wait(client.create_release(dataset["id"], small_order)["id"], timeout=600)
    assert ended["state"] == "published"
    assert ended["certificate"]["unit"].startswith("all rows of one value of 'who', of which at most 3")
    assert ended["certificate"]["gradients"] == "outer_products"
    assert ended["certificate"]["schema_source"] == "declared by the owner"


@pytest.mark.slow
def test_a_certificate_tells_of_the_other_releases_of_its_dataset(client, small_csv, small_schema, small_order):
    dataset = client.create_dataset(small_csv, small_schema, epsilon=5.0)
    made = []
    for epsilon in (1.0, 1.5):
        ended = client.wait(
            client.create_release(dataset["id"], {**small_order, "epsilon": epsilon})["id"], timeout=600
        )
        made.append(ended["certificate"])
    first, second = (certificate["other_releases"] for certificate in made)
    assert (first["charged"], first["pending"], first["epsilon"]) == (0, 0, 0.0)
    assert (second["charged"], second["pending"], second["up_to_entry"]) == (1, 0, 4)
    assert second["shares"] == made[0]["ledger_entry"]["shares"]
    assert second["epsilon"] == first["with_this"]["epsilon"] > 0.0
    budget = client.budget(dataset["id"])
    assert second["with_this"]["epsilon"] == budget["epsilon_spent"]
    assert second["with_this"]["shares"] == {name: budget["accounts"][name]["posted"] for name in ("simple", "renyi")}


MARGINALS = {"method": "marginals", "epsilon": 2.0, "condition_on": "colour", "components": 64, "steps": 40}


@pytest.mark.slow
def test_marginals_go_the_whole_way(stack, api_key, client, small_csv, small_schema):
    dataset = client.create_dataset(small_csv, small_schema, epsilon=5.0)
    everything = {"pairs": "chosen", "pair_groups": "counted"}
    release = client.wait(client.create_release(dataset["id"], MARGINALS | everything)["id"], timeout=600)
    assert release["state"] == "published", release
    assert release["progress"] == {"step": 40, "steps": 40, "phase": "published"}
    certificate = release["certificate"]
    assert [event["purpose"] for event in certificate["events"]] == ["one_way_tables", "pair_scores", "marginals"]
    assert release["order"]["pair_groups"] == "counted"
    assert certificate["noise"].startswith("discrete Gaussian")
    assert [each["purpose"] for each in certificate["mechanisms"]] == ["one_way_tables", "pair_scores", "marginals"]
    assert certificate["rows_per_unit"] == {"most": 1, "mean": 1.0}
    sample = httpx.get(
        f"{stack.url}/v1/releases/{release['id']}/sample",
        params={"rows": 30, "where": "colour:blue", "seed": 1},
        headers={"Authorization": f"Bearer {api_key}"},
        timeout=600,
    )
    rows = list(csv.DictReader(io.StringIO(sample.text)))
    assert {row["colour"] for row in rows} == {"blue"}
    assert all(0 <= int(row["size"]) <= 1000 for row in rows)


@pytest.mark.slow
def test_networks_that_begin_near_tables_go_the_whole_way(client, small_csv, small_schema, small_order):
    dataset = client.create_dataset(small_csv, small_schema, epsilon=5.0)
    start = {"kind": "tables", "generator_steps": 5, "critic_steps": 5}
    release = client.wait(client.create_release(dataset["id"], {**small_order, "warm_start": start})["id"], timeout=600)
    assert release["state"] == "published", release
    certificate = release["certificate"]
    assert [event.get("purpose") for event in certificate["events"]] == ["one_way_tables", "marginals", None]
    assert [each["purpose"] for each in certificate["mechanisms"]] == ["one_way_tables", "marginals", "sampled_steps"]
    assert certificate["gradients"] == "outer_products"


@pytest.mark.slow
def test_a_release_per_unit_says_so_and_how_many_rows_a_unit_has(client, small_schema, tmp_path):
    table = tmp_path / "visits.csv"
    person = uuid.uuid4().hex
    lines = [f"{person}-{row // 4},red,{row % 9},1.5" for row in range(400)]
    table.write_text("person,colour,size,weight\n" + "\n".join(lines) + "\n")
    unit = {"column": "person", "max_rows_per_unit": 3}
    dataset = client.create_dataset(table, small_schema, epsilon=20.0, privacy_unit=unit)
    order = {**MARGINALS, "epsilon": 19.0}
    release = client.wait(client.create_release(dataset["id"], order)["id"], timeout=600)
    assert release["state"] == "published", release
    certificate = release["certificate"]
    assert certificate["units"] == 100
    assert "at most 3" in certificate["unit"]
    assert certificate["rows_per_unit"]["most"] == 3
    assert 2.0 < certificate["rows_per_unit"]["mean"] <= 3.0  # eight standard deviations of its noise
    of_all, of_this, *_ = certificate["warnings"]  # then what the forecast warns of
    assert of_all.startswith("ε = 20 for everything")
    assert of_this.startswith("ε = 19 for this release alone")
    assert all("22,026 : 1" in warning and "99.995 %" in warning for warning in (of_all, of_this))
    assert dataset["warnings"] == [of_all]
    assert client.quote(dataset["id"], order)["warnings"] == certificate["warnings"]
