"""The first images of an upload as small pictures: which ones, which way up, under which label."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from service.domain.image_schema import ImageSchema
from service.intake.image.first_pictures import LONGEST_SIDE, PICTURES, first_pictures
from service.intake.limits import IngestLimits
from service.intake.sealed import SealedFile
from tests.tiny_images import image_schema, npz, pictures


@pytest.fixture
def shown(tmp_path):
    def of(content, **schema):
        path = tmp_path / "upload"
        path.write_bytes(content)
        parsed = ImageSchema.model_validate(image_schema() | schema)
        with SealedFile.in_the_clear(path) as file:
            found = first_pictures(file, parsed, IngestLimits())
        return [
            (one["place"], one["label"], np.asarray(Image.open(io.BytesIO(base64.b64decode(one["png"])))))
            for one in found
        ]

    return of


@pytest.mark.parametrize("shape", [(6, 5, 1), (6, 5, 3)])
def test_they_are_as_they_were_read_and_each_class_comes(shown, shape):
    pixels = np.random.default_rng(1).integers(0, 256, (40, *shape), dtype=np.uint8)
    labels = np.repeat([0, 1, 2], [20, 10, 10])
    found = shown(npz(pixels, labels), channels=shape[2], classes=["cat", "dog", "cow"])
    assert [(place, name) for place, name, _ in found] == [
        *((place, "cat") for place in range(1, 11)),
        (21, "dog"),
        (31, "cow"),
    ]
    for place, _, picture in found:
        assert np.array_equal(picture.reshape(shape), pixels[place - 1])


def test_a_large_one_becomes_small_and_keeps_its_form(shown):
    pixels = np.zeros((3, 400, 100, 3), dtype=np.uint8)
    pixels[:, :200] = 255
    found = shown(npz(pixels, np.array([0, 1, 0])), height=400, width=100, channels=3, classes=2)
    assert [(place, name) for place, name, _ in found] == [(1, "0"), (2, "1"), (3, "0")]
    for _, _, picture in found:
        assert picture.shape == (LONGEST_SIDE, LONGEST_SIDE // 4, 3)
        assert picture[0].min() == 255
        assert picture[-1].max() == 0


def test_as_many_are_shown_where_a_chunk_holds_a_few(shown):
    pixels = np.zeros((20, 512, 512, 3), dtype=np.uint8)
    found = shown(npz(pixels, np.zeros(20, dtype=np.int64)), height=512, width=512, channels=3, classes=1)
    assert [place for place, _, _ in found] == list(range(1, PICTURES + 1))


def test_more_classes_than_pictures_are_no_more_pictures(shown):
    labels = np.arange(30)
    found = shown(npz(np.zeros((30, 6, 5, 1), dtype=np.uint8), labels), classes=30)
    assert [place for place, _, _ in found] == list(range(1, PICTURES + 1))


def test_what_will_be_refused_shows_nothing(shown):
    content = pictures(np.zeros((2, 6, 5, 1), dtype=np.uint8), np.array([0, 1]))
    assert shown(content)
    assert shown(content, height=7) == []
    assert shown(npz(np.zeros((0, 6, 5, 1), dtype=np.uint8), np.zeros(0, dtype=np.int64))) == []
