"""What uploads may hold of the scratch folder at once, tenant by tenant, in this API process."""

from __future__ import annotations

import threading
from collections import defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING

from service.base.errors import RateLimited, TooLarge
from service.intake.sealed import SealedFile

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from uuid import UUID

RETRY_SECONDS = 10


class Spool:
    """One upload on its way: a sealed file whose bytes its tenant's quota counts."""

    def __init__(self, quotas: SpoolQuotas, tenant: UUID, file: SealedFile) -> None:
        self.file = file
        self._quotas, self._tenant = quotas, tenant
        self._bytes = 0

    @property
    def is_empty(self) -> bool:
        return self._bytes == 0

    def append(self, data: bytes) -> None:
        """The next bytes; counted before they are written. Raises `RateLimited` or `TooLarge`."""
        self._quotas.take(self._tenant, self._bytes, len(data))
        self._bytes += len(data)
        self.file.append(data)

    def close(self) -> None:
        """Give room and quota back."""
        self.file.close()
        self._quotas.give_back(self._tenant, self._bytes)
        self._bytes = 0


class SpoolQuotas:
    """Counts bytes and uploads of every tenant that has any."""

    def __init__(self, bytes_per_tenant: int, uploads_per_tenant: int, scratch_dir: Path | None) -> None:
        self._most_bytes, self._most_uploads = bytes_per_tenant, uploads_per_tenant
        self._scratch_dir = scratch_dir
        self._bytes: dict[UUID, int] = defaultdict(int)
        self._uploads: dict[UUID, int] = defaultdict(int)
        self._lock = threading.Lock()

    @contextmanager
    def open(self, tenant: UUID) -> Iterator[Spool]:
        """A spool, until the block ends, however it ends. Raises `RateLimited` where the tenant has too many."""
        with self._lock:
            if self._uploads[tenant] >= self._most_uploads:
                raise RateLimited(
                    f"your tenant sends {self._most_uploads} uploads already; send this one when one of them has been answered",
                    retry_after_seconds=RETRY_SECONDS,
                    limit_uploads=self._most_uploads,
                )
            self._uploads[tenant] += 1
        try:
            spool = Spool(self, tenant, SealedFile.create(self._scratch_dir))
            try:
                yield spool
            finally:
                spool.close()
        finally:
            with self._lock:
                self._uploads[tenant] -= 1
                if not self._uploads[tenant]:
                    del self._uploads[tenant]

    def take(self, tenant: UUID, own: int, more: int) -> None:
        """`own`: what this upload has taken before."""
        with self._lock:
            if own + more > self._most_bytes:
                raise TooLarge(
                    f"the upload is larger than the {self._most_bytes} bytes that a tenant may send at once",
                    limit_bytes=self._most_bytes,
                )
            if self._bytes[tenant] + more > self._most_bytes:
                raise RateLimited(
                    f"the uploads that your tenant sends at once are larger than {self._most_bytes} bytes together;"
                    " send this one when one of them has been answered",
                    retry_after_seconds=RETRY_SECONDS,
                    limit_bytes=self._most_bytes,
                )
            self._bytes[tenant] += more

    def give_back(self, tenant: UUID, taken: int) -> None:
        with self._lock:
            self._bytes[tenant] -= taken
            if not self._bytes[tenant]:
                del self._bytes[tenant]

    def held(self) -> tuple[int, int]:
        """Bytes and uploads of all tenants."""
        with self._lock:
            return sum(self._bytes.values()), sum(self._uploads.values())
