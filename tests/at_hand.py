"""What a reader of a page has at hand when the page begins: files in the folder, datasets and releases, names in Python."""

from __future__ import annotations

import json
import random
import shutil
from contextlib import contextmanager

import duckdb
import polars as pl
import psycopg
from obstore.store import from_url

from tests.conftest import SMALL_SCHEMA, small_table
from tests.object_stores import BUCKET, s3
from tests.tiny_images import make_images, pictures

UNIT = {"column": "patient_id", "max_rows_per_unit": 2}
STAYS = {
    "target": "sex",
    "fields": [
        {"name": "age", "type": "integer", "bins": 8, "constraints": {"minimum": 0, "maximum": 120}},
        {"name": "sex", "type": "string", "constraints": {"enum": ["f", "m"], "required": True}},
        {"name": "stay", "type": "integer", "bins": 8, "constraints": {"minimum": 0, "maximum": 60}},
    ],
}
"""Of tables that pages call by a name alone."""
MILLIMETRES = {"bill_length_mm": (30, 60), "bill_depth_mm": (12, 24), "flipper_length_mm": (170, 240)}
PENGUINS = {
    "target": "sex",
    "fields": [
        {"name": "species", "type": "string", "constraints": {"enum": ["Adelie", "Chinstrap", "Gentoo"]}},
        {"name": "island", "type": "string", "constraints": {"enum": ["Biscoe", "Dream", "Torgersen"]}},
        *(
            {"name": name, "type": "number", "constraints": {"minimum": low, "maximum": high}}
            for name, (low, high) in MILLIMETRES.items()
        ),
        {"name": "body_mass_g", "type": "integer", "constraints": {"minimum": 2500, "maximum": 6500}},
        {"name": "sex", "type": "string", "constraints": {"enum": ["female", "male"]}},
    ],
}


def stays(count=300):
    """Rows of STAYS that no one has uploaded before."""
    rng = random.Random()
    return [(rng.randint(0, 99), rng.choice("fm"), rng.randint(0, 60)) for _ in range(count)]


def stays_file(path, count=300):
    path.write_text(
        "\n".join(["age,sex,stay", *(",".join(map(str, row)) for row in stays(count))]) + "\n", encoding="utf-8"
    )
    return path


