"""Labels of images as places in the declared list of classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from service.base.errors import InvalidFile
from service.base.messages import Message
from service.domain.image_schema import NO_LABEL

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from service.domain.image_schema import ImageSchema


def checked_labels(numbers: NDArray[Any], schema: ImageSchema) -> NDArray[np.uint16]:
    """Whole numbers (n,) that count the declared classes from 0."""
    undeclared = int(((numbers < 0) | (numbers >= len(schema.class_names))).sum())
    if undeclared:
        raise undeclared_labels(undeclared, schema)
    return numbers.astype(np.uint16)


def undeclared_labels(count: int, schema: ImageSchema) -> InvalidFile:
    """The refusal; it repeats no label."""
    most = len(schema.class_names) - 1
    return InvalidFile(
        Message(
            "%(count)s labels are not among the %(classes)s classes of the schema (as numbers: 0 to %(last)s).",
            count=count,
            classes=most + 1,
            last=most,
        ),
        count=count,
    )


def no_labels(count: int) -> NDArray[np.uint16]:
    """The labels (count,) of images without classes."""
    return np.full(count, NO_LABEL, dtype=np.uint16)
