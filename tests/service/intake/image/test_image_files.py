"""Images from every format: the same canonical records and fingerprint; and each bad file is refused in words of ours."""

from __future__ import annotations

import gzip
import io
import json
import struct
import zipfile
import zlib

import numpy as np
import pytest
from PIL import Image

from service.base.errors import InvalidFile, InvalidInput, InvalidSchema, TooLarge
from service.domain.image_schema import NO_LABEL, parse_schema
from service.domain.privacy_unit import PrivacyUnit
from service.intake.image.canonical_file import read_records, record_bytes
from service.intake.image.child import ImageJob, read_images
from service.intake.image.picture_reading import Pictures
from service.intake.ingest import ingest_table
from service.intake.limits import IngestLimits
from service.intake.sealed import SealedFile
from tests.tiny_images import archive, idx, idx_pair, image_schema, make_images, npz, picture, pictures

MARKER = "Zanzibar-90210"
GREY, COLOUR = (6, 5, 1), (6, 5, 3)


@pytest.fixture
def read(tmp_path):
    def run(content, schema=None, *, key=b"k" * 32, **limits):
        path = tmp_path / "upload"
        path.write_bytes(content)
        parsed = parse_schema(schema or image_schema())
        with SealedFile.in_the_clear(path) as upload, SealedFile.create(tmp_path) as canonical:
            answer = read_images(ImageJob(upload, canonical, parsed, IngestLimits(**limits), key))
            return answer, *read_records(canonical.pieces(), parsed, answer["units"])

    return run


def formats(pixels, labels, names=None):
    return {
        "npz": npz(pixels, labels),
        "png": pictures(pixels, labels, names=names),
        "png in a folder": pictures(pixels, labels, names=names, folder="some/where/"),
        "idx.gz": idx_pair(pixels, labels),
        "idx": idx_pair(pixels, labels, packed=False),
    }


@pytest.mark.parametrize("shape", [GREY, COLOUR])
@pytest.mark.parametrize("classes", [3, ["cat", "dog", "a cow"]])
def test_every_format_is_the_same_set_of_images(read, shape, classes):
    pixels, labels = make_images(shape=shape)
    answers = set()
    names = None if isinstance(classes, int) else classes
    for content in formats(pixels, labels, names).values():
        answer, read_pixels, read_labels = read(content, image_schema(shape, classes))
        assert np.array_equal(read_pixels, pixels)
        assert np.array_equal(read_labels, labels)
        answers.add(json.dumps(answer))
    assert len(answers) == 1
    assert json.loads(answers.pop())["units"] == len(pixels)


def test_without_classes_there_are_no_labels(read):
    pixels, _ = make_images()
    contents = [npz(pixels), pictures(pixels), idx(pixels), gzip.compress(idx(pixels[..., 0]))]
    answers = [read(content, image_schema(classes=None)) for content in contents]
    assert len({answer["fingerprints"][0] for answer, _, _ in answers}) == 1
    assert all((labels == NO_LABEL).all() for _, _, labels in answers)


def test_the_fingerprint_knows_pictures_not_order_or_labels(read):
    pixels, labels = make_images()
    order = np.random.default_rng(0).permutation(len(pixels))

    def fingerprint(content, schema=None, **options):
        return read(content, schema, **options)[0]["fingerprints"]

    first = fingerprint(npz(pixels, labels))
    assert fingerprint(npz(pixels[order], labels[order])) == first
    assert fingerprint(npz(pixels, (labels + 1) % 3)) == first, "a second budget for the same pictures"
    assert fingerprint(npz(pixels), image_schema(classes=None)) == first
    assert fingerprint(npz(pixels, labels), key=b"x" * 32) != first
    assert fingerprint(npz(np.concatenate((pixels, pixels[:1])), np.append(labels, 0))) != first
    other = pixels.copy()
    other[3, 2, 1, 0] ^= 1
    assert fingerprint(npz(other, labels)) != first