def mended(folder):
    """The tutorial's table after its step 4."""
    rows = (folder / "examples" / "clinic_visits.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    cells = [row.split(";") for row in rows]
    for row in cells:
        if row[6][:2] == "20":
            row[6] = ".".join(reversed(row[6].split("-")))
    (folder / "visits.csv").write_text("".join(";".join(row) for row in cells), encoding="utf-8")


def uploaded(client, folder):
    """The tutorial's dataset, `visits`, with ε = 3."""
    mended(folder)
    schema = json.loads((folder / "examples" / "clinic_visits.schema.json").read_text(encoding="utf-8"))
    return client.create_dataset(folder / "visits.csv", schema, epsilon=3, name="visits", privacy_unit=UNIT)


def released(client, folder):
    """And its release `visits/first`."""
    return uploaded(client, folder).order({"epsilon": 1}, name="first").wait()


def at_hand(_client, folder):
    """Only its two files."""
    mended(folder)
    shutil.copy(folder / "examples" / "clinic_visits.schema.json", folder / "schema.json")


def persons_at_hand(client, folder):
    """A table whose rows are persons beside it."""
    at_hand(client, folder)
    small_table(folder / "persons.csv")
    (folder / "persons.schema.json").write_text(json.dumps(SMALL_SCHEMA), encoding="utf-8")


def images_at_hand(_client, folder):
    pixels, labels = make_images(count=60, shape=(8, 8, 1))
    (folder / "digits.zip").write_bytes(pictures(pixels, labels))


def small_release(client, folder):
    table = small_table(folder / "small.csv")
    (folder / "small.schema.json").write_text(json.dumps(SMALL_SCHEMA), encoding="utf-8")
    client.create_dataset(table, SMALL_SCHEMA, epsilon=5, name="small").order({"epsilon": 2}, name="first").wait()


def penguins(client, folder):
    """344 rows; a forecast reads none of them."""
    rng = random.Random()
    lines = [",".join(field["name"] for field in PENGUINS["fields"])]
    for _ in range(344):
        cells = []
        for field in PENGUINS["fields"]:
            limits = field["constraints"]
            cells.append(rng.choice(limits["enum"]) if "enum" in limits else rng.randint(*limits.values()))
        lines.append(",".join(map(str, cells)))
    (folder / "penguins.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    client.create_dataset(folder / "penguins.csv", PENGUINS, epsilon=10, name="penguins")


def table_of_ones_own(client, folder):
    table = stays_file(folder / "stays.csv", 1_100)
    client.create_dataset(table, STAYS, epsilon=10, name="my-table")


def patients(client, folder):
    client.create_dataset(stays_file(folder / "stays.csv"), STAYS, epsilon=10, name="patients")


def patients_at_hand(_client, folder):
    """Their file, with its declaration."""
    stays_file(folder / "patients.csv")
    (folder / "schema.json").write_text(json.dumps(STAYS), encoding="utf-8")


def downloaded(client, folder):
    """The release `visits/first` as its reader has it: the ZIP, and the publisher's key."""
    released(client, folder).save_generator(folder / "generator.zip")
    (folder / "publisher.key").write_text(client.signing_keys()[0]["public_key"], encoding="utf-8")


def to_be_attacked(client, folder):
    """A generator, the rows that it was made from, and others."""
    patients_at_hand(client, folder)
    dataset = client.create_dataset(folder / "patients.csv", STAYS, epsilon=5)
    dataset.order({"epsilon": 1}).wait().save_generator(folder / "generator.zip")
    (folder / "patients.csv").rename(folder / "private.csv")
    stays_file(folder / "others.csv")


def large_images_at_hand(_client, folder):
    pixels, labels = make_images(count=60, shape=(28, 28, 1), classes=10)
    (folder / "digits.zip").write_bytes(pictures(pixels, labels))


BEFORE = {
    "docs/how-to/write-a-schema.md": at_hand,
    "docs/how-to/choose-epsilon-and-delta.md": uploaded,
    "docs/how-to/say-who-is-protected.md": persons_at_hand,
    "docs/how-to/give-a-budget.md": at_hand,
    "docs/how-to/publish-images.md": images_at_hand,
    "docs/how-to/erase-or-expire-rows.md": uploaded,
    "docs/how-to/order-within-what-is-left.md": released,
    "docs/how-to/know-how-far-off.md": uploaded,
    "docs/how-to/let-the-service-choose.md": uploaded,
    "docs/how-to/draw-rows-under-a-condition.md": released,
    "docs/how-to/ask-a-question.md": uploaded,
    "docs/how-to/use-the-generator-offline.md": released,
    "docs/how-to/check-a-certificate.md": released,
    "docs/how-to/check-the-ledger.md": released,
    "docs/how-to/run-the-audits.md": small_release,
    "docs/audits.md": to_be_attacked,
    "docs/certificate.md": downloaded,
    "docs/choose.md": table_of_ones_own,
    "docs/command_line.md": patients_at_hand,
    "docs/conditions.md": released,
    "docs/forecast.md": penguins,
    "docs/images.md": large_images_at_hand,
    "docs/methods/pategan.md": table_of_ones_own,
    "docs/queries.md": table_of_ones_own,
    "docs/methods/rdpcgan.md": table_of_ones_own,
    "docs/reports.md": uploaded,
    "imprimatur/README.md": patients,
}
"""What a page takes for granted; the others begin with nothing."""


def of_the_client(names, folder):
    assert names["frame"].shape == (10_000, 3)
    assert names["older"]["smoker"].to_list() == [True] * 500
    assert (folder / "synthetic.parquet").is_file()


def of_devices(names, _folder):
    assert "One report: ε = 1.074. All reports of one value, for ever: ε = 4.394." in str(names["rappor"])
    assert str(names["found"]).startswith("of 2000 reports:")


AFTER = {"docs/client.md": of_the_client, "docs/local.md": of_devices}
"""What must be there when the page has come to its end, beside what the page asserts itself."""


# -- addresses that a reader replaces by their own --------------------------------------------------------------------


@contextmanager
def warehouses(folder, database, monkeypatch):
    """The same kind of table in Postgres (two), in DuckDB and in a bucket; gives what stands for the addresses on the page."""
    address = database.owner_url.replace("+psycopg", "").partition("&")[0]  # as it is typed, without quotes
    with psycopg.connect(address, autocommit=True) as connection:
        for table in ("visits", "earlier_visits"):
            connection.execute(f"CREATE TABLE {table} (age bigint, sex text, stay bigint)")
            connection.cursor().executemany(f"INSERT INTO {table} VALUES (%s, %s, %s)", stays())
    with duckdb.connect(str(folder / "warehouse.duckdb")) as connection:
        connection.execute("CREATE TABLE visits (age bigint, sex text, stay bigint)")
        connection.executemany("INSERT INTO visits VALUES (?, ?, ?)", stays())
    (folder / "store").mkdir()
    with s3(folder / "store") as store:
        for name, value in store.variables.items():
            monkeypatch.setenv(name, value)
        pl.DataFrame(stays(), schema=["age", "sex", "stay"], orient="row").write_parquet(folder / "visits.parquet")
        bucket = from_url(f"s3://{BUCKET}", client_options={"allow_http": True})
        bucket.put("visits.parquet", (folder / "visits.parquet").read_bytes())
        yield {"postgresql://me@host/clinic": address, "s3://bucket/": f"s3://{BUCKET}/"}
