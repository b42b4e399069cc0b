"""Images as PNG or JPEG files in a ZIP, with one CSV file beside them: columns `file`, `label` and `unit`.

`label` is there where the schema declares classes, `unit` where the file says whose an image is.
"""

from __future__ import annotations

import csv
import io
import warnings
import zipfile
import zlib
from typing import TYPE_CHECKING

import numpy as np

from service.base.errors import InvalidFile, TooLarge
from service.base.messages import Message
from service.domain.privacy_unit import IMAGE_UNITS
from service.intake.image.labels import no_labels, undeclared_labels
from service.intake.image.units import MOST_ID_CHARACTERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from service.domain.image_schema import ImageSchema
    from service.intake.image.units import Ids
    from service.intake.limits import IngestLimits

_FORMATS = ("PNG", "JPEG")
_CHUNK_IMAGES = 1_024
_CHUNK_BYTES = 4 * 1024 * 1024
_LABEL_BYTES = 1_024
"""Most bytes of one line of the labels file."""
_FREE_BYTES = 256 * 1024
"""What a picture's file may hold beside its pixels: text, profiles, a preview."""


def is_of_pictures(endings: set[str]) -> bool:
    """Whether a ZIP of files with these endings holds pictures."""
    return bool(endings & {"png", "jpg", "jpeg"})