IMAGES_NOT_RECOGNISED = {
    "one image left out": lambda pixels: pixels[1:],
    "one image more": lambda pixels: np.concatenate((pixels, pixels[:1])),
    "one pixel of one image": lambda pixels: np.concatenate((pixels[:1] ^ 1, pixels[1:])),
    "every image mirrored": lambda pixels: pixels[:, :, ::-1],
    "every image cropped": lambda pixels: pixels[:, :-1],
    "grey as colours": lambda pixels: np.repeat(pixels, 3, axis=3),
}


@pytest.mark.parametrize("what", IMAGES_NOT_RECOGNISED)
def test_which_images_are_not_recognised(read, what):
    """The list in docs/privacy.md, Limits: images are recognised all together or not at all."""
    pixels, labels = make_images(shape=GREY)
    changed = IMAGES_NOT_RECOGNISED[what](pixels)
    known, _, _ = read(npz(pixels, labels), image_schema(GREY))
    other, _, _ = read(npz(changed, np.resize(labels, len(changed))), image_schema(changed.shape[1:]))
    assert (known["columns"], other["columns"]) == ([], [])
    assert known["fingerprints"] != other["fingerprints"]


def test_jpeg_is_what_it_decodes_to(read):
    pixels, labels = make_images(shape=COLOUR)
    content = pictures(pixels, labels, kind="JPEG")
    with zipfile.ZipFile(io.BytesIO(content)) as zipped:
        decoded = [np.asarray(Image.open(zipped.open(name))) for name in sorted(zipped.namelist())[:-1]]
    assert np.array_equal(read(content, image_schema(COLOUR))[1], np.stack(decoded))


def test_a_palette_of_colours_is_the_same_picture(read):
    pixels, labels = make_images(shape=COLOUR)
    files = {"labels.csv": b"file,label\n" + b"".join(b"%d.png,%d\n" % (i, k) for i, k in enumerate(labels))}
    for i, image in enumerate(pixels):
        buffer = io.BytesIO()
        Image.fromarray(image).quantize(256).save(buffer, "PNG")
        files[f"{i}.png"] = buffer.getvalue()
    assert np.array_equal(read(archive(files), image_schema(COLOUR))[1], pixels)


def test_what_desktops_leave_in_archives_is_passed_over(read):
    pixels, labels = make_images()
    content = pictures(pixels, labels)
    with zipfile.ZipFile(io.BytesIO(content)) as zipped:
        files = {name: zipped.read(name) for name in zipped.namelist()}
    litter = {"__MACOSX/._000.png": b"x", ".DS_Store": b"x", "a/Thumbs.db": b"x", "a/": b""}
    assert np.array_equal(read(archive(files | litter))[1], pixels)


def test_many_images_come_in_chunks(read):
    pixels, labels = make_images(3_000, (40, 40, 1))
    _, read_pixels, read_labels = read(npz(pixels, labels), image_schema((40, 40, 1)))
    assert np.array_equal(read_pixels, pixels)
    assert np.array_equal(read_labels, labels)


# -- refusals ---------------------------------------------------------------------------------------------------------


