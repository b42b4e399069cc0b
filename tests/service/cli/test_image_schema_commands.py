"""`imprimatur schema` for images: a draft that the file fits and that says where it comes from, and a check."""

from __future__ import annotations

import gzip
import io
import json

import pytest
from PIL import Image
from typer.testing import CliRunner

from service.base.errors import InvalidFile
from service.cli.schemas import app
from service.domain.image_schema import parse_schema
from service.intake.image.draft import draft_image_schema, looks_like_images
from tests.tiny_images import archive, idx, idx_pair, make_images, npz, pictures

pytestmark = pytest.mark.usefixtures("reads_at_once")
SHAPE = (6, 5, 3)


def contents():
    pixels, labels = make_images(12, SHAPE, 3)
    grey = pixels[..., :1]
    size = {"height": 6, "width": 5}
    return {
        "npz": (npz(pixels, labels), {**size, "channels": 3, "classes": 3}),
        "npz without labels": (npz(grey), {**size, "channels": 1}),
        "pictures": (
            pictures(pixels, labels, names=["cat", "dog", "bat"]),
            {**size, "channels": 3, "classes": ["bat", "cat", "dog"]},
        ),
        "pictures without labels": (pictures(grey), {**size, "channels": 1}),
        "idx pair": (idx_pair(grey, labels), {**size, "channels": 1, "classes": 3}),
        "idx alone": (gzip.compress(idx(grey[..., 0])), {**size, "channels": 1}),
    }


@pytest.mark.slow
@pytest.mark.parametrize("kind", contents())
def test_a_draft_fits_its_file_and_the_check_says_so(kind, tmp_path):
    content, wanted = contents()[kind]
    file, schema = tmp_path / "images", tmp_path / "schema.json"
    file.write_bytes(content)
    assert looks_like_images(file)
    done = CliRunner().invoke(app, ["draft", str(file), "-o", str(schema)])
    assert done.exit_code == 0, done.output
    drafted = json.loads(schema.read_text())
    assert "made by reading the private data" in drafted.pop("description")
    assert drafted == {"type": "image", **wanted}
    parse_schema(drafted)
    done = CliRunner().invoke(app, ["check", str(schema), str(file), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["images"] == 12
    done = CliRunner().invoke(app, ["check", str(schema), str(file)])
    assert "12 images follow the schema" in done.output


def test_what_does_not_fit_is_refused(tmp_path):
    file, schema = tmp_path / "images.npz", tmp_path / "schema.json"
    file.write_bytes(npz(*make_images(12, SHAPE, 3)))
    schema.write_text(json.dumps({"type": "image", "height": 6, "width": 6, "channels": 3, "classes": 3}))
    done = CliRunner().invoke(app, ["check", str(schema), str(file)])
    assert isinstance(done.exception, InvalidFile)


@pytest.mark.parametrize(
    "content", [archive({"a.txt": b"x"}), archive({"a.png": b"x"}), archive({"images.npy": b"x"}), b"\x00\x00\x08\x03"]
)
def test_no_images_no_draft(content, tmp_path):
    file = tmp_path / "file"
    file.write_bytes(content)
    with pytest.raises(InvalidFile):
        draft_image_schema(file)


def saved(mode: str, kind: str = "PNG") -> bytes:
    content = io.BytesIO()
    Image.new(mode, (5, 6)).save(content, kind)
    return content.getvalue()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (saved("L"), "Upload images as a ZIP"),
        (saved("RGB", "JPEG"), "Upload images as a ZIP"),
        (archive({"s1/1.pgm": saved("L", "PPM"), "s1/2.pgm": saved("L", "PPM")}), "holds neither PNG or JPEG files"),
        (archive({"a.png": saved("I;16")}), "neither 8-bit grey nor 8-bit red, green and blue"),
        (archive({"a.png": saved("RGBA")}), "neither 8-bit grey nor 8-bit red, green and blue"),
    ],
)
def test_what_is_wrong_with_images_is_said_of_images(content, sentence, tmp_path):
    file = tmp_path / "file"
    file.write_bytes(content)
    assert looks_like_images(file)
    with pytest.raises(InvalidFile, match=sentence):
        draft_image_schema(file)


def test_tables_are_no_images(tmp_path):
    file = tmp_path / "table.csv"
    file.write_text("a,b\n1,2\n")
    assert not looks_like_images(file)
    file.write_bytes(archive({"[Content_Types].xml": b"<Types/>", "xl/media/logo.png": saved("L")}))
    assert not looks_like_images(file), "a workbook with a picture in it"


def test_check_says_what_an_upload_with_units_would_say(tmp_path):
    file, schema = tmp_path / "faces.zip", tmp_path / "schema.json"
    pixels, labels = make_images(12, SHAPE, 3)
    file.write_bytes(pictures(pixels, labels, units=["zoe"] * 6 + ["ada"] * 3 + ["NA"] * 3))
    assert CliRunner().invoke(app, ["draft", str(file), "-o", str(schema)]).exit_code == 0
    check = ["check", str(schema), str(file)]
    assert isinstance(CliRunner().invoke(app, check).exception, InvalidFile)
    refused = CliRunner().invoke(app, [*check, "--max-images-per-unit", "4"])
    assert "3 images have no unit id" in str(refused.exception)
    own = ["--max-images-per-unit", "4", "--missing-units", "own_unit"]
    done = CliRunner().invoke(app, [*check, *own, "--json"])
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    assert (facts["images"], facts["units"], len(facts["notices"])) == (12, 5, 2)
    assert "note: 3 images have no unit id" in CliRunner().invoke(app, [*check, *own]).output
    for wrong in (
        ["--missing-units", "own_unit"],
        ["--privacy-unit", "unit", "--max-images-per-unit", "4"],
        ["--max-images-per-unit", "4", "--max-rows-per-unit", "4"],
    ):
        assert CliRunner().invoke(app, [*check, *wrong]).exit_code == 2


def test_a_draft_of_pictures_that_say_only_whose_they_are_has_no_classes(tmp_path):
    file = tmp_path / "faces.zip"
    pixels, _ = make_images(12, SHAPE, 3)
    file.write_bytes(pictures(pixels, units=range(12)))
    assert "classes" not in draft_image_schema(file)