class Pictures:
    """A ZIP of pictures; the labels file has been read and names every picture once."""

    def __init__(
        self,
        archive: zipfile.ZipFile,
        members: Sequence[zipfile.ZipInfo],
        schema: ImageSchema,
        limits: IngestLimits,
    ) -> None:
        self._archive, self._schema = archive, schema
        self._pictures = [m for m in members if m.filename.lower().endswith((".png", ".jpg", ".jpeg"))]
        self.count = len(self._pictures)
        self._most_bytes = 2 * schema.pixels + _FREE_BYTES
        self._left = limits.unpacked_limit(min(archive.start_dir, sum(m.compress_size for m in members)))
        pictures = {m.filename for m in self._pictures}
        others = [m for m in members if m.filename not in pictures]
        tables = [m for m in others if m.filename.lower().endswith(".csv")]
        if len(others) > len(tables) or len(tables) > 1:
            raise InvalidFile(Message("The archive must hold PNG and JPEG files and at most one CSV file of labels."))
        empty = sum(m.file_size == 0 for m in self._pictures)
        if empty:
            raise InvalidFile(Message("%(empty)s images of the archive are empty files.", empty=empty), count=empty)
        if schema.class_names and not tables:
            raise InvalidFile(Message("The schema declares classes, but the archive holds no CSV file of labels."))
        self._labels, self.unit_ids = no_labels(len(self._pictures)), None
        if tables:
            self._labels, self.unit_ids = self._read_labels(tables[0])

    def chunks(self) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.uint16]]]:
        at_a_time = max(1, min(_CHUNK_IMAGES, _CHUNK_BYTES // self._schema.pixels))
        for start in range(0, len(self._pictures), at_a_time):
            members = self._pictures[start : start + at_a_time]
            pixels = [self._decode(member, start + i + 1) for i, member in enumerate(members)]
            yield np.stack(pixels), self._labels[start : start + len(members)]

    def _decode(self, member: zipfile.ZipInfo, place: int) -> NDArray[np.uint8]:
        """One picture's pixels. Its header is compared with the schema before anything is unpacked."""
        from PIL import Image, UnidentifiedImageError  # noqa: PLC0415 - the API starts without it

        schema, which = self._schema, Message("Image number %(number)s of the archive", number=place)
        data = self._read(
            member,
            self._most_bytes,
            Message("%(which)s is larger than a picture of the declared size can be.", which=which),
        )
        try:
            with warnings.catch_warnings(), Image.open(io.BytesIO(data), formats=_FORMATS) as picture:
                warnings.simplefilter("ignore")
                with Image.open(io.BytesIO(data), formats=_FORMATS) as again:
                    again.verify()  # checksums, and that nothing is missing behind the last pixel
                if picture.size != (schema.width, schema.height):
                    raise InvalidFile(
                        Message(
                            "%(which)s is not %(width)s pixels wide and %(height)s high.",
                            which=which,
                            width=schema.width,
                            height=schema.height,
                        )
                    )
                if getattr(picture, "n_frames", 1) != 1:
                    raise InvalidFile(Message("%(which)s is animated; upload still pictures.", which=which))
                if picture.mode == "P" and schema.channels == 3 and "transparency" not in picture.info:
                    pixels = np.asarray(picture.convert("RGB"))  # a palette of colours: the same pixels, spelled out
                elif picture.mode == {1: "L", 3: "RGB"}[schema.channels]:
                    pixels = np.asarray(picture)
                else:
                    colours = {1: Message("8-bit grey"), 3: Message("8-bit red, green and blue without transparency")}
                    raise InvalidFile(
                        Message(
                            "%(which)s is not %(colours)s, as the schema says.",
                            which=which,
                            colours=colours[schema.channels],
                        )
                    )
        except (UnidentifiedImageError, OSError, SyntaxError, ValueError, Image.DecompressionBombError, zlib.error):
            raise InvalidFile(Message("%(which)s is damaged, cut off, or neither PNG nor JPEG.", which=which)) from None
        return pixels.reshape(schema.shape)

    def _read_labels(self, member: zipfile.ZipInfo) -> tuple[NDArray[np.uint16], Ids | None]:
        """What the CSV file says of every picture: its label, and whose it is."""
        lines = self._lines(member)
        columns = [name.strip().lower() for name in lines[0]] if lines else []
        self._check_columns(columns)
        if any(len(line) != len(columns) for line in lines):
            raise InvalidFile(
                Message(
                    "Every line of the CSV file of labels must have %(count)s cells: %(columns)s",
                    count=len(columns),
                    columns=",".join(columns),
                )
            )
        names = [line[0] for line in lines[1:]]
        if len(set(names)) != len(names):
            count = len(names) - len(set(names))
            raise InvalidFile(
                Message("The CSV file of labels names %(count)s images more than once.", count=count), count=count
            )
        folder = member.filename.rpartition("/")[0]
        of_pictures = self._of_pictures({line[0]: line[1:] for line in lines[1:]}, f"{folder}/" if folder else "")
        labels = no_labels(len(self._pictures))
        if "label" in columns:
            labels = self._places([cells[0] for cells in of_pictures])
        return labels, _ids([cells[-1] for cells in of_pictures]) if IMAGE_UNITS in columns else None

    def _lines(self, member: zipfile.ZipInfo) -> list[list[str]]:
        """The cells of every line of the CSV file that is not blank."""
        most = _LABEL_BYTES * (len(self._pictures) + 1)
        data = self._read(member, most, Message("The CSV file of labels is larger than one short line for each image."))
        try:
            lines = list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True))
        except (UnicodeDecodeError, csv.Error):
            raise InvalidFile(Message("The CSV file of labels cannot be read; save it as CSV in UTF-8.")) from None
        return [line for line in lines if line]

    def _check_columns(self, columns: Sequence[str]) -> None:
        """`label` is there exactly where the schema declares classes."""
        known = [column for column in ("label", IMAGE_UNITS) if column in columns]
        if columns != ["file", *known] or not known:
            raise InvalidFile(
                Message(
                    "The first line of the CSV file of labels must be file,label or file,label,%(image_units)s or, "
                    "without classes, file,%(image_units)s",
                    image_units=IMAGE_UNITS,
                )
            )
        if ("label" in known) != bool(self._schema.class_names):
            raise InvalidFile(
                Message("The schema declares classes, but the CSV file has no column label.")
                if self._schema.class_names
                else Message("The archive holds a CSV file of labels, but the schema declares no classes.")
            )

    def _of_pictures(self, cells_of: Mapping[str, Sequence[str]], folder: str) -> list[Sequence[str]]:
        """The other cells of every picture's line; a line names a file as it is in the archive, or from where the CSV file lies."""
        names = [picture.filename for picture in self._pictures]
        found = [cells_of.get(name, cells_of.get(name.removeprefix(folder))) for name in names]
        cells = [one for one in found if one is not None]
        if len(cells) < len(found):
            count = len(found) - len(cells)
            raise InvalidFile(
                Message("%(count)s images have no line in the CSV file of labels.", count=count), count=count
            )
        if len(cells_of) > len(cells):
            count = len(cells_of) - len(cells)
            raise InvalidFile(
                Message("%(count)s lines of the CSV file of labels name no image of the archive.", count=count),
                count=count,
            )
        return cells

    def _places(self, labels: Sequence[str]) -> NDArray[np.uint16]:
        """Of every label its place in the list of classes."""
        place_of = {name: place for place, name in enumerate(self._schema.class_names)}
        places = [place_of.get(label.strip()) for label in labels]
        if None in places:
            raise undeclared_labels(places.count(None), self._schema)
        return np.array(places, dtype=np.uint16)

    def _read(self, member: zipfile.ZipInfo, most: int, too_large: str) -> bytes:
        """A member's bytes, at most `most`, whatever its header claims; all members together are bounded, too."""
        try:
            with self._archive.open(member) as stream:
                data = stream.read(most + 1)
        except (OSError, EOFError, ValueError, NotImplementedError, RuntimeError, zipfile.BadZipFile, zlib.error):
            raise InvalidFile(Message("The archive is damaged or cut off.")) from None
        if len(data) > most:
            raise InvalidFile(too_large)
        self._left -= len(data)
        if self._left < 0:
            raise TooLarge(Message("The archive unpacks to far more than its own size."), limit_bytes=most)
        return data


def _ids(ids: Sequence[str]) -> Ids:
    """Checked for what no id can be; it repeats none."""
    long = sum(len(one) > MOST_ID_CHARACTERS for one in ids)
    if long:
        raise InvalidFile(
            Message(
                "%(long)s unit ids have more than %(most_id_characters)s characters.",
                long=long,
                most_id_characters=MOST_ID_CHARACTERS,
            ),
            count=long,
        )
    return ids
