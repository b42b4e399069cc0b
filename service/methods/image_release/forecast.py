"""What a release of single images will give and will not."""

from __future__ import annotations

from service.base.messages import Message
from service.domain.shapes import ImageShape
from service.domain.unit_words import part_in_words
from service.methods.facts import Facts
from service.methods.forecast import Forecast
from service.methods.image_release.order import ImageReleaseOrder
from service.methods.knobs import DEFAULT_NUMERIC_BINS
from service.privacy.events import Events

OF_AN_IMAGE = Message(
    "Whole images are hidden, so at ε of a few nothing of a single image is left to see; for new images like these "
    "take `mixture`."
)


def forecast(_order: ImageReleaseOrder, _events: Events, facts: Facts) -> Forecast:
    """A forecast in words; how far off pixels are depends on the image."""
    shape = facts.shape(DEFAULT_NUMERIC_BINS)
    sentences = (Message("Images are released one by one, blurred and noisy; classes are not released."),)
    if not isinstance(shape, ImageShape) or shape.unit_pixels is None:
        return Forecast((*sentences, OF_AN_IMAGE))
    warning = Message(
        "One unit is %(unit)s. Hiding it is no promise to a person: a face is in all columns of its image, and in all of its images. "
        "Whose face it is may be told from this release at any ε that leaves something to see.",
        unit=part_in_words(shape.unit_pixels, shape.height),
    )
    return Forecast(sentences, (warning,))
