"""The keystream: its source, its distributions, and that nothing repeats it."""

from __future__ import annotations

import hashlib
import os

import numpy as np
import pytest
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from scipy import stats

from workers.mechanism import secure_random
from workers.mechanism.secure_random import SecureRandom


def test_a_real_stream_is_private_and_never_repeats() -> None:
    first, second = SecureRandom(), SecureRandom()
    assert first.is_private
    assert second.is_private
    assert not torch.equal(first.uniforms(8), second.uniforms(8))
    assert not torch.equal(first.uniforms(8), first.uniforms(8))


def test_a_test_seed_repeats_and_is_marked_not_private() -> None:
    first, second = SecureRandom.from_test_seed(4), SecureRandom.from_test_seed(4)
    assert not first.is_private
    assert torch.equal(first.normals(9), second.normals(9))
    assert not torch.equal(SecureRandom.from_test_seed(5).normals(9), SecureRandom.from_test_seed(4).normals(9))


def test_the_words_are_a_chacha20_keystream() -> None:
    key = hashlib.sha256(b"test seed 4").digest()
    stream = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor().update(bytes(80))
    words = np.frombuffer(stream, dtype=np.int64) & ((1 << 53) - 1)
    np.testing.assert_array_equal(SecureRandom.from_test_seed(4).uniforms(10).numpy(), (words + 0.5) * 2.0**-53)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_uniforms_are_uniform_and_inside_the_open_interval(dtype: torch.dtype) -> None:
    draws = SecureRandom.from_test_seed(1).uniforms(400, 500, dtype=dtype)
    assert draws.dtype == dtype
    assert float(draws.min()) > 0.0
    assert float(draws.max()) < 1.0
    assert stats.kstest(draws.flatten().numpy(), "uniform").pvalue > 0.001


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_normals_are_normal_and_independent(dtype: torch.dtype) -> None:
    draws = SecureRandom.from_test_seed(1).normals(200_001, dtype=dtype).double().numpy()
    assert stats.kstest(draws, "norm").pvalue > 0.001
    half = len(draws) // 2  # the two halves come from the same pairs of uniforms
    assert abs(np.corrcoef(draws[:half], draws[half + 1 :])[0, 1]) < 0.01
    assert abs(np.corrcoef(draws[:-1], draws[1:])[0, 1]) < 0.01
    assert abs(np.corrcoef(draws[:half] ** 2, draws[half + 1 :] ** 2)[0, 1]) < 0.01


def test_the_stream_is_rekeyed_long_before_its_counter_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secure_random, "REKEY_AFTER_BYTES", 1_000)
    stream = SecureRandom.from_test_seed(1)
    draws = torch.cat([stream.uniforms(100) for _ in range(50)])
    assert len(draws.unique()) == len(draws)
    assert stats.kstest(draws.numpy(), "uniform").pvalue > 0.001


def test_a_forked_process_does_not_share_the_stream() -> None:
    stream = SecureRandom()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, stream.uniforms(4).numpy().tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 100) != stream.uniforms(4).numpy().tobytes()
