"""A table that begins from public rows, the whole way: by name, by the command, and of two frames in one call."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile

import numpy as np
import polars as pl
import pytest

import imprimatur
from imprimatur.errors import InvalidInput, NotFound

pytestmark = pytest.mark.slow

ORDER = {
    "epsilon": 1.0,
    "steps": 6,
    "sampling_probability": 0.1,
    "public_steps": 20,
    "public_mask_share": 0.5,
    "networks": {"noise_dimension": 4, "generator_hidden": [8], "critic_hidden": [8]},
}
SCHEMA = {
    "fields": [
        {"name": "colour", "type": "string", "constraints": {"enum": ["red", "green", "blue"], "required": True}},
        {"name": "size", "type": "integer", "constraints": {"minimum": 0, "maximum": 5, "required": True}},
    ]
}


def frame() -> pl.DataFrame:
    """Rows that were not uploaded before."""
    rng = np.random.default_rng()
    return pl.DataFrame({"colour": rng.choice(["red", "green", "blue"], 200), "size": rng.integers(0, 6, 200)})


def test_what_the_schema_leaves_open_is_bought_and_public_rows_are_read_by_it(client):
    rng = np.random.default_rng()
    fields = [
        {"name": "colour", "type": "string", "infer": {"epsilon": 4.0}},
        {"name": "size", "type": "integer", "infer": {"epsilon": 4.0}},
    ]
    private, public = (
        pl.DataFrame(
            {"colour": rng.choice([*known, f"{rng.integers(10**9)}"], 900), "size": rng.integers(0, most, 900)}
        )
        for known, most in ((["red", "green"], 90), (["red", "blue"], 400))
    )
    with pytest.warns(UserWarning, match="colour"):
        drawn = imprimatur.publish(
            private,
            {"fields": fields},
            ORDER,
            public=public,
            rows=50,
            budget_epsilon=12.0,
            rows_are_units=True,
            client=client,
        )
    (private_dataset,) = (each for each in client.datasets() if not each.rows_are_public and each.epsilon == 12.0)
    bought = private_dataset.schema["fields"][0]["constraints"]["enum"]
    assert "blue" not in bought
    assert set(drawn["colour"].drop_nulls()) <= set(bought)


def test_two_frames_are_published_in_one_call(client, stack, api_key, tmp_path):
    drawn = imprimatur.publish(
        frame(), SCHEMA, ORDER, public=frame(), rows=50, budget_epsilon=3.0, rows_are_units=True, client=client
    )
    assert (drawn.columns, drawn.height) == (["colour", "size"], 50)
    private, public = sorted(client.datasets(), key=lambda each: each.rows_are_public)
    assert [each.rows_are_public for each in (private, public)] == [False, True]
    (release,) = private.releases()
    assert (release["order"]["method"], release["order"]["public_dataset"]) == ("idpgan", public.id)
    assert public.budget.remaining_epsilon == 3.0
    assert private.budget.remaining_epsilon < 2.9

    said = client.certificate(release.id)["public_dataset"]
    assert (said["id"], said["name"], said["units"]) == (public.id, "public", 200)
    assert said["protection"].startswith("none: ")
    client.save_generator(release.id, tmp_path / "generator.zip")
    with zipfile.ZipFile(tmp_path / "generator.zip") as archive:
        card = archive.read("MODEL_CARD.md").decode()
    assert f"{public.id} (public)" in card
    assert "not protected" in card

    named = {**ORDER, "method": "dpgan", "public_dataset": "public"}
    assert client.quote(private, named)["order"]["public_dataset"] == public.id
    begun = client.quote(private, {**named, "public_dataset": public.id[:8]})
    cold = client.quote(private, {k: v for k, v in {**ORDER, "method": "dpgan"}.items() if not k.startswith("public")})
    assert begun["price"] == cold["price"]
    with pytest.raises(NotFound, match="publik"):
        client.quote(private, {**named, "public_dataset": "publik"})
    with pytest.raises(InvalidInput, match="none of your datasets of this id is declared public"):
        client.quote(public, {**named, "public_dataset": private})

    ticket = {**{knob: value for knob, value in ORDER.items() if knob != "epsilon"}, "method": "idpgan"}
    candidates = [{**ticket, "public_dataset": name} for name in ("public", public.id[:8])]
    chosen = client.quote(private, {"method": "choose", "epsilon": 1.0, "target": "colour", "candidates": candidates})
    assert [each["public_dataset"] for each in chosen["order"]["candidates"]] == [public.id] * 2

    told = subprocess.run(
        [sys.executable, "-m", "imprimatur.cli", "quote", private.name, "--epsilon", "1", "--public-start", "public"],
        env={
            **os.environ,
            "IMPRIMATUR_URL": stack.url,
            "IMPRIMATUR_API_KEY": api_key,
            "NO_COLOR": "1",
            "COLUMNS": "200",
        },
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    assert f"public rows of {public.id}: no price, and no protection for them" in told.stdout
    assert "idpgan" in told.stdout


def test_public_rows_of_other_columns_are_refused_before_anything_is_sent(client):
    with pytest.raises(InvalidInput):
        imprimatur.publish(
            frame(), SCHEMA, ORDER, public=frame().rename({"size": "sice"}), rows_are_units=True, client=client
        )
    assert json.loads(json.dumps(client.datasets())) == []
