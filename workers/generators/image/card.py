"""What the model card says of a generator of images alone."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from imprimatur.visible import visible
from workers.generators.card import CERTIFICATE_FILE, Content, model_card

if TYPE_CHECKING:
    from collections.abc import Mapping

    from service.domain.image_schema import ImageSchema

_USE = """\
## Draw images

    pip install numpy onnxruntime
    python sample.py --rows 1000 -o images.npz
    python sample.py --rows 1000 --seed 7{example} -o some.npz

Any number of images may be drawn, shared and analysed: drawing costs no privacy.
"""
_CAUTION = """\
Synthetic images are approximate and look blurred: details that few images share are lost, as they must be. Do not use them
to decide about a single person, and check important findings against the real images with their owner."""
_FILES = {
    "generator.onnx": "noise and a component in, images between 0 and 1 out",
    "generator.safetensors": "its numbers",
    "config.json": "size, classes, the class and frequency of every component",
    **CERTIFICATE_FILE,
    "sample.py": "draws images; needs numpy and onnxruntime only",
}


_USE_COPIES = """\
## Look at the images

    pip install numpy onnxruntime
    python sample.py --rows 1000 -o images.npz

Each drawn image is one of those released, chosen at random. A chosen one: give `generator.onnx` its number as `condition`, and
any `noise` of shape (1, 1). They may be looked at, shared and analysed: that costs no privacy.
"""
_CAUTION_COPIES = """\
These are noisy copies of single private images, not new ones. What can be recognised in them was released: read the unit of
protection above, and do not take it for the protection of a person unless it says so."""


def image_card(*, schema: ImageSchema, certificate: Mapping[str, Any], order: Mapping[str, Any]) -> str:
    """The whole card."""
    names = schema.class_names
    colours = "grey" if schema.channels == 1 else "in colour"
    classes = f", of {len(names)} classes" if names else ""
    content = Content(
        title="A generator of synthetic images",
        what_it_does=f"It draws new images of {schema.height} × {schema.width} pixels, {colours}{classes}; the private images are not in it.",
        use=_USE.replace("{example}", f" --where {shlex.quote(visible(f'label={names[0]}'))}" if names else ""),
        record="image",
        declared="size and classes",
        population="How a class looks on average is one.",
        caution=_CAUTION,
        files=_FILES,
    )
    return model_card(content, certificate=certificate, order=order)


def copies_card(*, schema: ImageSchema, certificate: Mapping[str, Any], order: Mapping[str, Any]) -> str:
    """The model card of a release whose components are the private images themselves, noisy."""
    colours = "grey" if schema.channels == 1 else "in colour"
    content = Content(
        title="Private images, released with noise",
        what_it_does=f"They are of {schema.height} × {schema.width} pixels, {colours}.",
        use=_USE_COPIES,
        record="image",
        declared="size",
        population="How such images look on average is one.",
        caution=_CAUTION_COPIES,
        files={**_FILES, "config.json": "size, and the number of images"},
    )
    return model_card(content, certificate=certificate, order=order)
