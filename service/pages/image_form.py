"""A set of images as the form of the second step shows it: size, colours and classes, of a document that may be anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from service.base.text import ungrouped
from service.domain.image_schema import MAX_CLASSES

if TYPE_CHECKING:
    from collections.abc import Mapping

_NUMBERS = ("height", "width", "channels")


@dataclass(frozen=True, slots=True)
class ImageForm:
    """What stands in its fields."""

    height: str
    width: str
    channels: str
    classes: str
    """Names, one a line; empty where images carry no label."""


def image_form(document: Mapping[str, Any]) -> ImageForm:
    """The fields of the document; a wrong word stands there as it is."""
    classes = document.get("classes")
    if isinstance(classes, int) and not isinstance(classes, bool) and 0 < classes <= MAX_CLASSES:
        classes = list(range(classes))
    names = [str(name) for name in classes] if isinstance(classes, list) else []
    numbers = {word: str(document.get(word, "")) for word in _NUMBERS}
    return ImageForm(**numbers, classes="\n".join(names))


def with_image(document: dict[str, Any], form: Mapping[str, str]) -> dict[str, Any]:
    """The document with what the form says of the images; word for word as it was where the form says nothing new."""
    if "image.height" not in form:
        return document
    shown, changed = image_form(document), dict(document)
    for word in _NUMBERS:
        typed = form.get(f"image.{word}", "").strip()
        if typed != getattr(shown, word):
            plain = ungrouped(typed)
            changed[word] = int(plain) if plain.isascii() and plain.isdigit() and len(plain) < 10 else typed
    typed = form.get("image.classes", "").replace("\r\n", "\n").strip("\n")
    if typed != shown.classes:
        changed.pop("classes", None)
        names = [line.strip() for line in typed.split("\n") if line.strip()]
        changed |= {"classes": names} if names else {}
    return changed
