"""The sampler inside a published bundle: of a table or of images."""

from __future__ import annotations

import io
import json
import zipfile

from service.base.errors import NotInRelease, Tampered
from service.base.messages import Message
from service.samples.formats import Content
from service.samples.image_sampler import ImageSampler
from service.samples.onnx_files import NotSelfContainedError, require_self_contained
from service.samples.table.sampler import TableSampler

Sampler = TableSampler | ImageSampler

ANSWERS = "answers"
"""The kind of a ZIP without a generator."""


def sampler_from_bundle(bundle: bytes) -> Sampler:
    """The sampler inside a generator ZIP; raises `NotInRelease` where the ZIP holds answers."""
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        config = json.loads(archive.read("config.json"))
        if config.get("kind") == ANSWERS:
            raise NotInRelease(
                Message("this release holds answers, not a generator: nothing can be drawn from it"), holds=ANSWERS
            )
        kind = ImageSampler if config.get("kind") == "image" else TableSampler
        network = archive.read("generator.onnx")
    try:
        require_self_contained(network)
    except NotSelfContainedError as error:
        raise Tampered(Message("the generator of this release is not used: %(error)s", error=error)) from None
    return kind.from_files(config, network)


def network_bytes(bundle: bytes) -> int:
    """Of its file as it is unpacked, by which the memory of a sampler is reckoned."""
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        return archive.getinfo("generator.onnx").file_size


def content_of(sampler: Sampler) -> Content:
    """What it draws."""
    return "images" if isinstance(sampler, ImageSampler) else "rows"
