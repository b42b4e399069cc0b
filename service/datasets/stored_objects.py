"""What stored rows and kept uploads are called, and what their ciphertexts are bound to.

Each is bound to its own name, so that a copy under another name opens nothing, whatever the database says of it. Rows are bound
besides to the privacy unit that they are grouped by, an upload to the API key that sent it.

What was stored before revision 0030 is bound to neither, and has a name of another form: such names the database takes on for
no row any more, so none of them is that of a copy.
"""

from __future__ import annotations

import json
import re
import uuid
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from service.domain.privacy_unit import DeclaredUnit

UPLOAD = "upload"
"""What an upload's key is bound to, so that it never passes for rows; and what uploads from before are."""

_FROM_BEFORE = re.compile("datasets/[^/]*/(rows|upload)")
"""How names of objects from before begin: as in `dataset_names_bound_objects` (migration 0030), which refuses them."""


def new_name(dataset_id: uuid.UUID, kind: str) -> str:
    """A name that no object has or had, for the rows or the upload of a dataset."""
    return f"datasets/{dataset_id}/bound-{kind}-{uuid.uuid4().hex}"


def is_from_before(name: str) -> bool:
    """Whether the object of this name was stored before objects were bound to their names."""
    return _FROM_BEFORE.match(name) is not None


def context_of_rows(name: str, unit: DeclaredUnit | None) -> str:
    """The encryption context of stored rows."""
    return "" if is_from_before(name) else json.dumps(["rows", name, unit and unit.as_json()], sort_keys=True)


def context_of_upload(name: str, key_id: uuid.UUID) -> str:
    """The encryption context of a kept upload."""
    return UPLOAD if is_from_before(name) else json.dumps([UPLOAD, name, str(key_id)])
