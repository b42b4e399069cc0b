"""A few images of an upload as small pictures, for its owner to see how they were read: which way up, in which order, under which label.

They are cells of the file: for the key that sent it alone, like the first rows of a table (`service/datasets/staging.py`).
"""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING, Any

import numpy as np

from service.base.errors import InvalidFile, TooLarge
from service.domain.image_schema import NO_LABEL
from service.intake.image.reading import open_images

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from service.domain.image_schema import ImageSchema
    from service.intake.image.reading import Images
    from service.intake.limits import IngestLimits
    from service.intake.sealed import SealedFile

PICTURES, IN_ORDER = 12, 6
LONGEST_SIDE = 64
"""Of a picture in pixels; larger images are made smaller."""


def first_pictures(file: SealedFile, schema: ImageSchema, limits: IngestLimits) -> list[dict[str, Any]]:
    """Of each its place in the file from 1, the name of its class or None, and a PNG in Base64.

    Nothing where an image among the first is not what the draft says: that is refused when the file is published, by a
    schema that its owner may have corrected until then.
    """
    try:
        chunks = _first_chunks(open_images(file, schema, limits))
    except (InvalidFile, TooLarge):
        return []
    if not chunks:
        return []
    pixels, labels = (np.concatenate(part) for part in zip(*chunks, strict=True))
    names = schema.class_names
    return [
        {
            "place": place + 1,
            "label": None if labels[place] == NO_LABEL else names[labels[place]],
            "png": base64.b64encode(_png(pixels[place])).decode(),
        }
        for place in _chosen(labels)
    ]


def _first_chunks(images: Images) -> list[tuple[NDArray[np.uint8], NDArray[np.uint16]]]:
    """One, and further ones where images are so large that it holds fewer than are shown."""
    found = []
    for chunk in images.chunks():
        found.append(chunk)
        if sum(len(labels) for _, labels in found) >= PICTURES:
            break
    return found


def _chosen(labels: NDArray[np.uint16]) -> list[int]:
    """The first ones, then one of each class that is not among them, then those that follow; as they come in the file."""
    places = range(len(labels))
    chosen = dict.fromkeys(places[:IN_ORDER])
    is_new = {int(place) for place in np.unique(labels, return_index=True)[1]} - chosen.keys()
    chosen |= dict.fromkeys([*sorted(is_new), *places])
    return sorted(list(chosen)[:PICTURES])


def _png(pixels: NDArray[np.uint8]) -> bytes:
    from PIL import Image  # noqa: PLC0415 - the API starts without it

    picture = Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
    picture.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    content = io.BytesIO()
    picture.save(content, "PNG")
    return content.getvalue()
