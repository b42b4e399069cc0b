"""What the limited child process does with an uploaded set of images; `ingest_child.py` runs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from service.datasets.image_file import to_records
from service.datasets.image_fingerprint import ImageFingerprint
from service.datasets.image_reading import open_images
from service.datasets.image_schema import ImageSchema
from service.datasets.limits import IngestLimits
from service.errors import InvalidFile


@dataclass(frozen=True)
class ImageJob:
    """What the parent asks of the child."""

    path: Path
    canonical_path: Path
    schema: ImageSchema
    limits: IngestLimits
    fingerprint_key: bytes

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> ImageJob:
        return cls(
            path=Path(document["path"]),
            canonical_path=Path(document["canonical_path"]),
            schema=ImageSchema.model_validate(document["schema"]),
            limits=IngestLimits.model_validate(document["limits"]),
            fingerprint_key=bytes.fromhex(document["fingerprint_key"]),
        )


def read_images(job: ImageJob, report: Callable[[float], None] = lambda _: None) -> dict[str, Any]:
    """Read the whole file once, reporting the share that is read; the canonical file is written on the way and only counts if nothing was wrong."""
    images = open_images(job.path, job.schema, job.limits)
    fingerprint = ImageFingerprint(job.fingerprint_key, job.schema)
    with job.canonical_path.open("wb") as file:
        for pixels, labels in images.chunks():
            fingerprint.add(pixels)
            file.write(to_records(pixels, labels).data)
            report(fingerprint.images / images.count)
    count = fingerprint.images
    if count < 2:
        raise InvalidFile(f"The file needs at least two images; it has {count}.", count=count)
    return {"rows": count, "units": count, "fingerprints": [fingerprint.digest().hex()], "columns": [], "notices": []}
