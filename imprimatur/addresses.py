"""Addresses of databases and object stores, taken apart, and what of them must not be shown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from imprimatur import stores
from imprimatur.errors import ApiError, MissingExtra
from imprimatur.formats import invalid

POSTGRES = ("postgresql", "postgres")
STORES = ("s3", "gs", "az", "file")
ALIASES = {"s3a": "s3", "gcs": "gs", "azure": "az", "abfs": "az", "abfss": "az"}
_AZURE_HOST = re.compile(r"[\w-]+@[\w-]+\.(dfs|blob)\.core\.windows\.net")
"""CONTAINER@ACCOUNT, as Azure writes addresses with abfss://."""
ENDINGS = {".sqlite": "sqlite", ".sqlite3": "sqlite", ".duckdb": "duckdb"}
ACCEPTED = "postgresql://USER@HOST/DATABASE, sqlite:///FILE, duckdb:///FILE, s3://BUCKET/FILE, gs://BUCKET/FILE or az://CONTAINER/FILE"
_USER_INFO = re.compile(r"(://[^:/@\s]*):[^@\s]*@")
_PASSWORD = re.compile(r"(password\s*=\s*)('[^']*'|\S+)", re.IGNORECASE)


@dataclass(frozen=True)
class Place:
    """One address, taken apart."""

    kind: str
    url: str
    file: str = ""
    """Of SQLite and DuckDB; of a store, the path in its bucket."""

    @classmethod
    def of(cls, address: str) -> Place:
        parts = urlsplit(address)
        scheme = ALIASES.get(parts.scheme, parts.scheme)
        if not parts.scheme and Path(address).suffix.lower() in ENDINGS:
            return cls(ENDINGS[Path(address).suffix.lower()], address, address)
        if scheme in POSTGRES:
            return cls("postgresql", address)
        if scheme in {"sqlite", "duckdb"}:
            file = unquote(address.partition("://")[2])
            if not file.startswith("/") or len(file) < 2:
                raise invalid("source", f"write {scheme}:///FILE, and {scheme}:////FOLDER/FILE from the root")
            return cls(scheme, address, file[1:])
        if scheme in STORES:
            return cls._of_store(scheme, parts.netloc, parts.path, parts.query)
        named = f"{scheme}://" if scheme else repr(address)
        raise invalid(
            "source",
            f"{named}: no such place is known here; there are {ACCEPTED}. A file of this machine needs no address",
        )

    @classmethod
    def _of_store(cls, scheme: str, netloc: str, path: str, query: str) -> Place:
        is_azure_host = scheme == "az" and _AZURE_HOST.fullmatch(netloc) is not None
        if query or ("@" in netloc and not is_azure_host):
            raise invalid(
                "source",
                "leave credentials out of the address of a store: its variables (AWS_…, GOOGLE_…, AZURE_…) hold them",
            )
        file = unquote(path.lstrip("/"))
        if not file.strip("/") or (not netloc and scheme != "file"):
            raise invalid("source", f"name a file of the store, or a folder in it: {scheme}://BUCKET/FOLDER/FILE")
        root = f"{'abfss' if is_azure_host else scheme}://{netloc}"
        return cls("store", root + ("/" if scheme == "file" else ""), file)

    @property
    def is_store(self) -> bool:
        return self.kind == "store"

    def name(self, table: str | None = None) -> str:
        """The name of a dataset of these rows."""
        return Path(self.file).stem if self.is_store else table or Path(self.file).stem or "query"

    @property
    def secrets(self) -> list[str]:
        """What must not be shown: the password, as it was typed and as it is meant; of a store, what its variables hold."""
        if self.is_store:
            return stores.secrets()
        if self.kind != "postgresql":
            return []
        typed = urlsplit(self.url).netloc.rpartition("@")[0].partition(":")[2]
        asked = re.findall(r"[?&]password=([^&]*)", self.url)
        return [form for each in (typed, *asked) if each for form in (each, unquote(each))]

    @property
    def shown(self) -> str:
        """The address, without a password."""
        return stores.address(self.url, self.file) if self.is_store else without_secrets(self.url, self.secrets)

    @property
    def local_file(self) -> Path | None:
        """The file on this machine that it is."""
        if self.kind in {"sqlite", "duckdb"}:
            return Path(self.file)
        return Path("/") / self.file if self.url.startswith("file:") else None


def without_secrets(text: str, secrets: list[str]) -> str:
    """The text with every password in it taken out."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    return _PASSWORD.sub(r"\1***", _USER_INFO.sub(r"\1:***@", text))


@contextmanager
def scrubbed(place: Place, where: str = "source") -> Iterator[None]:
    """Errors of drivers as one sentence without a password; `where` is the part of the request that is wrong."""
    try:
        yield
    except (ApiError, MissingExtra):
        raise
    except Exception as error:  # noqa: BLE001 - each driver has errors of its own, and any may quote the address
        if place.is_store:
            said = stores.sentence_of(error, place.url, place.file)
        else:
            said = f"{place.kind}: {' '.join(str(error).split()) or type(error).__name__}"
    else:
        return
    raise invalid(where, without_secrets(said, place.secrets)) from None
