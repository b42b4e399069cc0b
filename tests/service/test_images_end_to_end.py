"""Images through the real stack: upload, order, sample in every format, and the generator alone."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from PIL import Image

from imprimatur import ApiError
from service.privacy.statements import default_delta
from tests.tiny_images import image_schema, make_images, npz, pictures

pytestmark = pytest.mark.slow

SHAPE = (6, 5, 3)
START_SECONDS = 600.0
COUNTED = 0.2
"""Of the precision, for counts of the classes: none of these comes out so small that no sample has it. By default a hundred images are six stds."""


def test_images_in_and_images_out(client, tmp_path):
    path = tmp_path / "faces.zip"
    pixels, labels = make_images(200, SHAPE, 2)
    path.write_bytes(pictures(pixels, labels, names=["cat", "dog"]))
    dataset = client.create_dataset(path, image_schema(SHAPE, ["cat", "dog"]), epsilon=4.0)
    release = client.create_release(
        dataset["id"], {"method": "mixture", "epsilon": 3.0, "cells": 2, "count_share": COUNTED}
    )
    ended = client.wait(release["id"], timeout=START_SECONDS)
    assert ended["state"] == "published", ended["failure"]
    assert ended["progress"]["step"] == ended["progress"]["steps"] == 6

    certificate = client.certificate(release["id"])
    assert (certificate["method"], certificate["unit"], certificate["units"]) == ("mixture", "one image", 200)
    assert [event["purpose"] for event in certificate["events"]] == [
        "class_means",
        "tones",
        "shared_moments",
        "cell_means",
        "cell_means",
        "cell_moments",
    ]
    assert client.budget(dataset["id"])["accounts"]["simple"]["posted"] == 750_000_000

    def sample(rows, **options):
        with client.sample(release["id"], rows, **options) as chunks:
            return b"".join(chunks)

    with np.load(io.BytesIO(sample(300, seed=4))) as arrays:  # npz unless another format is named
        images, drawn = arrays["images"], arrays["labels"]
    assert images.shape == (300, *SHAPE)
    assert set(drawn.tolist()) == {0, 1}
    with np.load(io.BytesIO(sample(50, where={"label": "dog"}))) as arrays:
        assert (arrays["labels"] == 1).all()
    with zipfile.ZipFile(io.BytesIO(sample(20, format="zip"))) as archive:
        assert len(archive.namelist()) == 21
    assert Image.open(io.BytesIO(sample(8, format="png"))).size == (4 * 7 - 2, 2 * 8 - 2)
    with pytest.raises(ApiError) as refused:
        sample(10, format="csv")
    assert (refused.value.status, refused.value.code) == (422, "invalid_input")

    bundle, folder = tmp_path / "generator.zip", tmp_path / "alone"
    client.save_generator(release["id"], bundle)
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(folder)
    command = [sys.executable, "-I", "sample.py", "--rows", "300", "--seed", "4", "-o", "mine.npz"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    with np.load(folder / "mine.npz") as arrays:
        assert np.array_equal(arrays["images"], images)
        assert np.array_equal(arrays["labels"], drawn)


@pytest.mark.parametrize(
    "networks",
    [
        {"noise_dimension": 4, "generator_channels": [8], "critic_channels": [4]},
        {"layers": "perceptrons", "noise_dimension": 4, "shrink": 2},
    ],
    ids=["convolutions", "shrunk for perceptrons"],
)
def test_a_trained_generator_of_images(client, tmp_path, networks):
    path = tmp_path / "digits.npz"
    pixels, labels = make_images(300, (8, 7, 1), 3)
    path.write_bytes(npz(pixels, labels))
    dataset = client.create_dataset(path, image_schema((8, 7, 1), 3), epsilon=4.0)
    order = {
        "method": "idpgan",
        "epsilon": 2.0,
        "steps": 12,
        "sampling_probability": 0.1,
        "label_precision_share": COUNTED,
        "image_networks": networks,
    }
    release = client.create_release(dataset["id"], order)
    ended = client.wait(release["id"], timeout=START_SECONDS)
    assert ended["state"] == "published", ended["failure"]
    assert ended["progress"]["step"] == ended["progress"]["steps"] == 12
    certificate = client.certificate(release["id"])
    assert [event["kind"] for event in certificate["events"]] == ["gaussian", "sampled_step"]
    assert certificate["events"][0]["purpose"] == "label_counts"
    assert certificate["unit"] == "one image"

    with client.sample(release["id"], 200, seed=4) as chunks, np.load(io.BytesIO(b"".join(chunks))) as arrays:
        images, drawn = arrays["images"], arrays["labels"]
    assert images.shape == (200, 8, 7, 1)
    assert set(drawn.tolist()) == {0, 1, 2}
    with client.sample(release["id"], 12, format="png") as chunks:
        assert Image.open(io.BytesIO(b"".join(chunks))).size == (4 * 9 - 2, 3 * 10 - 2)
    bundle, folder = tmp_path / "generator.zip", tmp_path / "alone"
    client.save_generator(release["id"], bundle)
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(folder)
    command = [sys.executable, "-I", "sample.py", "--rows", "200", "--seed", "4", "-o", "mine.npz"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    with np.load(folder / "mine.npz") as arrays:
        assert np.array_equal(arrays["images"], images)
        assert np.array_equal(arrays["labels"], drawn)


def test_a_generator_that_begins_with_a_mixture(client, tmp_path):
    path = tmp_path / "digits.npz"
    pixels, labels = make_images(300, (8, 7, 1), 3)
    path.write_bytes(npz(pixels, labels))
    dataset = client.create_dataset(path, image_schema((8, 7, 1), 3), epsilon=20.0)
    order = {
        "method": "idpgan",
        "epsilon": 19.0,  # so much that no class comes out as empty: at 2, one release in 200 would lack one
        "steps": 12,
        "sampling_probability": 0.1,
        "warm_start": {"kind": "mixture", "cells": 2, "hidden": [16]},
    }
    release = client.create_release(dataset["id"], order)
    ended = client.wait(release["id"], timeout=START_SECONDS)
    assert ended["state"] == "published", ended["failure"]
    certificate = client.certificate(release["id"])
    kinds = [event["kind"] for event in certificate["events"]]
    assert kinds == ["gaussian"] * 6 + ["sampled_step"]
    assert certificate["events"][0]["purpose"] == "class_means"
    with client.sample(release["id"], 200, seed=4) as chunks, np.load(io.BytesIO(b"".join(chunks))) as arrays:
        assert arrays["images"].shape == (200, 8, 7, 1)
        assert set(arrays["labels"].tolist()) == {0, 1, 2}


def test_a_generator_that_begins_with_public_images(client, stack, api_key, tmp_path):
    """The public set by the command line, the private one by the client; the certificate and the card name the former."""
    shape, classes, public_steps = (8, 7, 1), 3, 6
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps(image_schema(shape, classes)))
    for name in ("public", "private"):
        (tmp_path / f"{name}.npz").write_bytes(npz(*make_images(300, shape, classes)))
    upload = ["upload", "public.npz", "--schema", "schema.json", "--budget-epsilon", "1", "--public", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "imprimatur.cli", *upload, "--url", stack.url, "--key", api_key],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    public = json.loads(done.stdout)
    private = client.create_dataset(tmp_path / "private.npz", image_schema(shape, classes), epsilon=4.0)
    assert [each["rows_are_public"] for each in (public, private)] == [True, False]
    order = {
        "method": "idpgan",
        "epsilon": 2.0,
        "steps": 12,
        "sampling_probability": 0.1,
        "label_precision_share": COUNTED,
        "image_networks": {"noise_dimension": 4, "generator_channels": [8], "critic_channels": [4]},
        "public_dataset": public["id"],
        "public_steps": public_steps,
    }
    with pytest.raises(ApiError) as refused:
        client.create_release(public["id"], {**order, "public_dataset": private["id"]})
    assert (refused.value.status, refused.value.code) == (422, "invalid_order")
    release = client.create_release(private["id"], order)
    ended = client.wait(release["id"], timeout=START_SECONDS)
    assert ended["state"] == "published", ended["failure"]
    certificate = client.certificate(release["id"])
    said = certificate["public_dataset"]
    assert (said["id"], said["name"], said["units"]) == (public["id"], public["name"], public["units"])
    assert said["protection"].startswith("none: ")
    assert [event["kind"] for event in certificate["events"]] == ["gaussian", "sampled_step"]
    assert client.budget(private["id"])["accounts"]["simple"]["posted"] == 500_000_000
    assert client.budget(public["id"])["accounts"]["simple"]["posted"] == 0
    with client.sample(release["id"], 200, seed=4) as chunks, np.load(io.BytesIO(b"".join(chunks))) as arrays:
        assert arrays["images"].shape == (200, *shape)
        assert set(arrays["labels"].tolist()) == {0, 1, 2}
    bundle = tmp_path / "generator.zip"
    client.save_generator(release["id"], bundle)
    with zipfile.ZipFile(bundle) as archive:
        card = archive.read("MODEL_CARD.md").decode()
        assert json.loads(archive.read("certificate.json"))["public_dataset"]["id"] == public["id"]
    assert f"first trained on the dataset {public['id']}" in card
    assert "The rows of that dataset are not protected" in card


UNITS = [
    ({"method": "mixture", "epsilon": 8.0, "cells": 2, "count_share": COUNTED}, "pictures"),
    (
        {
            "method": "idpgan",
            "epsilon": 2.0,
            "steps": 6,
            "sampling_probability": 0.2,
            "image_networks": {"noise_dimension": 4, "generator_channels": [8], "critic_channels": [4]},
        },
        "npz",
    ),
    (
        {
            "method": "idpgan",
            "epsilon": 19.0,
            "steps": 6,
            "sampling_probability": 0.2,
            "warm_start": {"kind": "mixture", "cells": 1, "hidden": [16]},
        },
        "npz",
    ),
]


@pytest.mark.parametrize(("order", "kind"), UNITS, ids=["mixture", "convolutions", "from a mixture"])
def test_a_person_is_the_unit_of_several_images(client, tmp_path, order, kind):
    path = tmp_path / "faces"
    pixels, labels = make_images(600, (8, 7, 1), 3)
    people = np.array([f"person {i // 6}" for i in range(600)])
    people[:6] = ["", "NA", "nan", "null", "?", "None"]  # six images, each a unit
    if kind == "npz":
        path.write_bytes(npz(pixels, labels, units=people))
    else:
        path.write_bytes(pictures(pixels, labels, units=people))
    unit = {"max_images_per_unit": 4, "missing": "own_unit"}
    dataset = client.create_dataset(path, image_schema((8, 7, 1), 3), epsilon=20.0, privacy_unit=unit)
    assert (dataset["units"], dataset["privacy_unit"], dataset["delta"]) == (105, unit, default_delta(105))
    assert len(dataset["notices"]) == 2
    release = client.create_release(dataset["id"], order)
    ended = client.wait(release["id"], timeout=START_SECONDS)
    assert ended["state"] == "published", ended["failure"]
    certificate = client.certificate(release["id"])
    assert certificate["units"] == 105
    assert certificate["unit"] == (
        "all images of one unit, of which at most 4 are used; images without a unit id are units of their own"
    )
    most, mean = certificate["rows_per_unit"]["most"], certificate["rows_per_unit"]["mean"]
    assert most == 4
    if certificate["events"][0]["purpose"] == "label_counts":
        assert mean is None, "nothing bought says so"
    else:
        assert 2.0 < mean <= 4.0, "3.8: 99 units of 4 images and 6 of one; 2 is seven stds of the noise away"
    with client.sample(release["id"], 60, seed=4) as chunks, np.load(io.BytesIO(b"".join(chunks))) as arrays:
        assert arrays["images"].shape == (60, 8, 7, 1)


def test_one_image_with_a_column_of_pixels_as_the_unit(client, tmp_path):
    path = tmp_path / "one.npz"
    pixels, _ = make_images(1, (12, 9, 1), 1)
    path.write_bytes(npz(pixels, None))
    schema = {"type": "image", "height": 12, "width": 9, "channels": 1, "pixel_unit": "column"}
    dataset = client.create_dataset(path, schema, epsilon=20.0, delta=1e-3)
    assert (dataset["units"], dataset["schema"]["pixel_unit"]) == (1, "column")
    of_parts = "for 9 units"
    assert of_parts in dataset["warnings"][-1]
    assert of_parts in client.quote(dataset["id"], {"epsilon": 8.0})["warnings"][-2]
    with pytest.raises(ApiError) as refused:
        client.create_release(dataset["id"], {"method": "mixture", "epsilon": 2.0})
    assert (refused.value.code, "image_release" in refused.value.detail) == ("invalid_order", True)
    release = client.create_release(dataset["id"], {"epsilon": 8.0})
    ended = client.wait(release["id"], timeout=START_SECONDS)
    assert ended["state"] == "published", ended["failure"]
    certificate = client.certificate(release["id"])
    assert certificate["method"] == "image_release"
    assert certificate["unit"].startswith("one column of pixels of one image: neither an image nor a person")
    assert certificate["contribution_bound"] == {"unit": "part of an image", "column": None, "max_rows": 1}
    assert any("no promise to a person" in warning for warning in certificate["warnings"])
    assert any(of_parts in warning for warning in certificate["warnings"])
    with client.sample(release["id"], 5, seed=4) as chunks, np.load(io.BytesIO(b"".join(chunks))) as arrays:
        assert arrays["images"].shape == (5, 12, 9, 1)
        assert (arrays["images"] == arrays["images"][0]).all(), "there is one image to draw"
    bundle = tmp_path / "generator.zip"
    client.save_generator(release["id"], bundle)
    with zipfile.ZipFile(bundle) as archive:
        card = archive.read("MODEL_CARD.md").decode()
    assert "one column of pixels of one image" in card
    assert "Images of a unit" not in card