def png_header(width, height):
    """A picture that claims a size and holds next to nothing."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(99))) + chunk(b"IEND", b"")
    )


def npy(header, data=b""):
    text = repr(header).encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


def with_picture(content, place=4, **options):
    """Good pictures, one of them replaced."""
    pixels, labels = make_images(**options)
    with zipfile.ZipFile(io.BytesIO(pictures(pixels, labels))) as zipped:
        files = {name: zipped.read(name) for name in zipped.namelist()}
    files[f"{place:03}.png"] = content
    return archive(files)


def with_labels(text):
    pixels, _ = make_images(3)
    return archive({f"{i}.png": picture(image) for i, image in enumerate(pixels)} | {"labels.csv": text.encode()})


PIXELS, LABELS = make_images(seed=1)
GOOD_LABELS = "file,label\n0.png,0\n1.png,1\n2.png,2\n"
BAD = {
    "empty": b"",
    "text": f"a,b\n{MARKER},1\n".encode(),
    "an archive of nothing": archive({}),
    "an archive cut off": pictures(PIXELS, LABELS)[:-40],
    "a table in an archive": archive({f"{MARKER}.csv": b"x\n1\n"}),
    "a strange file beside": archive({"0.png": picture(PIXELS[0]), f"{MARKER}.exe": b"MZ", "labels.csv": b""}),
    "another size": with_picture(picture(make_images(1, (5, 6, 1))[0][0])),
    "colour for grey": with_picture(picture(make_images(1, COLOUR)[0][0])),
    "16 bits": with_picture(picture(np.zeros((6, 5, 1), dtype=np.uint16))),
    "a picture cut off": with_picture(picture(PIXELS[0])[:-20]),
    "a picture of noise": with_picture(b"\x89PNG\r\n\x1a\n" + MARKER.encode() * 9),
    "a JPEG cut off": with_picture(picture(PIXELS[0], "JPEG")[:-100]),
    "a GIF by the name of PNG": with_picture(picture(PIXELS[0], "GIF")),
    "an animation": with_picture(picture(PIXELS[0], save_all=True, append_images=[Image.fromarray(PIXELS[1][..., 0])])),
    "a pixel bomb": with_picture(png_header(60_000, 60_000)),
    "a picture with a long tail": with_picture(picture(PIXELS[0]) + bytes(600_000)),
    "no labels file": pictures(PIXELS),
    "an undeclared label": with_labels(GOOD_LABELS.replace("2\n", f"{MARKER}\n")),
    "an image without a label": with_labels(GOOD_LABELS.replace("1.png,1\n", "")),
    "a label without an image": with_labels(GOOD_LABELS + f"{MARKER}.png,1\n"),
    "a label twice": with_labels(GOOD_LABELS + "0.png,1\n"),
    "labels without a header": with_labels(GOOD_LABELS.removeprefix("file,label\n")),
    "labels with three cells": with_labels(GOOD_LABELS + f"a,b,{MARKER}\n"),
    "labels in no encoding": archive({"0.png": picture(PIXELS[0]), "labels.csv": b"file,label\n\xff\xfe,1\n"}),
    "endless labels": with_labels(GOOD_LABELS + "\n" * 100_000),
    "one image": npz(PIXELS[:1], LABELS[:1]),
    "NPZ of floats": npz(PIXELS / 255.0, LABELS),
    "NPZ of another size": npz(PIXELS[:, :5], LABELS),
    "NPZ of one dimension": npz(PIXELS.ravel(), LABELS),
    "NPZ of no dimension": npz(np.uint8(7), LABELS),
    "NPZ by columns": npz(np.asfortranarray(PIXELS), LABELS),
    "NPZ of objects": archive(
        {"images.npy": npy({"descr": "|O", "fortran_order": False, "shape": (12, 6, 5)}), "labels.npy": b""}
    ),
    "NPZ without labels": npz(PIXELS),
    "NPZ with more": npz(PIXELS, LABELS, more=LABELS),
    "NPZ with too few labels": npz(PIXELS, LABELS[:-1]),
    "NPZ with a label too large": npz(PIXELS, LABELS + 1),
    "NPZ with a label below zero": npz(PIXELS, LABELS - 1),
    "NPZ with labels between": npz(PIXELS, LABELS * 0.5),
    "NPZ that claims more than it holds": archive(
        {
            "images.npy": npy({"descr": "|u1", "fortran_order": False, "shape": (10**12, 6, 5)}, bytes(60)),
            "labels.npy": npy({"descr": "<i8", "fortran_order": False, "shape": (10**12,)}),
        }
    ),
    "NPZ with a header of code": archive({"images.npy": npy("__import__('os')"), "labels.npy": b""}),
    "NPZ that is no array": archive({"images.npy": MARKER.encode(), "labels.npy": b""}),
    "IDX without labels": gzip.compress(idx(PIXELS[..., 0])),
    "IDX of another size": idx_pair(PIXELS[:, :5], LABELS),
    "IDX cut off": archive({"a": idx(PIXELS)[:-5], "b": idx(LABELS)}),
    "IDX with a tail": archive({"a": idx(PIXELS) + b"x", "b": idx(LABELS)}),
    "IDX of floats": archive({"a": b"\0\0\x0d" + idx(PIXELS)[3:], "b": idx(LABELS)}),
    "IDX gzip cut off": archive({"a": gzip.compress(idx(PIXELS))[:-30], "b": gzip.compress(idx(LABELS))}),
    "IDX with a label too large": idx_pair(PIXELS, LABELS + 1),
    "IDX with too few labels": idx_pair(PIXELS, LABELS[:-1]),
    "IDX images twice": archive({"a": idx(PIXELS), "b": idx(PIXELS)}),
    "IDX of three files": archive({"a": idx(PIXELS), "b": idx(LABELS), "c": idx(LABELS)}),
    "IDX that claims more than it holds": archive(
        {"a": b"\0\0\x08\x03" + struct.pack(">3I", 2**32 - 1, 6, 5), "b": idx(LABELS)}
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_refused_in_words_of_ours(read, says_nothing, name):
    with pytest.raises((InvalidFile, TooLarge)) as caught:
        read(BAD[name])
    says_nothing(caught.value)


def test_labels_that_no_schema_declares_are_refused(read):
    for content in (npz(PIXELS, LABELS), pictures(PIXELS, LABELS), idx_pair(PIXELS, LABELS)):
        with pytest.raises(InvalidFile):
            read(content, image_schema(classes=None))


def test_the_number_of_images_and_what_they_unpack_to_are_limited(read):
    zeros = np.zeros((4_000, 40, 40, 1), dtype=np.uint8)
    schema, labels = image_schema((40, 40, 1)), np.zeros(4_000, dtype=int)
    read(npz(zeros, labels), schema)
    tight = {"unpacked_floor_bytes": 2**20, "unpacked_ratio": 10}
    for content in (npz(zeros, labels), idx_pair(zeros, labels)):
        with pytest.raises(TooLarge):
            read(content, schema, rows=3_999)
        with pytest.raises(TooLarge):
            read(content, schema, **tight)
    bombs = archive({f"{i}.png": picture(zeros[0]) + bytes(250_000) for i in range(20)})
    with pytest.raises(TooLarge):
        read(bombs, image_schema((40, 40, 1), None), **tight)
    with pytest.raises(TooLarge):
        read(pictures(PIXELS), image_schema(classes=None), rows=10)


def test_encrypted_and_oddly_compressed_archives_are_refused(read):
    odd = archive({f"{i}.png": picture(image) for i, image in enumerate(PIXELS)}, zipfile.ZIP_BZIP2)
    locked = bytearray(pictures(PIXELS))
    locked[locked.rfind(b"PK\x01\x02") + 8] |= 1
    for content in (odd, bytes(locked)):
        with pytest.raises(InvalidFile, match=r"encrypted|deflate"):
            read(content, image_schema(classes=None))


# -- the schema, and the real child process ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"height": 0},
        {"height": 10_000},
        {"width": "5"},
        {"channels": 2},
        {"classes": 0},
        {"classes": []},
        {"classes": ["a", "a"]},
        {"classes": [" a"]},
        {"classes": [3, 4]},
        {"classes": True},
        {"fields": []},
        {"height": None},
    ],
)
def test_a_wrong_image_schema_is_refused(change):
    with pytest.raises(InvalidSchema) as caught:
        parse_schema(image_schema() | change)
    assert caught.value.values["where"]


def test_a_schema_says_what_it_was_declared_as():
    for document in (image_schema(), image_schema(COLOUR, ["a", "b"]), image_schema(classes=None)):
        assert parse_schema(document).as_json() == document
    assert record_bytes(parse_schema(image_schema(COLOUR))) == 6 * 5 * 3 + 2


def test_the_real_child_reads_images(tmp_path):
    path, workdir = tmp_path / "upload", tmp_path / "work"
    workdir.mkdir()

    def ingest(content, unit=None):
        path.write_bytes(content)
        schema = parse_schema(image_schema())
        with SealedFile.in_the_clear(path) as upload:
            return ingest_table(
                upload,
                schema,
                privacy_unit=unit,
                limits=IngestLimits(),
                scratch_dir=workdir,
                fingerprint_key=b"k" * 32,
            )

    with ingest(pictures(PIXELS, LABELS)) as images:
        assert (images.rows, images.units, images.columns, images.notices) == (12, 12, (), ())
        assert images.canonical.size == 12 * 32
    with pytest.raises(InvalidFile, match="number 5"):
        ingest(with_picture(png_header(60_000, 60_000)))
    with pytest.raises(InvalidInput, match="max_images_per_unit"):
        ingest(npz(PIXELS, LABELS), PrivacyUnit(column="who", max_rows_per_unit=2))
    assert list(workdir.iterdir()) == []


class _Counted(zipfile.ZipInfo):
    """Counts how often members are looked up."""

    looked_up = 0

    def __hash__(self):
        _Counted.looked_up += 1
        return super().__hash__()


def test_telling_pictures_from_the_rest_takes_as_many_steps_as_there_are_files():
    members = [_Counted(f"{i:06}.png") for i in range(1_000)]
    for member in members:
        member.file_size = member.compress_size = 1
    _Counted.looked_up = 0
    with zipfile.ZipFile(io.BytesIO(archive({"a": b""}))) as opened:
        found = Pictures(opened, members, parse_schema(image_schema(classes=None)), IngestLimits())
    assert found.count == 1_000
    assert _Counted.looked_up <= 10 * len(members)


def test_empty_pictures_are_refused_before_one_is_opened(read):
    files = {f"{i}.png": b"" for i in range(2_000)}
    with pytest.raises(InvalidFile, match=r"^2000 images of the archive are empty files") as caught:
        read(archive(files), image_schema(classes=None))
    assert caught.value.values == {"count": 2_000}


def test_too_many_files_are_refused_before_the_archive_is_opened(read, monkeypatch):
    content = archive({f"{i}.png": b"" for i in range(11)})
    long_names = archive({"x" * 3_000: b"", "y.png": b""})
    made = []

    class Noted(zipfile.ZipInfo):
        def __init__(self, *given, **more):
            made.append(given)
            super().__init__(*given, **more)

    monkeypatch.setattr(zipfile, "ZipInfo", Noted)
    with pytest.raises(TooLarge, match="lists more than 10 files") as caught:
        read(content, image_schema(classes=None), archive_members=10)
    assert caught.value.values == {"limit_members": 10}
    assert made == []
    with pytest.raises(InvalidFile, match="empty files"):
        read(content, image_schema(classes=None), archive_members=11)
    with pytest.raises(TooLarge, match="lists more than 2 files"):  # two entries, of which one has a long name
        read(long_names, image_schema(classes=None), archive_members=2)


def test_members_that_claim_many_bytes_do_not_make_an_archive_larger():
    """What an archive may unpack to follows from its own size, not from what its members claim."""
    one = picture(PIXELS[0], "PNG")
    content = archive({f"{i}.png": one for i in range(12)})
    limits = {"unpacked_ratio": 1, "unpacked_floor_bytes": 1}
    with zipfile.ZipFile(io.BytesIO(content)) as opened:
        members = opened.infolist()
        for member in members:
            member.compress_size = 10**9
        found = Pictures(opened, members, parse_schema(image_schema(classes=None)), IngestLimits(**limits))
        assert found._left <= len(content)
