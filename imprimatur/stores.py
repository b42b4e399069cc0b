"""Objects of S3, GCS and Azure: read in pieces, a folder of parts as one tar, written in pieces; errors as one plain sentence."""

from __future__ import annotations

import datetime as dt
import importlib
import io
import os
import re
import tarfile
from difflib import get_close_matches
from typing import IO, TYPE_CHECKING, Any, cast

from imprimatur.errors import InvalidInput, MissingExtra
from imprimatur.folders import PARQUET_ENDINGS, not_a_folder_of_parts, table_format_of
from imprimatur.formats import invalid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PIECE_BYTES = 8 << 20
RETRIES = {"max_retries": 4, "retry_timeout": dt.timedelta(seconds=30)}
"""By default a server that is not there is waited for for three minutes."""
CREDENTIALS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (AWS_SESSION_TOKEN; AWS_REGION; AWS_ENDPOINT_URL elsewhere than at AWS)",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS or GOOGLE_SERVICE_ACCOUNT, the file of a service account",
    "az": "AZURE_STORAGE_ACCOUNT_NAME with AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN",
    "file": "the rights of the file",
}
_SECRET_VARIABLE = re.compile(r"^(AWS|GOOGLE|AZURE)_.*(SECRET|KEY|TOKEN|PASSWORD)")
_NO_SECRETS = frozenset(["true", "false", ""])
_NO_CREDENTIALS = ("169.254.169.254", "metadata.google.internal", "MissingCredential", "Account must be specified")
_MAYBE_ONLY_READING = re.compile(r"<Code>(AccessDenied|AuthorizationPermissionMismatch)</Code>")
_EMPTY_OBJECT = re.compile(r"status code: 416|CONTENT_RANGE|InvalidRange")
_MOST_LISTED = 1_000


def fetch(root: str, path: str, file: IO[bytes], report: Callable[[int], None] | None = None) -> None:
    """One object as it is; of a folder (`…/`, or a name that only a folder has) its Parquet files as one tar."""
    store = _store(root)
    if not path.endswith("/"):
        try:
            _copy(store, path, file, report)
        except FileNotFoundError:
            parts = _parts(store, path + "/", root)
            if not parts:
                raise _not_found(store, root, path) from None
        else:
            return
    else:
        parts = _parts(store, path, root)
        if not parts:
            raise invalid("source", f"{address(root, path)}: there is no Parquet file in this folder; name one object")
    _pack(store, parts, file, report)


def put(root: str, path: str, stream: IO[bytes]) -> None:
    """One object, whole or not at all; one that is there is replaced, as a file is."""
    obstore = needed("obstore")
    obstore.put(_store(root), path, stream, chunk_size=PIECE_BYTES, max_concurrency=2)


def check_reachable(root: str, path: str) -> None:
    """Whether the store answers and takes the credentials; whether it lets an object be written shows when it is written."""
    obstore = needed("obstore")
    try:
        obstore.get_range(_store(root), path, start=0, length=1)
    except FileNotFoundError as error:
        if re.search("NoSuchBucket|ContainerNotFound", str(error)):
            raise
    except Exception as error:
        if not _MAYBE_ONLY_READING.search(str(error)) and not _EMPTY_OBJECT.search(str(error)):
            raise


def sentence_of(error: Exception, root: str, path: str) -> str:
    """What went wrong and what to do. The library's own text has the request, the reply and their inner structure."""
    text = str(error)
    code = _code_of(text)
    scheme, _, bucket = root.partition("://")
    scheme = "az" if scheme.startswith("abfs") else scheme
    place = address(root, path)
    if re.search("NoSuchBucket|ContainerNotFound", text):
        return f"{place}: there is no {'container' if scheme == 'az' else 'bucket'} {bucket!r} there"
    if isinstance(error, FileNotFoundError):
        return f"{place}: there is no such object{code}"
    if any(word in text for word in _NO_CREDENTIALS):
        return f"{place}: no credentials were found; set {CREDENTIALS[scheme]}"
    if type(error).__name__ in {"PermissionDeniedError", "UnauthenticatedError"} or re.search(r" 40[13] ", text):
        return f"{place}: the store refused these credentials{code}; it takes them from {CREDENTIALS[scheme]}"
    if "error sending request" in text:
        tried = re.search(r"performing \w+ (\w+://[^/\s]+)", text)
        return f"{place}: no answer from {tried[1] if tried else 'the store'}; is its address right, and the network there?"
    first = " ".join(text.partition("Debug source")[0].split())
    return f"{place}: {first.partition(' - Server returned')[0][:300]}{code}"


