"""Synthetic images as NPZ, ZIP and PNG; and sample.py of an image bundle alone."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from PIL import Image

from service.base.errors import InvalidInput
from service.samples.formats import media_type
from service.samples.image_sampler import ImageSampler
from service.samples.samplers import sampler_from_bundle
from service.samples.shipped import image_script
from service.samples.streams import stream_rows
from tests.tiny_generators import tiny_sampler
from tests.tiny_image_generators import (
    BRIGHTNESS,
    LABELS,
    SHAPE,
    tiny_image_bundle,
    tiny_image_files,
    tiny_image_sampler,
)


def stream(sampler=None, **options):
    return b"".join(stream_rows(sampler or tiny_image_sampler(), **options))


def load(content):
    with np.load(io.BytesIO(content)) as arrays:
        return dict(arrays)


def components_of(images):
    """Which component drew each image, by its brightness."""
    means = images.reshape(len(images), -1).mean(axis=1) / 255
    return np.abs(means[:, None] - np.array(BRIGHTNESS)).argmin(axis=1)


@pytest.mark.parametrize("one_a_run", [True, False])
def test_npz_holds_images_with_their_labels(one_a_run):
    found = load(stream(tiny_image_sampler(one_a_run=one_a_run), rows=5_000, format="npz", seed=1))
    assert (found["images"].dtype, found["images"].shape) == (np.uint8, (5_000, *SHAPE))
    assert (found["labels"].dtype, found["labels"].shape) == (np.uint16, (5_000,))
    components = components_of(found["images"])
    assert np.array_equal(np.array(LABELS)[components], found["labels"])
    assert np.allclose(np.bincount(components) / 5_000, 0.25, atol=0.03)


def test_frequencies_are_kept():
    found = load(stream(tiny_image_sampler(frequencies=(0, 1, 3, 0)), rows=4_000, format="npz", seed=1))
    assert np.allclose(np.bincount(components_of(found["images"]), minlength=4) / 4_000, [0, 0.25, 0.75, 0], atol=0.03)


def test_a_seed_repeats_and_fewer_are_the_beginning_of_more():
    one, two = (load(stream(rows=9_000, format="npz", seed=7)) for _ in range(2))
    fewer, other = load(stream(rows=5_000, format="npz", seed=7)), load(stream(rows=5_000, format="npz", seed=8))
    for name in ("images", "labels"):
        assert np.array_equal(one[name], two[name])
        assert np.array_equal(one[name][:5_000], fewer[name])
    assert not np.array_equal(fewer["images"], other["images"])


@pytest.mark.parametrize("where", ["label=b", "label:b", {"label": "b"}])
def test_images_of_one_class(where):
    found = load(stream(rows=500, format="npz", where=where))
    assert (found["labels"] == 1).all()
    assert set(components_of(found["images"])) == {1, 2}


def test_a_class_that_is_never_drawn_can_be_asked_for():
    found = load(stream(tiny_image_sampler(frequencies=(0, 1, 1, 1)), rows=50, format="npz", where="label=a"))
    assert (components_of(found["images"]) == 0).all()


def test_zip_can_be_uploaded_again():
    content = stream(rows=700, format="zip", seed=3)
    same = load(stream(rows=700, format="npz", seed=3))
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        lines = archive.read("labels.csv").decode().splitlines()
        images = np.stack([np.asarray(Image.open(archive.open(line.split(",")[0]))) for line in lines[1:]])
    assert lines[0] == "file,label"
    assert np.array_equal(images, same["images"][..., 0])
    assert [line.split(",")[1] for line in lines[1:]] == ["abc"[label] for label in same["labels"]]


def test_classes_that_a_spreadsheet_would_carry_out_are_disarmed_in_the_labels():
    sampler = tiny_image_sampler(classes=("=1+1", "b", "@SUM(A1)"))
    for formulas, wanted in (("escape", {"'=1+1", "b", "'@SUM(A1)"}), ("keep", {"=1+1", "b", "@SUM(A1)"})):
        with zipfile.ZipFile(io.BytesIO(stream(sampler, rows=200, format="zip", formulas=formulas))) as archive:
            lines = archive.read("labels.csv").decode().splitlines()
        assert {line.split(",")[1] for line in lines[1:]} == wanted


def test_png_shows_a_class_a_row():
    picture = np.asarray(Image.open(io.BytesIO(stream(rows=12, format="png", seed=1))))
    assert picture.shape == (3 * 6 - 2, 4 * 7 - 2)
    for row, wanted in enumerate(((0,), (1, 2), (3,))):
        for column in range(4):
            tile = picture[row * 6 : row * 6 + 4, column * 7 : column * 7 + 5]
            assert components_of(tile[None])[0] in wanted
    one_class = np.asarray(Image.open(io.BytesIO(stream(rows=10, format="png", where="label=c"))))
    assert one_class.shape == (3 * 6 - 2, 4 * 7 - 2)


def test_colour():
    sampler = tiny_image_sampler((4, 5, 3))
    assert load(stream(sampler, rows=10, format="npz"))["images"].shape == (10, 4, 5, 3)
    assert Image.open(io.BytesIO(stream(sampler, rows=10, format="png"))).mode == "RGB"


@pytest.mark.parametrize("kind", ["npz", "zip"])
def test_no_images_at_all(kind):
    with zipfile.ZipFile(io.BytesIO(stream(rows=0, format=kind))) as archive:
        assert archive.testzip() is None
    if kind == "npz":
        assert load(stream(rows=0, format="npz"))["images"].shape == (0, *SHAPE)


@pytest.mark.parametrize("kind", ["npz", "zip"])
def test_any_number_is_streamed(kind):
    pieces = stream_rows(tiny_image_sampler(), rows=10**10, format=kind)
    assert sum(len(next(pieces)) for _ in range(3)) < 10**7


@pytest.mark.parametrize(
    "wrong",
    [
        {"format": "csv"},
        {"format": "pickle"},
        {"where": "label=d"},
        {"where": "b"},
        {"where": "colour=b"},
        {"where": ""},
        {"seed": -1},
        {"format": "png", "rows": 0},
        {"format": "png", "rows": 10**9},
    ],
)
def test_a_wrong_request_is_refused_before_the_first_byte(wrong):
    with pytest.raises(InvalidInput):
        stream_rows(tiny_image_sampler(), **{"rows": 10, "format": "npz", **wrong})


def test_each_kind_has_its_formats():
    for sampler, default in ((tiny_image_sampler(), "npz"), (tiny_sampler(), "csv")):
        assert b"".join(stream_rows(sampler, rows=10, seed=1)) == stream(sampler, rows=10, seed=1, format=default)
    assert [media_type(name) for name in ("npz", "zip", "png")] == ["application/x-npz", "application/zip", "image/png"]
    with pytest.raises(InvalidInput):
        stream_rows(tiny_sampler(), rows=10, format="npz")
    assert isinstance(sampler_from_bundle(tiny_image_bundle()), ImageSampler)


def test_the_samplers_file_works_alone(tmp_path):
    config, onnx_bytes = tiny_image_files()
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "generator.onnx").write_bytes(onnx_bytes)
    (tmp_path / "sample.py").write_bytes(image_script())

    def run(*arguments):
        command = [sys.executable, "-I", "sample.py", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    done = run("--rows", "300", "--seed", "5", "--where", "label=b", "-o", "b.npz")
    assert done.returncode == 0, done.stderr
    found, same = load((tmp_path / "b.npz").read_bytes()), load(stream(rows=300, format="npz", seed=5, where="label=b"))
    assert np.array_equal(found["images"], same["images"])
    assert np.array_equal(found["labels"], same["labels"])
    wrong = run("--where", "label=z")
    assert wrong.returncode == 2
    assert "the classes are: a, b, c" in wrong.stderr
    other = run("-o", "s.csv")
    assert other.returncode == 2
    assert "s.csv: images are written as arrays of numpy; name a file that ends in .npz" in other.stderr
    assert not list(tmp_path.glob("s.csv*"))
