from __future__ import annotations

import hashlib
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from service.base.errors import InvalidInput, NotFound, Unavailable
from service.platform.storage import Storage

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(params=["file", "memory"])
def storage(request, tmp_path: Path) -> Storage:
    return Storage.from_url("memory:///" if request.param == "memory" else (tmp_path / "a folder").as_uri())


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_bytes_files_and_iterators(storage: Storage, tmp_path: Path):
    data = bytes(range(256)) * 50_000  # several parts
    path = tmp_path / "upload"
    path.write_bytes(data)
    storage.put("a/bytes", data)
    storage.put("a/path", path)
    storage.put("a/pieces", (data[i : i + 100_000] for i in range(0, len(data), 100_000)))
    storage.put("a/nothing", b"")
    storage.put("a/no-pieces", iter([]))
    for key in ("a/bytes", "a/path", "a/pieces"):
        assert storage.get(key) == data
        assert b"".join(storage.stream(key, chunk_bytes=65_536)) == data
        assert storage.size(key) == len(data)
        assert storage.read_range(key, 70_000, 9_000_000) == data[70_000:9_000_000]
    assert storage.get("a/nothing") == storage.get("a/no-pieces") == b""


def test_put_replaces(storage: Storage):
    storage.put("k", b"old")
    storage.put("k", b"new")
    assert storage.get("k") == b"new"


def test_put_content_is_addressed_by_content(storage: Storage):
    key = storage.put_content("bundles/", b"bundle")
    assert key == f"bundles/{hashlib.sha256(b'bundle').hexdigest()}"
    assert storage.put_content("bundles", b"bundle") == key
    assert storage.put_content("bundles", b"other") != key
    assert storage.get(key) == b"bundle"
    assert len(list(storage.list("bundles"))) == 2


def test_list_exists_and_delete(storage: Storage):
    for key in ("a/1", "a/b/2", "ab/3"):
        storage.put(key, b"x")
    assert sorted(storage.list("a")) == sorted(storage.list("a/")) == ["a/1", "a/b/2"]
    assert sorted(storage.list()) == ["a/1", "a/b/2", "ab/3"]
    assert storage.exists("a/1")
    storage.delete("a/1")
    storage.delete("a/1")
    assert not storage.exists("a/1")
    assert list(storage.list("none")) == []


def test_what_is_not_there(storage: Storage):
    for use in (storage.get, storage.stream, storage.size):
        with pytest.raises(NotFound):
            use("datasets/none/rows")


@pytest.mark.parametrize(
    "key", ["", "/a", "a/", "a//b", "../a", "a/../b", "a/./b", ".", "..", "a b", "a\n", "ü", "a\\b", "a%2f", "a#1"]
)
def test_keys_that_could_leave_the_folder_are_refused(key, storage: Storage):
    for use in (storage.get, storage.stream, storage.exists, storage.delete, lambda k: storage.put(k, b"x")):
        with pytest.raises(InvalidInput):
            use(key)


def test_a_put_that_fails_leaves_nothing(tmp_path: Path):
    storage = Storage.from_url(tmp_path.as_uri())
    storage.put("k", b"old")

    def broken() -> Iterator[bytes]:
        yield b"x" * 12_000_000
        raise InvalidInput("the source ended")

    with pytest.raises(InvalidInput, match="the source ended"):
        storage.put("k", broken())
    with pytest.raises(InvalidInput):
        storage.put("other", broken())
    assert storage.get("k") == b"old"
    assert [path.name for path in _files(tmp_path)] == ["k"]


def test_readers_never_see_half_an_object(tmp_path: Path):
    """While large objects replace one another, every read is one of them, whole."""
    storage = Storage.from_url(tmp_path.as_uri())
    size = 6_000_000
    storage.put("k", b"0" * size)
    stop = threading.Event()
    wrong: list[int] = []

    def read() -> None:
        while not stop.is_set():
            data = storage.get("k")
            if len(data) != size or data.count(data[:1]) != size:
                wrong.append(len(data))

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for round_ in range(10):
        storage.put("k", (bytes([49 + round_ % 9]) * 1_000_000 for _ in range(6)))
    stop.set()
    for reader in readers:
        reader.join()
    assert wrong == []


def test_a_backend_that_fails_says_no_paths(tmp_path: Path):
    folder = tmp_path / "secret-folder"
    storage = Storage.from_url(folder.as_uri())
    folder.rmdir()
    folder.write_text("a file where the folder was")
    with pytest.raises(Unavailable) as caught:
        storage.put("a/b", b"x")
    assert "secret-folder" not in str(caught.value)
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("url", ["ftp://host/x", "nonsense", "file://relative/x"])
def test_urls_that_are_no_storage(url):
    with pytest.raises((Unavailable, InvalidInput)):
        Storage.from_url(url)


@pytest.mark.parametrize("url", ["s3://bucket/prefix", "gs://bucket/prefix", "az://container/prefix"])
def test_cloud_urls_open_without_a_connection(url, monkeypatch):
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
    assert isinstance(Storage.from_url(url), Storage)
