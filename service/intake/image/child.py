"""What the limited child process does with an uploaded set of images; `service.intake.child` runs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from service.base.errors import InvalidFile
from service.base.messages import Message
from service.domain.image_schema import ImageSchema
from service.domain.privacy_unit import ImageUnit
from service.intake.image.canonical_file import RecordFile, UnitFile, to_records
from service.intake.image.fingerprint import ImageFingerprint
from service.intake.image.reading import open_images
from service.intake.image.units import ImageOwners, owners_of
from service.intake.limits import IngestLimits
from service.intake.sealed import SealedFile


@dataclass(frozen=True)
class ImageJob:
    """What the parent asks of the child."""

    upload: SealedFile
    canonical: SealedFile
    schema: ImageSchema
    limits: IngestLimits
    fingerprint_key: bytes
    privacy_unit: ImageUnit | None = None

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> ImageJob:
        unit = document["privacy_unit"]
        return cls(
            upload=SealedFile.handed_over(document["upload"]),
            canonical=SealedFile.handed_over(document["canonical"]),
            schema=ImageSchema.model_validate(document["schema"]),
            limits=IngestLimits.model_validate(document["limits"]),
            fingerprint_key=bytes.fromhex(document["fingerprint_key"]),
            privacy_unit=None if unit is None else ImageUnit.model_validate(unit),
        )


def read_images(job: ImageJob, report: Callable[[float], None] = lambda _: None) -> dict[str, Any]:
    """Read the whole file once, reporting the share that is read; the canonical file is written on the way and only counts if nothing was wrong."""
    unit = job.privacy_unit
    images = open_images(job.upload, job.schema, job.limits, units=unit is not None)
    fingerprint = ImageFingerprint(job.fingerprint_key, job.schema)
    owners = None
    if unit is not None and images.unit_ids is not None:
        owners = owners_of(images.unit_ids, unit, job.limits, job.fingerprint_key)
    with _opened(job, owners) as file:
        for pixels, labels in images.chunks():
            fingerprint.add(pixels)
            file.write(to_records(pixels, labels))
            report(fingerprint.images / images.count)
    count = fingerprint.images
    units = count if owners is None else len(owners.sizes)
    if units < (2 if job.schema.pixel_unit is None else 1):  # one image has many columns of pixels
        what = Message("images") if owners is None else Message("privacy units")
        raise InvalidFile(
            Message("The file needs at least two %(what)s; it has %(units)s.", what=what, units=units), count=units
        )
    return {
        "rows": count,
        "units": units,
        "fingerprints": [fingerprint.digest().hex()],
        "columns": [],
        "notices": [] if owners is None else list(owners.notices),
    }


def _opened(job: ImageJob, owners: ImageOwners | None) -> RecordFile | UnitFile:
    if owners is None:
        return RecordFile(job.canonical)
    return UnitFile(job.canonical, job.schema, owners.unit_of_image)