def address(root: str, path: str) -> str:
    """The address as it is written."""
    return (root if root.endswith("/") else root + "/") + path


def secrets() -> list[str]:
    """What the environment holds for a store: in no error, whatever a library or a server says."""
    found = [value for name, value in os.environ.items() if _SECRET_VARIABLE.match(name)]
    return [value for value in found if value.lower() not in _NO_SECRETS]


def needed(module: str) -> Any:
    """A module of the extra, or what to install."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtra(f"reading and writing there ({error.name})", "sources") from None


def _store(root: str) -> Any:
    return needed("obstore.store").from_url(root, retry_config=RETRIES)


def _pieces(store: Any, path: str) -> Iterator[bytes]:
    return cast("Iterator[bytes]", iter(needed("obstore").get(store, path).stream(min_chunk_size=PIECE_BYTES)))


def _copy(store: Any, path: str, file: IO[bytes], report: Callable[[int], None] | None) -> None:
    for piece in _pieces(store, path):
        file.write(piece)
        if report is not None:
            report(file.tell())


def _parts(store: Any, folder: str, root: str) -> list[tuple[str, str, int]]:
    """Path, name within the folder and size of each Parquet file; what begins with _ or . is not of the table, as Spark has it."""
    found = []
    for page in needed("obstore").list(store, folder.strip("/")):
        for each in page:
            name = str(each["path"]).removeprefix(folder.lstrip("/"))
            if (lake := table_format_of(name)) is not None:
                raise invalid("source", not_a_folder_of_parts(address(root, folder), lake))
            if not any(part.startswith(("_", ".")) for part in name.split("/")) and name.endswith(PARQUET_ENDINGS):
                found.append((str(each["path"]), name, int(each["size"])))
    return sorted(found)


def _pack(store: Any, parts: list[tuple[str, str, int]], file: IO[bytes], report: Callable[[int], None] | None) -> None:
    """One after the other, so that memory holds a piece of one."""
    with tarfile.open(fileobj=file, mode="w") as archive:
        for path, name, size in parts:
            member = tarfile.TarInfo(name)
            member.size = size
            archive.addfile(member, io.BufferedReader(_Stream(_pieces(store, path))))
            if report is not None:
                report(file.tell())


class _Stream(io.RawIOBase):
    """Pieces as a file that is read once."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        super().__init__()
        self._pieces, self._left = pieces, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._left:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._left = memoryview(piece)
        size = min(len(buffer), len(self._left))
        buffer[:size], self._left = self._left[:size], self._left[size:]
        return size


def _not_found(store: Any, root: str, path: str) -> InvalidInput:
    """With the nearest names of the same folder, where it may be listed."""
    folder, slash, name = path.rpartition("/")
    try:
        listed = needed("obstore").list_with_delimiter(store, folder or None)
        names = [str(each["path"]).removeprefix(folder + slash) for each in listed["objects"][:_MOST_LISTED]]
    except Exception:  # noqa: BLE001 - what matters is said anyway
        names = []
    near = get_close_matches(name, names, 3, 0.6)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return invalid(
        "source", f"{address(root, path)}: there is no such object, nor Parquet files in a folder of this name{hint}"
    )


def _code_of(text: str) -> str:
    """The store's own word for it, such as SignatureDoesNotMatch."""
    found = re.search(r"<Code>\s*(\w{3,60})\s*</Code>", text)
    return f" ({found[1]})" if found else ""
