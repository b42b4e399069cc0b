"""Where the owner's reports on releases lie: in the object store, encrypted under the data key of the rows they were computed from.

They are not private. They are gone with the rows: erasing destroys the key, and then the objects.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from service.base.errors import Gone
from service.platform.crypto import decrypt, encrypt

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterator

    from service.datasets.models import Dataset
    from service.platform.context import Context

FOLDER = "owner-reports"


def key_of(dataset_id: uuid.UUID, release_id: uuid.UUID) -> str:
    """The key of a report in the object store."""
    return f"{FOLDER}/{dataset_id}/{release_id}"


def keys_of(context: Context, dataset_id: uuid.UUID) -> Iterator[str]:
    """All of a dataset."""
    return context.storage.list(f"{FOLDER}/{dataset_id}/")


def put(context: Context, dataset: Dataset, release_id: uuid.UUID, report: dict[str, Any]) -> None:
    """Encrypt and store."""
    content = json.dumps(report, allow_nan=False).encode()
    sealed = encrypt([content], _data_key(context, dataset), context=_purpose(release_id))
    context.storage.put(key_of(dataset.id, release_id), sealed)


def is_there(context: Context, dataset_id: uuid.UUID, release_id: uuid.UUID) -> bool:
    """Whether one was made and not erased."""
    return context.storage.exists(key_of(dataset_id, release_id))


def get(context: Context, dataset: Dataset, release_id: uuid.UUID) -> dict[str, Any]:
    """`NotFound` where there is none, `Gone` where the rows are erased."""
    key = _data_key(context, dataset)
    sealed = context.storage.stream(key_of(dataset.id, release_id))
    report: dict[str, Any] = json.loads(b"".join(decrypt(sealed, key, context=_purpose(release_id))))
    return report


def _data_key(context: Context, dataset: Dataset) -> bytes:
    if dataset.state == "erased" or dataset.wrapped_data_key is None:
        raise Gone("the rows of this dataset are erased, and with them the reports that were computed from them")
    return context.secrets.unwrap_data_key(bytes(dataset.wrapped_data_key), dataset.id)


def _purpose(release_id: uuid.UUID) -> str:
    """Neither the rows nor the report on another release can be put in its place."""
    return f"owner-report/{release_id}"
