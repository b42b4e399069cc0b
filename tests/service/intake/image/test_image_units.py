"""Whose images are: from a labels file or an NPZ file to the canonical file, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from service.base.errors import InvalidFile, InvalidInput
from service.domain.image_schema import parse_schema
from service.domain.privacy_unit import ImageUnit, PrivacyUnit
from service.domain.table_schema import parse_table_schema
from service.intake.image.canonical_file import read_records, read_unit_records
from service.intake.image.child import ImageJob, read_images
from service.intake.ingest import ingest_table
from service.intake.limits import IngestLimits
from service.intake.sealed import SealedFile
from tests.tiny_images import archive, idx_pair, image_schema, make_images, npz, picture, pictures
from workers.encoding.images import encode_images

MARKER = "Zanzibar-90210"
PIXELS, LABELS = make_images(12, seed=1)
PEOPLE = np.array(["zoe", "ada", "zoe", "bob", "ada", "zoe", "eve", "bob", "zoe", "dan", "kim", "eve"])
UNIT = ImageUnit(max_images_per_unit=3)


@pytest.fixture
def read(tmp_path):
    def run(content, unit=UNIT, schema=None):
        path = tmp_path / "upload"
        path.write_bytes(content)
        parsed = parse_schema(schema or image_schema())
        with SealedFile.in_the_clear(path) as upload, SealedFile.create(tmp_path) as canonical:
            answer = read_images(ImageJob(upload, canonical, parsed, IngestLimits(), b"k" * 32, unit))
            return answer, b"".join(canonical.pieces()), parsed

    return run


def groups(pixels, labels, sizes):
    """The set of units, each a tuple of images (bytes and label) in order."""
    stops = np.cumsum(sizes)
    images = [(pixels[i].tobytes(), int(labels[i])) for i in range(len(labels))]
    return sorted(tuple(images[stop - size : stop]) for size, stop in zip(sizes, stops, strict=True))


def wanted_groups(ids):
    return sorted(
        tuple((PIXELS[i].tobytes(), int(LABELS[i])) for i in np.flatnonzero(np.array(ids) == one)) for one in set(ids)
    )


def contents():
    whole = {name: place * 10**18 for place, name in enumerate(sorted(set(PEOPLE.tolist())))}
    numbers = np.array([whole[one] for one in PEOPLE], dtype=np.uint64)
    return {
        "npz of text": npz(PIXELS, LABELS, units=PEOPLE),
        "npz of numbers": npz(PIXELS, LABELS, units=numbers),
        "pictures": pictures(PIXELS, LABELS, units=PEOPLE),
        "pictures in a folder": pictures(PIXELS, LABELS, units=PEOPLE, folder="some/where/"),
    }


@pytest.mark.parametrize("kind", contents())
def test_images_of_a_unit_lie_side_by_side(read, kind):
    answer, canonical, schema = read(contents()[kind])
    assert (answer["rows"], answer["units"]) == (12, 6)
    assert answer["notices"] == ["1 unit has more than 3 images; only 3 of them are used."]
    pixels, labels, sizes = read_unit_records([canonical[:9], canonical[9:70], canonical[70:]], schema, 6)
    assert groups(pixels, labels, sizes.tolist()) == wanted_groups(PEOPLE.tolist())


def test_without_classes_the_csv_file_says_only_whose_they_are(read):
    content = pictures(PIXELS, None, units=PEOPLE)
    answer, canonical, schema = read(content, schema=image_schema(classes=None))
    assert answer["units"] == 6
    assert read_unit_records([canonical], schema, 6)[2].sum() == 12


def test_units_do_not_change_which_pictures_they_are(read):
    alone = read(npz(PIXELS, LABELS), None)[0]
    assert read(npz(PIXELS, LABELS, units=PEOPLE))[0]["fingerprints"] == alone["fingerprints"]


def test_a_file_of_each_kind_is_not_read_as_the_other(read):
    _, by_unit, schema = read(npz(PIXELS, LABELS, units=PEOPLE))
    _, alone, _ = read(npz(PIXELS, LABELS), None)
    assert len(read_records([alone], schema, 12)[1]) == 12, "files from before have no head"
    for wrong, units in ((alone, 12), (by_unit, 5), (by_unit[:-1], 6), (by_unit + b"x", 6), (b"", 6)):
        with pytest.raises(InvalidFile):
            read_unit_records([wrong], schema, units)
    for count in (6, 12):
        with pytest.raises(InvalidFile):
            read_records([by_unit], schema, count)


def test_many_images_in_many_chunks_keep_their_units(read):
    count = 3_000
    pixels, labels = make_images(count, (40, 40, 1))
    ids = np.random.default_rng(0).integers(0, 700, count)
    answer, canonical, schema = read(npz(pixels, labels, units=ids), schema=image_schema((40, 40, 1)))
    assert answer["units"] == len(set(ids.tolist()))
    got, _, sizes = read_unit_records([canonical], schema, answer["units"])
    owner = {image.tobytes(): one for image, one in zip(pixels, ids.tolist(), strict=True)}
    found = [owner[image.tobytes()] for image in got]
    assert [len(set(part.tolist())) for part in np.split(np.array(found), np.cumsum(sizes)[:-1])] == [1] * len(sizes)


# -- missing ids ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["", "NA", "null", "nan", "?", " "])
def test_an_image_without_a_unit_id_is_refused_or_its_own_unit(read, word):
    ids = np.where(np.isin(PEOPLE, ["bob", "eve"]), word, PEOPLE)
    for content in (npz(PIXELS, LABELS, units=ids), pictures(PIXELS, LABELS, units=ids)):
        with pytest.raises(InvalidFile, match="4 images have no unit id") as caught:
            read(content)
        assert caught.value.values["count"] == 4
        answer, canonical, schema = read(content, ImageUnit(max_images_per_unit=9, missing="own_unit"))
        assert answer["units"] == 4 + 4
        assert answer["notices"] == ["4 images have no unit id; each is a unit of its own."]
        sizes = read_unit_records([canonical], schema, 8)[2]
        assert sorted(sizes.tolist()) == [1, 1, 1, 1, 1, 1, 2, 4]


def test_long_ids_are_different_units(read):
    ids = np.array([str(12345678901234567890123 + i) for i in range(12)])
    assert read(npz(PIXELS, LABELS, units=ids))[0]["units"] == 12
    assert (
        read(npz(PIXELS, LABELS, units=np.array([2**64 - 1 - i // 2 for i in range(12)], dtype=np.uint64)))[0]["units"]
        == 6
    )


# -- refusals ---------------------------------------------------------------------------------------------------------


def csv_of(text):
    return archive({f"{i}.png": picture(image) for i, image in enumerate(PIXELS[:3])} | {"labels.csv": text.encode()})


BAD = {
    "no units": npz(PIXELS, LABELS),
    "pictures without units": pictures(PIXELS, LABELS),
    "IDX": idx_pair(PIXELS, LABELS),
    "units of another length": npz(PIXELS, LABELS, units=PEOPLE[:-1]),
    "units of two dimensions": npz(PIXELS, LABELS, units=np.stack([PEOPLE, PEOPLE])),
    "units of floats": npz(PIXELS, LABELS, units=np.arange(12) / 3),
    "units of bytes": npz(PIXELS, LABELS, units=PEOPLE.astype("S")),
    "units too long": npz(PIXELS, LABELS, units=np.array([MARKER * 20] * 12)),
    "units that are no Unicode": npz(PIXELS, LABELS, units=np.full(12, "\ud800")),
    "units beyond Unicode": npz(PIXELS, LABELS, units=np.full(12, 0x7FFFFFFF, dtype="<u4").view("<U1")),
    "one unit": npz(PIXELS, LABELS, units=np.array([MARKER] * 12)),
    "another header": csv_of(f"file,label,{MARKER}\n0.png,0,a\n1.png,1,b\n2.png,2,c\n"),
    "another order": csv_of("file,unit,label\n0.png,a,0\n1.png,b,1\n2.png,c,2\n"),
    "a line too short": csv_of(f"file,label,unit\n0.png,0,{MARKER}\n1.png,1\n2.png,2,c\n"),
    "no labels beside units": csv_of(f"file,unit\n0.png,{MARKER}\n1.png,b\n2.png,c\n"),
    "a unit over two lines": csv_of(f'file,label,unit\n0.png,0,"{MARKER}\n"\n1.png,1,"b\n2"\n2.png,2,c\n'),
    "a unit of many characters": csv_of(f"file,label,unit\n0.png,0,{MARKER * 20}\n1.png,1,b\n2.png,2,c\n"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_units_are_refused_in_words_of_ours(read, says_nothing, name):
    with pytest.raises(InvalidFile) as caught:
        read(BAD[name])
    says_nothing(caught.value)


@pytest.mark.parametrize("kind", contents())
def test_units_that_are_not_declared_are_not_passed_over(read, kind):
    """The owner who wrote them down would believe that they are used."""
    with pytest.raises(InvalidFile, match="no privacy unit is declared"):
        read(contents()[kind], None)


def test_the_real_child_reads_units(tmp_path):
    path, workdir = tmp_path / "upload", tmp_path / "work"
    workdir.mkdir()
    path.write_bytes(npz(PIXELS, LABELS, units=PEOPLE))

    def ingest(schema, unit):
        with SealedFile.in_the_clear(path) as upload:
            return ingest_table(
                upload,
                schema,
                privacy_unit=unit,
                limits=IngestLimits(),
                scratch_dir=workdir,
                fingerprint_key=b"k" * 32,
            )

    with ingest(parse_schema(image_schema()), UNIT) as images:
        assert (images.rows, images.units, len(images.notices)) == (12, 6, 1)
    with pytest.raises(InvalidInput, match="max_images_per_unit"):
        ingest(parse_schema(image_schema()), PrivacyUnit(column="unit", max_rows_per_unit=3))
    table = parse_table_schema({"fields": [{"name": "x", "type": "boolean"}]})
    with pytest.raises(InvalidInput, match="is for images"):
        ingest(table, UNIT)


# -- as the worker reads them -----------------------------------------------------------------------------------------


def test_of_every_unit_at_most_so_many_images_are_used_chosen_at_random(read):
    _, canonical, schema = read(npz(PIXELS, LABELS, units=PEOPLE))
    owner = {image.tobytes(): one for image, one in zip(PIXELS, PEOPLE.tolist(), strict=True)}
    seen = set()
    for seed in range(40):
        rng = np.random.default_rng(seed)
        images = encode_images(
            [canonical],
            schema,
            units=6,
            max_images_per_unit=2,
            random_keys=lambda count, rng=rng: rng.integers(0, 2**63, count).astype(np.uint64),
        )
        assert (images.units, images.max_images_per_unit, images.most_images) == (6, 2, 12)
        starts = images.unit_starts.tolist()
        assert starts[0] == 0
        assert starts[-1] == len(images.pixels) == len(images.labels)
        for i in range(6):
            theirs = images.pixels[starts[i] : starts[i + 1]]
            names = {owner[image.tobytes()] for image in theirs}
            assert len(names) == 1
            assert len(theirs) == min(2, (names.pop() == PEOPLE).sum())
        seen |= {image.tobytes() for image in images.pixels}
    assert len(seen) == 12, "each image has its chance"
    whole = encode_images([canonical], schema, units=6, max_images_per_unit=9)
    assert sorted(np.diff(whole.unit_starts).tolist()) == [1, 1, 2, 2, 2, 4]
