from __future__ import annotations

import base64
import os
import stat
import subprocess
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from imprimatur.verify.documents import canonical_json
from imprimatur.verify.signatures import verify_signature
from service.base.errors import Tampered, Unavailable
from service.platform import crypto
from service.platform.crypto import CHUNK_BYTES, Secrets, decrypt, encrypt, open_decrypted
from service.platform.signing import SigningKey

if TYPE_CHECKING:
    from pathlib import Path

KEY = bytes(range(32))
HEADER = 8 + 32 + 7


@pytest.fixture
def secrets() -> Secrets:
    return Secrets(bytes(32))


def _seal(data: bytes, key: bytes = KEY, context: str = "") -> bytes:
    return b"".join(encrypt([data], key, context=context))


def _open(sealed: bytes, key: bytes = KEY, context: str = "", piece: int = 10_000) -> bytes:
    pieces = [sealed[i : i + piece] for i in range(0, len(sealed), piece)]
    return b"".join(decrypt(pieces, key, context=context))


# the secret key file


def test_the_key_file_is_made_once_with_mode_0600(tmp_path: Path):
    path = tmp_path / "folder" / "secret.key"
    first = Secrets.load_or_create(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert len(set(first.ring.wrapping + first.ring.api_keys + first.ring.fingerprints)) == 3
    assert Secrets.load_or_create(path).fingerprint_key == first.fingerprint_key == Secrets.load(path).fingerprint_key
    assert list(path.parent.iterdir()) == [path]


def test_many_that_make_the_key_file_at_once_agree(tmp_path: Path):
    path = tmp_path / "secret.key"
    with ThreadPoolExecutor(16) as pool:
        found = {secrets.fingerprint_key for secrets in pool.map(lambda _: Secrets.load_or_create(path), range(64))}
    assert len(found) == 1


def test_a_missing_or_short_key_file_is_refused(tmp_path: Path):
    with pytest.raises(Unavailable):
        Secrets.load(tmp_path / "none")
    (tmp_path / "short").write_bytes(b"too short")
    with pytest.raises(Unavailable):
        Secrets.load(tmp_path / "short")


def test_secrets_do_not_show_themselves():
    secrets = Secrets(b"S" * 32)
    assert "S" * 4 not in repr(secrets)
    assert "S" * 4 not in f"{secrets}"


def test_every_purpose_has_its_own_key(secrets: Secrets):
    ring = secrets.ring
    assert len({*ring.wrapping, *ring.api_keys, *ring.fingerprints, *ring.first_signing}) == 4
    assert secrets.fingerprint_key != Secrets(b"1" * 32).fingerprint_key


# API keys


def test_api_keys(secrets: Secrets):
    stored = secrets.api_key_digest("imp_abc")
    assert len(stored) == 32
    assert b"imp_abc" not in stored
    assert secrets.matches_api_key("imp_abc", stored)
    assert not secrets.matches_api_key("imp_abd", stored)
    assert not secrets.matches_api_key("", stored)
    assert not Secrets(b"1" * 32).matches_api_key("imp_abc", stored)


# data keys


def test_a_data_key_unwraps_for_its_own_dataset_only(secrets: Secrets):
    dataset, other = uuid.uuid4(), uuid.uuid4()
    data_key = secrets.new_data_key()
    wrapped = secrets.wrap_data_key(data_key, dataset)
    assert data_key not in wrapped
    assert secrets.unwrap_data_key(wrapped, dataset) == data_key == secrets.unwrap_data_key(wrapped, str(dataset))
    assert wrapped != secrets.wrap_data_key(data_key, dataset)
    with pytest.raises(Tampered):
        secrets.unwrap_data_key(wrapped, other)
    with pytest.raises(Tampered):
        Secrets(b"1" * 32).unwrap_data_key(wrapped, dataset)


def test_any_changed_byte_of_a_wrapped_key_is_noticed(secrets: Secrets):
    wrapped = secrets.wrap_data_key(secrets.new_data_key(), "d")
    for position in range(len(wrapped)):
        changed = bytearray(wrapped)
        changed[position] ^= 1
        with pytest.raises(Tampered):
            secrets.unwrap_data_key(bytes(changed), "d")
    for length in range(len(wrapped)):
        with pytest.raises(Tampered):
            secrets.unwrap_data_key(wrapped[:length], "d")


# certificates


def test_signatures(secrets: Secrets):
    document = {"epsilon": 3.0, "name": "Zürich", "events": [1, 2.5, None, True]}
    key, other = SigningKey(secrets.first_signing_seed), SigningKey(b"1" * 32)
    signature = key.sign(document)
    assert verify_signature(document, signature, key.public_key)
    assert verify_signature(dict(reversed(document.items())), signature, key.public_key)
    assert not verify_signature(document | {"epsilon": 3.1}, signature, key.public_key)
    assert not verify_signature(document, signature, other.public_key)
    assert not verify_signature(document, base64.b64encode(bytes(64)).decode(), key.public_key)
    for nonsense in ("", "!", "AAAA"):
        assert not verify_signature(document, nonsense, key.public_key)
        assert not verify_signature(document, signature, nonsense)
    assert not verify_signature(document | {"epsilon": float("nan")}, signature, key.public_key)


def test_canonical_json():
    assert canonical_json({"b": 1.0, "a": ["ü", 1e-7]}) == '{"a":["ü",1e-07],"b":1.0}'.encode()
    with pytest.raises(ValueError, match="JSON compliant"):
        canonical_json({"a": float("nan")})


# files


@given(
    size=st.sampled_from([0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 2 * CHUNK_BYTES, 2 * CHUNK_BYTES + 7]),
    cut=st.integers(1, 3 * CHUNK_BYTES),
    piece=st.integers(1_000, 3 * CHUNK_BYTES),
)
@settings(max_examples=30, deadline=None)
def test_streams_round_trip_however_they_are_cut(size, cut, piece):
    data = os.urandom(size)
    sealed = b"".join(encrypt([data[:cut], b"", data[cut:]], KEY, context="rows"))
    assert len(data) < 16 or data[:16] not in sealed
    assert _open(sealed, context="rows", piece=piece) == data


def _file(sealed: bytes, key: bytes = KEY):
    return open_decrypted(lambda start, stop: sealed[start:stop], len(sealed), key)


@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 20 * CHUNK_BYTES + 7])
def test_an_encrypted_file_is_read_at_any_place(size: int):
    data = os.urandom(size)
    asked = []
    sealed = _seal(data)

    def read_range(start: int, stop: int) -> bytes:
        asked.append(stop - start)
        return sealed[start:stop]

    file = open_decrypted(read_range, len(sealed), KEY)
    for start in (0, size // 2, size - 1, 3, 17 * CHUNK_BYTES - 5):
        if 0 <= start <= size:
            file.seek(start)
            assert file.read(CHUNK_BYTES * 2) == data[start : start + CHUNK_BYTES * 2]
    assert file.seek(0, os.SEEK_END) == size
    assert file.read(1) == b""
    file.seek(0)
    assert file.read() == data
    assert max(asked) <= 16 * (CHUNK_BYTES + 16)


def test_a_file_read_at_any_place_notices_what_is_not_genuine():
    sealed = _seal(os.urandom(3 * CHUNK_BYTES))
    one = CHUNK_BYTES + 16
    cut = [sealed[:-1], sealed[: HEADER + 2 * one], sealed[:HEADER], sealed[: HEADER - 1], sealed + bytes(20)]
    for damaged in (*cut, b"X" + sealed[1:]):
        with pytest.raises(Tampered):
            _file(damaged)
    with pytest.raises(Tampered):
        _file(sealed, bytes(32))
    swapped = sealed[:HEADER] + sealed[HEADER + one : HEADER + 2 * one] + sealed[HEADER : HEADER + one]
    swapped += sealed[HEADER + 2 * one :]
    flipped = bytearray(sealed)
    flipped[HEADER + one + 9] ^= 1
    for damaged in (swapped, bytes(flipped)):
        file = _file(damaged)
        with pytest.raises(Tampered):
            file.read()


def test_the_same_data_never_looks_the_same():
    assert _seal(b"x" * 100)[HEADER:] != _seal(b"x" * 100)[HEADER:]


@given(position=st.integers(0, HEADER + 2 * (CHUNK_BYTES + 16) + 100), bit=st.integers(0, 7))
@settings(max_examples=60, deadline=None)
def test_any_changed_bit_is_noticed(position, bit):
    sealed = bytearray(_seal(b"a" * (2 * CHUNK_BYTES + 100)))
    position %= len(sealed)
    sealed[position] ^= 1 << bit
    with pytest.raises(Tampered):
        _open(bytes(sealed))


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_any_truncation_is_noticed(data):
    sealed = _seal(b"a" * (2 * CHUNK_BYTES + 100))
    length = data.draw(st.integers(0, len(sealed) - 1))
    with pytest.raises(Tampered):
        _open(sealed[:length])


def test_truncation_at_the_end_of_a_chunk_is_noticed():
    chunk = CHUNK_BYTES + 16
    for size in (2 * CHUNK_BYTES, 2 * CHUNK_BYTES + 100):
        sealed = _seal(b"a" * size)
        for chunks in (0, 1, 2):
            if HEADER + chunks * chunk < len(sealed):
                with pytest.raises(Tampered):
                    _open(sealed[: HEADER + chunks * chunk])


def test_reordered_repeated_and_dropped_chunks_are_noticed():
    chunk = CHUNK_BYTES + 16
    sealed = _seal(bytes(3 * CHUNK_BYTES + 5))
    head, parts = sealed[:HEADER], [sealed[i : i + chunk] for i in range(HEADER, len(sealed), chunk)]
    assert len(parts) == 4
    for order in ([1, 0, 2, 3], [0, 2, 1, 3], [0, 1, 3], [1, 2, 3], [0, 0, 1, 2, 3], [3], [0, 1, 2], [0, 1, 2, 3, 3]):
        with pytest.raises(Tampered):
            _open(head + b"".join(parts[i] for i in order))


def test_chunks_of_another_file_are_noticed():
    one, other = _seal(b"1" * (CHUNK_BYTES + 5)), _seal(b"2" * (CHUNK_BYTES + 5))
    with pytest.raises(Tampered):
        _open(one[:HEADER] + other[HEADER:])
    with pytest.raises(Tampered):
        _open(one[: HEADER + CHUNK_BYTES + 16] + other[HEADER + CHUNK_BYTES + 16 :])


def test_another_key_or_context_is_noticed():
    sealed = _seal(b"rows", context="a")
    with pytest.raises(Tampered):
        _open(sealed, key=bytes(32), context="a")
    with pytest.raises(Tampered):
        _open(sealed, context="b")
    with pytest.raises(Tampered):
        _open(b"not encrypted at all, but long enough to hold a header and more")


def test_a_header_says_what_it_belongs_to():
    header = _seal(b"rows", context="a")[:HEADER]
    assert crypto.is_header_of(header, KEY, context="a")
    for other in (header[:-1], header[:-1] + bytes([header[-1] ^ 1]), b"", b"x" + header[1:], header[:8] + bytes(39)):
        assert not crypto.is_header_of(other, KEY, context="a")
    assert not crypto.is_header_of(header, KEY, context="")
    assert not crypto.is_header_of(header, bytes(32), context="a")
    assert _seal(b"rows", context="a")[:HEADER] != header


def test_the_format_stays_readable():
    """A file written by version 1 of the format; later versions must still read it."""
    salt, prefix = bytes(range(32)), bytes(7)
    cipher = crypto._file_cipher(KEY, salt, "rows")
    sealed = crypto._MAGIC + salt + prefix + cipher.encrypt(bytes(11) + b"\x01", b"old rows", None)
    assert sealed.hex()[-48:] == "0a48e504b9422990e5e871285b97a99eded813b00c9b9280"
    assert _open(sealed, context="rows") == b"old rows"


def test_importing_needs_no_heavy_library():
    code = "import sys, service.platform.crypto, service.platform.storage; print([m for m in ('polars', 'pyarrow', 'torch') if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
