"""A few small images, made in code, in every format that an upload may have."""

from __future__ import annotations

import gzip
import io
import struct
import zipfile

import numpy as np
from PIL import Image

from workers.encoding.images import EncodedImages


def make_images(count=12, shape=(6, 5, 1), classes=3, seed=None):
    """Pixels (count, height, width, channels) and labels (count,); new ones each time without a seed."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (count, *shape), dtype=np.uint8), np.arange(count) % classes


def make_set(shape, count, classes=3):
    """Such images as a run reads them, each a unit; 0: without classes."""
    pixels, labels = make_images(count, shape, max(1, classes), seed=3)
    return EncodedImages(pixels.reshape(count, -1), labels.astype(np.int64), shape, classes)


def image_schema(shape=(6, 5, 1), classes=3):
    height, width, channels = shape
    document = {"type": "image", "height": height, "width": width, "channels": channels}
    return document if classes is None else {**document, "classes": classes}


def npz(pixels, labels=None, **more):
    arrays = {"images": pixels, **({} if labels is None else {"labels": labels}), **more}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def idx(array):
    array = np.asarray(array, dtype=np.uint8)
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def idx_pair(pixels, labels, *, packed=True):
    pack = gzip.compress if packed else bytes
    squeezed = pixels[..., 0] if pixels.shape[-1] == 1 else pixels
    ending = ".gz" if packed else ""
    return archive({f"train-images{ending}": pack(idx(squeezed)), f"train-labels{ending}": pack(idx(labels))})


def picture(pixels, kind="PNG", **options):
    buffer = io.BytesIO()
    Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels).save(buffer, kind, **options)
    return buffer.getvalue()


def pictures(pixels, labels=None, *, names=None, units=None, kind="PNG", folder=""):
    """A ZIP of pictures with a labels file, which may say whose they are."""
    files = {f"{folder}{i:03}.{kind.lower()}": picture(image, kind) for i, image in enumerate(pixels)}
    columns = {"file": [f"{i:03}.{kind.lower()}" for i in range(len(pixels))]}
    if labels is not None:
        columns["label"] = [str(label if names is None else names[label]) for label in labels]
    if units is not None:
        columns["unit"] = [str(unit) for unit in units]
    if len(columns) > 1:
        lines = [",".join(columns), *map(",".join, zip(*columns.values(), strict=True))]
        files[f"{folder}labels.csv"] = ("\n".join(lines) + "\n").encode()
    return archive(files)


def archive(files, compression=zipfile.ZIP_DEFLATED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as zipped:
        for name, content in files.items():
            zipped.writestr(name, content)
    return buffer.getvalue()
