"""What a generator of images makes while it trains: the pictures in the checkpoint that its training goes on from.

Post-processing of weights that were made from noisy sums. Only recorded checkpoints are shown, so nothing that was
shown is ever run again (docs/privacy.md, previews).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.base.errors import NotFound, NotReady
from service.base.messages import Message, Text
from service.releases.models import ACTIVE

if TYPE_CHECKING:
    from service.platform.storage import Storage
    from service.releases.models import Release

TENSOR = "preview"
"""(classes, columns, height, width, channels) uint8, among a checkpoint's tensors."""


def read_preview(storage: Storage, release: Release) -> bytes:
    """A PNG, a class a row; raises `NotReady` where there is none (yet)."""
    if release.state not in ACTIVE:
        raise NotReady(
            Message("this release is %(state)s: previews are shown while it trains", state=Text(release.state)),
            state=release.state,
        )
    try:
        checkpoint = None if release.checkpoint_key is None else storage.get_content(release.checkpoint_key)
    except NotFound:  # a newer one has just taken its place
        checkpoint = None
    if checkpoint is not None:
        from safetensors.numpy import load  # noqa: PLC0415 - the API starts without it

        from service.samples.image_streams import picture_of  # noqa: PLC0415 - loaded with the first picture

        tiles = load(checkpoint).get(TENSOR)
        if tiles is not None:
            return picture_of(tiles)
    raise NotReady(Message("no preview yet: idpgan of images has one every hundred steps"), state=release.state)
