"""Coins for reports: fresh ones from the operating system, and permanent ones that a secret and a value determine.

Probabilities are whole multiples of 2^-64, so that a coin is exactly what its probability says.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import secrets
from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction

BITS = 64
WHOLE = 1 << BITS
SECRET_BYTES = 32
DIGITS = Context(prec=60)
"""In which exp and ln are correctly rounded: more than coins have."""


def at_least(probability: float | Fraction) -> int:
    """The smallest multiple of 2^-64 that is no smaller, as a whole number of them."""
    return min(WHOLE, math.ceil(Fraction(probability) * WHOLE))


def nearest(probability: float | Fraction) -> int:
    """The nearest multiple of 2^-64, as a whole number of them."""
    return min(WHOLE, round(Fraction(probability) * WHOLE))


def fresh(part: int) -> bool:
    """True with probability part/2^64, another draw each time (`secrets`)."""
    return secrets.randbits(BITS) < part


def epsilon_of(ratio: Fraction, times: int = 1) -> float:
    """times·ln(ratio) of two chances, rounded up: what is promised is never less than what is kept."""
    above = DIGITS.divide(ratio.numerator, ratio.denominator).next_plus(DIGITS)
    exact = DIGITS.multiply(DIGITS.ln(above).next_plus(DIGITS), times).next_plus(DIGITS)
    found = float(exact)
    return found if Decimal(found) >= exact else math.nextafter(found, math.inf)


def new_secret() -> bytes:
    """A new secret of one device; kept there, never sent."""
    return secrets.token_bytes(SECRET_BYTES)


def check_secret(secret: bytes) -> bytes:
    if len(secret) < SECRET_BYTES:
        raise ValueError(f"a secret has {SECRET_BYTES} bytes at least; take new_secret()")
    return secret


class PermanentCoins:
    """The same coins again and again for one secret, one purpose and one value; to all who do not hold the secret they look fresh.

    HMAC-SHA256 of a running number is the source: nothing has to be stored for each value, and the device keeps no list of values.
    """

    def __init__(self, secret: bytes, purpose: str, value: str) -> None:
        self._key = hmac.digest(check_secret(secret), _framed(purpose, value), hashlib.sha256)
        self._block, self._rest = 0, b""

    def toss(self, part: int) -> bool:
        """True with probability part/2^64."""
        if not self._rest:
            self._rest = hmac.digest(self._key, self._block.to_bytes(8, "big"), hashlib.sha256)
            self._block += 1
        word, self._rest = self._rest[:8], self._rest[8:]
        return int.from_bytes(word, "big") < part


def number_below(most: int, secret: bytes, purpose: str) -> int:
    """A number from 0 to most - 1 that a secret and a purpose determine; to all who do not hold the secret it looks drawn evenly."""
    digest = hmac.digest(check_secret(secret), _framed(purpose, ""), hashlib.sha256)
    return int.from_bytes(digest, "big") % most


def places(value: str, *, cohort: int, hashes: int, bits: int) -> tuple[int, ...]:
    """The bits of a Bloom filter that a value sets: `hashes` different ones. Public, the same on every device of a cohort."""
    found: list[int] = []
    counter = 0
    while len(found) < hashes:
        digest = hashlib.sha256(_framed(f"bloom {cohort} {counter}", value)).digest()
        place = int.from_bytes(digest[:16], "big") % bits
        if place not in found:
            found.append(place)
        counter += 1
    return tuple(found)


def digest_of(values: Sequence[str]) -> str:
    """Of a list of texts, in its order."""
    state = hashlib.sha256()
    for value in values:
        text = value.encode("utf-8", "surrogatepass")
        state.update(len(text).to_bytes(8, "big") + text)
    return state.hexdigest()


def _framed(purpose: str, value: str) -> bytes:
    """Two texts as one, so that no other two give the same bytes."""
    first = purpose.encode("utf-8", "surrogatepass")
    return len(first).to_bytes(4, "big") + first + value.encode("utf-8", "surrogatepass")
