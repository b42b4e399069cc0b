"""Secure randomness: a ChaCha20 keystream seeded by the operating system, as discrete Gaussians, uniforms and normals.

Noise (discrete Gaussians), the Poisson draw (uniforms) and the coins z, e inside the private loss all come from here. The coins must be as secret as
the draw: a row's coins are dealt by its place in the batch, and amplification by sampling needs that place to tell
nothing.
"""

from __future__ import annotations

import hashlib
import math
import os

import numpy as np
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from numpy.typing import NDArray
from torch import Tensor

from workers.numerics.discrete_gaussian import DRAW_AGAIN, UNDECIDED, Table, attempt, settle, table_for
from workers.numerics.kernels import kernels
from workers.numerics.workspace import Staging, Workspace

_CPU = torch.device("cpu")
_ON_CPU = torch.empty(0)

KEY_BYTES = 32
PAIRS_AT_ONCE = 65_536
"""Of normals: their keystream, a megabyte, stays in a second-level cache, and most networks need one call."""

BLOCKS_AT_ONCE_ELSEWHERE = 64
"""Of so many pairs: to another device words go in one piece, which are drawn while it still computes what came before."""

VALUES_AT_ONCE = 131_072
"""Of a discrete Gaussian, likewise."""

SPARE_PART = 32
"""One spare word to so many values, and 32: about one in 200 is refused where a standard deviation has 128 integers."""

REKEY_AFTER_BYTES = 1 << 30
"""Far below the 256 GiB after which ChaCha20's 32-bit block counter would repeat."""


