"""That a stored ZIP is the one that its release's certificate signs, before anything of it is read or handed out.

The release's row names the object and the certificate; the object's name is its SHA-256; the certificate signs every
member, and a key of this service signs the certificate. A change of one of these is found by the others.
"""

from __future__ import annotations

import hashlib
import tempfile
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from imprimatur.verify.members import NotAsCertified, check_bundle
from imprimatur.verify.signatures import UNSIGNED, verify_signature
from service.base.errors import NotFound, Tampered
from service.ledger import signing_keys

if TYPE_CHECKING:
    from collections.abc import Mapping

    from service.platform.context import Context
    from service.releases.models import Release

IN_MEMORY_BYTES = 8 * 1024 * 1024
"""A larger ZIP is looked at in a nameless file of the scratch folder. It is no secret: it was published."""


class Bundles:
    """Which ZIPs were found to be as certified. What they hold cannot change since: their names are their hashes."""

    def __init__(self, context: Context, *, capacity: int = 4_096) -> None:
        self._context = context
        self._capacity = capacity
        self._whole: OrderedDict[bytes, None] = OrderedDict()
        self._lock = threading.Lock()

    def checked_key(self, release: Release) -> str:
        """The storage key of a release's ZIP; `Tampered` unless it is the one that was certified.

        Read it with `Storage.get_content` or `stream_content`, which check that it still is what its name says.
        """
        key, certificate = release.bundle_key, release.certificate
        if key is None or certificate is None:
            raise NotFound("this release has no bundle")
        facts = "\x00".join((str(release.id), key, str(certificate.get("signature"))))
        known = hashlib.sha256(facts.encode()).digest()
        with self._lock:
            if known in self._whole:
                self._whole.move_to_end(known)
                return key
        # Outside the lock: others need not wait; looking twice does no harm.
        self._require_certified(str(release.id), key, certificate)
        with self._lock:
            self._whole[known] = None
            while len(self._whole) > self._capacity:
                self._whole.popitem(last=False)
        return key

    def _require_certified(self, release_id: str, key: str, certificate: Mapping[str, Any]) -> None:
        storage, folder = self._context.storage, self._context.settings.scratch_dir
        scratch = None if folder is None else str(folder)
        self.require_signed(release_id, certificate)
        with tempfile.SpooledTemporaryFile(IN_MEMORY_BYTES, dir=scratch) as file:
            for piece in storage.stream_content(key):
                file.write(piece)
            try:
                check_bundle(file, certificate)
            except NotAsCertified as error:
                raise Tampered(
                    f"the stored ZIP of this release is not the one that was certified: {error}. Nothing of it is used;"
                    " the operator must put database and storage back from one backup"
                ) from None

    def require_signed(self, release_id: str, certificate: Mapping[str, Any]) -> None:
        """Refuse a certificate that is not signed for this release by a key that the owner of the database registered."""
        with self._context.transaction() as session:
            keys = {key.to_json()["public_key"] for key in signing_keys.registered(session)}
        named = certificate.get("public_key")
        signed = {name: value for name, value in certificate.items() if name not in UNSIGNED}
        if (
            named not in keys
            or certificate.get("release_id") != release_id
            or not verify_signature(signed, str(certificate.get("signature")), str(named))
        ):
            raise Tampered(
                "the certificate of this release is not one that this service signed for it. Nothing of the release is"
                " used; the operator must put the database back from a backup"
            )
