"""Objects of S3, GCS and Azure, on real servers of the loopback."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile

import polars as pl
import pyarrow.parquet as pq
import pytest

from imprimatur import sources, stores
from imprimatur.errors import InvalidInput
from service.local.servers import free_port
from tests import object_stores

BIG_BYTES = 96 << 20


@pytest.fixture(scope="module", params=["s3", "gcs", "azure"])
def running(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    with getattr(object_stores, request.param)(folder) as store:
        yield store


@pytest.fixture
def store(running, monkeypatch):
    """With credentials that are good."""
    for name, value in running.variables.items():
        monkeypatch.setenv(name, value)
    return running


def parquet_of(**columns) -> bytes:
    content = io.BytesIO()
    pl.DataFrame(columns).write_parquet(content)
    return content.getvalue()


def read(address: str) -> bytes:
    with sources.opened(address) as rows:
        assert not rows.path.readlink().exists()
        return rows.path.read_bytes()


@pytest.mark.parametrize("path", ["people.csv", "a folder/über & so.csv", "year=2024/part.csv"])
def test_an_object_goes_and_comes_back(store, path):
    sources.write(io.BytesIO(b"a,b\n1,2\n"), store.address(path))
    assert read(store.address(path)) == b"a,b\n1,2\n"
    sources.write(io.BytesIO(b""), store.address(path))
    assert read(store.address(path)) == b""


def test_a_large_object_is_in_memory_in_pieces(store):
    """Both ways: in a process of its own, whose most memory is compared."""
    script = f"""
import resource, sys, tempfile
from imprimatur import sources
def most(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
sources.write(__import__("io").BytesIO(b"a"), {store.address("small")!r})
with sources.opened({store.address("small")!r}): before = most()
with tempfile.TemporaryFile() as file:
    for number in range({BIG_BYTES} // (1 << 20)): file.write(number.to_bytes(2) * (1 << 19))
    sources.write(file, {store.address("big")!r})
heard = []
with sources.opened({store.address("big")!r}, on_bytes=heard.append) as rows:
    with rows.path.open("rb") as content:
        for number in range({BIG_BYTES} // (1 << 20)): assert content.read(1 << 20) == number.to_bytes(2) * (1 << 19)
        assert not content.read()
assert heard[-1] == {BIG_BYTES} and len(heard) > 5
print((most() - before) * 1024)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < BIG_BYTES * 2 // 3


def test_a_folder_of_parts_is_one_table(store):
    for year, rows in ((2023, 2), (2024, 3)):
        sources.write(
            io.BytesIO(parquet_of(age=list(range(rows)))), store.address(f"t.parquet/year={year}/p-0.parquet")
        )
    for other in ("_SUCCESS", ".p.crc", "_temporary/x.parquet", "notes.txt"):
        sources.write(io.BytesIO(b"x"), store.address(f"t.parquet/{other}"))
    sources.write(io.BytesIO(parquet_of(age=[9] * 9)), store.address("t.parquet.old/p.parquet"))
    for path in ("t.parquet/", "t.parquet"):
        with (
            sources.opened(store.address(path)) as rows,
            rows.path.open("rb") as file,
            tarfile.open(fileobj=file) as archive,
        ):
            assert rows.name == "t"
            heights = {member.name: pq.read_table(archive.extractfile(member)).num_rows for member in archive}
        assert heights == {"year=2023/p-0.parquet": 2, "year=2024/p-0.parquet": 3}


@pytest.mark.parametrize("mark", ["_delta_log/0.json", "metadata/v1.metadata.json"])
def test_a_table_with_deleted_rows_is_no_folder_of_parts(store, mark):
    folder = "lake" + mark[:2]
    for path in ("p.parquet", mark):
        sources.write(io.BytesIO(parquet_of(age=[1])), store.address(f"{folder}/{path}"))
    with pytest.raises(InvalidInput, match="rows that were deleted"):
        read(store.address(f"{folder}/"))


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("named/peple.csv", r"no such object.*did you mean people.csv\?"),
        ("nothing/at/all.csv", "no such object"),
        ("named/", "no Parquet file in this folder"),
    ],
)
def test_what_is_not_there_is_said_with_the_nearest_name(store, path, said):
    sources.write(io.BytesIO(b"a\n1\n"), store.address("named/people.csv"))
    with pytest.raises(InvalidInput, match=said) as refused:
        read(store.address(path))
    is_one_plain_sentence(refused, store)


def test_a_bucket_that_is_not_there(store):
    for use in (read, sources.check_destination, lambda address: sources.write(io.BytesIO(b"1"), address)):
        with pytest.raises(InvalidInput, match=r"there is no (bucket|container) 'elsewhere'") as refused:
            use(f"{store.scheme}://elsewhere/x.csv")
        is_one_plain_sentence(refused, store)


def test_wrong_credentials_are_one_sentence_without_them(store, monkeypatch):
    sources.write(io.BytesIO(b"a\n1\n"), store.address("people.csv"))
    for name, value in store.wrong.items():
        monkeypatch.setenv(name, value)
    uses = (read, sources.check_destination, lambda address: sources.write(io.BytesIO(b"1"), address))
    for use in uses:
        for path in ("people.csv", "new.csv"):
            with pytest.raises(InvalidInput, match="refused these credentials") as refused:
                use(store.address(path))
            is_one_plain_sentence(refused, store)
            assert next(iter(store.wrong)).split("_")[0] in str(refused.value)


def test_a_server_that_is_not_there_is_not_waited_for_long(store, monkeypatch):
    endpoint = next(name for name in store.variables if "ENDPOINT" in name or name.endswith("BASE_URL"))
    monkeypatch.setenv(endpoint, f"http://127.0.0.1:{free_port()}")
    with pytest.raises(InvalidInput, match=r"no answer from http://127\.0\.0\.1:\d+; ") as refused:
        read(store.address("people.csv"))
    is_one_plain_sentence(refused, store)


def test_what_can_be_written_is_known_before(store):
    sources.write(io.BytesIO(b""), store.address("empty.csv"))
    for path in ("new.csv", "empty.csv"):
        sources.check_destination(store.address(path))
    with pytest.raises(InvalidInput, match=r"folder; name the object"):
        sources.check_destination(store.address("folder/"))


def test_what_is_not_installed_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(ImportError, match=r"imprimatur\[sources\]"):
        read("s3://clinic/people.csv")


@pytest.mark.parametrize(("scheme", "word"), [("s3", "AWS_ACCESS_KEY_ID"), ("gs", "GOOGLE_"), ("az", "AZURE_")])
def test_no_credentials_name_the_variables(scheme, word):
    error = RuntimeError("Error performing PUT http://169.254.169.254/latest/api/token in 1ms\n\nDebug source: …")
    said = stores.sentence_of(error, f"{scheme}://clinic", "people.csv")
    assert said.startswith(f"{scheme}://clinic/people.csv: no credentials were found; set {word}")


def test_an_address_of_azure_as_its_pages_write_it():
    place = sources.Place.of("abfss://rows@account.dfs.core.windows.net/2024/t.parquet")
    assert (place.url, place.file) == ("abfss://rows@account.dfs.core.windows.net", "2024/t.parquet")
    with pytest.raises(InvalidInput, match="AZURE_"):
        sources.Place.of("az://account:key@container/x.csv")


def is_one_plain_sentence(refused, store):
    said = str(refused.value)
    assert "\n" not in said
    assert len(said) < 400, said
    for word in (*store.secrets, "Debug", "Error performing", "<", "RequestId"):
        assert word not in said
    assert refused.value.__suppress_context__ or refused.value.__context__ is None