class SecureRandom:
    """One stream per training run; never saved, never copied into another process.

    Shapes:      any. The keystream is the processor's; what becomes of it is computed on the device that asks.
    Source:      RFC 8439 (ChaCha20); `workers.numerics.discrete_gaussian`; Box and Muller 1958 for normals, which are no noise.
    Edge cases:  a forked process starts a fresh stream; a test seed sets `is_private` to False for good.
    """

    def __init__(self) -> None:
        self._workspace, self._staging = Workspace(), Staging()
        self._zeros = b""
        self.is_private = True
        self._start(os.urandom(KEY_BYTES))

    @classmethod
    def from_test_seed(cls, seed: int) -> SecureRandom:
        """A repeatable stream, for tests only: whatever it touches is marked not private and cannot be published."""
        stream = cls()
        stream.is_private = False
        stream._start(hashlib.sha256(f"test seed {seed}".encode()).digest())
        return stream

    def uniforms(self, *shape: int, dtype: torch.dtype = torch.float64, device: torch.device = _CPU) -> Tensor:
        """Uniform on the open interval (0, 1): 53 bits in float64, 23 bits in float32. A tensor of its own."""
        return self._uniforms(math.prod(shape), dtype, device).clone().reshape(shape)

    def discrete_gaussian(
        self, *shape: int, variance: float, fractions: Tensor | None = None, device: torch.device = _CPU
    ) -> Tensor:
        """Whole numbers k with P(k) ∝ exp(-(k - f)²/2v), exactly; f in [-½, ½] from `fractions`, of this shape, or 0. In int64."""
        table = table_for(variance, is_centred=fractions is None).to(device)
        values = torch.empty(math.prod(shape), dtype=torch.int64, device=device)
        at_once = VALUES_AT_ONCE * (1 if device.type == "cpu" else BLOCKS_AT_ONCE_ELSEWHERE)
        own = None if fractions is None else fractions.reshape(-1)
        for start in range(0, len(values), at_once):
            some = slice(start, start + at_once)
            self._fill_whole(table, values[some], None if own is None else own[some])
        return values.reshape(shape)

    def _fill_whole(self, table: Table, values: Tensor, fractions: Tensor | None) -> None:
        """All of them; those that a word refuses take spare words. So many words are drawn in any case, whatever the fractions are."""
        count, spare = len(values), len(values) // SPARE_PART + 32
        words, offsets = self._words_for(table, count + spare, values.device)
        first = words[:count], None if offsets is None else offsets[:count]
        compiled = kernels(values.device)
        if compiled is not None:
            left = compiled.discrete_gaussian(table, *first, fractions, values)
            refused = [place for place in left if values[place] < 0]
            undecided = [place for place in left if values[place] == 0]
        else:
            drawn, verdicts = attempt(table, *first, fractions)
            values.copy_(drawn)
            refused, undecided = _places(verdicts)
        refused += [
            place for place in undecided if not self._settled(table, place, place, words, offsets, fractions, values)
        ]
        used = count
        while refused:
            if used + len(refused) > len(words):
                words, offsets = self._words_for(table, len(refused), values.device)
                used = 0
            own = slice(used, used + len(refused))
            places = torch.tensor(refused, device=values.device)
            drawn, verdicts = attempt(
                table,
                words[own],
                None if offsets is None else offsets[own],
                None if fractions is None else fractions[places],
            )
            values[places] = drawn
            again, undecided = _places(verdicts)
            kept = refused
            refused = [kept[place] for place in again]
            refused += [
                kept[place]
                for place in undecided
                if not self._settled(table, kept[place], used + place, words, offsets, fractions, values)
            ]
            used += len(kept)

    def _settled(
        self,
        table: Table,
        place: int,
        word: int,
        words: Tensor,
        offsets: Tensor | None,
        fractions: Tensor | None,
        values: Tensor,
    ) -> bool:
        """Decide a word exactly, and write its value where it is kept. About one word in 10^12 needs this."""
        offset = 0 if offsets is None else int(offsets[word])
        fraction = 0.0 if fractions is None else float(fractions[place])
        found = settle(table, int(words[word]), offset, fraction, self._bits)
        if found is not None:
            values[place] = found
        return found is not None

    def _words_for(self, table: Table, count: int, device: torch.device) -> tuple[Tensor, Tensor | None]:
        """A word for each value, and one for its place in a block where blocks hold several. Overwritten by the next call."""
        if table.block_bits == 0:
            return self._words(count, torch.int64, device), None
        words = self._words(2 * count, torch.int64, device)
        return words[:count], words[count:]

    def words(self, count: int) -> NDArray[np.int64]:
        """Independent uniform integers below 2^63, in an array of its own."""
        found: NDArray[np.int64] = self._words(count, torch.int64).numpy() & np.int64((1 << 63) - 1)
        return found

    def seed(self) -> int:
        """Below 2^53, for a generator of what is public and must not repeat from run to run: initial weights, splits, latent noise."""
        return int(self.uniforms(1).item() * 2**53)

    def bits(self, count: int) -> int:
        """A uniform integer below 2^count; count a multiple of 64."""
        return self._bits(count)

    def _bits(self, count: int) -> int:
        """A uniform integer below 2^count; count a multiple of 64. Leaves the buffer of words alone."""
        return int.from_bytes(self._stream_bytes(count // 8), "little")

    def normals(self, *shape: int, dtype: torch.dtype = torch.float64, device: torch.device = _CPU) -> Tensor:
        """Standard normals: r = √(-2 ln u), angle 2πv; both r·cos and r·sin are used."""
        count = math.prod(shape)
        normals = torch.empty(count + count % 2, dtype=dtype, device=device)
        at_once = 2 * PAIRS_AT_ONCE * (1 if device.type == "cpu" else BLOCKS_AT_ONCE_ELSEWHERE)
        for some in torch.split(normals, at_once):
            self._fill(some)
        return normals[:count].reshape(shape)

    def _fill(self, normals: Tensor) -> None:
        """An even number of them, in blocks of PAIRS_AT_ONCE pairs: first the cosines of a block, then its sines."""
        uniforms = self._uniforms(len(normals), normals.dtype, normals.device)
        whole = len(normals) - len(normals) % (2 * PAIRS_AT_ONCE)
        for blocks in (slice(whole), slice(whole, None)):
            if len(normals[blocks]):
                pairs = min(PAIRS_AT_ONCE, len(normals[blocks]) // 2)
                _box_muller(uniforms[blocks].view(-1, 2, pairs), normals[blocks].view(-1, 2, pairs))

    def _uniforms(self, count: int, dtype: torch.dtype, device: torch.device) -> Tensor:
        """In a buffer that the next call overwrites."""
        bits, words = (53, torch.int64) if dtype == torch.float64 else (23, torch.int32)
        integers = self._words(count, words, device).bitwise_and_((1 << bits) - 1)
        buffer = self._workspace.take("uniforms", (count,), like=integers, dtype=dtype)
        return buffer.copy_(integers).add_(0.5).mul_(2.0**-bits)

    def _words(self, count: int, dtype: torch.dtype, device: torch.device = _CPU) -> Tensor:
        """The next words of the keystream, in a buffer that the next call overwrites."""
        size = count * dtype.itemsize
        self._account_for(size)
        if size > len(self._zeros):
            self._zeros = bytes(size)
        staging = self._staging if device.type == "cuda" else None
        if staging is None:
            words = self._workspace.take("words", (count,), like=_ON_CPU, dtype=dtype)
        else:
            words = staging.take(count, dtype)
        self._keystream.update_into(memoryview(self._zeros)[:size], words.numpy().view(np.uint8).data)
        return words.to(device) if staging is None else staging.send(words, device)

    def _stream_bytes(self, size: int) -> bytes:
        self._account_for(size)
        return self._keystream.update(bytes(size))

    def _account_for(self, size: int) -> None:
        """Before so many bytes are drawn: a fork starts a stream of its own, and a key is changed in time."""
        if self.is_private and os.getpid() != self._process:
            self._start(os.urandom(KEY_BYTES))
        if self._used >= REKEY_AFTER_BYTES:
            self._start(self._keystream.update(bytes(KEY_BYTES)))
        self._used += size

    def _start(self, key: bytes) -> None:
        self._process = os.getpid()
        self._used = 0
        # The key is fresh, so the nonce may be constant.
        self._keystream = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor()


def _box_muller(uniforms: Tensor, normals: Tensor) -> None:
    """(blocks, 2, pairs) both: radius from the first uniforms of a block, angle from the second. Overwrites the uniforms."""
    radius = uniforms[:, 0].log_().mul_(-2.0).sqrt_()
    angle = uniforms[:, 1].mul_(2.0 * math.pi)
    torch.cos(angle, out=normals[:, 0]).mul_(radius)
    torch.sin(angle, out=normals[:, 1]).mul_(radius)


def _places(verdicts: Tensor) -> tuple[list[int], list[int]]:
    """Where to draw again, and where float64 cannot decide."""
    again, undecided = ((verdicts == verdict).nonzero().flatten().tolist() for verdict in (DRAW_AGAIN, UNDECIDED))
    return again, undecided
